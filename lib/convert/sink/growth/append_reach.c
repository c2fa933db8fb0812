/* How far a run that adds to a store writes, for the one that finds what it left. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/number.h"
#include "convert/sink/growth/append.h"

/* ---- the mark ---- */

int cm_append_mark(cm_append *a, uint64_t reach, uint64_t nrows, cm_error *err)
{
    char text[48];
    const uint64_t most = reach > a->reach ? reach : a->reach;
    const uint64_t rows = nrows > a->nrows ? nrows : a->nrows;
    int n = snprintf(text, sizeof(text), "%" PRIu64, most);
    if (rows > 0)
        n += snprintf(text + n, sizeof(text) - (size_t)n, " %" PRIu64, rows);
    text[n++] = '\n';
    return cm_store_put(a->beside.in, CM_APPEND_MARK, text, (size_t)n, err);
}

void cm_append_unmark(cm_append *a)
{
    cm_beside_remove(&a->beside, CM_APPEND_MARK);
}

/*
 * A mark that a crash of the machine cut tells nothing.  What it told of lies behind the end that
 * documents have, where the next run that comes so far writes or removes every chunk.
 */
static void parse_mark(const cm_buf *text, cm_append *a)
{
    char number[48] = {0};
    uint64_t reach = 0, nrows = 0;
    if (text->nbytes < 2 || text->nbytes > sizeof(number) || text->data[text->nbytes - 1] != '\n')
        return;
    memcpy(number, text->data, text->nbytes - 1);
    char *rows = strchr(number, ' ');
    if (rows != NULL)
        *rows++ = '\0';
    if (cm_parse_u64(number, &reach, NULL) != CM_OK ||
        (rows != NULL && cm_parse_u64(rows, &nrows, NULL) != CM_OK))
        return;
    a->reach = reach;
    a->nrows = nrows;
}

int cm_append_sweep(cm_append *a, cm_error *err)
{
    cm_buf text = {0};
    if (a->look || a->beside.in == NULL)
        return CM_OK;
    int rc = cm_store_get(a->beside.in, CM_APPEND_MARK, 64, &text, err);
    if (rc == CM_OK) {
        parse_mark(&text, a);
        rc = cm_store_sweep_temporaries(a->store, "", true, err);
    }
    cm_buf_release(&text);
    return rc == CM_ENOTFOUND ? CM_OK : rc;
}

/* ---- what a run writes, and what one that was killed left ---- */

/* Rows of G that a run which was killed can have written: a row has an element at least. */
static uint64_t rows_reached(const cm_append_state *s, const cm_grown *g)
{
    const cm_append *a = s->append;
    if (a->reach <= s->was || a->nrows > 0)
        return a->nrows;
    return g->rows.nbefore + (a->reach - s->was);
}

int cm_append_mark_reach(const cm_append_state *s, cm_error *err)
{
    uint64_t nrows = 0;
    for (size_t i = 0; i < s->ngrown; i++) {
        const cm_grown *g = &s->grown[i];
        const uint64_t reached = g->rows.listed ? rows_reached(s, g) : 0;
        if (g->rows.listed && g->rows.n > nrows)
            nrows = g->rows.n;
        nrows = reached > nrows ? reached : nrows;
    }
    return cm_append_mark(s->append, s->length, nrows, err);
}

static int remove_rows(const cm_append_state *s, const cm_grown *g, cm_row_range rows,
                       cm_error *err)
{
    const cm_variable *t = cm_dataset_find(s->target, g->growth.path);
    uint64_t origin[CM_MAX_RANK] = {0};
    cm_zarr_meta meta = {0};
    cm_zarr_writer *writer = NULL;
    int rc = cm_zarr_meta_copy(t->words, &meta, err);
    cm_zarr_meta_drop_cuts(&meta); /* names alone matter */
    meta.shape[g->growth.axis] = (rows.end - rows.first) * meta.chunk[g->growth.axis];
    origin[g->growth.axis] = rows.first;
    if (rc == CM_OK)
        rc = cm_zarr_writer_create(s->append->store, t->name, &meta, &writer, err);
    if (rc == CM_OK) {
        cm_zarr_writer_shift(writer, origin);
        rc = cm_zarr_writer_remove_all(writer, err);
    }
    cm_zarr_writer_free(writer);
    cm_zarr_meta_release(&meta);
    return rc;
}

/* The rows from the end of G on that such a run can have written. */
static cm_row_range rows_left(const cm_append_state *s, const cm_grown *g)
{
    const uint64_t reach = s->append->reach;
    if (g->rows.listed)
        return (cm_row_range){g->rows.n, rows_reached(s, g)};
    if (s->length == 0 || reach <= s->length)
        return (cm_row_range){0};
    const uint64_t chunk = g->rows.chunk;
    return (cm_row_range){(s->length - 1) / chunk + 1, (reach - 1) / chunk + 1};
}

int cm_append_remove_reach(const cm_append_state *s, cm_error *err)
{
    int rc = CM_OK;
    for (size_t i = 0; rc == CM_OK && i < s->ngrown; i++) {
        const cm_row_range rows = rows_left(s, &s->grown[i]);
        if (rows.first < rows.end)
            rc = remove_rows(s, &s->grown[i], rows, err);
    }
    return rc;
}

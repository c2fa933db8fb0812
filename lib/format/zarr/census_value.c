/* The census as a value: released, summed, and said in one line. */
#include <chunkmill/census.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "base/number.h"

enum {
    SHOWN_NAMES = 3, /* of one variable in the line */
    SHOWN_ARRAYS = 4
};

void cm_census_release(cm_census *c)
{
    for (size_t i = 0; i < c->narrays; i++) {
        cm_census_array *a = &c->array[i];
        for (int k = 0; k < CM_CENSUS_HOLES; k++) {
            for (size_t j = 0; j < a->hole[k].nnames; j++)
                free(a->hole[k].name[j]);
            free(a->hole[k].name);
            free(a->hole[k].why);
        }
        free(a->name);
        free(a->unclear);
        free(a->undecoded);
        free(a->cell);
    }
    for (size_t i = 0; i < c->nnamed; i++)
        free(c->foreign[i].key);
    free(c->array);
    free(c->foreign);
    free(c->unlisted);
    *c = (cm_census){0};
}

uint64_t cm_census_count_holes(const cm_census *c, cm_census_hole kind)
{
    uint64_t n = 0;
    for (size_t i = 0; i < c->narrays; i++)
        n += c->array[i].hole[kind].n;
    return n;
}

/* ---- the line ------------------------------------------------------------------------------ */

static const char *const IS[] = {"absent", "left out", "empty", "truncated", "undecodable"};

static int add_hole(cm_buf *line, const cm_census_array *a, cm_census_hole kind, bool named,
                    cm_error *err)
{
    const cm_census_count *c = &a->hole[kind];
    int rc = cm_buf_printf(line, err, "%s%s%llu of %llu %s %s %s", named ? "" : a->name,
                           named                ? ", "
                           : a->name[0] != '\0' ? ": "
                                                : "/: ",
                           (unsigned long long)c->n, (unsigned long long)a->nchunks,
                           cm_of_count(a->nchunks, "chunk", "chunks"),
                           cm_of_count(c->n, "is", "are"), IS[kind]);
    for (size_t i = 0; rc == CM_OK && i < c->nnames && i < SHOWN_NAMES; i++)
        rc = cm_buf_printf(line, err, "%s%s", i == 0 ? " (" : ", ", c->name[i]);
    if (rc == CM_OK && c->nnames > 0)
        rc = cm_buf_printf(line, err, "%s)", c->nnames > SHOWN_NAMES || c->more ? ", ..." : "");
    if (rc == CM_OK && kind == CM_CENSUS_ABSENT)
        rc = cm_buf_printf(line, err, ", read as %s",
                           a->no_fill ? "zeros: there is no fill value" : "fill");
    return rc;
}

static int add_array(cm_buf *line, const cm_census_array *a, bool *has_holes, cm_error *err)
{
    int rc = CM_OK;
    *has_holes = false;
    for (int k = 0; rc == CM_OK && k < CM_CENSUS_HOLES; k++) {
        if (k == CM_CENSUS_LEFT_OUT || a->hole[k].n == 0)
            continue;
        if (!*has_holes && line->nbytes > 0)
            rc = cm_buf_printf(line, err, "; ");
        if (rc == CM_OK)
            rc = add_hole(line, a, (cm_census_hole)k, *has_holes, err);
        *has_holes = true;
    }
    return rc;
}

static bool has_holes(const cm_census_array *a)
{
    for (int k = 0; k < CM_CENSUS_HOLES; k++)
        if (k != CM_CENSUS_LEFT_OUT && a->hole[k].n > 0)
            return true;
    return false;
}

int cm_census_line(const cm_census *c, char **out, cm_error *err)
{
    cm_buf line = {0};
    size_t shown = 0, more = 0;
    int rc = CM_OK;
    *out = NULL;
    for (size_t i = 0; rc == CM_OK && i < c->narrays; i++) {
        bool has = false;
        if (shown < SHOWN_ARRAYS)
            rc = add_array(&line, &c->array[i], &has, err);
        else
            more += has_holes(&c->array[i]);
        shown += has;
    }
    if (rc == CM_OK && more > 0)
        rc = cm_buf_printf(&line, err, "; so are chunks of %zu more %s", more,
                           cm_of_count(more, "array", "arrays"));
    if (rc == CM_OK && line.nbytes > 0) {
        *out = cm_asprintf(err, "%.*s", (int)line.nbytes, (const char *)line.data);
        rc = *out != NULL ? CM_OK : CM_ENOMEM;
    }
    cm_buf_release(&line);
    return rc;
}

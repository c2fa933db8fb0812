#include "convert/sink/growth/append_document.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "format/zarr/meta.h"

void cm_grown_document_release(cm_grown_document *d)
{
    for (size_t i = 0; i < d->nedits; i++)
        free(d->edit[i].text);
    free(d->edit);
    free(d->key);
    cm_buf_release(&d->text);
}

static int add_edit(cm_grown_document *d, cm_json_place at, char *text, cm_error *err)
{
    if (text == NULL)
        return CM_ENOMEM;
    cm_json_edit *list = cm_make_room(d->edit, d->nedits, &d->capacity, sizeof(*list), 8);
    if (list == NULL) {
        free(text);
        return cm_fail(err, CM_ENOMEM, "no memory for metadata");
    }
    d->edit = list;
    list[d->nedits++] = (cm_json_edit){at, text};
    return CM_OK;
}

int cm_grown_document_unexpected(const cm_grown_document *d, const cm_growth *g, const char *what,
                                 cm_error *err)
{
    return cm_fail(err, CM_EFORMAT, "%s: array %s: its %s is not where it is looked for", d->key,
                   g->path, what);
}

/* The chunks of a coordinate that is repaired: of a regular grid its one length. */
static int edit_chunks(cm_grown_document *d, cm_json_place array, const cm_growth *g, cm_error *err)
{
    cm_json_place grid, inside, at, encoding;
    const char *text = cm_grown_document_text(d);
    if (!cm_json_place_member(text, array, "chunk_grid", &grid) ||
        !cm_json_place_member(text, grid, "configuration", &inside) ||
        !cm_json_place_member(text, array, "chunk_key_encoding", &encoding))
        return cm_grown_document_unexpected(d, g, "chunk grid", err);
    const bool lists = cm_json_place_member(text, inside, "chunk_shapes", &at);
    if (!lists && (!cm_json_place_member(text, inside, "chunk_shape", &at) ||
                   !cm_json_place_element(text, at, 0, &at)))
        return cm_grown_document_unexpected(d, g, "chunk grid", err);
    int rc = lists ? add_edit(d, grid,
                              cm_asprintf(err,
                                          "{\"name\": \"regular\", \"configuration\": "
                                          "{\"chunk_shape\": [%" PRIu64 "]}}",
                                          g->chunk),
                              err)
                   : add_edit(d, at, cm_asprintf(err, "%" PRIu64, g->chunk), err);
    if (rc != CM_OK)
        return rc;
    return add_edit(
        d, encoding,
        cm_asprintf(err, "{\"name\": \"default\", \"configuration\": {\"separator\": \"%c\"}}",
                    g->separator),
        err);
}

/* CUTS as a list that stands where OLD stood: over lines, and as deep, where that was. */
static int list_text(const char *old, size_t nbytes, const cm_cuts *cuts, char **out, cm_error *err)
{
    size_t line = nbytes; /* where the last one of OLD begins */
    while (line > 0 && old[line - 1] != '\n')
        line--;
    const int deep = line > 0 ? (int)(nbytes - 1 - line) : 0;
    cm_buf flat = {0}, text = {0};
    cm_json *list = cm_zarr_lengths_to_v3(cuts);
    int rc = list == NULL ? cm_fail(err, CM_ENOMEM, "no memory for metadata")
                          : cm_json_write(list, line > 0, &flat, err);
    for (size_t i = 0; rc == CM_OK && i < flat.nbytes; i++) {
        const char c = (char)flat.data[i];
        rc = c == '\n' ? cm_buf_printf(&text, err, "\n%*s", deep, "")
                       : cm_buf_append(&text, &c, 1, err);
    }
    if (rc == CM_OK && (*out = cm_asprintf(err, "%.*s", (int)text.nbytes, text.data)) == NULL)
        rc = CM_ENOMEM;
    cm_json_free(list);
    cm_buf_release(&flat);
    cm_buf_release(&text);
    return rc;
}

static int edit_lengths(cm_grown_document *d, cm_json_place array, const cm_growth *g,
                        cm_error *err)
{
    cm_json_place at;
    char *list = NULL;
    const char *text = cm_grown_document_text(d);
    if (!cm_json_place_member(text, array, "chunk_grid", &at) ||
        !cm_json_place_member(text, at, "configuration", &at) ||
        !cm_json_place_member(text, at, "chunk_shapes", &at) ||
        !cm_json_place_element(text, at, g->axis, &at))
        return cm_grown_document_unexpected(d, g, "chunk grid", err);
    int rc = list_text(text + at.begin, at.end - at.begin, g->cuts, &list, err);
    return rc == CM_OK ? add_edit(d, at, list, err) : rc;
}

int cm_grown_document_edit_array(cm_grown_document *d, cm_json_place array, const cm_growth *g,
                                 cm_error *err)
{
    cm_json_place shape, at;
    uint64_t length;
    cm_json *j = NULL;
    const char *text = cm_grown_document_text(d);
    if (!cm_json_place_member(text, array, "shape", &shape) ||
        !cm_json_place_element(text, shape, g->axis, &at) ||
        cm_json_parse(text + at.begin, at.end - at.begin, &j, NULL) != CM_OK)
        return cm_grown_document_unexpected(d, g, "shape", err);
    bool number = cm_json_get_u64(j, &length);
    cm_json_free(j);
    if (!number || length != g->was)
        return cm_fail(err, CM_EFORMAT,
                       "%s: array %s: its length is not %" PRIu64
                       ", which other metadata say; `consolidate` renews them",
                       d->key, g->path, g->was);
    int rc = g->in_place ? CM_OK : add_edit(d, at, cm_asprintf(err, "%" PRIu64, g->length), err);
    if (rc != CM_OK || g->chunk > 0)
        return rc == CM_OK ? edit_chunks(d, array, g, err) : rc;
    return g->cuts != NULL ? edit_lengths(d, array, g, err) : CM_OK;
}

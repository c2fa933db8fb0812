/*
 * Reads and writes the chunk grids of Zarr v3: regular, and rectilinear, whose chunks differ in
 * length along a dimension.
 *
 * zarr-extensions chunk-grids/rectilinear: each dimension is one length, or a list of lengths and
 * of pairs [length, count].  The last chunks may reach past the array.
 */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "format/zarr/internal.h"

#define RECTILINEAR "rectilinear"
#define SHAPES      "chunk_shapes"

enum {
    MAX_SHAPES = 1 << 16 /* of one array's chunks */
};

/* ---- reading ---- */

/* A length or a count: longer ones would overflow signed offsets. */
static bool read_number(const cm_json *j, uint64_t *out)
{
    return cm_json_get_u64(j, out) && *out > 0 && *out <= INT64_MAX;
}

/* One entry of a dimension's list. */
static int read_entry(const cm_json *j, unsigned dim, cm_cuts *cuts, cm_error *err)
{
    uint64_t length, count = 1;
    const bool is_run = cm_json_is(j, CM_JSON_ARRAY);
    if (is_run && cm_json_length(j) != 2)
        return cm_fail(err, CM_EFORMAT,
                       SHAPES ": dimension %u has a run that is not [length, count]", dim);
    if (!read_number(is_run ? cm_json_at(j, 0) : j, &length))
        return cm_fail(err, CM_EFORMAT, SHAPES ": dimension %u has a length that is not at least 1",
                       dim);
    if (is_run && !read_number(cm_json_at(j, 1), &count))
        return cm_fail(err, CM_EFORMAT, SHAPES ": dimension %u has a count that is not at least 1",
                       dim);
    int rc = cm_cuts_add(cuts, length, count, err);
    if (rc != CM_OK)
        cm_error_prefix(err, SHAPES ": dimension %u", dim);
    return rc;
}

static int read_list(const cm_json *list, unsigned dim, cm_cuts *cuts, cm_error *err)
{
    const size_t n = cm_json_length(list);
    int rc = CM_OK;
    if (n == 0)
        return cm_fail(err, CM_EFORMAT, SHAPES ": dimension %u has no lengths", dim);
    for (size_t i = 0; rc == CM_OK && i < n; i++)
        rc = read_entry(cm_json_at(list, i), dim, cuts, err);
    return rc;
}

/* Moves CUTS to OUT.  Chunks of one length need none; those behind the array are not there. */
static int take_cuts(cm_cuts *cuts, unsigned dim, cm_zarr_meta *out, cm_error *err)
{
    const uint64_t length = out->shape[dim];
    if (cuts->end < length)
        return cm_fail(err, CM_EFORMAT,
                       SHAPES ": the chunks of dimension %u have %" PRIu64
                              " elements, the array has %" PRIu64,
                       dim, cuts->end, length);
    out->chunk[dim] = cuts->run[0].length;
    cm_cuts_trim(cuts, length);
    if (cuts->nruns < 2)
        return CM_OK;
    out->chunk[dim] = cuts->longest;
    out->cuts[dim] = cm_calloc(1, sizeof(*cuts), err);
    if (out->cuts[dim] == NULL)
        return CM_ENOMEM;
    *out->cuts[dim] = *cuts;
    *cuts = (cm_cuts){0};
    return CM_OK;
}

static int read_dimension(const cm_json *j, unsigned dim, cm_zarr_meta *out, cm_error *err)
{
    cm_cuts cuts = {0};
    if (!cm_json_is(j, CM_JSON_ARRAY)) {
        if (read_number(j, &out->chunk[dim]))
            return CM_OK;
        return cm_fail(err, CM_EFORMAT,
                       SHAPES ": dimension %u is neither a length of at least 1 nor a list", dim);
    }
    int rc = read_list(j, dim, &cuts, err);
    if (rc == CM_OK)
        rc = take_cuts(&cuts, dim, out, err);
    cm_cuts_release(&cuts);
    return rc;
}

static int by_number(const void *a, const void *b)
{
    const uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;
    return (x > y) - (x < y);
}

/* How many different lengths CUTS have. */
static int count_lengths(const cm_cuts *cuts, uint64_t *n, cm_error *err)
{
    uint64_t *length = cm_calloc(cuts->nruns, sizeof(length[0]), err);
    if (length == NULL)
        return CM_ENOMEM;
    for (size_t i = 0; i < cuts->nruns; i++)
        length[i] = cuts->run[i].length;
    qsort(length, cuts->nruns, sizeof(length[0]), by_number);
    *n = 1;
    for (size_t i = 1; i < cuts->nruns; i++)
        *n += length[i] != length[i - 1];
    free(length);
    return CM_OK;
}

/* Each shape needs a chain of codecs of its own. */
static int check_shapes(const cm_zarr_meta *meta, cm_error *err)
{
    uint64_t all = 1;
    for (unsigned j = 0; j < meta->rank; j++) {
        uint64_t n = 1;
        int rc = meta->cuts[j] != NULL ? count_lengths(meta->cuts[j], &n, err) : CM_OK;
        if (rc != CM_OK)
            return rc;
        all = n > MAX_SHAPES ? n : all * n;
        if (all > MAX_SHAPES)
            return cm_fail(err, CM_EUNSUPPORTED,
                           "a rectilinear chunk grid with chunks of more than %d shapes is not "
                           "supported",
                           MAX_SHAPES);
    }
    return CM_OK;
}

static int read_rectilinear(const cm_json *config, cm_zarr_meta *out, cm_error *err)
{
    const cm_json *shapes = cm_json_member(config, SHAPES);
    const char *kind = cm_json_text(cm_json_member(config, "kind"), NULL);
    const size_t n = cm_json_length(shapes);
    if (kind == NULL)
        return cm_fail(err, CM_EFORMAT, "the " RECTILINEAR " chunk grid has no kind");
    if (strcmp(kind, "inline") != 0)
        return cm_fail(err, CM_EUNSUPPORTED,
                       "a " RECTILINEAR " chunk grid of kind '%s' is not supported", kind);
    if (!cm_json_is(shapes, CM_JSON_ARRAY))
        return cm_fail(err, CM_EFORMAT, SHAPES " is not a list");
    int rc = CM_OK;
    for (unsigned j = 0; rc == CM_OK && j < n && j < out->rank; j++)
        rc = read_dimension(cm_json_at(shapes, j), j, out, err);
    if (rc == CM_OK)
        rc = check_shapes(out, err);
    if (rc != CM_OK)
        return rc;
    return cm_zarr_check_grid(out, n > CM_MAX_RANK ? CM_MAX_RANK + 1 : (unsigned)n, SHAPES, err);
}

int cm_zarr_grid_from_v3(const cm_json *j, cm_zarr_meta *out, cm_error *err)
{
    const char *name;
    const cm_json *config;
    int rc = cm_zarr_named(cm_json_member(j, "chunk_grid"), "chunk_grid", &name, &config, err);
    if (rc != CM_OK)
        return rc;
    if (strcmp(name, RECTILINEAR) == 0)
        return read_rectilinear(config, out, err);
    if (strcmp(name, "regular") != 0)
        return cm_fail(err, CM_EUNSUPPORTED, "chunk grid '%s' is not supported", name);
    unsigned rank;
    rc = cm_zarr_read_lengths(cm_json_member(config, "chunk_shape"), "chunk_shape", 0, &rank,
                              out->chunk, err);
    if (rc != CM_OK)
        return rc;
    return cm_zarr_check_grid(out, rank, "chunk_shape", err);
}

bool cm_zarr_meta_lists(const cm_zarr_meta *meta, unsigned dim)
{
    const char *name;
    const cm_json *config;
    if (meta->raw == NULL || meta->zarr_format != 3)
        return meta->cuts[dim] != NULL;
    return cm_zarr_named(cm_json_member(meta->raw, "chunk_grid"), "chunk_grid", &name, &config,
                         NULL) == CM_OK &&
           strcmp(name, RECTILINEAR) == 0 &&
           cm_json_is(cm_json_at(cm_json_member(config, SHAPES), dim), CM_JSON_ARRAY);
}

/* ---- writing ---- */

static cm_json *pair(uint64_t length, uint64_t count)
{
    const uint64_t both[2] = {length, count};
    return count > 1 ? cm_zarr_lengths(2, both) : cm_json_u64(length);
}

cm_json *cm_zarr_lengths_to_v3(const cm_cuts *cuts)
{
    cm_json *list = cm_json_array();
    for (size_t i = 0; i < cuts->nruns; i++) {
        const cm_cut_run *r = &cuts->run[i];
        const uint64_t behind = i + 1 < cuts->nruns ? cuts->run[i + 1].number : cuts->n;
        if (cm_json_append(list, pair(r->length, behind - r->number), NULL) != CM_OK) {
            cm_json_free(list);
            return NULL;
        }
    }
    return list;
}

/* Runs as zarr-python writes them, which keeps chunks that do not differ as one length. */
static cm_json *dimension_json(const cm_zarr_meta *meta, unsigned j)
{
    const cm_cuts *cuts = meta->cuts[j];
    return cuts != NULL ? cm_zarr_lengths_to_v3(cuts) : cm_json_u64(meta->chunk[j]);
}

static cm_json *shapes_json(const cm_zarr_meta *meta)
{
    cm_json *list = cm_json_array();
    for (unsigned j = 0; j < meta->rank; j++)
        if (cm_json_append(list, dimension_json(meta, j), NULL) != CM_OK) {
            cm_json_free(list);
            return NULL;
        }
    return list;
}

cm_json *cm_zarr_grid_to_v3(const cm_zarr_meta *meta)
{
    cm_json *config = cm_json_object();
    const bool is_cut = cm_zarr_meta_is_cut(meta);
    int rc = CM_OK;
    if (is_cut) {
        cm_zarr_set(&rc, config, "kind", cm_json_string("inline"), NULL);
        cm_zarr_set(&rc, config, SHAPES, shapes_json(meta), NULL);
    } else {
        cm_zarr_set(&rc, config, "chunk_shape", cm_zarr_lengths(meta->rank, meta->chunk), NULL);
    }
    if (rc != CM_OK) {
        cm_json_free(config);
        return NULL;
    }
    return cm_zarr_named_json(is_cut ? RECTILINEAR : "regular", config);
}

/* Copies an array's objects from one store to another unchanged, or counts them. */
#include <stdlib.h>
#include <string.h>

#include "format/zarr/writer.h"

enum {
    PIECE_NBYTES = 1 << 20,
    MAX_DEPTH = 128
};

typedef struct carry {
    cm_store *from, *to; /* TO is NULL: objects are counted */
    const char *from_path, *to_path;
    unsigned depth;
    uint8_t *piece;
    uint64_t *nobjects, *nbytes;
} carry;

static bool is_metadata(const char *name)
{
    return strcmp(name, "zarr.json") == 0 || strcmp(name, ".zarray") == 0 ||
           strcmp(name, ".zattrs") == 0 || strcmp(name, ".zgroup") == 0 ||
           strcmp(name, ".zmetadata") == 0;
}

static int copy_object(const carry *c, const char *from_key, const char *to_key, cm_error *err)
{
    cm_object_reader *in;
    cm_object_writer *out;
    int rc = cm_object_open(c->from, from_key, &in, err);
    if (rc != CM_OK)
        return rc;
    uint64_t total = cm_object_nbytes(in);
    const cm_object_form form = {.most_nbytes = total, .in_order = true};
    rc = cm_object_create(c->to, to_key, &form, &out, err);
    for (uint64_t at = 0; rc == CM_OK && at < total; at += PIECE_NBYTES) {
        size_t nbytes = total - at < PIECE_NBYTES ? (size_t)(total - at) : PIECE_NBYTES;
        rc = cm_object_read(in, at, c->piece, nbytes, err);
        if (rc == CM_OK)
            rc = cm_object_write(out, at, c->piece, nbytes, err);
    }
    cm_object_close(in);
    if (rc != CM_OK) {
        cm_object_abort(out);
        return rc;
    }
    rc = cm_object_commit(out, err);
    if (rc == CM_OK) {
        ++*c->nobjects;
        *c->nbytes += total;
    }
    return rc;
}

static int visit(void *context, const char *name, bool is_prefix, cm_error *err)
{
    const carry *c = context;
    if (c->depth == 0 && is_metadata(name))
        return CM_OK;
    if (c->depth > MAX_DEPTH)
        return cm_fail(err, CM_EFORMAT, "%s: folders are nested deeper than %d", c->from_path,
                       MAX_DEPTH);
    char *from = cm_asprintf(err, "%s%s%s", c->from_path, c->from_path[0] ? "/" : "", name);
    char *to = cm_asprintf(err, "%s%s%s", c->to_path, c->to_path[0] ? "/" : "", name);
    int rc = from != NULL && to != NULL ? CM_OK : CM_ENOMEM;
    if (rc == CM_OK && is_prefix) {
        carry below = *c;
        below.from_path = from;
        below.to_path = to;
        below.depth++;
        rc = cm_store_list(c->from, from, visit, &below, err);
    } else if (rc == CM_OK && c->to == NULL) {
        ++*c->nobjects;
    } else if (rc == CM_OK) {
        rc = copy_object(c, from, to, err);
    }
    free(from);
    free(to);
    return rc;
}

int cm_zarr_objects_count(cm_store *store, const char *path, uint64_t *nobjects, cm_error *err)
{
    uint64_t n = 0, nbytes = 0;
    carry c = {
        .from = store, .from_path = path, .to_path = path, .nobjects = &n, .nbytes = &nbytes};
    int rc = cm_store_list(store, path, visit, &c, err);
    *nobjects = n;
    return rc == CM_ENOTFOUND ? CM_OK : rc; /* nothing stored */
}

int cm_zarr_objects_copy(cm_store *from, const char *from_path, cm_store *to, const char *to_path,
                         uint64_t *nobjects, uint64_t *nbytes, cm_error *err)
{
    uint64_t ignored = 0;
    carry c = {
        .from = from,
        .to = to,
        .from_path = from_path,
        .to_path = to_path,
        .piece = cm_calloc(PIECE_NBYTES, 1, err),
        .nobjects = nobjects != NULL ? nobjects : &ignored,
        .nbytes = nbytes != NULL ? nbytes : &ignored,
    };
    if (c.piece == NULL)
        return CM_ENOMEM;
    int rc = cm_store_list(from, from_path, visit, &c, err);
    free(c.piece);
    return rc == CM_ENOTFOUND ? CM_OK : rc; /* nothing stored */
}

/* Shared by the tests of lib/format/nc: temporary files, and reading whole arrays. */
#ifndef TESTS_NC_SUPPORT_H
#define TESTS_NC_SUPPORT_H

#include <stdio.h>
#include <unistd.h>

#include "../unit.h"
#include "format/nc/nc.h"
#include "model/copy.h"

#define ASSERT_OK(call, err)                                                                       \
    do {                                                                                           \
        if ((call) != CM_OK)                                                                       \
            fail_msg("%s: %s", #call, (err).text);                                                 \
    } while (0)

/* A new path in TMPDIR that is removed by the caller; its text is static. */
static inline const char *temp_path(const char *name)
{
    static char path[256];
    const char *folder = getenv("TMPDIR");
    snprintf(path, sizeof path, "%s/cm_nc_%d_%s", folder ? folder : "/tmp", (int)getpid(), name);
    return path;
}

static inline cm_nc_var *find_var(cm_nc_file *file, const char *name)
{
    for (size_t i = 0; i < cm_nc_nvars(file); i++)
        if (strcmp(cm_nc_var_at(file, i)->array.name, name) == 0)
            return cm_nc_var_at(file, i);
    fail_msg("there is no variable %s", name);
    return NULL;
}

static inline cm_box whole(const cm_array *a)
{
    cm_box box = {.rank = a->rank};
    memcpy(box.shape, a->shape, sizeof box.shape);
    return box;
}

static inline size_t array_nbytes(const cm_array *a)
{
    cm_box box = whole(a);
    return (size_t)cm_box_nelem(&box) * a->dtype.nbytes;
}

/* The part of chunk NUMBER that lies in the array, decoded or filled, to its place in DST. */
static inline int read_chunk(cm_array *a, cm_codec_ctx *ctx, uint64_t number, cm_buf *stored,
                             uint8_t *decoded, uint8_t *dst, cm_error *err)
{
    static const uint8_t zero[16];
    cm_fetch fetch;
    int rc = a->ops->fetch(a, number, stored, &fetch, err);
    if (rc)
        return rc;
    if (fetch.present == a->ops->is_absent(a, number))
        return cm_fail(err, CM_EINTERNAL, "fetch and is_absent disagree about %u",
                       (unsigned)number);
    if (!fetch.present)
        cm_fill(decoded, a->grid.chunk_nelem, a->dtype.nbytes, a->fill ? a->fill : zero);
    else
        rc = cm_chain_decode(a->chain, ctx, stored->data, stored->nbytes, fetch.skip, decoded, err);
    if (rc)
        return rc;
    uint64_t coord[CM_MAX_RANK];
    cm_box box;
    int64_t from[CM_MAX_RANK], to[CM_MAX_RANK];
    cm_grid_coord(&a->grid, number, coord);
    cm_grid_box(&a->grid, coord, &box);
    cm_strides_c(a->rank, a->grid.chunk, a->dtype.nbytes, from);
    cm_strides_c(a->rank, a->shape, a->dtype.nbytes, to);
    for (unsigned j = 0; j < a->rank; j++)
        dst += box.start[j] * (uint64_t)to[j];
    cm_copy_nd(a->rank, box.shape, a->dtype.nbytes, dst, to, decoded, from);
    return CM_OK;
}

/* All elements of a prepared array through its own ops. */
static inline int read_all(cm_array *a, void *dst, cm_error *err)
{
    cm_box box = whole(a);
    if (!a->chunked)
        return a->ops->read_box(a, &box, dst, err);
    cm_codec_ctx *ctx = cm_codec_ctx_create(err);
    cm_buf stored;
    cm_buf_init(&stored, 0);
    uint8_t *decoded = malloc(cm_chain_decoded_nbytes(a->chain));
    int rc = CM_OK;
    for (uint64_t i = 0; i < a->grid.nchunks && !rc; i++)
        rc = read_chunk(a, ctx, i, &stored, decoded, dst, err);
    free(decoded);
    cm_buf_release(&stored);
    cm_codec_ctx_free(ctx);
    return rc;
}

/* Asserts that the way of VAR and netCDF-C give the same bytes. */
static inline void assert_same_as_library(cm_nc_file *file, cm_nc_var *var)
{
    cm_error err;
    cm_box box = whole(&var->array);
    size_t nbytes = array_nbytes(&var->array);
    uint8_t *fast = malloc(nbytes + 1), *library = malloc(nbytes + 1);
    memset(fast, 0xAA, nbytes + 1);
    memset(library, 0x55, nbytes + 1);
    ASSERT_OK(cm_nc_read_library(file, var, &box, library, &err), err);
    ASSERT_OK(read_all(&var->array, fast, &err), err);
    for (size_t i = 0; i < nbytes; i++)
        if (fast[i] != library[i])
            fail_msg("%s: byte %zu of %zu differs: %02x, netCDF-C has %02x", var->array.name, i,
                     nbytes, fast[i], library[i]);
    assert_int_equal(fast[nbytes], 0xAA);
    free(fast);
    free(library);
}

#endif

/* Shared by the Zarr tests: a store in memory and arrays in it. */
#ifndef TESTS_ZARR_SUPPORT_H
#define TESTS_ZARR_SUPPORT_H

#include <stdio.h>

#include "../unit.h"
#include "format/array.h"
#include "format/zarr/open.h"
#include "format/zarr/writer.h"

/* Fails with the error's sentence. */
#define OK(call)                                                                                   \
    do {                                                                                           \
        if ((call) != CM_OK)                                                                       \
            fail_msg("%s: %s", #call, err.text);                                                   \
    } while (0)

static inline cm_store *memory_store(void)
{
    cm_store *store;
    assert_int_equal(cm_store_open_memory(&store, NULL), CM_OK);
    return store;
}

static inline void put_text(cm_store *store, const char *key, const char *text)
{
    assert_int_equal(cm_store_put(store, key, text, strlen(text), NULL), CM_OK);
}

static inline bool has_key(cm_store *store, const char *key)
{
    return cm_store_size(store, key, NULL, NULL) == CM_OK;
}

/* Metadata from a zarr.json. */
static inline cm_zarr_meta meta_v3(const char *text)
{
    cm_json *j;
    cm_zarr_meta m;
    cm_error err = {0};
    OK(cm_json_parse(text, strlen(text), &j, &err));
    OK(cm_zarr_meta_from_v3(j, &m, &err));
    cm_json_free(j);
    return m;
}

/* An int16 array of SHAPE in CHUNKs with CODECS, fill value 7; in BUF of SIZE. */
static inline const char *array_json(char *buf, size_t size, const char *shape, const char *chunk,
                                     const char *codecs)
{
    snprintf(buf, size,
             "{\"zarr_format\":3,\"node_type\":\"array\",\"shape\":%s,\"data_type\":\"int16\","
             "\"chunk_grid\":{\"name\":\"regular\",\"configuration\":{\"chunk_shape\":%s}},"
             "\"chunk_key_encoding\":\"default\",\"fill_value\":7,\"codecs\":%s}",
             shape, chunk, codecs);
    return buf;
}

#define GROUP_JSON "{\"zarr_format\":3,\"node_type\":\"group\"}"
#define SHARDED(chunk, location)                                                                   \
    "[{\"name\":\"sharding_indexed\",\"configuration\":{\"chunk_shape\":" chunk                    \
    ",\"codecs\":[\"bytes\"],\"index_codecs\":[\"bytes\",\"crc32c\"],\"index_location\":"          \
    "\"" location "\"}}]"

#endif

/*
 * Shards of hostile bytes through the reader: index at either end, with and without checksum,
 * nested or not.
 */
#include "fuzz.h"
#include "store.h"

#define ARRAY(dtype, shape, shard, codecs)                                                         \
    "{\"zarr_format\":3,\"node_type\":\"array\",\"shape\":" shape ",\"data_type\":\"" dtype        \
    "\",\"chunk_grid\":{\"name\":\"regular\",\"configuration\":{\"chunk_shape\":" shard "}},"      \
    "\"chunk_key_encoding\":{\"name\":\"default\"},\"fill_value\":0,\"codecs\":[" codecs           \
    "],\"attributes\":{}}"
#define SHARDING(chunk, codecs, index, location)                                                   \
    "{\"name\":\"sharding_indexed\",\"configuration\":{\"chunk_shape\":" chunk                     \
    ",\"codecs\":[" codecs "],\"index_codecs\":[" index "],\"index_location\":\"" location "\"}}"
#define BYTES "{\"name\":\"bytes\",\"configuration\":{\"endian\":\"little\"}}"
#define BIG   "{\"name\":\"bytes\",\"configuration\":{\"endian\":\"big\"}}"
#define CRC   ",{\"name\":\"crc32c\"}"
#define GZIP  ",{\"name\":\"gzip\",\"configuration\":{\"level\":1}}"

static const char *const documents[] = {
    ARRAY("int16", "[6,4]", "[4,4]", SHARDING("[2,2]", BYTES, BYTES, "end")),
    ARRAY("int16", "[6,4]", "[4,4]", SHARDING("[2,2]", BYTES, BYTES, "start")),
    ARRAY("float32", "[8]", "[8]", SHARDING("[2]", BYTES CRC, BYTES CRC, "end")),
    ARRAY("uint8", "[3,3]", "[3,3]", SHARDING("[1,3]", BYTES GZIP, BIG, "end")),
    ARRAY("uint8", "[8]", "[8]",
          SHARDING("[4]", SHARDING("[2]", BYTES, BYTES, "start"), BYTES, "end")),
    ARRAY("uint8", "[8]", "[8]", SHARDING("[2]", BYTES, BYTES, "end") GZIP),
    ARRAY("float64", "[]", "[]", SHARDING("[]", BYTES, BYTES, "end")),
    ARRAY("string", "[4]", "[4]", SHARDING("[2]", "{\"name\":\"vlen-utf8\"}", BYTES, "end")),
};

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t nbytes)
{
    if (nbytes < 2)
        return 0;
    const size_t n = data[0] % (sizeof documents / sizeof *documents);
    cm_store *store;
    REQUIRE(cm_store_open_memory(&store, NULL) == CM_OK);
    REQUIRE(cm_store_put(store, "zarr.json", documents[n], strlen(documents[n]), NULL) == CM_OK);
    static const char *const keys[] = {"c/0", "c/0/0", "c", "c/1/0"};
    /* The bytes as the only shard, or as two: the key of the other one follows from the shape. */
    const size_t cut = data[1] % nbytes < 2 ? nbytes : data[1] % nbytes;
    for (size_t i = 0; i < 3; i++)
        REQUIRE(cm_store_put(store, keys[i], data + 2, cut - 2, NULL) == CM_OK || i == 2);
    REQUIRE(cm_store_put(store, keys[3], data + cut, nbytes - cut, NULL) == CM_OK);
    fuzz_read_store(store);
    cm_store_free(store);
    return 0;
}

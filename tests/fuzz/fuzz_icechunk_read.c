/*
 * Snapshots, manifests and configurations of Icechunk that nobody wrote: what a manifest has is
 * found in it, and a store of them reads or refuses, within bounds.
 */
#include "format/icechunk/flex_read.h"
#include "format/icechunk/key.h"
#include "format/icechunk/read_impl.h"
#include "fuzz.h"
#include "store.h"

#define FIRST "1CECHNKREP0F1RSTCMT0" /* any snapshot */

static volatile uint8_t sink;

/* Reads all of it, for a sanitizer to see. */
static void touch(const void *bytes, size_t nbytes)
{
    for (size_t i = 0; i < nbytes; i++)
        sink ^= ((const uint8_t *)bytes)[i];
}

static cm_store *open_root(void)
{
    cm_store *root;
    REQUIRE(cm_store_open_memory(&root, NULL) == CM_OK);
    cm_store_set_memory(root, 64 << 20); /* else the system is asked for what is available */
    return root;
}

/* Puts a metadata file whose flatbuffer is DATA, not compressed. */
static void put(cm_store *root, const char *key, cm_ice_kind kind, const uint8_t *data,
                size_t nbytes)
{
    cm_buf file = {0};
    const uint8_t head[] = {2, (uint8_t)kind, 0};
    const char *writer = "                        ";
    REQUIRE(cm_buf_append(&file, CM_ICE_MAGIC, CM_ICE_MAGIC_NBYTES, NULL) == CM_OK);
    REQUIRE(cm_buf_append(&file, writer, CM_ICE_WRITER_NBYTES, NULL) == CM_OK);
    REQUIRE(cm_buf_append(&file, head, sizeof(head), NULL) == CM_OK);
    REQUIRE(cm_buf_append(&file, data, nbytes, NULL) == CM_OK);
    REQUIRE(cm_store_put(root, key, file.data, file.nbytes, NULL) == CM_OK);
    cm_buf_release(&file);
}

/* A location, decompressed, has no NUL, and is no longer than a URL may be. */
static void check_location(const cm_ice_refs *refs, const cm_ice_chunk *chunk)
{
    static char room[CM_ICE_MAX_URL];
    cm_ice_text text;
    touch(chunk->location.bytes, chunk->location.n);
    if (cm_ice_chunk_location(refs->manifest, chunk, room, &text, NULL) != CM_OK)
        return;
    REQUIRE(text.n <= CM_ICE_MAX_URL && memchr(text.bytes, '\0', text.n) == NULL);
    touch(text.bytes, text.n);
}

static void check_refs(const cm_ice_refs *refs)
{
    for (size_t k = 0; k < refs->list.n; k++) {
        uint32_t index[CM_MAX_RANK];
        cm_ice_chunk found;
        const cm_ice_chunk chunk = cm_ice_refs_at(refs, k);
        cm_ice_refs_index(refs, k, index);
        REQUIRE(cm_ice_refs_find(refs, index, &found));
        REQUIRE(found.where == chunk.where && found.offset == chunk.offset);
        REQUIRE(cm_ice_refs_bound(refs, index, refs->rank, false) == k);
        REQUIRE(cm_ice_refs_bound(refs, index, refs->rank, true) == k + 1);
        REQUIRE(chunk.offset + chunk.nbytes <= INT64_MAX);
        if (chunk.where == CM_ICE_INLINE)
            touch(chunk.bytes, (size_t)chunk.nbytes);
        else if (chunk.where == CM_ICE_IN_FILE)
            touch(chunk.id, CM_ICE_ID);
        else
            check_location(refs, &chunk);
    }
}

static void read_manifest(const uint8_t *data, size_t nbytes)
{
    static const uint8_t id[CM_ICE_ID];
    char key[CM_ICE_KEY_SIZE];
    cm_error err = {0};
    cm_store *root = open_root();
    cm_ice_manifest_view m;
    cm_ice_key("manifests", id, key);
    put(root, key, CM_ICE_MANIFEST_FILE, data, nbytes);
    if (cm_ice_manifest_read(root, id, &m, &err) == CM_OK) {
        const cm_flatbuf f = {m.flat.data, m.flat.nbytes};
        for (size_t i = 0; i < m.arrays.n; i++) {
            cm_flatbuf_table t;
            REQUIRE(cm_flatbuf_table_from(&f, m.arrays.first + 4 * i, &t));
            const cm_ice_refs refs = cm_ice_manifest_refs(
                &m, cm_flatbuf_bytes(&f, &t, CM_ICE_REFS_NODE, CM_ICE_NODE_ID));
            check_refs(&refs);
        }
        cm_ice_manifest_release(&m);
    } else {
        REQUIRE(err.text[0] != '\0');
    }
    cm_store_free(root);
}

static int see(void *context, const char *name, bool is_prefix, cm_error *err)
{
    (void)is_prefix;
    (void)err;
    *(size_t *)context += strlen(name);
    return CM_OK;
}

static int see_key(void *context, const char *below, uint64_t nbytes, cm_error *err)
{
    cm_store *store = context;
    (void)nbytes; /* a chunk that two manifests have has the size of one of them */
    REQUIRE(cm_store_size(store, below, NULL, err) == CM_OK);
    return CM_OK;
}

/* The manifest lies under the id of every part of the snapshot's arrays. */
static void put_manifests(cm_store *root, const uint8_t *data, size_t nbytes)
{
    uint8_t id[CM_ICE_ID];
    cm_ice_view view;
    REQUIRE(cm_ice_id_parse(FIRST, id));
    if (cm_ice_view_read(root, id, &view, NULL) == CM_OK)
        for (size_t i = 0; i < view.nnodes && i < 8; i++)
            for (size_t k = 0; k < view.node[i].nparts && k < 4; k++) {
                char key[CM_ICE_KEY_SIZE];
                cm_ice_key("manifests", view.node[i].part[k].id, key);
                put(root, key, CM_ICE_MANIFEST_FILE, data, nbytes);
            }
    cm_ice_view_release(&view);
}

static void read_store(fuzz_input in)
{
    static const char main[] = "{\"snapshot\":\"" FIRST "\"}";
    cm_error err = {0};
    cm_store *root = open_root(), *store;
    size_t n = (size_t)fuzz_number(&in, 2), seen = 0;
    n = n < in.nbytes ? n : in.nbytes;
    REQUIRE(cm_store_put(root, CM_ICECHUNK_MAIN, main, strlen(main), NULL) == CM_OK);
    put(root, "snapshots/" FIRST, CM_ICE_SNAPSHOT_FILE, in.data, n);
    put_manifests(root, in.data + n, in.nbytes - n);
    if (cm_ice_store_over(root, false, "fuzz", "main", NULL, &store, &err) == CM_OK) {
        (void)cm_store_list(store, "", see, &seen, NULL);
        (void)cm_store_walk(store, "", see_key, store, NULL);
        fuzz_read_store(store);
        cm_store_free(store);
    } else {
        REQUIRE(err.text[0] != '\0');
    }
}

static void read_flex(const cm_flex *v, unsigned depth)
{
    size_t n = 0;
    const char *text = cm_flex_text(v, &n);
    touch(text, text != NULL ? n : 0);
    n = cm_flex_count(v);
    const cm_flex named = cm_flex_member(v, "name");
    if (depth < 3)
        read_flex(&named, depth + 1);
    for (size_t i = 0; i < n && i < 8 && depth < 3; i++) {
        const cm_flex one = cm_flex_value(v, i);
        read_flex(&one, depth + 1);
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t nbytes)
{
    if (nbytes == 0)
        return 0;
    uint8_t *copy = fuzz_copy(data + 1, nbytes - 1);
    if (data[0] % 3 == 0) {
        read_manifest(copy, nbytes - 1);
    } else if (data[0] % 3 == 1) {
        read_store((fuzz_input){copy, nbytes - 1});
    } else {
        const cm_flex root = cm_flex_root(copy, nbytes - 1);
        read_flex(&root, 0);
    }
    free(copy);
    return 0;
}

#include "format/icechunk/manifest_read.h"

#include <string.h>

#include "format/icechunk/key.h"

static cm_flatbuf flat_of(const cm_ice_manifest_view *m)
{
    return (cm_flatbuf){m->flat.data, m->flat.nbytes};
}

/* ---- one reference ---- */

static bool read_text(const cm_flatbuf *f, const cm_flatbuf_table *t, unsigned slot,
                      cm_ice_text *out, bool *there)
{
    cm_flatbuf_list list;
    if (!cm_flatbuf_list_of(f, t, slot, 1, &list, there))
        return false;
    *out = (cm_ice_text){(const char *)f->data + list.first, list.n};
    return true;
}

static uint64_t number(const cm_flatbuf *f, const cm_flatbuf_table *t, unsigned slot, size_t nbytes)
{
    uint8_t wide[8] = {0};
    const uint8_t *bytes = cm_flatbuf_bytes(f, t, slot, nbytes);
    if (bytes != NULL)
        memcpy(wide, bytes, nbytes);
    return cm_load_le64(wide);
}

static bool read_outside(const cm_flatbuf *f, const cm_flatbuf_table *t, cm_ice_chunk *out)
{
    bool plain, packed;
    cm_ice_text compressed;
    if (!read_text(f, t, CM_ICE_CHUNK_LOCATION, &out->location, &plain) ||
        !read_text(f, t, CM_ICE_CHUNK_PACKED, &compressed, &packed) ||
        !read_text(f, t, CM_ICE_CHUNK_ETAG, &out->etag, NULL))
        return false;
    out->modified_s = (uint32_t)number(f, t, CM_ICE_CHUNK_MODIFIED, 4);
    out->is_compressed = !plain;
    if (!plain)
        out->location = compressed;
    return plain || packed;
}

/* The fields of table T but its index; false: they are damaged. */
static bool read_ref(const cm_flatbuf *f, const cm_flatbuf_table *t, cm_ice_chunk *out)
{
    cm_ice_text small;
    bool is_inline;
    *out = (cm_ice_chunk){.where = CM_ICE_INLINE};
    if (!read_text(f, t, CM_ICE_CHUNK_INLINE, &small, &is_inline))
        return false;
    out->bytes = (const uint8_t *)small.bytes;
    out->nbytes = small.n;
    if (is_inline)
        return true;
    out->offset = number(f, t, CM_ICE_CHUNK_OFFSET, 8);
    out->nbytes = number(f, t, CM_ICE_CHUNK_LENGTH, 8);
    if (out->offset > INT64_MAX || out->nbytes > INT64_MAX - out->offset)
        return false;
    if (cm_flatbuf_field(f, t, CM_ICE_CHUNK_ID) > 0) {
        out->where = CM_ICE_IN_FILE;
        out->id = cm_flatbuf_bytes(f, t, CM_ICE_CHUNK_ID, CM_ICE_ID);
        return out->id != NULL;
    }
    out->where = CM_ICE_OUTSIDE;
    return read_outside(f, t, out);
}

static bool find_index(const cm_flatbuf *f, const cm_flatbuf_list *refs, size_t k,
                       cm_flatbuf_table *t, cm_flatbuf_list *out)
{
    bool there = false;
    return cm_flatbuf_table_from(f, refs->first + 4 * k, t) &&
           cm_flatbuf_list_of(f, t, CM_ICE_CHUNK_INDEX, 4, out, &there) && there;
}

/* ---- checking ---- */

static int compare(const uint8_t *a, const uint8_t *b, unsigned n)
{
    for (unsigned j = 0; j < n; j++) {
        const uint32_t x = cm_load_le32(a + 4 * (size_t)j), y = cm_load_le32(b + 4 * (size_t)j);
        if (x != y)
            return x < y ? -1 : 1;
    }
    return 0;
}

static const char *check_refs(const cm_flatbuf *f, const cm_flatbuf_list *refs)
{
    cm_flatbuf_list before = {0};
    for (size_t k = 0; k < refs->n; k++) {
        cm_flatbuf_table t;
        cm_flatbuf_list index;
        cm_ice_chunk ref;
        if (!find_index(f, refs, k, &t, &index) || !read_ref(f, &t, &ref))
            return "a reference to a chunk";
        if (k > 0 && index.n != before.n)
            return "indices of one array have different lengths";
        if (index.n > CM_MAX_RANK)
            return "an index has too many dimensions";
        if (k > 0 && compare(f->data + before.first, f->data + index.first, (unsigned)index.n) >= 0)
            return "references are not sorted";
        before = index;
    }
    return NULL;
}

static const char *check_arrays(const cm_flatbuf *f, const cm_flatbuf_list *arrays)
{
    const uint8_t *before = NULL;
    for (size_t i = 0; i < arrays->n; i++) {
        cm_flatbuf_table t;
        cm_flatbuf_list refs;
        const uint8_t *node = cm_flatbuf_table_from(f, arrays->first + 4 * i, &t)
                                  ? cm_flatbuf_bytes(f, &t, CM_ICE_REFS_NODE, CM_ICE_NODE_ID)
                                  : NULL;
        if (node == NULL || !cm_flatbuf_list_of(f, &t, CM_ICE_REFS_LIST, 4, &refs, NULL))
            return "an array";
        if (before != NULL && memcmp(before, node, CM_ICE_NODE_ID) >= 0)
            return "arrays are not sorted";
        const char *why = check_refs(f, &refs);
        if (why != NULL)
            return why;
        before = node;
    }
    return NULL;
}

static const char *check(cm_ice_manifest_view *m, cm_flatbuf_list *dictionary)
{
    const cm_flatbuf f = flat_of(m);
    cm_flatbuf_table root;
    bool there = false;
    if (!cm_flatbuf_table_from(&f, 0, &root) ||
        !cm_flatbuf_list_of(&f, &root, CM_ICE_MANIFEST_ARRAYS, 4, &m->arrays, &there) || !there ||
        !cm_flatbuf_list_of(&f, &root, CM_ICE_MANIFEST_DICTIONARY, 1, dictionary, NULL))
        return "its list of arrays";
    return check_arrays(&f, &m->arrays);
}

int cm_ice_manifest_read(cm_store *root, const uint8_t id[CM_ICE_ID], cm_ice_manifest_view *out,
                         cm_error *err)
{
    char key[CM_ICE_KEY_SIZE];
    cm_flatbuf_list dictionary = {0};
    *out = (cm_ice_manifest_view){0};
    cm_ice_key("manifests", id, key);
    int rc = cm_ice_file_load(root, key, CM_ICE_MANIFEST_FILE, &out->flat, err);
    if (rc == CM_ENOTFOUND)
        return cm_fail(err, CM_EFORMAT, "%s: is missing, and the snapshot needs it", key);
    const char *why = rc == CM_OK ? check(out, &dictionary) : NULL;
    if (why != NULL)
        rc = cm_fail(err, CM_EFORMAT, "%s: is damaged (%s)", key, why);
    else if (rc == CM_OK && dictionary.n > 0 &&
             (rc = cm_zstd_dict_create(out->flat.data + dictionary.first, dictionary.n, &out->dict,
                                       err)) != CM_OK)
        cm_error_prefix(err, "%s", key);
    if (rc != CM_OK)
        cm_ice_manifest_release(out);
    return rc;
}

void cm_ice_manifest_release(cm_ice_manifest_view *m)
{
    cm_zstd_dict_free(m->dict);
    cm_buf_release(&m->flat);
    *m = (cm_ice_manifest_view){0};
}

/* ---- what is found: bounds were checked ---- */

cm_ice_refs cm_ice_manifest_refs(const cm_ice_manifest_view *m, const uint8_t node[CM_ICE_NODE_ID])
{
    const cm_flatbuf f = flat_of(m);
    cm_ice_refs refs = {.manifest = m};
    for (size_t lo = 0, hi = m->arrays.n; lo < hi;) {
        const size_t mid = lo + (hi - lo) / 2;
        cm_flatbuf_table t;
        cm_flatbuf_list index;
        cm_flatbuf_table_from(&f, m->arrays.first + 4 * mid, &t);
        const int order = memcmp(cm_flatbuf_bytes(&f, &t, CM_ICE_REFS_NODE, CM_ICE_NODE_ID), node,
                                 CM_ICE_NODE_ID);
        if (order != 0) {
            *(order < 0 ? &lo : &hi) = order < 0 ? mid + 1 : mid;
            continue;
        }
        cm_flatbuf_list_of(&f, &t, CM_ICE_REFS_LIST, 4, &refs.list, NULL);
        if (refs.list.n > 0 && find_index(&f, &refs.list, 0, &t, &index))
            refs.rank = (unsigned)index.n;
        break;
    }
    return refs;
}

cm_ice_chunk cm_ice_refs_at(const cm_ice_refs *refs, size_t k)
{
    const cm_flatbuf f = flat_of(refs->manifest);
    cm_flatbuf_table t = {0};
    cm_ice_chunk ref;
    cm_flatbuf_table_from(&f, refs->list.first + 4 * k, &t);
    read_ref(&f, &t, &ref);
    return ref;
}

int cm_ice_chunk_location(const cm_ice_manifest_view *m, const cm_ice_chunk *chunk, char *room,
                          cm_ice_text *out, cm_error *err)
{
    *out = chunk->location;
    if (chunk->is_compressed) {
        int rc = cm_zstd_dict_read(m->dict, out->bytes, out->n, room, CM_ICE_MAX_URL, &out->n, err);
        if (rc != CM_OK)
            return rc;
        out->bytes = room;
    }
    if (out->n > CM_ICE_MAX_URL)
        return cm_fail(err, CM_EFORMAT, "its URL is longer than %d bytes", CM_ICE_MAX_URL);
    if (memchr(out->bytes, '\0', out->n) != NULL)
        return cm_fail(err, CM_EFORMAT, "its URL has a NUL in it");
    return CM_OK;
}

void cm_ice_refs_index(const cm_ice_refs *refs, size_t k, uint32_t *index)
{
    const cm_flatbuf f = flat_of(refs->manifest);
    cm_flatbuf_table t;
    cm_flatbuf_list list = {0};
    find_index(&f, &refs->list, k, &t, &list);
    for (unsigned j = 0; j < refs->rank; j++)
        index[j] = cm_load_le32(f.data + list.first + 4 * (size_t)j);
}

size_t cm_ice_refs_bound(const cm_ice_refs *refs, const uint32_t *index, unsigned n, bool after)
{
    size_t lo = 0, hi = refs->list.n;
    while (lo < hi) {
        const size_t mid = lo + (hi - lo) / 2;
        uint32_t have[CM_MAX_RANK];
        unsigned j = 0;
        cm_ice_refs_index(refs, mid, have);
        while (j < n && have[j] == index[j])
            j++;
        if (j < n ? have[j] < index[j] : after)
            lo = mid + 1;
        else
            hi = mid;
    }
    return lo;
}

bool cm_ice_refs_find(const cm_ice_refs *refs, const uint32_t *index, cm_ice_chunk *out)
{
    uint32_t have[CM_MAX_RANK];
    const size_t k = cm_ice_refs_bound(refs, index, refs->rank, false);
    if (k == refs->list.n)
        return false;
    cm_ice_refs_index(refs, k, have);
    if (memcmp(have, index, refs->rank * sizeof(have[0])) != 0)
        return false;
    *out = cm_ice_refs_at(refs, k);
    return true;
}

#include "format/icechunk/kept.h"

#include <stdlib.h>
#include <string.h>

/* ---- extents ---- */

static const cm_fb_value *manifests_of(const cm_fb_table *node)
{
    return &node->value[CM_ICE_NODE_DATA].item[0]->value[CM_ICE_ARRAY_MANIFESTS];
}

size_t cm_ice_node_nmanifests(const cm_fb_table *node)
{
    return manifests_of(node)->n;
}

int cm_ice_node_manifest(const cm_fb_table *node, size_t i, unsigned rank, const uint8_t **id,
                         cm_ice_extent *out, cm_error *err)
{
    const cm_fb_table *ref = manifests_of(node)->item[i];
    const cm_fb_value *extents = &ref->value[CM_ICE_MANIFEST_REF_EXTENTS];
    const uint8_t *at = extents->bytes;
    *id = ref->value[CM_ICE_MANIFEST_REF_ID].bytes;
    if (extents->n != rank)
        return cm_fail(err, CM_EFORMAT, "the snapshot is damaged (extents of a manifest)");
    for (unsigned j = 0; j < rank; j++) {
        out->first[j] = cm_load_le32(at + 8 * (size_t)j);
        out->end[j] = cm_load_le32(at + 8 * (size_t)j + 4);
    }
    return CM_OK;
}

/* Looks at the references of NODE in one manifest. */
static int look(cm_store *root, const cm_fb_table *node, const uint8_t *id, cm_ice_holds *out,
                cm_error *err)
{
    cm_ice_manifest_view m;
    int rc = cm_ice_manifest_read(root, id, &m, err);
    if (rc != CM_OK)
        return rc;
    const cm_ice_refs refs = cm_ice_manifest_refs(&m, node->value[CM_ICE_NODE_NODE_ID].bytes);
    for (size_t i = 0; i < refs.list.n && *out != CM_ICE_HOLDS_REFERENCES; i++)
        *out = cm_ice_refs_at(&refs, i).where == CM_ICE_OUTSIDE ? CM_ICE_HOLDS_REFERENCES
                                                                : CM_ICE_HOLDS_CHUNKS;
    cm_ice_manifest_release(&m);
    return CM_OK;
}

int cm_ice_node_holds(cm_store *root, const cm_fb_table *node, cm_ice_holds *out, cm_error *err)
{
    const cm_fb_value *all = manifests_of(node);
    int rc = CM_OK;
    *out = CM_ICE_HOLDS_NOTHING;
    for (size_t i = 0; rc == CM_OK && i < all->n && *out != CM_ICE_HOLDS_REFERENCES; i++)
        rc = look(root, node, all->item[i]->value[CM_ICE_MANIFEST_REF_ID].bytes, out, err);
    return rc;
}

bool cm_ice_extents_meet(const cm_ice_extent *a, const cm_ice_extent *b, unsigned rank)
{
    for (unsigned j = 0; j < rank; j++)
        if (a->first[j] >= b->end[j] || b->first[j] >= a->end[j])
            return false;
    return true;
}

/* ---- one reference ---- */

static const char *copy_text(cm_ice_kept *k, const cm_ice_text *t, cm_error *err)
{
    char *text = cm_fb_alloc(&k->bytes, t->n + 1, err);
    if (text != NULL && t->n > 0)
        memcpy(text, t->bytes, t->n);
    return text;
}

static bool is_text(const char *text, const cm_ice_text *t)
{
    return strlen(text) == t->n && memcmp(text, t->bytes, t->n) == 0;
}

static bool is_packed(const cm_ice_kept *k, const cm_ice_text *t)
{
    return t->n > 0 && k->packed.n == t->n && memcmp(k->packed.bytes, t->bytes, t->n) == 0;
}

/* Neighbours lie in one file. */
static bool is_the_last(const cm_ice_kept *k, const cm_ice_chunk *c)
{
    const cm_ice_location *last = k->nlocations > 0 ? &k->location[k->nlocations - 1] : NULL;
    return last != NULL &&
           (c->is_compressed ? is_packed(k, &c->location) : is_text(last->url, &c->location)) &&
           is_text(last->etag != NULL ? last->etag : "", &c->etag) &&
           last->modified_s == c->modified_s;
}

static int add_location(cm_ice_kept *k, const cm_ice_chunk *c, cm_error *err)
{
    cm_ice_location *list =
        cm_make_room(k->location, k->nlocations, &k->capacity, sizeof(list[0]), 16);
    if (list == NULL)
        return cm_fail(err, CM_ENOMEM, "no memory for references");
    char room[CM_ICE_MAX_URL];
    cm_ice_text url;
    k->location = list;
    k->packed = (cm_ice_text){0};
    int rc = cm_ice_chunk_location(&k->manifest, c, room, &url, err);
    if (rc != CM_OK)
        return rc;
    cm_ice_location *one = &list[k->nlocations];
    one->url = copy_text(k, &url, err);
    one->etag = c->etag.n > 0 ? copy_text(k, &c->etag, err) : NULL;
    one->modified_s = c->modified_s;
    if (one->url == NULL || (c->etag.n > 0 && one->etag == NULL))
        return CM_ENOMEM;
    k->nlocations++;
    if (c->is_compressed)
        k->packed = c->location;
    return CM_OK;
}

static int take_outside(cm_ice_kept *k, const cm_ice_chunk *c, cm_ice_place *out, cm_error *err)
{
    int rc = is_the_last(k, c) ? CM_OK : add_location(k, c, err);
    out->tagged = c->etag.n > 0;
    out->location = (uint32_t)(k->nlocations - 1) | CM_ICE_LOCATION_KEPT;
    return rc;
}

static int take(cm_ice_kept *k, const cm_ice_chunk *c, cm_ice_place *out, cm_error *err)
{
    *out = (cm_ice_place){.where = c->where, .offset = c->offset, .nbytes = c->nbytes};
    if (c->where == CM_ICE_OUTSIDE)
        return take_outside(k, c, out, err);
    if (c->where == CM_ICE_IN_FILE) {
        memcpy(out->id, c->id, CM_ICE_ID);
        return CM_OK;
    }
    uint8_t *bytes = cm_fb_alloc(&k->bytes, c->nbytes + 1, err);
    if (bytes == NULL)
        return CM_ENOMEM;
    if (c->nbytes > 0)
        memcpy(bytes, c->bytes, c->nbytes);
    out->bytes = bytes;
    return CM_OK;
}

/* ---- manifests ---- */

static int load(cm_ice_kept *k, const uint8_t *id, cm_error *err)
{
    if (k->there && memcmp(k->id, id, CM_ICE_ID) == 0)
        return CM_OK;
    cm_ice_manifest_release(&k->manifest);
    k->packed = (cm_ice_text){0};
    int rc = cm_ice_manifest_read(k->root, id, &k->manifest, err);
    k->there = rc == CM_OK;
    memcpy(k->id, id, CM_ICE_ID);
    return rc;
}

/* The place of the chunk at INDEX among those of EXTENT; false: it is none of them. */
static bool number_in(const uint32_t *index, unsigned rank, const cm_ice_extent *extent,
                      size_t *out)
{
    size_t number = 0;
    for (unsigned j = 0; j < rank; j++) {
        if (index[j] < extent->first[j] || index[j] >= extent->end[j])
            return false;
        number = number * (extent->end[j] - extent->first[j]) + (index[j] - extent->first[j]);
    }
    *out = number;
    return true;
}

/* The references of NODE in the manifest that is read. */
static int take_array(cm_ice_kept *k, const cm_fb_table *node, unsigned rank,
                      const cm_ice_extent *extent, cm_ice_place *place, cm_error *err)
{
    const cm_ice_refs refs =
        cm_ice_manifest_refs(&k->manifest, node->value[CM_ICE_NODE_NODE_ID].bytes);
    int rc = CM_OK;
    if (refs.list.n > 0 && refs.rank != rank)
        return cm_fail(err, CM_EFORMAT, "a manifest is damaged (the index of a chunk)");
    const unsigned first = rank > 0; /* they are sorted by the first dimension */
    size_t i = first ? cm_ice_refs_bound(&refs, extent->first, 1, false) : 0;
    for (; rc == CM_OK && i < refs.list.n; i++) {
        uint32_t index[CM_MAX_RANK];
        size_t at;
        cm_ice_refs_index(&refs, i, index);
        if (first && index[0] >= extent->end[0])
            break;
        if (!number_in(index, rank, extent, &at) || place[at].where != CM_ICE_KEPT)
            continue;
        const cm_ice_chunk c = cm_ice_refs_at(&refs, i);
        rc = take(k, &c, &place[at], err);
    }
    return rc;
}

static size_t nchunks_of(const cm_ice_extent *extent, unsigned rank)
{
    size_t n = 1;
    for (unsigned j = 0; j < rank; j++)
        n *= extent->end[j] - extent->first[j];
    return n;
}

int cm_ice_kept_find(cm_ice_kept *k, const cm_fb_table *node, unsigned rank,
                     const cm_ice_extent *extent, cm_ice_place *place, cm_error *err)
{
    const size_t n = nchunks_of(extent, rank);
    int rc = CM_OK;
    for (size_t i = 0; rc == CM_OK && i < cm_ice_node_nmanifests(node); i++) {
        const uint8_t *id;
        cm_ice_extent there;
        rc = cm_ice_node_manifest(node, i, rank, &id, &there, err);
        if (rc != CM_OK || !cm_ice_extents_meet(&there, extent, rank))
            continue;
        rc = load(k, id, err);
        if (rc == CM_OK)
            rc = take_array(k, node, rank, extent, place, err);
    }
    for (size_t i = 0; i < n; i++)
        if (place[i].where == CM_ICE_KEPT)
            place[i].where = CM_ICE_NOWHERE;
    return rc;
}

const cm_ice_location *cm_ice_kept_locate(const cm_ice_kept *k, uint32_t number)
{
    return &k->location[number & ~CM_ICE_LOCATION_KEPT];
}

void cm_ice_kept_forget(cm_ice_kept *k)
{
    cm_fb_release(&k->bytes);
    k->nlocations = 0;
    k->packed = (cm_ice_text){0};
}

void cm_ice_kept_release(cm_ice_kept *k)
{
    cm_ice_kept_forget(k);
    cm_ice_manifest_release(&k->manifest);
    free(k->location);
    *k = (cm_ice_kept){0};
}

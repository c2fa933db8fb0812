/*
 * Fetches many chunks of a Zarr array at once: objects by one call of the store, and inner chunks
 * of a shard by requests that merge neighbours.
 */
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "format/merge.h"
#include "format/zarr/reader.h"

enum {
    MAX_SHARDS = 16 /* held open by one call; the cache keeps as many */
};

typedef struct many_state {
    size_t capacity;
    cm_piece *piece;
    cm_store_read *read;
    cm_buf keys;
    const cm_shard *shard[MAX_SHARDS];
    size_t nshards; /* held */
    /* For reads begun and not yet ended: */
    cm_store_reading *reading; /* NULL: all chunks are missing */
    size_t nfound;             /* pieces */
} many_state;

static void release_state(void *state)
{
    many_state *s = state;
    free(s->piece);
    free(s->read);
    cm_buf_release(&s->keys);
    free(s);
}

/* MANY's state with capacity for its items, which it marks absent. */
static many_state *state_of(cm_fetch_many *many, cm_error *err)
{
    if (many->release_state != release_state) {
        cm_fetch_many_drop_state(many);
        many->state = cm_calloc(1, sizeof(many_state), err);
        if (many->state == NULL)
            return NULL;
        many->release_state = release_state;
    }
    many_state *s = many->state;
    if (many->n > s->capacity) {
        free(s->piece);
        free(s->read);
        s->capacity = 0;
        s->piece = cm_calloc(many->n, sizeof *s->piece, err);
        s->read = s->piece != NULL ? cm_calloc(many->n, sizeof *s->read, err) : NULL;
        if (s->read == NULL)
            return NULL;
        s->capacity = many->n;
    }
    for (size_t i = 0; i < many->n; i++) {
        cm_fetch_item *item = &many->item[i];
        item->present = false;
        item->skip = 0;
        item->data = NULL;
        item->nbytes = 0;
        item->chain = NULL;
    }
    return s;
}

/* ---- chunks as objects ---- */

static int name_objects(const cm_zarr_array *z, cm_fetch_many *many, many_state *s, cm_error *err)
{
    s->keys.nbytes = 0;
    for (size_t i = 0; i < many->n; i++) {
        uint64_t coord[CM_MAX_RANK];
        char key[CM_ZARR_KEY_SIZE];
        cm_grid_coord(&z->base.grid, many->item[i].number, coord);
        int rc = cm_zarr_object_key(z, coord, key, err);
        s->piece[i].at = s->keys.nbytes;
        if (rc == CM_OK)
            rc = cm_buf_append(&s->keys, key, strlen(key) + 1, err);
        if (rc != CM_OK)
            return cm_zarr_prefix_chunk(err, z, many->item[i].number, rc);
    }
    for (size_t i = 0; i < many->n; i++)
        s->read[i] = (cm_store_read){.key = (const char *)s->keys.data + s->piece[i].at,
                                     .nbytes = UINT64_MAX,
                                     .max_nbytes = cm_zarr_max_stored(z)};
    return CM_OK;
}

static int point_objects(const cm_zarr_array *z, const many_state *s, cm_fetch_many *many,
                         cm_error *err)
{
    for (size_t i = 0; i < many->n; i++) {
        const cm_store_read *r = &s->read[i];
        if (r->absent)
            continue;
        const uint64_t number = many->item[i].number;
        int rc = cm_zarr_chain_of(z, number, &many->item[i].chain, err);
        if (rc != CM_OK)
            return cm_zarr_prefix_chunk(err, z, number, rc);
        many->item[i].present = true;
        many->item[i].data = many->buf.data + r->at;
        many->item[i].nbytes = r->got_nbytes;
    }
    many->nbytes = many->buf.nbytes;
    return CM_OK;
}

int cm_zarr_fetch_objects(cm_array *a, cm_fetch_many *many, cm_error *err)
{
    cm_zarr_array *z = (cm_zarr_array *)a;
    many_state *s = state_of(many, err);
    int rc = s != NULL ? name_objects(z, many, s, err) : CM_ENOMEM;
    if (rc != CM_OK)
        return rc;
    if (many->count_only)
        return cm_store_count_requests(z->store, s->read, many->n, &many->nrequests, err);
    uint64_t start = cm_now_ns();
    rc = cm_store_read_many(z->store, s->read, many->n, &many->buf, &many->nrequests, err);
    many->io_ns = cm_now_ns() - start;
    if (rc != CM_OK)
        return cm_fetch_blame(a, many, rc, err);
    return point_objects(z, s, many, err);
}

bool cm_zarr_begin_objects(cm_array *a, cm_fetch_many *many)
{
    cm_zarr_array *z = (cm_zarr_array *)a;
    many_state *s = state_of(many, NULL);
    if (s == NULL || name_objects(z, many, s, NULL))
        return false;
    return cm_store_read_begin(z->store, s->read, many->n, &many->buf, &s->reading, NULL) == CM_OK;
}

int cm_zarr_end_objects(cm_array *a, cm_fetch_many *many, cm_error *err)
{
    many_state *s = many->state;
    const uint64_t start = cm_now_ns();
    int rc = cm_store_read_end(s->reading, &many->nrequests, err);
    many->io_ns = cm_now_ns() - start;
    s->reading = NULL;
    if (rc != CM_OK)
        return rc == CM_ECANCELED ? rc : cm_fetch_blame(a, many, rc, err);
    return point_objects((cm_zarr_array *)a, s, many, err);
}

void cm_zarr_unwant(cm_array *a, cm_fetch_many *many)
{
    const many_state *s = many->state;
    (void)a;
    if (s->reading != NULL)
        cm_store_read_cancel(s->reading);
}

/* ---- chunks in shards ---- */

static int acquire_shard(cm_zarr_array *z, many_state *s, cm_fetch_many *many, uint64_t number,
                         cm_error *err)
{
    uint64_t coord[CM_MAX_RANK];
    char key[CM_ZARR_KEY_SIZE];
    const cm_shard_layout *layout;
    cm_shard_cost cost = {0};
    cm_grid_coord(&z->outer, number, coord);
    int rc = cm_zarr_object_key(z, coord, key, err);
    if (rc == CM_OK)
        rc = cm_zarr_layout_of(z, coord, &layout, err);
    if (rc == CM_OK)
        rc = cm_shard_cache_acquire(z->cache, number, layout, key, &s->shard[s->nshards], &cost,
                                    err);
    if (rc == CM_OK)
        s->nshards++;
    many->nrequests += cost.nrequests;
    many->nbytes += cost.nbytes;
    return rc;
}

/*
 * Takes the first pieces, from up to MAX_SHARDS shards, and moves those that exist to the front: of
 * N pieces *TAKEN are handled, *FOUND exist.
 */
static int find_pieces(cm_zarr_array *z, many_state *s, cm_fetch_many *many, cm_piece *piece,
                       size_t n, size_t *taken, size_t *found, cm_error *err)
{
    *taken = *found = 0;
    for (size_t i = 0; i < n; i++) {
        cm_piece p = piece[i];
        uint64_t number = many->item[p.item].number;
        bool present = false;
        cm_shard_entry entry = {0};
        int rc = CM_OK;
        if (i == 0 || p.object != piece[i - 1].object) {
            if (s->nshards == MAX_SHARDS)
                return CM_OK;
            rc = acquire_shard(z, s, many, p.object, err);
        }
        if (rc == CM_OK)
            rc = cm_zarr_find_inner(z, s->shard[s->nshards - 1], p.local, &present, &entry, err);
        if (rc != CM_OK)
            return cm_zarr_prefix_chunk(err, z, number, rc);
        *taken = i + 1;
        if (!present)
            continue;
        p.offset = entry.offset;
        p.nbytes = entry.nbytes;
        p.local = s->nshards - 1; /* now the index of its shard in s->shard */
        piece[(*found)++] = p;
    }
    return CM_OK;
}

/* Plans the requests for N sorted pieces, and each piece's place in the answers. */
static size_t plan_requests(const many_state *s, cm_piece *piece, size_t n)
{
    size_t nread = 0;
    for (size_t i = 0, count; i < n; i += count) {
        uint64_t end;
        count = cm_pieces_merge(piece + i, n - i, &end);
        s->read[nread++] = (cm_store_read){.reader = s->shard[piece[i].local]->object,
                                           .offset = piece[i].offset,
                                           .nbytes = end - piece[i].offset};
        for (size_t k = i; k < i + count; k++)
            piece[k].local = nread - 1; /* now the index of its request */
    }
    return nread;
}

static void place_pieces(const many_state *s, cm_piece *piece, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        const cm_store_read *r = &s->read[piece[i].local];
        piece[i].at = r->at + (size_t)(piece[i].offset - r->offset);
    }
}

static int read_pieces(cm_zarr_array *z, many_state *s, cm_fetch_many *many, cm_piece *piece,
                       size_t n, cm_error *err)
{
    cm_pieces_sort(piece, n);
    const size_t nread = plan_requests(s, piece, n);
    if (many->count_only) {
        for (size_t i = 0; i < nread; i++)
            many->nbytes += s->read[i].nbytes;
        return cm_store_count_requests(z->store, s->read, nread, &many->nrequests, err);
    }
    size_t before = many->buf.nbytes;
    int rc = cm_store_read_more(z->store, s->read, nread, &many->buf, &many->nrequests, err);
    many->nbytes += many->buf.nbytes - before;
    place_pieces(s, piece, n);
    return rc;
}

/* Releases the shards.  *CHANGED: reading failed because a shard was replaced. */
static void let_go(cm_zarr_array *z, many_state *s, int rc, bool *changed)
{
    while (s->nshards > 0) {
        const cm_shard *shard = s->shard[--s->nshards];
        if (rc == CM_OK)
            cm_shard_cache_release(z->cache, shard);
        else if (cm_shard_cache_renew(z->cache, shard))
            *changed = true;
    }
}

static int fetch_groups(cm_zarr_array *z, many_state *s, cm_fetch_many *many, bool *changed,
                        cm_error *err)
{
    cm_piece *piece = s->piece;
    *changed = false;
    size_t kept = 0; /* pieces read so far, moved to the front */
    for (size_t i = 0, taken, found; i < many->n; i += taken) {
        int rc = find_pieces(z, s, many, piece + i, many->n - i, &taken, &found, err);
        if (rc == CM_OK)
            rc = read_pieces(z, s, many, piece + i, found, err);
        let_go(z, s, rc, changed);
        if (rc != CM_OK)
            return rc;
        memmove(piece + kept, piece + i, found * sizeof *piece);
        kept += found;
    }
    if (!many->count_only)
        cm_pieces_point(piece, kept, many);
    return CM_OK;
}

static void name_pieces(const cm_zarr_array *z, many_state *s, const cm_fetch_many *many)
{
    for (size_t i = 0; i < many->n; i++) {
        uint64_t coord[CM_MAX_RANK], local;
        cm_zarr_locate(z, many->item[i].number, coord, &local);
        s->piece[i] =
            (cm_piece){.object = cm_grid_number(&z->outer, coord), .item = i, .local = local};
    }
    cm_pieces_sort(s->piece, many->n);
}

int cm_zarr_fetch_inner(cm_array *a, cm_fetch_many *many, cm_error *err)
{
    cm_zarr_array *z = (cm_zarr_array *)a;
    many_state *s = state_of(many, err);
    if (s == NULL)
        return CM_ENOMEM;
    uint64_t start = cm_now_ns();
    const size_t before = many->buf.nbytes;
    int rc = CM_OK;
    bool changed = true;
    for (int i = 0; changed && i < CM_ZARR_TRIES; i++) {
        many->buf.nbytes = before;
        name_pieces(z, s, many);
        rc = fetch_groups(z, s, many, &changed, err);
    }
    many->io_ns = cm_now_ns() - start;
    return rc != CM_OK ? cm_fetch_blame(a, many, rc, err) : CM_OK;
}

/* ---- chunks in shards, in two steps ---- */

/* Whether only the pieces themselves must be requested, from shards that can all be held. */
static bool are_at_hand(const cm_zarr_array *z, const many_state *s, size_t n)
{
    size_t nshards = 0;
    for (size_t i = 0; i < n; i++) {
        if (i > 0 && s->piece[i].object == s->piece[i - 1].object)
            continue;
        if (++nshards > MAX_SHARDS || !cm_shard_cache_is_at_hand(z->cache, s->piece[i].object))
            return false;
    }
    return true;
}

bool cm_zarr_begin_inner(cm_array *a, cm_fetch_many *many)
{
    cm_zarr_array *z = (cm_zarr_array *)a;
    many_state *s = state_of(many, NULL);
    size_t taken;
    bool changed;
    if (s == NULL)
        return false;
    name_pieces(z, s, many);
    if (!are_at_hand(z, s, many->n))
        return false;
    int rc = find_pieces(z, s, many, s->piece, many->n, &taken, &s->nfound, NULL);
    s->reading = NULL;
    if (rc == CM_OK && s->nfound > 0) {
        cm_pieces_sort(s->piece, s->nfound);
        const size_t nread = plan_requests(s, s->piece, s->nfound);
        rc = cm_store_read_begin(z->store, s->read, nread, &many->buf, &s->reading, NULL);
    }
    if (rc != CM_OK)
        let_go(z, s, CM_OK, &changed);
    return rc == CM_OK;
}

int cm_zarr_end_inner(cm_array *a, cm_fetch_many *many, cm_error *err)
{
    cm_zarr_array *z = (cm_zarr_array *)a;
    many_state *s = many->state;
    const uint64_t start = cm_now_ns();
    bool changed = false;
    int rc = s->reading != NULL ? cm_store_read_end(s->reading, &many->nrequests, err) : CM_OK;
    s->reading = NULL;
    let_go(z, s, rc, &changed);
    many->io_ns = cm_now_ns() - start;
    if (rc == CM_ECANCELED)
        return rc;
    if (rc != CM_OK) { /* replaced or unreadable: fetching it again finds out */
        many->buf.nbytes = 0;
        many->nrequests = many->nbytes = 0;
        return cm_zarr_fetch_inner(a, many, err);
    }
    many->nbytes += many->buf.nbytes;
    place_pieces(s, s->piece, s->nfound);
    cm_pieces_point(s->piece, s->nfound, many);
    return CM_OK;
}

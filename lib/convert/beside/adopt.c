#include "convert/beside/adopt.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/threads.h"
#include "format/zarr/open.h"

enum {
    SHARE = 16,          /* objects that a thread takes at once */
    BLOCK = 512,         /* of a disk, at least */
    PIECE = 128 * BLOCK, /* of an object that is searched */
    LEAST = 16,          /* zeros that count, where an object ends within a block */
    MARGIN_S = 60,       /* of clocks */
    INDEX_CACHE = 1 << 20
};

/* The list that all threads look through. */
typedef struct adoption {
    cm_store *store;
    const cm_made_node *node;
    cm_array *array; /* as a reader sees it */
    const cm_grid *grid, *outer;
    size_t text_nbytes; /* of decoded strings, at most */
    atomic_uint_fast64_t next, nkept;
    uint64_t end; /* of the objects that are looked at */
    atomic_bool failed;
    pthread_mutex_t lock; /* of what follows */
    int status;
    cm_error *err;
} adoption;

/* One thread's own. */
typedef struct judge {
    adoption *all;
    cm_codec_ctx *ctx;
    cm_buf stored, decoded;
    cm_strings text;
} judge;

static bool is_zeros(const uint8_t *p, size_t n)
{
    return n == 0 || (p[0] == 0 && memcmp(p, p + 1, n - 1) == 0);
}

/* A block of zeros is among the N bytes at P; the end of a block says little alone. */
static bool has_zero_block(const uint8_t *p, size_t n)
{
    for (size_t at = 0; at < n; at += BLOCK) {
        const size_t nbytes = n - at < BLOCK ? n - at : BLOCK;
        if ((nbytes >= LEAST || n == nbytes) && is_zeros(p + at, nbytes))
            return true;
    }
    return false;
}

/* Searches the object KEY for a block of zeros. */
static int find_zero_block(judge *j, const char *key, bool *found, cm_error *err)
{
    cm_object_reader *reader = NULL;
    int rc = cm_object_open(j->all->store, key, &reader, err);
    if (rc == CM_OK)
        rc = cm_buf_resize(&j->stored, PIECE, err);
    const uint64_t end = rc == CM_OK ? cm_object_nbytes(reader) : 0;
    for (uint64_t at = 0; rc == CM_OK && !*found && at < end; at += PIECE) {
        const size_t n = end - at < PIECE ? (size_t)(end - at) : PIECE;
        rc = cm_object_read(reader, at, j->stored.data, n, err);
        *found = rc == CM_OK && has_zero_block(j->stored.data, n);
    }
    cm_object_close(reader);
    return rc;
}

/*
 * Whether all blocks of the object OUTER were written, as far as that can be seen: a disk that lost
 * power gives zeros for others.  What was written since the machine started lost none, and may
 * have zeros.
 */
static int judge_blocks(judge *j, uint64_t outer, bool *good, cm_error *err)
{
    char *key = NULL;
    cm_object_stat st = {0};
    bool found = false;
    *good = true;
    if (cm_store_is_remote(j->all->store)) /* it has whole objects, or none */
        return CM_OK;
    int rc = cm_zarr_writer_key(j->all->node->writer, outer, &key, err);
    if (rc == CM_OK)
        rc = cm_store_stat(j->all->store, key, &st, err);
    if (rc == CM_OK && st.modified_s <= cm_boot_s() + MARGIN_S) /* or unknown: 0 */
        rc = find_zero_block(j, key, &found, err);
    *good = rc == CM_OK && !found;
    free(key);
    return rc;
}

/*
 * Whether chunk NUMBER, if it is stored, decodes; *good.  CM_ENOMEM and failing disks are
 * errors.
 */
static int judge_chunk(judge *j, uint64_t number, bool *good, cm_error *err)
{
    cm_array *a = j->all->array;
    cm_fetch fetch;
    cm_error why = {0};
    *good = false;
    int rc = a->ops->fetch(a, number, &j->stored, &fetch, &why);
    if (rc == CM_OK && !fetch.present) {
        *good = true; /* of a shard: left out on purpose */
        return CM_OK;
    }
    /* Nothing but zeros: a file that was made longer, and not written, whenever that was. */
    if (rc == CM_OK && is_zeros(j->stored.data, j->stored.nbytes))
        return CM_OK;
    if (rc == CM_OK && cm_chain_decoded_nbytes(a->chain) == 0)
        rc = cm_chain_decode_strings(cm_array_chain(a, fetch.chain), j->ctx, j->stored.data,
                                     j->stored.nbytes, &j->text, &why);
    else if (rc == CM_OK)
        rc = cm_chain_decode(cm_array_chain(a, fetch.chain), j->ctx, j->stored.data,
                             j->stored.nbytes, 0, j->decoded.data, &why);
    *good = rc == CM_OK;
    return rc == CM_OK || rc == CM_EFORMAT ? CM_OK : cm_fail(err, (cm_status)rc, "%s", why.text);
}

/* Shows chunk NUMBER, which is good, to who counts. */
static int show_chunk(judge *j, uint64_t number, cm_error *err)
{
    const cm_made_node *node = j->all->node;
    cm_array *a = j->all->array;
    cm_fetch fetch;
    int rc = a->ops->fetch(a, number, &j->stored, &fetch, err);
    if (rc == CM_OK && fetch.present)
        rc = cm_chain_decode(cm_array_chain(a, fetch.chain), j->ctx, j->stored.data,
                             j->stored.nbytes, 0, j->decoded.data, err);
    return rc == CM_OK
               ? node->see(node->see_context, number, fetch.present ? j->decoded.data : NULL, err)
               : rc;
}

/* All chunks of an object, in order. */
typedef struct walk {
    const cm_grid *grid;
    uint64_t coord[CM_MAX_RANK], first[CM_MAX_RANK], count[CM_MAX_RANK], left;
} walk;

static void begin_walk(const adoption *all, uint64_t outer, walk *w)
{
    uint64_t coord[CM_MAX_RANK];
    cm_box box;
    cm_grid_coord(all->outer, outer, coord);
    cm_grid_box(all->outer, coord, &box);
    cm_grid_cover(all->grid, &box, w->first, w->count);
    w->grid = all->grid;
    w->left = 1;
    for (unsigned i = 0; i < all->grid->rank; i++) {
        w->coord[i] = w->first[i];
        w->left *= w->count[i];
    }
}

static bool next_of(walk *w, uint64_t *number)
{
    if (w->left == 0)
        return false;
    *number = cm_grid_number(w->grid, w->coord);
    w->left--;
    for (unsigned i = w->grid->rank; i-- > 0 && ++w->coord[i] == w->first[i] + w->count[i];)
        w->coord[i] = w->first[i];
    return true;
}

/* Whether all chunks of the object OUTER are good. */
static int judge_object(judge *j, uint64_t outer, bool *good, cm_error *err)
{
    walk w;
    uint64_t number;
    int rc = CM_OK;
    begin_walk(j->all, outer, &w);
    *good = true;
    while (rc == CM_OK && *good && next_of(&w, &number))
        rc = judge_chunk(j, number, good, err);
    return rc;
}

static int show_object(judge *j, uint64_t outer, cm_error *err)
{
    walk w;
    uint64_t number;
    int rc = CM_OK;
    begin_walk(j->all, outer, &w);
    while (rc == CM_OK && next_of(&w, &number))
        rc = show_chunk(j, number, err);
    return rc;
}

static int adopt_object(judge *j, uint64_t outer, cm_error *err)
{
    bool there, good = false, kept = false;
    int rc = cm_zarr_writer_has(j->all->node->writer, outer, &there, err);
    if (rc == CM_OK && there)
        rc = judge_blocks(j, outer, &good, err);
    if (rc == CM_OK && good)
        rc = judge_object(j, outer, &good, err);
    if (rc == CM_OK && good)
        rc = cm_zarr_writer_keep(j->all->node->writer, outer, &kept, err);
    if (kept)
        atomic_fetch_add(&j->all->nkept, 1);
    return rc == CM_OK && kept && j->all->node->see != NULL ? show_object(j, outer, err) : rc;
}

static void adopt_main(void *context, unsigned index)
{
    adoption *all = context;
    judge j = {.all = all};
    cm_error err = {0};
    int rc = CM_OK;
    (void)index;
    cm_strings_init(&j.text, all->text_nbytes);
    if ((j.ctx = cm_codec_ctx_create(&err)) == NULL)
        rc = CM_ENOMEM;
    if (rc == CM_OK)
        rc = cm_buf_resize(&j.decoded, cm_chain_decoded_nbytes(all->array->chain) + 1, &err);
    uint64_t lo;
    while (rc == CM_OK && !atomic_load(&all->failed) &&
           (lo = atomic_fetch_add(&all->next, SHARE)) < all->end)
        for (uint64_t i = lo; i < lo + SHARE && i < all->end && rc == CM_OK; i++)
            rc = adopt_object(&j, i, &err);
    if (rc != CM_OK) {
        atomic_store(&all->failed, true);
        pthread_mutex_lock(&all->lock);
        if (all->status == CM_OK && all->err != NULL)
            *all->err = err;
        all->status = all->status == CM_OK ? rc : all->status;
        pthread_mutex_unlock(&all->lock);
    }
    cm_codec_ctx_free(j.ctx);
    cm_strings_release(&j.text);
    cm_buf_release(&j.stored);
    cm_buf_release(&j.decoded);
}

static unsigned threads_for(const adoption *all, unsigned most, uint64_t memory)
{
    const cm_array *a = all->array;
    uint64_t each = cm_chain_decoded_nbytes(a->chain) + cm_chain_encoded_bound(a->chain) +
                    cm_chain_decode_memory(a->chain) + 1;
    if (cm_chain_decoded_nbytes(a->chain) == 0)
        return 1; /* strings: nobody knows how long */
    uint64_t fit = memory / 2 / each,
             shares = (all->end - atomic_load(&all->next) + SHARE - 1) / SHARE;
    uint64_t n = most < fit ? most : fit;
    n = n < shares ? n : shares;
    return n > 1 ? (unsigned)n : 1;
}

int cm_adopt(cm_store *store, const cm_made_node *node, unsigned nthreads, uint64_t memory,
             uint64_t *nkept, cm_error *err)
{
    cm_zarr_node self = {.path = (char *)node->path, .meta = *node->meta};
    cm_zarr_tree tree = {
        .store = store, .zarr_format = node->meta->zarr_format, .node = &self, .nnodes = 1};
    adoption all = {.store = store,
                    .node = node,
                    .err = err,
                    .text_nbytes = (size_t)(memory / 4),
                    .grid = cm_zarr_writer_grid(node->writer),
                    .outer = cm_zarr_writer_outer_grid(node->writer)};
    int rc = cm_zarr_array_open(&tree, &self, INDEX_CACHE, &all.array, err);
    if (rc != CM_OK) /* what cannot be read here cannot be proven: all of it is written again */
        return rc == CM_EUNSUPPORTED ? CM_OK : rc;
    uint64_t first;
    cm_zarr_writer_range(node->writer, &first, &all.end);
    atomic_store(&all.next, first);
    pthread_mutex_init(&all.lock, NULL);
    cm_threads_run(threads_for(&all, nthreads, memory), adopt_main, &all);
    pthread_mutex_destroy(&all.lock);
    cm_array_free(all.array);
    *nkept += atomic_load(&all.nkept);
    return all.status;
}

#include "engine/direct.h"

#include <string.h>

#include "base/clock.h"
#include "codec/rewrap.h"
#include "engine/deliver.h"
#include "model/copy.h"

/* Work done for one batch. */
typedef struct done {
    uint64_t read_nelem, decoded;
    uint64_t delivered, nelem;
} done;

/*
 * Chunk NUMBER is absent: leaves it out, or writes it where its absence would mean another fill
 * value.
 */
static int make_absent(cm_worker *w, uint64_t number, cm_error *err)
{
    const cm_transfer *t = w->same.transfer;
    cm_grid own;
    uint64_t coord[CM_MAX_RANK];
    int64_t stride[CM_MAX_RANK];
    cm_box valid;
    if (t->absent_is_empty)
        return cm_worker_skip(w, t, number, err);
    cm_grid_coord(&t->target->grid, number, coord);
    const cm_grid *grid = cm_grid_around(&t->target->grid, coord, &own);
    cm_grid_box(grid, coord, &valid);
    cm_strides_c(grid->rank, grid->chunk, t->source->dtype.nbytes, stride);
    cm_fill_nd(grid->rank, grid->chunk, t->source->dtype.nbytes, w->decoded.data, stride,
               t->source->fill);
    return cm_worker_deliver(w, t, number, coord, &valid, w->decoded.data, err);
}

static int recode(cm_worker *w, const cm_fetch_item *item, cm_error *err)
{
    const cm_transfer *t = w->same.transfer;
    const cm_grid *grid = &t->target->grid;
    uint64_t coord[CM_MAX_RANK];
    cm_box valid;
    int rc = cm_worker_decode(w, t, item, w->decoded.data, err);
    if (rc != CM_OK)
        return rc;
    cm_grid_coord(grid, item->number, coord);
    cm_grid_box(grid, coord, &valid);
    return cm_worker_deliver(w, t, item->number, coord, &valid, w->decoded.data, err);
}

/* The gzip stream around the same deflate data. */
static int rewrap(cm_worker *w, const cm_fetch_item *item, cm_error *err)
{
    const cm_transfer *t = w->same.transfer;
    const cm_buf zlib = {.data = (uint8_t *)(uintptr_t)item->data, .nbytes = item->nbytes};
    int rc = cm_worker_decode(w, t, item, w->decoded.data, err);
    if (rc == CM_OK)
        rc = cm_zlib_to_gzip(&zlib, w->decoded.data,
                             cm_chain_decoded_nbytes(cm_array_chain(t->source, item->chain)),
                             &w->encoded, err);
    if (rc == CM_OK)
        rc = cm_worker_put(w, t, item->number, w->encoded.data, w->encoded.nbytes, err);
    return rc;
}

/* Decodes passed-on bytes for an observer of the elements. */
static int show(cm_worker *w, const cm_fetch_item *item, cm_error *err)
{
    const cm_transfer *t = w->same.transfer;
    int rc = cm_worker_decode(w, t, item, w->decoded.data, err);
    return rc == CM_OK ? t->see(t->see_context, item->number, w->decoded.data, err) : rc;
}

/*
 * A chunk that skipped a filter, or went through others, is not what the output's metadata says: it
 * is recoded.  One of another length has another chain of the same codecs.
 */
static bool goes_through(const cm_transfer *t, const cm_fetch_item *item)
{
    if (t->pass == CM_PASS_NOTHING || item->skip != 0)
        return false;
    return item->chain == NULL || (cm_grid_is_cut(&t->target->grid) &&
                                   cm_chain_same_codecs(item->chain, t->source->chain));
}

/* A chunk that passes undecoded has at least the length that it must have. */
static int check_length(const cm_transfer *t, const cm_fetch_item *item, cm_error *err)
{
    const cm_chain *chain = cm_array_chain(t->source, item->chain);
    const size_t nbytes = cm_chain_decoded_nbytes(chain);
    if (nbytes == 0 || (cm_chain_is_raw(chain) ? item->nbytes == nbytes : item->nbytes > 0))
        return CM_OK;
    return cm_fail(err, CM_EFORMAT, "%zu bytes are stored of a chunk that has %zu", item->nbytes,
                   nbytes);
}

/* Damage that shows without decoding: a wrong length, or a checksum of the stored bytes. */
static int check_stored(cm_worker *w, const cm_fetch_item *item, cm_error *err)
{
    const cm_transfer *t = w->same.transfer;
    const cm_chain *chain = cm_array_chain(t->source, item->chain);
    int rc = check_length(t, item, err);
    if (rc == CM_OK && cm_chain_ends_in_checksum(chain)) {
        const uint64_t start = cm_now_ns();
        rc = cm_chain_check_stored(chain, item->data, item->nbytes, err);
        cm_worker_stage(w, CM_STAGE_DECODE, t, item->number, start);
    }
    if (rc != CM_OK) {
        cm_grid_explain(&t->source->grid, item->number, "variable", t->source->name, err);
        cm_error_place(err, cm_array_place(t->source, item->number));
    }
    return rc;
}

/* Moves chunk ITEM, which has NELEM elements inside the array, and counts the work. */
static int move_chunk(cm_worker *w, const cm_fetch_item *item, uint64_t nelem, done *d,
                      cm_error *err)
{
    const cm_transfer *t = w->same.transfer;
    d->delivered++;
    d->nelem += nelem;
    if (!item->present)
        return make_absent(w, item->number, err);
    d->read_nelem += nelem;
    if (!goes_through(t, item)) {
        d->decoded++;
        return recode(w, item, err);
    }
    w->stats.passed++;
    int rc = check_stored(w, item, err);
    if (rc == CM_OK && t->see != NULL) {
        rc = show(w, item, err);
        d->decoded++;
    }
    if (rc != CM_OK)
        return rc;
    if (t->pass == CM_PASS_GZIP)
        return rewrap(w, item, err);
    cm_worker_post(w, item->number, item->data, item->nbytes);
    return CM_OK;
}

/*
 * A chunk of the box, its number, and the elements of those in its row but for the last
 * dimension.
 */
typedef struct walk {
    uint64_t coord[CM_MAX_RANK];
    uint64_t number;
    uint64_t row_nelem;
} walk;

static uint64_t extent(const cm_grid *grid, unsigned j, uint64_t k)
{
    const uint64_t first = cm_grid_first(grid, j, k);
    if (grid->cuts[j] != NULL)
        return cm_cuts_end(grid->cuts[j], k) - first;
    return grid->shape[j] - first < grid->chunk[j] ? grid->shape[j] - first : grid->chunk[j];
}

static void enter_row(const cm_grid *grid, walk *at)
{
    at->number = cm_grid_number(grid, at->coord);
    at->row_nelem = 1;
    for (unsigned j = 0; j + 1 < grid->rank; j++)
        at->row_nelem *= extent(grid, j, at->coord[j]);
}

static void begin_walk(const cm_same_chunks *s, const cm_grid *grid, walk *at)
{
    uint64_t rest = s->lo;
    for (unsigned j = grid->rank; j-- > 0;) {
        at->coord[j] = s->first[j] + rest % s->count[j];
        rest /= s->count[j];
    }
    enter_row(grid, at);
}

static void walk_on(const cm_same_chunks *s, const cm_grid *grid, walk *at)
{
    unsigned j = grid->rank;
    while (j-- > 0) {
        if (++at->coord[j] < s->first[j] + s->count[j])
            break;
        at->coord[j] = s->first[j];
    }
    if (j + 1 == grid->rank && grid->rank > 0)
        at->number++;
    else if (j < grid->rank)
        enter_row(grid, at);
}

/* Lists what is to be fetched; what is known not to be there is done at once. */
static int list_chunks(cm_worker *w, size_t *n, done *d, cm_error *err)
{
    const cm_same_chunks *s = &w->same;
    const cm_transfer *t = s->transfer;
    const cm_grid *grid = &t->target->grid;
    unsigned last = grid->rank - 1;
    walk at;
    int rc = CM_OK;
    *n = 0;
    begin_walk(s, grid, &at);
    for (uint64_t i = s->lo; i < s->hi && rc == CM_OK; i++, walk_on(s, grid, &at)) {
        if (cm_target_is_delivered(t->target, at.number))
            continue;
        uint64_t nelem = grid->rank == 0 ? 1 : at.row_nelem * extent(grid, last, at.coord[last]);
        w->stats.pieces++;
        if (t->may_be_absent && cm_transfer_is_absent(t, at.number)) {
            d->delivered++;
            d->nelem += nelem;
            rc = make_absent(w, at.number, err);
            continue;
        }
        w->item[*n].number = at.number;
        w->nelem[(*n)++] = nelem;
    }
    return rc;
}

static void count(cm_worker *w, const done *d)
{
    const cm_transfer *t = w->same.transfer;
    cm_monitor_add(w->monitor, d->nelem * t->source->dtype.nbytes);
    cm_transfer_count_delivered(t, d->delivered, d->nelem);
    if (t->counts == NULL)
        return;
    atomic_fetch_add(&t->counts->nelem_read, d->read_nelem);
    atomic_fetch_add(&t->counts->decoded, d->decoded);
}

int cm_worker_same(cm_worker *w, cm_error *err)
{
    const cm_transfer *t = w->same.transfer;
    done d = {0};
    size_t n;
    cm_monitor_at(w->monitor, t->source->name, w->same.lo, "copying");
    int rc = list_chunks(w, &n, &d, err);
    if (rc == CM_OK)
        rc = cm_worker_fetch(w, t, n, err);
    for (size_t i = 0; i < n && rc == CM_OK; i++)
        rc = move_chunk(w, &w->item[i], w->nelem[i], &d, err);
    if (rc == CM_OK)
        rc = cm_worker_flush(w, t, err);
    if (rc == CM_OK)
        count(w, &d);
    return rc;
}

#include "gpu/parcel.h"

#include <stdlib.h>
#include <string.h>

enum {
    STREAMS,
    FIRST,
    LAST,
    TILES,
    MAX_RANK = 40
};

static uint64_t round_up(uint64_t n, uint64_t unit)
{
    return (n + unit - 1) / unit * unit;
}

void cm_parcel_writer_release(cm_parcel_writer *w)
{
    free(w->stream);
    free(w->first);
    free(w->last);
    free(w->tile);
    *w = (cm_parcel_writer){0};
}

void cm_parcel_begin(cm_parcel_writer *w, void *data, size_t capacity)
{
    w->data = data;
    w->capacity = capacity;
    w->used = round_up(sizeof(cm_parcel), CM_PARCEL_ALIGN);
    w->scratch_nbytes = w->decoded_nbytes = 0;
    w->nstreams = w->nfirst = w->nlast = w->ntiles = 0;
}

static int no_room(cm_error *err)
{
    return cm_fail(err, CM_EINTERNAL, "a parcel is larger than its slot");
}

int cm_parcel_put(cm_parcel_writer *w, const void *src, size_t nbytes, uint64_t *place,
                  cm_error *err)
{
    if (w->used > w->capacity || nbytes > w->capacity - w->used)
        return no_room(err);
    *place = w->used;
    if (nbytes > 0)
        memcpy(w->data + w->used, src, nbytes);
    w->used = round_up(w->used + nbytes, CM_PARCEL_ALIGN);
    return CM_OK;
}

uint64_t cm_parcel_scratch(cm_parcel_writer *w, size_t nbytes)
{
    const uint64_t at = w->scratch_nbytes;
    w->scratch_nbytes = round_up(at + nbytes, CM_PARCEL_SCRATCH_ALIGN);
    return CM_PARCEL_IN_SCRATCH | at;
}

/* ---- lists ---------------------------------------------------------------------------------- */

/* Room for one more of EACH bytes in list WHICH, which has N. */
static int grow(cm_parcel_writer *w, int which, void *list, size_t n, size_t each, cm_error *err)
{
    void **p = list;
    if (n < w->room[which])
        return CM_OK;
    const size_t more = 2 * w->room[which] + 256;
    void *grown = realloc(*p, more * each);
    if (grown == NULL)
        return cm_fail(err, CM_ENOMEM, "no memory for the tables of a parcel");
    *p = grown;
    w->room[which] = more;
    return CM_OK;
}

int cm_parcel_add_stream(cm_parcel_writer *w, const cm_parcel_stream *stream, cm_error *err)
{
    int rc = grow(w, STREAMS, &w->stream, w->nstreams, sizeof *w->stream, err);
    if (rc == CM_OK) {
        w->stream[w->nstreams++] = *stream;
        w->decoded_nbytes += stream->dst_nbytes;
    }
    return rc;
}

static int add_copy(cm_parcel_writer *w, int which, const cm_parcel_copy *copy, cm_error *err)
{
    int rc;
    if (which == FIRST) {
        if ((rc = grow(w, FIRST, &w->first, w->nfirst, sizeof *copy, err)) == CM_OK)
            w->first[w->nfirst++] = *copy;
    } else if ((rc = grow(w, LAST, &w->last, w->nlast, sizeof *copy, err)) == CM_OK)
        w->last[w->nlast++] = *copy;
    return rc;
}

/* ---- copies --------------------------------------------------------------------------------- */

/* A box with as few dimensions as it can have. */
typedef struct folded {
    uint64_t src, dst;
    unsigned rank;
    uint64_t shape[MAX_RANK], src_stride[MAX_RANK], dst_stride[MAX_RANK];
    uint64_t run; /* bytes, then units */
    uint32_t unit;
} folded;

/*
 * Dimensions of length 1 go, and those whose elements follow each other on both sides become
 * one.
 */
static void fold(const cm_parcel_box *box, folded *f)
{
    *f = (folded){.src = box->src, .dst = box->dst, .run = box->run_nbytes};
    for (unsigned j = box->rank; j-- > 0;) {
        if (box->shape[j] == 1)
            continue;
        const bool follows =
            f->rank == 0
                ? box->src_stride[j] == f->run && box->dst_stride[j] == f->run
                : box->src_stride[j] == f->shape[f->rank - 1] * f->src_stride[f->rank - 1] &&
                      box->dst_stride[j] == f->shape[f->rank - 1] * f->dst_stride[f->rank - 1];
        if (follows && f->rank == 0)
            f->run *= box->shape[j];
        else if (follows)
            f->shape[f->rank - 1] *= box->shape[j];
        else {
            f->shape[f->rank] = box->shape[j];
            f->src_stride[f->rank] = box->src_stride[j];
            f->dst_stride[f->rank++] = box->dst_stride[j];
        }
    }
    /* From here on innermost first. */
    uint64_t all = f->run | f->src | f->dst;
    for (unsigned k = 0; k < f->rank; k++)
        all |= f->src_stride[k] | f->dst_stride[k];
    f->unit = 16;
    while (all % f->unit)
        f->unit /= 2;
    f->run /= f->unit;
}

/* Units of the dimensions below K, runs counted. */
static uint64_t units_below(const folded *f, unsigned k)
{
    uint64_t n = f->run;
    for (unsigned i = 0; i < k; i++)
        n *= f->shape[i];
    return n;
}

/* Dimensions 0 .. f->rank - 1 of F at an offset, in pieces of at most CM_PARCEL_UNITS units. */
static int add_folded(cm_parcel_writer *w, int which, const folded *f, cm_error *err)
{
    folded piece = *f;
    if (f->rank <= CM_PARCEL_DIMS && units_below(f, f->rank) <= CM_PARCEL_UNITS) {
        cm_parcel_copy c = {.src = f->src, .dst = f->dst, .run = (uint32_t)f->run, .unit = f->unit};
        for (unsigned k = 0; k < CM_PARCEL_DIMS; k++) {
            c.count[k] = k < f->rank ? (uint32_t)f->shape[k] : 1;
            c.src_stride[k] = k < f->rank ? f->src_stride[k] : 0;
            c.dst_stride[k] = k < f->rank ? f->dst_stride[k] : 0;
        }
        return add_copy(w, which, &c, err);
    }
    if (f->rank == 0) {
        for (uint64_t at = 0; at < f->run; at += CM_PARCEL_UNITS) {
            piece.src = f->src + at * f->unit;
            piece.dst = f->dst + at * f->unit;
            piece.run = f->run - at < CM_PARCEL_UNITS ? f->run - at : CM_PARCEL_UNITS;
            int rc = add_folded(w, which, &piece, err);
            if (rc != CM_OK)
                return rc;
        }
        return CM_OK;
    }
    const unsigned outer = f->rank - 1;
    const uint64_t inner = units_below(f, outer);
    /* One at a time where already the inner ones are too many, or there are too many dimensions. */
    const bool whole = f->rank <= CM_PARCEL_DIMS && inner <= CM_PARCEL_UNITS;
    const uint64_t step = whole ? CM_PARCEL_UNITS / inner : 1;
    piece.rank = whole ? f->rank : outer;
    for (uint64_t at = 0; at < f->shape[outer]; at += step) {
        piece.src = f->src + at * f->src_stride[outer];
        piece.dst = f->dst + at * f->dst_stride[outer];
        piece.shape[outer] = f->shape[outer] - at < step ? f->shape[outer] - at : step;
        int rc = add_folded(w, which, &piece, err);
        if (rc != CM_OK)
            return rc;
    }
    return CM_OK;
}

int cm_parcel_add_box(cm_parcel_writer *w, const cm_parcel_box *box, cm_error *err)
{
    folded f;
    for (unsigned j = 0; j < box->rank; j++)
        if (box->shape[j] == 0)
            return CM_OK;
    if (box->run_nbytes == 0)
        return CM_OK;
    if (box->rank > MAX_RANK)
        return cm_fail(err, CM_EINTERNAL, "a box of %u dimensions", box->rank);
    fold(box, &f);
    return add_folded(w, LAST, &f, err);
}

int cm_parcel_add_bytes(cm_parcel_writer *w, uint64_t src, uint64_t dst, size_t nbytes,
                        cm_error *err)
{
    const cm_parcel_box box = {.src = src, .dst = dst, .run_nbytes = nbytes};
    folded f;
    if (nbytes == 0)
        return CM_OK;
    fold(&box, &f);
    return add_folded(w, FIRST, &f, err);
}

int cm_parcel_add_repeated(cm_parcel_writer *w, uint64_t src, uint64_t dst, size_t nbytes,
                           uint64_t n, cm_error *err)
{
    static const uint64_t nothing = 0;
    const uint64_t step = nbytes;
    const cm_parcel_box box = {.src = src,
                               .dst = dst,
                               .rank = 1,
                               .shape = &n,
                               .src_stride = &nothing,
                               .dst_stride = &step,
                               .run_nbytes = nbytes};
    folded f;
    if (n == 0 || nbytes == 0)
        return CM_OK;
    fold(&box, &f);
    return add_folded(w, FIRST, &f, err);
}

int cm_parcel_add_shuffled(cm_parcel_writer *w, uint64_t src, uint64_t dst, uint32_t typesize,
                           size_t nbytes, cm_error *err)
{
    const uint64_t n = nbytes / typesize;
    int rc = CM_OK;
    for (uint64_t at = 0; at < n && rc == CM_OK; at += CM_PARCEL_TILE_NELEM) {
        rc = grow(w, TILES, &w->tile, w->ntiles, sizeof *w->tile, err);
        if (rc == CM_OK)
            w->tile[w->ntiles++] = (cm_parcel_tile){
                .src = src + at,
                .dst = dst + at * typesize,
                .plane = n,
                .typesize = typesize,
                .nelem = (uint32_t)(n - at < CM_PARCEL_TILE_NELEM ? n - at : CM_PARCEL_TILE_NELEM)};
    }
    /* A tile of one element of so many bytes, each a plane of its own, is a copy. */
    const uint64_t rest = nbytes - n * typesize;
    if (rc == CM_OK && rest > 0)
        rc = grow(w, TILES, &w->tile, w->ntiles, sizeof *w->tile, err);
    if (rc == CM_OK && rest > 0)
        w->tile[w->ntiles++] = (cm_parcel_tile){.src = src + n * typesize,
                                                .dst = dst + n * typesize,
                                                .plane = 1,
                                                .typesize = (uint32_t)rest,
                                                .nelem = 1};
    return rc;
}

/* ---- the end -------------------------------------------------------------------------------- */

static int by_codec(const void *a, const void *b)
{
    const cm_parcel_stream *x = a, *y = b;
    if (x->codec != y->codec)
        return x->codec < y->codec ? -1 : 1;
    return x->src < y->src ? -1 : x->src > y->src;
}

int cm_parcel_end(cm_parcel_writer *w, uint64_t batch_nbytes, size_t *nbytes, cm_error *err)
{
    cm_parcel h = {.batch_nbytes = batch_nbytes,
                   .scratch_nbytes = w->scratch_nbytes,
                   .decoded_nbytes = w->decoded_nbytes,
                   .nfirst = (uint32_t)w->nfirst,
                   .ntiles = (uint32_t)w->ntiles,
                   .nlast = (uint32_t)w->nlast};
    if (w->nstreams > 1)
        qsort(w->stream, w->nstreams, sizeof *w->stream, by_codec);
    for (size_t i = 0; i < w->nstreams; i++)
        h.nstreams[w->stream[i].codec]++;
    int rc = cm_parcel_put(w, w->first, w->nfirst * sizeof *w->first, &h.first_at, err);
    if (rc == CM_OK)
        rc = cm_parcel_put(w, w->tile, w->ntiles * sizeof *w->tile, &h.tiles_at, err);
    if (rc == CM_OK)
        rc = cm_parcel_put(w, w->last, w->nlast * sizeof *w->last, &h.last_at, err);
    if (rc == CM_OK)
        rc = cm_parcel_put(w, w->stream, w->nstreams * sizeof *w->stream, &h.streams_at, err);
    if (rc == CM_OK && w->used > w->capacity)
        rc = no_room(err);
    h.nbytes = h.streams_at;
    *nbytes = w->used;
    if (rc == CM_OK)
        memcpy(w->data, &h, sizeof h);
    return rc;
}

/* *TOTAL grows by N of EACH bytes; false: it is too large. */
static bool add_up(uint64_t *total, uint64_t n, uint64_t each)
{
    uint64_t more;
    return cm_mul_u64(n, each, &more) && cm_add_size(*total, more, total);
}

uint64_t cm_parcel_tables_bound(uint64_t nboxes, uint64_t box_nbytes, uint64_t nstreams,
                                uint64_t nblocks, uint64_t nbytes)
{
    /* Cutting a dimension leaves pieces that are half empty at worst, and one that is a rest. */
    const uint64_t pieces = 1 + 3 * (box_nbytes / CM_PARCEL_UNITS);
    const uint64_t stream = sizeof(cm_parcel_stream) + sizeof(cm_parcel_copy) + CM_PARCEL_ALIGN;
    uint64_t total = 4 * CM_PARCEL_ALIGN + sizeof(cm_parcel), copies;
    const bool fits = cm_mul_u64(nboxes, pieces, &copies) &&
                      add_up(&total, copies, sizeof(cm_parcel_copy)) &&
                      add_up(&total, nstreams, stream) &&
                      add_up(&total, nbytes / CM_PARCEL_UNITS, sizeof(cm_parcel_copy)) &&
                      add_up(&total, nblocks, 2 * sizeof(cm_parcel_tile)) &&
                      add_up(&total, nbytes / CM_PARCEL_TILE_NELEM, sizeof(cm_parcel_tile));
    return fits ? total : UINT64_MAX;
}

static bool table_fits(uint64_t at, uint64_t n, size_t each, uint64_t nbytes)
{
    return at % CM_PARCEL_ALIGN == 0 && at <= nbytes && n <= (nbytes - at) / each;
}

int cm_parcel_check(const void *data, size_t nbytes, cm_error *err)
{
    const cm_parcel *h = data;
    uint64_t nstreams = 0;
    if (nbytes >= sizeof *h)
        for (int c = 0; c < CM_PARCEL_NCODECS; c++)
            nstreams += h->nstreams[c];
    if (nbytes < sizeof *h || h->nbytes > nbytes || h->streams_at != h->nbytes ||
        !table_fits(h->first_at, h->nfirst, sizeof(cm_parcel_copy), h->nbytes) ||
        !table_fits(h->tiles_at, h->ntiles, sizeof(cm_parcel_tile), h->nbytes) ||
        !table_fits(h->last_at, h->nlast, sizeof(cm_parcel_copy), h->nbytes) ||
        !table_fits(h->streams_at, nstreams, sizeof(cm_parcel_stream), nbytes))
        return cm_fail(err, CM_EINTERNAL, "a parcel's tables lie outside of it");
    return CM_OK;
}

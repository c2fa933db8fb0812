#include "engine/spill.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/fd.h"
#include "base/number.h"
#include "base/scratch.h"
#include "model/copy.h"

struct cm_spill {
    cm_array array; /* first: how the scratch is read */
    const cm_sweep *sweep;
    cm_transfer_counts *counts;
    size_t itemsize;
    uint64_t tile[CM_MAX_RANK];   /* target chunks */
    uint64_t ntiles[CM_MAX_RANK]; /* of the whole array */
    int fd;

    /* of the block that was entered */
    cm_range span[CM_MAX_RANK];  /* positions */
    cm_range tiles[CM_MAX_RANK]; /* numbers along each dimension */
    uint64_t total;
    uint64_t resident_nelem;
    uint8_t *wanted; /* one for each tile of the block */
};

static cm_range tile_span(const cm_spill *s, unsigned j, uint64_t k)
{
    cm_range span = {k * s->tile[j] * s->sweep->axis[j].target,
                     (k + 1) * s->tile[j] * s->sweep->axis[j].target};
    if (span.hi > s->sweep->axis[j].n)
        span.hi = s->sweep->axis[j].n;
    return span;
}

/*
 * Elements in front of the part PART when the parts of WHOLE follow each other
 * in the sweep's order, without gaps: along each dimension what lies before it,
 * times its own extent along outer and the whole extent along inner dimensions.
 */
static uint64_t offset_within(const cm_spill *s, const cm_range *whole, const cm_range *part)
{
    uint64_t offset = 0, outer = 1;
    for (unsigned i = 0; i < s->sweep->rank; i++) {
        unsigned j = s->sweep->order[i];
        uint64_t before = (part[j].lo - whole[j].lo) * outer;
        for (unsigned k = i + 1; k < s->sweep->rank; k++)
            before *= whole[s->sweep->order[k]].hi - whole[s->sweep->order[k]].lo;
        offset += before;
        outer *= part[j].hi - part[j].lo;
    }
    return offset;
}

/* Where in the file the record of RECORD, which lies in the tile COORD, begins. */
static off_t record_offset(const cm_spill *s, const uint64_t *coord, const cm_range *record)
{
    cm_range tile[CM_MAX_RANK];
    for (unsigned j = 0; j < s->sweep->rank; j++)
        tile[j] = tile_span(s, j, coord[j]);
    uint64_t nelem = offset_within(s, s->span, tile) - s->resident_nelem;
    return (off_t)((nelem + offset_within(s, tile, record)) * s->itemsize);
}

/* ---- reading ---- */

static int read_box(cm_array *a, const cm_box *box, void *dst, cm_error *err)
{
    cm_spill *s = (cm_spill *)a;
    cm_range record[CM_MAX_RANK];
    uint64_t coord[CM_MAX_RANK];
    size_t nbytes = cm_box_nelem(box) * s->itemsize;
    for (unsigned j = 0; j < box->rank; j++) {
        record[j] = (cm_range){box->start[j], box->start[j] + box->shape[j]};
        coord[j] = box->start[j] / s->sweep->axis[j].target / s->tile[j];
    }
    off_t offset = record_offset(s, coord, record);
    if (s->counts != NULL)
        atomic_fetch_add(&s->counts->returned, nbytes);
    size_t got;
    int errnum = cm_fd_read_at(s->fd, dst, nbytes, (uint64_t)offset, &got);
    if (errnum != 0)
        return cm_fail_errno(err, errnum, "cannot read the scratch file");
    return got == nbytes ? CM_OK
                         : cm_fail(err, CM_EINTERNAL, "the scratch file is shorter than planned");
}

static const cm_array_ops scratch_ops = {.read_box = read_box};

cm_array *cm_spill_array(cm_spill *s)
{
    return &s->array;
}

/* ---- writing ---- */

static int write_record(const cm_spill *s, const void *data, size_t nbytes, off_t offset,
                        cm_error *err)
{
    int errnum = cm_fd_write_at(s->fd, data, nbytes, (uint64_t)offset);
    return errnum == 0 ? CM_OK : cm_fail_errno(err, errnum, "cannot write to the scratch file");
}

/* Gathers the elements of RECORD into W's buffer. */
static void gather(const cm_spill *s, cm_worker *w, const cm_transfer *t, const cm_loaded *from,
                   const cm_range *record)
{
    static const uint8_t zeros[64];
    unsigned rank = s->sweep->rank;
    uint64_t shape[CM_MAX_RANK];
    int64_t from_stride[CM_MAX_RANK], to_stride[CM_MAX_RANK];
    for (unsigned j = 0; j < rank; j++)
        shape[j] = record[j].hi - record[j].lo;
    cm_strides_c(rank, shape, s->itemsize, to_stride);
    if (from->data == NULL) {
        const uint8_t *fill =
            t->source->fill != NULL || s->itemsize > sizeof(zeros) ? t->source->fill : zeros;
        cm_fill_nd(rank, shape, s->itemsize, w->spilled.data, to_stride, fill);
        return;
    }
    cm_strides_c(rank, from->shape, s->itemsize, from_stride);
    const uint8_t *src = from->data;
    for (unsigned j = 0; j < rank; j++)
        src += (int64_t)(record[j].lo - from->origin[j]) * from_stride[j];
    cm_copy_nd(rank, shape, s->itemsize, w->spilled.data, to_stride, src, from_stride);
}

static uint64_t local_number(const cm_spill *s, const uint64_t *coord)
{
    uint64_t number = 0;
    for (unsigned j = 0; j < s->sweep->rank; j++)
        number = number * (s->tiles[j].hi - s->tiles[j].lo) + (coord[j] - s->tiles[j].lo);
    return number;
}

static int write_tile(cm_spill *s, cm_worker *w, const cm_source_piece *p, const cm_loaded *from,
                      const uint64_t *coord, cm_error *err)
{
    cm_range record[CM_MAX_RANK];
    uint64_t nelem = 1;
    for (unsigned j = 0; j < s->sweep->rank; j++) {
        cm_range tile = tile_span(s, j, coord[j]), piece = p->span[j];
        record[j].lo = tile.lo > piece.lo ? tile.lo : piece.lo;
        record[j].hi = tile.hi < piece.hi ? tile.hi : piece.hi;
        nelem *= record[j].hi - record[j].lo;
    }
    gather(s, w, p->transfer, from, record);
    if (s->counts != NULL)
        atomic_fetch_add(&s->counts->spilled, nelem * s->itemsize);
    cm_monitor_add(w->monitor, nelem * s->itemsize);
    return write_record(s, w->spilled.data, nelem * s->itemsize, record_offset(s, coord, record),
                        err);
}

/* The tiles that the target chunks TARGETS lie in. */
static void tiles_of(const cm_spill *s, const cm_range *targets, cm_range *tiles, uint64_t *coord)
{
    for (unsigned j = 0; j < s->sweep->rank; j++) {
        tiles[j].lo = coord[j] = targets[j].lo / s->tile[j];
        tiles[j].hi = (targets[j].hi - 1) / s->tile[j] + 1;
    }
}

static bool advance(unsigned rank, const cm_range *within, uint64_t *coord)
{
    for (unsigned j = rank; j-- > 0;) {
        if (++coord[j] < within[j].hi)
            return true;
        coord[j] = within[j].lo;
    }
    return false;
}

int cm_spill_piece(cm_worker *w, const cm_source_piece *p, const cm_loaded *from, cm_error *err)
{
    /* The transfer borrows it as constant; the counts alone change. */
    cm_spill *s = (cm_spill *)(uintptr_t)p->transfer->spill;
    cm_range tiles[CM_MAX_RANK];
    uint64_t coord[CM_MAX_RANK], start = cm_now_ns();
    int rc = CM_OK;
    tiles_of(s, p->targets, tiles, coord);
    do {
        if (s->wanted[local_number(s, coord)])
            rc = write_tile(s, w, p, from, coord, err);
    } while (rc == CM_OK && advance(s->sweep->rank, tiles, coord));
    cm_worker_stage(w, CM_STAGE_WRITE, p->transfer, p->number, start);
    return rc;
}

/* ---- the tiles of a block ---- */

bool cm_spill_is_resident(const cm_spill *s, const uint64_t *coord)
{
    for (unsigned j = 0; j < s->sweep->rank; j++)
        if (coord[j] / s->tile[j] != s->tiles[j].lo)
            return false;
    return true;
}

bool cm_spill_wants(const cm_spill *s, const cm_range *targets)
{
    cm_range tiles[CM_MAX_RANK];
    uint64_t coord[CM_MAX_RANK];
    tiles_of(s, targets, tiles, coord);
    do {
        if (s->wanted[local_number(s, coord)])
            return true;
    } while (advance(s->sweep->rank, tiles, coord));
    return false;
}

/* True when TARGET lacks a chunk of tile COORD. */
static bool is_unfinished(const cm_spill *s, const cm_target *target, const uint64_t *coord)
{
    cm_range chunks[CM_MAX_RANK];
    uint64_t chunk[CM_MAX_RANK];
    for (unsigned j = 0; j < s->sweep->rank; j++) {
        chunks[j] = cm_axis_targets(&s->sweep->axis[j], tile_span(s, j, coord[j]));
        chunk[j] = chunks[j].lo;
    }
    do {
        uint64_t number = cm_grid_number(&target->grid, chunk);
        if (!cm_target_is_delivered(target, number))
            return true;
    } while (advance(s->sweep->rank, chunks, chunk));
    return false;
}

int cm_spill_enter(cm_spill *s, uint64_t block, const cm_target *target, cm_error *err)
{
    uint64_t coord[CM_MAX_RANK];
    s->total = s->resident_nelem = 1;
    for (unsigned j = s->sweep->rank; j-- > 0;) {
        uint64_t k = block % s->sweep->nblocks[j], per = s->sweep->block[j];
        block /= s->sweep->nblocks[j];
        s->span[j].lo = k * per * s->sweep->axis[j].target;
        s->span[j].hi = (k + 1) * per * s->sweep->axis[j].target;
        if (s->span[j].hi > s->sweep->axis[j].n)
            s->span[j].hi = s->sweep->axis[j].n;
        cm_range chunks = cm_axis_targets(&s->sweep->axis[j], s->span[j]);
        s->tiles[j].lo = coord[j] = chunks.lo / s->tile[j];
        s->tiles[j].hi = (chunks.hi - 1) / s->tile[j] + 1;
        s->total *= s->tiles[j].hi - s->tiles[j].lo;
        cm_range first = tile_span(s, j, s->tiles[j].lo);
        s->resident_nelem *= first.hi - first.lo;
    }
    free(s->wanted);
    if ((s->wanted = cm_calloc(s->total, 1, err)) == NULL)
        return CM_ENOMEM;
    /* Number 0 is the tile that stays in memory. */
    for (uint64_t i = 1; i < s->total && advance(s->sweep->rank, s->tiles, coord); i++)
        s->wanted[i] = is_unfinished(s, target, coord);
    return CM_OK;
}

uint64_t cm_spill_ntiles(const cm_spill *s)
{
    return s->total;
}

bool cm_spill_tile(const cm_spill *s, uint64_t i, uint64_t *number)
{
    uint64_t coord[CM_MAX_RANK], rest = i;
    for (unsigned j = s->sweep->rank; j-- > 0;) {
        uint64_t n = s->tiles[j].hi - s->tiles[j].lo;
        coord[j] = s->tiles[j].lo + rest % n;
        rest /= n;
    }
    *number = 0;
    for (unsigned j = 0; j < s->sweep->rank; j++)
        *number = *number * s->ntiles[j] + coord[j];
    return s->wanted[i] != 0;
}

int cm_spill_leave(cm_spill *s, cm_error *err)
{
    if (ftruncate(s->fd, 0) != 0)
        return cm_fail_errno(err, errno, "cannot give scratch space back");
    return CM_OK;
}

/* ---- opening ---- */

int cm_spill_create(const char *folder, const cm_array *source, const cm_sweep *sweep,
                    const uint64_t *tile, cm_transfer_counts *counts, cm_spill **out, cm_error *err)
{
    *out = NULL;
    cm_spill *s = cm_calloc(1, sizeof(*s), err);
    if (s == NULL)
        return CM_ENOMEM;
    /*
     * The members of an array that the engine reads: shape and pieces, type, fill value and name.
     */
    s->array = (cm_array){.ops = &scratch_ops,
                          .name = source->name,
                          .dtype = source->dtype,
                          .rank = source->rank,
                          .fill = source->fill,
                          .grid = source->grid};
    memcpy(s->array.shape, source->shape, sizeof(s->array.shape));
    s->sweep = sweep;
    s->counts = counts;
    s->itemsize = source->dtype.nbytes;
    memcpy(s->tile, tile, sweep->rank * sizeof(tile[0]));
    for (unsigned j = 0; j < sweep->rank; j++)
        s->ntiles[j] = cm_div_ceil(cm_div_ceil(sweep->axis[j].n, sweep->axis[j].target), tile[j]);
    int rc = cm_scratch_open(folder, &s->fd, err);
    if (rc != CM_OK) {
        free(s);
        return rc;
    }
    *out = s;
    return CM_OK;
}

void cm_spill_free(cm_spill *s)
{
    if (s == NULL)
        return;
    close(s->fd);
    free(s->wanted);
    free(s);
}

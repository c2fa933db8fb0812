#include "format/nc/slab.h"

#include <string.h>

#include "model/copy.h"

enum {
    /*
     * Runs closer than this are read together: copying a gap of a page costs less than another
     * system call.
     */
    NEAR_NBYTES = 4096,
    WINDOW_NBYTES = 32768
};

/* The contiguous runs of a box, in the order of the elements. */
typedef struct runs {
    unsigned rank; /* of the outer dimensions, which repeat the run */
    uint64_t count[CM_MAX_RANK];
    uint64_t stride[CM_MAX_RANK]; /* bytes in the file */
    uint64_t first;               /* offset of the first run */
    size_t nbytes;                /* of one run */
    uint64_t nruns;
    uint64_t end; /* one past the last byte of the last run */
} runs;

/* Sizes cannot overflow: the box lies in an array whose bytes were checked to fit the file. */
static void plan_runs(const cm_slab *slab, const uint64_t *shape, const cm_box *box, runs *r)
{
    uint64_t stride[CM_MAX_RANK];
    uint64_t inner = slab->itemsize;
    for (unsigned j = box->rank; j-- > 0;) {
        stride[j] = j == 0 ? slab->row_stride : inner;
        inner *= shape[j];
    }
    *r = (runs){.first = slab->begin, .nruns = 1};
    uint64_t run = slab->itemsize;
    unsigned outer = box->rank;
    /* A dimension joins the run while everything inside it is contiguous. */
    while (outer > 0 && stride[outer - 1] == run) {
        run *= box->shape[outer - 1];
        outer--;
        if (box->shape[outer] != shape[outer])
            break;
    }
    r->rank = outer;
    r->nbytes = (size_t)run;
    for (unsigned j = 0; j < box->rank; j++)
        r->first += box->start[j] * stride[j];
    r->end = r->first + run;
    for (unsigned j = 0; j < outer; j++) {
        r->count[j] = box->shape[j];
        r->stride[j] = stride[j];
        r->nruns *= box->shape[j];
        r->end += (box->shape[j] - 1) * stride[j];
    }
}

static void next_run(const runs *r, uint64_t *index, uint64_t *offset)
{
    for (unsigned j = r->rank; j-- > 0;) {
        *offset += r->stride[j];
        if (++index[j] < r->count[j])
            return;
        *offset -= r->count[j] * r->stride[j];
        index[j] = 0;
    }
}

static int read_each(const cm_slab *slab, const runs *r, uint8_t *dst, cm_error *err)
{
    uint64_t index[CM_MAX_RANK] = {0};
    uint64_t offset = r->first;
    for (uint64_t i = 0; i < r->nruns; i++, dst += r->nbytes) {
        int rc = cm_source_read(&slab->source, offset, dst, r->nbytes, err);
        if (rc != CM_OK)
            return rc;
        next_run(r, index, &offset);
    }
    return CM_OK;
}

/* Reads short runs that lie close to each other through a window. */
static int read_windowed(const cm_slab *slab, const runs *r, uint8_t *dst, cm_error *err)
{
    uint8_t window[WINDOW_NBYTES];
    uint64_t start = 0, end = 0;
    uint64_t index[CM_MAX_RANK] = {0};
    uint64_t offset = r->first;
    for (uint64_t i = 0; i < r->nruns; i++, dst += r->nbytes) {
        if (offset < start || offset + r->nbytes > end) {
            uint64_t left = r->end - offset;
            size_t n = left < sizeof window ? (size_t)left : sizeof window;
            int rc = cm_source_read(&slab->source, offset, window, n, err);
            if (rc != CM_OK)
                return rc;
            start = offset;
            end = offset + n;
        }
        memcpy(dst, window + (offset - start), r->nbytes);
        next_run(r, index, &offset);
    }
    return CM_OK;
}

int cm_slab_read(const cm_slab *slab, const uint64_t *shape, const cm_box *box, void *dst,
                 cm_error *err)
{
    uint64_t nelem = cm_box_nelem(box);
    if (nelem == 0)
        return CM_OK;
    runs r;
    plan_runs(slab, shape, box, &r);
    bool near =
        r.rank > 0 && r.nbytes <= NEAR_NBYTES && r.stride[r.rank - 1] - r.nbytes <= NEAR_NBYTES;
    int rc = near ? read_windowed(slab, &r, dst, err) : read_each(slab, &r, dst, err);
    if (rc == CM_OK && slab->swap > 1)
        cm_swap_bytes(dst, dst, nelem * (slab->itemsize / slab->swap), slab->swap);
    return rc;
}

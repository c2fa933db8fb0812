#include "convert/verify/verify_boxes.h"

#include "base/number.h"
#include "convert/plan/verify_memory.h"
#include "convert/source/span.h"
#include "format/multi/multi.h"

enum {
    SMALL_ARRAY = 1 << 20,   /* bytes */
    FEW_CHUNKS = 16 * 1024,  /* of source and store: a library takes 10 us for each, so 0.2 s */
    MANY_FILES = 8,          /* a sample does not open more of them */
    ENOUGH_TO_READ = 1 << 20 /* bytes, in a box of several chunks; asking for it costs 30 us */
};

size_t cm_verify_itemsize(const cm_job_var *v)
{
    return v->view.as_strings ? CM_STRING_ESTIMATE : v->source->dtype.nbytes;
}

static uint64_t source_chunk(const cm_job_var *v, unsigned j)
{
    uint64_t chunk =
        v->source->has_source_chunks ? v->source->source_chunk[j] / v->view.step[j] : 1;
    return chunk == 0 ? 1 : chunk;
}

static uint64_t clip(uint64_t length, uint64_t whole)
{
    length = length > whole ? whole : length;
    return length == 0 ? 1 : length;
}

/* Bytes to compare a box of SHAPE: the file's elements, with and without gaps, and the store's. */
static double box_nbytes(const cm_job_var *v, const uint64_t *shape)
{
    double source = (double)cm_verify_itemsize(v),
           target = v->view.as_strings ? source : v->view.type.nbytes;
    double wider = source > target ? source : target, nelem = 1;
    for (unsigned j = 0; j < v->view.rank; j++)
        nelem *= (double)shape[j];
    return cm_span_nelem(v, shape) * wider + nelem * (wider + target);
}

/* The chunks of the source or of the store, whichever are more, that a box of SHAPE meets. */
static double nchunks_of(const cm_verify_area *a, const uint64_t *shape)
{
    double source = cm_span_nchunks(a->var, shape), target = 1;
    for (unsigned j = 0; j < a->var->view.rank; j++)
        target *= (double)cm_div_ceil(shape[j], a->target->chunk[j]);
    return source > target ? source : target;
}

/* How many files the variable comes from; 1: it is not joined. */
static size_t nfiles_of(const cm_job_var *v)
{
    const cm_multi_var *m = cm_multi_var_of(v->source);
    return m != NULL && m->nparts > 0 ? m->nparts : 1;
}

bool cm_verify_is_small(const cm_verify_area *a)
{
    uint64_t nbytes = cm_verify_itemsize(a->var);
    for (unsigned j = 0; j < a->var->view.rank; j++)
        if (!cm_mul_u64(nbytes, a->area.shape[j], &nbytes))
            nbytes = UINT64_MAX;
    return nbytes <= SMALL_ARRAY && nfiles_of(a->var) <= MANY_FILES &&
           nchunks_of(a, a->area.shape) <= FEW_CHUNKS;
}

/* A box of a sample is opened by libraries: it does not reach over many files. */
static void stay_in_file(const cm_job_var *job_var, uint64_t *shape)
{
    const cm_multi_var *v = cm_multi_var_of(job_var->source);
    for (unsigned i = 0; v != NULL && v->nparts > 0 && i < v->naxes; i++) {
        uint64_t count = v->part[0].count[i] / job_var->view.step[v->axis[i]];
        count = count == 0 ? 1 : count;
        if (shape[v->axis[i]] > count)
            shape[v->axis[i]] = count;
    }
}

/* Several chunks in one box, from the innermost dimension on, as long as they are small. */
static void grow(const cm_verify_area *a, double share, uint64_t *shape)
{
    const double most = share < ENOUGH_TO_READ ? share : ENOUGH_TO_READ;
    for (unsigned j = a->var->view.rank; j-- > 0;) {
        while (shape[j] < a->area.shape[j]) {
            const uint64_t before = shape[j];
            shape[j] = clip(2 * before, a->area.shape[j]);
            if (box_nbytes(a->var, shape) <= most && nchunks_of(a, shape) <= CM_SPAN_MAX_CHUNKS)
                continue;
            shape[j] = before;
            return;
        }
    }
}

void cm_verify_box_shape(const cm_verify_area *a, bool sample, double share, uint64_t *shape)
{
    const cm_job_var *v = a->var;
    for (unsigned j = 0; j < v->view.rank; j++) {
        uint64_t target = a->target->chunk[j];
        /* In a sample a contiguous source counts as an output chunk. */
        uint64_t source = sample && !v->source->has_source_chunks ? target : source_chunk(v, j);
        uint64_t larger = source > target ? source : target;
        uint64_t smaller = source > target ? target : source;
        shape[j] = clip(sample ? smaller : larger, a->area.shape[j]);
    }
    grow(a, share, shape);
    if (sample)
        stay_in_file(v, shape);
    while ((box_nbytes(v, shape) > share || cm_span_nchunks(v, shape) > CM_SPAN_MAX_CHUNKS) &&
           cm_span_halve(v, shape)) {
    }
}

uint64_t cm_verify_box_number(uint64_t nboxes, uint64_t n, uint64_t i)
{
    if (n == nboxes || i == 0)
        return i;
    if (i == 1)
        return nboxes - 1;
    uint64_t spread = i * UINT64_C(0x9e3779b97f4a7c15);
    return (uint64_t)((unsigned __int128)nboxes * spread >> 64);
}

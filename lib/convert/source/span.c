#include "convert/source/span.h"

#include "base/number.h"

static uint64_t length_with_gaps(const cm_job_var *v, const uint64_t *shape, unsigned j)
{
    return shape[j] > 1 ? (shape[j] - 1) * v->view.step[j] + 1 : shape[j];
}

double cm_span_nelem(const cm_job_var *v, const uint64_t *shape)
{
    double n = 1;
    for (unsigned j = 0; j < v->view.rank; j++)
        n *= (double)length_with_gaps(v, shape, j);
    /* Characters that are joined are read along the whole of the last dimension. */
    return v->view.join ? n * (double)v->source->shape[v->view.rank] : n;
}

double cm_span_nchunks(const cm_job_var *v, const uint64_t *shape)
{
    const cm_array *a = v->source->array;
    double n = 1;
    for (unsigned j = 0; v->source->has_source_chunks && j < a->rank; j++) {
        uint64_t length = j < v->view.rank ? length_with_gaps(v, shape, j) : a->shape[j];
        n *= (double)cm_div_ceil(length, v->source->source_chunk[j]);
    }
    return n;
}

bool cm_span_halve(const cm_job_var *v, uint64_t *shape)
{
    for (unsigned j = 0; j < v->view.rank; j++) {
        if (shape[j] > 1) {
            shape[j] -= shape[j] / 2;
            return true;
        }
    }
    return false;
}

#include "plan/rules.h"

#include <math.h>

enum {
    MAX_REW_RANK = 16 /* 2^rank roundings are tried */
};

static int check(unsigned rank, const uint64_t *shape, cm_error *err)
{
    if (rank > CM_MAX_RANK)
        return cm_fail(err, CM_EINVAL, "%u dimensions are too many (the limit is %d)", rank,
                       CM_MAX_RANK);
    for (unsigned j = 0; j < rank; j++)
        if (shape[j] == 0)
            return cm_fail(err, CM_EINVAL, "dimension %u has length 0", j);
    return CM_OK;
}

/* The lengths before rounding up, each a whole number of at least 1. */
static void rew_floor(unsigned rank, const uint64_t *shape, double nchunks, double *length)
{
    if (rank == 1) {
        length[0] = fmax(1, floor((double)shape[0] / nchunks));
        return;
    }
    double others = rank - 1;
    double axis = pow(nchunks, 1 / (2 * others)); /* chunks along each dimension but the first */
    double first = pow(axis, others);
    if ((double)shape[0] / first < 1) {
        axis /= pow((double)shape[0] / first, 1 / others);
        length[0] = 1;
    } else {
        length[0] = floor((double)shape[0] / first);
    }
    double grow = 1; /* what dimensions too short to be cut so often leave to the others */
    for (unsigned j = 1; j < rank; j++)
        if ((double)shape[j] / axis < 1)
            grow *= axis / (double)shape[j];
    for (unsigned j = 1; j < rank; j++) {
        double exact = grow * (double)shape[j];
        length[j] = exact / axis < 1 ? 1 : floor(exact / axis);
    }
}

int cm_rule_rew(unsigned rank, const uint64_t *shape, uint64_t itemsize, uint64_t max_nbytes,
                uint64_t *chunk, cm_error *err)
{
    double length[CM_MAX_RANK], nchunks = (double)itemsize / (double)max_nbytes, best = 0;
    unsigned best_bits = 0;
    int rc = check(rank, shape, err);

    if (rc != CM_OK || rank == 0)
        return rc;
    if (rank > MAX_REW_RANK)
        return cm_fail(err, CM_EUNSUPPORTED, "Rew's rule is for at most %d dimensions",
                       MAX_REW_RANK);
    for (unsigned j = 0; j < rank; j++)
        nchunks *= (double)shape[j];
    if (nchunks <= 1) {
        for (unsigned j = 0; j < rank; j++)
            chunk[j] = shape[j];
        return CM_OK;
    }
    rew_floor(rank, shape, nchunks, length);
    for (unsigned bits = 0; bits < 1u << rank; bits++) {
        double nbytes = (double)itemsize;
        for (unsigned j = 0; j < rank; j++)
            nbytes *= fmin(length[j] + (bits >> (rank - 1 - j) & 1), (double)shape[j]);
        if (nbytes > best && nbytes <= (double)max_nbytes) {
            best = nbytes;
            best_bits = bits;
        }
    }
    for (unsigned j = 0; j < rank; j++) {
        double c = length[j] + (best_bits >> (rank - 1 - j) & 1);
        chunk[j] = c >= (double)shape[j] ? shape[j] : (uint64_t)c;
    }
    return CM_OK;
}

int cm_rule_zarr_python(unsigned rank, const uint64_t *shape, uint64_t itemsize, uint64_t *chunk,
                        cm_error *err)
{
    const double increment = 256 * 1024, least = 128 * 1024, most = 64 * 1024 * 1024;
    double length[CM_MAX_RANK], nbytes = (double)itemsize;
    int rc = check(rank, shape, err);

    if (rc != CM_OK || rank == 0)
        return rc;
    for (unsigned j = 0; j < rank; j++) {
        length[j] = (double)shape[j];
        nbytes *= length[j];
    }
    double target = increment * exp2(log10(nbytes / (1024.0 * 1024)));
    target = fmin(fmax(target, least), most);
    for (unsigned i = 0;; i++) {
        double nelem = 1;
        for (unsigned j = 0; j < rank; j++)
            nelem *= length[j];
        nbytes = nelem * (double)itemsize;
        bool near = nbytes < target || fabs(nbytes - target) / target < 0.5;
        if ((near && nbytes < most) || nelem == 1)
            break;
        length[i % rank] = ceil(length[i % rank] / 2);
    }
    for (unsigned j = 0; j < rank; j++)
        chunk[j] = length[j] >= (double)shape[j] ? shape[j] : (uint64_t)length[j];
    return CM_OK;
}

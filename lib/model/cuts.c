#include "model/cuts.h"

#include <stdlib.h>
#include <string.h>

#include "base/mem.h"

int cm_cuts_init(cm_cuts *cuts, uint64_t n, cm_error *err)
{
    *cuts = (cm_cuts){.n = n};
    size_t count;
    if (!cm_add_size((size_t)n, 1, &count))
        count = SIZE_MAX;
    cuts->first = cm_calloc(count, sizeof(cuts->first[0]), err);
    return cuts->first == NULL ? CM_ENOMEM : CM_OK;
}

void cm_cuts_release(cm_cuts *cuts)
{
    if (cuts == NULL)
        return;
    free(cuts->first);
    free(cuts->piece);
    free(cuts->length);
    *cuts = (cm_cuts){0};
}

bool cm_cuts_any(const cm_cuts *const *cuts, unsigned rank)
{
    for (unsigned j = 0; j < rank; j++)
        if (cuts[j] != NULL)
            return true;
    return false;
}

uint64_t cm_cuts_find(const cm_cuts *cuts, uint64_t position)
{
    uint64_t lo = 0, hi = cuts->n;
    while (hi - lo > 1) {
        uint64_t middle = lo + (hi - lo) / 2;
        if (cuts->first[middle] <= position)
            lo = middle;
        else
            hi = middle;
    }
    return lo;
}

uint64_t cm_cuts_length(const cm_cuts *cuts, uint64_t k)
{
    return cuts->length != NULL ? cuts->length[k] : cuts->first[k + 1] - cuts->first[k];
}

uint64_t cm_cuts_piece(const cm_cuts *cuts, uint64_t k)
{
    return cuts->piece != NULL ? cuts->piece[k] : k;
}

static int make_part(const cm_cuts *of, uint64_t n, cm_cuts *out, cm_error *err)
{
    int rc = cm_cuts_init(out, n, err);
    if (rc != CM_OK)
        return rc;
    out->piece = cm_calloc((size_t)n + 1, sizeof(out->piece[0]), err);
    out->length = cm_calloc((size_t)n + 1, sizeof(out->length[0]), err);
    out->longest = of->longest;
    return out->piece == NULL || out->length == NULL ? CM_ENOMEM : CM_OK;
}

int cm_cuts_part(const cm_cuts *of, uint64_t start, uint64_t step, uint64_t n, cm_cuts *out,
                 cm_error *err)
{
    uint64_t count = 0;
    memset(out, 0, sizeof(*out));
    if (n == 0)
        return cm_cuts_init(out, 0, err);
    uint64_t lo = cm_cuts_find(of, start), hi = cm_cuts_find(of, start + (n - 1) * step) + 1;
    int rc = make_part(of, hi - lo < n ? hi - lo : n, out, err);
    for (uint64_t k = lo; rc == CM_OK && k < hi; k++) {
        /* The first position at or past the piece, and the first past its end. */
        uint64_t begin = of->first[k] <= start ? 0 : (of->first[k] - start - 1) / step + 1;
        uint64_t end = (of->first[k + 1] - start - 1) / step + 1;
        if (begin >= (end < n ? end : n))
            continue;
        out->first[count] = begin;
        out->piece[count] = k;
        out->length[count++] = cm_cuts_length(of, k);
    }
    if (rc == CM_OK) {
        out->n = count;
        out->first[count] = n;
    } else {
        cm_cuts_release(out);
    }
    return rc;
}

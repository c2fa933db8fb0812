#include "plan/displacement.h"

#include <stdlib.h>

#include "base/mem.h"
#include "plan/radix.h"

#define MAX_LOOKS (UINT64_C(1) << 20)

int cm_displacement_of(const cm_sample_space *space, uint64_t epoch, const uint64_t *sample,
                       uint64_t n, double *out, cm_error *err)
{
    const uint64_t looks = n < MAX_LOOKS ? n : MAX_LOOKS;
    double sum = 0;

    *out = 0;
    if (n < 2)
        return CM_OK;
    cm_keyed *seen = cm_calloc(looks, sizeof(*seen), err);
    if (seen == NULL)
        return CM_ENOMEM;
    for (uint64_t i = 0; i < looks; i++) {
        const uint64_t at = (uint64_t)((unsigned __int128)i * n / looks);
        const uint64_t number = sample != NULL ? sample[at] : at;
        seen[i] = (cm_keyed){cm_sample_number(space, epoch, number), i};
    }
    int rc = cm_radix_sort(seen, looks, err);
    for (uint64_t i = 0; rc == CM_OK && i < looks; i++)
        sum += seen[i].value > i ? (double)(seen[i].value - i) : (double)(i - seen[i].value);
    free(seen);
    if (rc == CM_OK)
        *out = sum / (double)looks / (double)looks;
    return rc;
}

double cm_sample_displacement(const cm_sample_space *space, uint64_t epoch, uint64_t n)
{
    double displacement;

    if (cm_displacement_of(space, epoch, NULL, n, &displacement, NULL) != CM_OK)
        return -1;
    return displacement;
}

/* Shares of an epoch, as torch.utils.data.DistributedSampler and DataLoader cut it. */
#include <inttypes.h>

#include "base/number.h"
#include "plan/samples.h"

#define MAX_NUMBER (UINT64_C(1) << 62) /* sums of two fit 63 bits */

int cm_epoch_share_init(cm_epoch_share *share, cm_error *err)
{
    const uint64_t n = share->nsamples, world = share->world;

    if (n == 0 || world == 0 || share->batch == 0)
        return cm_fail(err, CM_EINVAL,
                       "an epoch has at least one sample, one rank and one sample a batch");
    if (n > MAX_NUMBER || world > MAX_NUMBER || share->batch > MAX_NUMBER)
        return cm_fail(err, CM_EINVAL, "samples, ranks and the batch are limited to 2^62");
    if (share->rank >= world)
        return cm_fail(err, CM_EINVAL,
                       "rank %" PRIu64 " is not one of %" PRIu64 ", which begin at 0", share->rank,
                       world);
    share->whole =
        share->drop_last ? n / world / share->batch * share->batch : cm_div_ceil(n, world);
    if (share->whole == 0)
        return cm_fail(err, CM_EINVAL,
                       "%" PRIu64 " %s on %" PRIu64 " %s no full batch of %" PRIu64
                       ", and one that is not full is dropped",
                       n, cm_of_count(n, "sample", "samples"), world,
                       cm_of_count(world, "rank makes", "ranks make"), share->batch);
    share->nbatches = cm_div_ceil(share->whole, share->batch);
    share->per_rank = share->whole;
    if (share->leaves_after != 0 && share->leaves_after < share->nbatches) {
        share->nbatches = share->leaves_after;
        share->per_rank = share->nbatches * share->batch;
    }
    return CM_OK;
}

uint64_t cm_epoch_share_sample(const cm_epoch_share *share, uint64_t k)
{
    return (share->rank + k * share->world) % share->nsamples;
}

uint64_t cm_epoch_share_place(const cm_epoch_share *share, uint64_t k)
{
    return (share->rank * share->whole + k) % share->nsamples;
}

uint64_t cm_epoch_share_batch(const cm_epoch_share *share, uint64_t b)
{
    const uint64_t left = share->per_rank - b * share->batch;
    return left < share->batch ? left : share->batch;
}

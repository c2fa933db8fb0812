/* The memory that a measurement takes besides what it measures. */
#include <string.h>

#include "bench/readbench.h"
#include "plan/meetings.h"

/* ---- what is recorded, staged and compared -------------------------------------------------- */

/* Lists that double, collected into others at the end. */
static uint64_t records_nbytes(const cm_bench *b)
{
    const uint64_t epochs = cm_mul_sat(b->options->epochs, b->load.setting.ranks);
    const uint64_t batch = 3 * sizeof(cm_readbench_batch) + 6 * sizeof(cm_readbench_event);
    const uint64_t logged = b->options->log_samples ? 3 * sizeof(cm_readbench_sample) : 0;
    const cm_epoch_share *share = &b->rank[0].load->share;
    return cm_add_sat(
        cm_mul_sat(cm_mul_sat(epochs, share->nbatches), batch),
        cm_mul_sat(cm_mul_sat(cm_mul_sat(epochs, share->per_rank), b->load.shared.space.nparts),
                   logged));
}

/* The device `host` has its memory here; every device is probed, and checked, by way of buffers. */
static uint64_t device_nbytes(const cm_bench *b)
{
    const uint64_t batch = b->load.slot_nbytes;
    const bool is_host = strcmp(b->options->device, "host") == 0;
    const uint64_t buffers = b->options->no_overlap ? 1 : 2;
    const uint64_t probing = is_host ? 3 : 2, checking = 1;
    return cm_add_sat(
        cm_mul_sat(cm_mul_sat(b->load.setting.ranks, batch), checking + (is_host ? buffers : 0)),
        cm_mul_sat(probing, batch));
}

/* Validation without a device reads one sample at a time, as it is stored and as it is fed. */
static uint64_t checking_nbytes(const cm_bench *b)
{
    const cm_load_space *s = &b->load.shared.space;
    uint64_t most = 0;
    for (size_t p = 0; p < s->nparts; p++) {
        const cm_array *a = b->load.shared.data.array[s->part[p].array];
        const uint64_t raw = cm_mul_sat(s->part_nelem[p], a->dtype.nbytes);
        const uint64_t n =
            cm_add_sat(cm_add_sat(raw, s->part_nbytes[p]), cm_reader_memory(a, NULL));
        most = n > most ? n : most;
    }
    if (b->load.setting.engine == CM_LOAD_COMMAND) /* whose batches are read as a whole */
        for (size_t p = 0; p < s->nparts; p++)
            most = cm_add_sat(most, cm_mul_sat(b->load.batch, s->part_nbytes[p]));
    return cm_add_sat(most, cm_load_open_nbytes(&b->load));
}

uint64_t cm_bench_other_nbytes(const cm_bench *b)
{
    uint64_t total = records_nbytes(b);
    if (b->load.setting.uses_device)
        total = cm_add_sat(total, device_nbytes(b));
    else if (b->setting.validate != CM_READBENCH_VALIDATE_NONE)
        total = cm_add_sat(total, checking_nbytes(b));
    return total;
}

uint64_t cm_bench_after_nbytes(const cm_bench *b)
{
    const uint64_t probing = cm_bench_probing_nbytes(b), foreseeing = cm_bench_foreseeing_nbytes(b);
    return probing > foreseeing ? probing : foreseeing;
}

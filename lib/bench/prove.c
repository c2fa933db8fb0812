/* What decoding on the device is worth beside the CPUs. */
#include <inttypes.h>
#include <string.h>

#include "base/number.h"
#include "bench/readbench.h"

/* ---- the proof ----------------------------------------------------------------------------- */

int cm_bench_tell_proof(cm_bench *b, cm_error *err)
{
    const cm_proof *p = b->load.proof;
    cm_readbench_decode *out = &b->session->device.decode;
    if (p == NULL)
        return CM_OK;
    out->used = true;
    out->proven = p->nwhole;
    out->proven_nbytes = (double)p->decoded_nbytes;
    out->cpus = p->nthreads;
    if (p->decode_ns > 0)
        out->host = (double)p->decoded_nbytes / ((double)p->decode_ns / 1e9) * p->nthreads;
    if (b->options->cold)
        return CM_OK; /* what was read for it is evicted again */
    return cm_bench_note(b, err,
                         "%" PRIu64 " %s read and decoded here once before the first epoch: the "
                         "page cache is as that left it",
                         p->nwhole, cm_of_count(p->nwhole, "chunk was", "chunks were"));
}

/* ---- whether it pays ----------------------------------------------------------------------- */

void cm_bench_decode_summarise(cm_bench *b)
{
    cm_readbench_decode *d = &b->session->device.decode;
    const double chunks = (double)b->session->counts.decoded_nbytes;
    double copying = 0, decoding = 0, copied = 0, batches = 0;
    for (unsigned i = 0; i < b->load.setting.ranks; i++) {
        const cm_stage_report *t = &b->rank[i].timed;
        copying += (double)t->copy_ns / 1e9;
        decoding += (double)t->decode_ns / 1e9;
        copied += (double)t->nbytes;
        batches += (double)t->batch_nbytes;
    }
    const double both = b->options->no_overlap || copying + decoding == 0 ? copying + decoding
                        : copying > decoding                              ? copying
                                                                          : decoding;
    d->device = decoding > 0 ? chunks / decoding : 0;
    d->path = both > 0 ? chunks / both : 0;
    d->travelled = batches > 0 ? copied / batches : 0;
    d->cpus_alike = d->host > 0 ? d->path / (d->host / d->cpus) : 0;
}

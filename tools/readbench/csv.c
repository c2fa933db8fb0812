/* batches.csv and samples.csv: every record of a session, one a line. */
#include <inttypes.h>

#include "files.h"

int readbench_batches_csv(const void *context, FILE *to, cm_error *err)
{
    const cm_readbench_session *s = context;
    (void)err;

    fputs("epoch,rank,number,nsamples,worker,queued_ns,begin_ns,end_ns,want_ns,got_ns,ready_ns,"
          "done_ns",
          to);
    for (size_t k = 0; k < CM_READBENCH_STAGES; k++)
        fprintf(to, ",%s_ns", READBENCH_STAGE[k]);
    fputs(",copy_start_ns,copy_ns,chunks,decoded,requests,stored_nbytes,decoded_nbytes,logical_"
          "nbytes,"
          "cache_hits,cache_misses,cache_evictions,disk_hits,disk_misses,disk_evictions,"
          "disk_nbytes,"
          "missing_chunks,missing_nbytes,failed_chunks,rss_nbytes,deaths,first,failed,emulated\n",
          to);
    for (size_t i = 0; i < s->nrecords; i++) {
        const cm_readbench_batch *b = &s->record[i];
        fprintf(to, "%u,%u,%u,%u,%" PRId64, b->epoch, b->rank, b->number, b->nsamples, b->worker);
        const uint64_t times[] = {b->queued_ns, b->begin_ns, b->end_ns, b->want_ns,
                                  b->got_ns,    b->ready_ns, b->done_ns};
        for (size_t k = 0; k < sizeof(times) / sizeof(times[0]); k++)
            fprintf(to, ",%" PRIu64, times[k]);
        for (size_t k = 0; k < CM_READBENCH_STAGES; k++)
            fprintf(to, ",%" PRIu64, b->stage_ns[k]);
        const uint64_t counts[] = {
            b->copy_start_ns,  b->copy_ns,        b->chunks,          b->decoded,
            b->requests,       b->stored_nbytes,  b->decoded_nbytes,  b->logical_nbytes,
            b->cache_hits,     b->cache_misses,   b->cache_evictions, b->disk_hits,
            b->disk_misses,    b->disk_evictions, b->disk_nbytes,     b->missing_chunks,
            b->missing_nbytes, b->failed_chunks,  b->rss_nbytes};
        for (size_t k = 0; k < sizeof(counts) / sizeof(counts[0]); k++)
            fprintf(to, ",%" PRIu64, counts[k]);
        fprintf(to, ",%u,%d,%d,%d\n", b->deaths, b->first, b->failed, s->emulated);
    }
    return CM_OK;
}

/* "3x64x64" without the cutting that a table needs. */
static void print_lengths(unsigned rank, const uint64_t *length, FILE *to)
{
    for (unsigned d = 0; d < rank; d++)
        fprintf(to, "%s%" PRIu64, d ? "x" : "", length[d]);
}

/* A field in quotes: a name may hold a comma, a quote or a line's end. */
static void print_field(const char *text, FILE *to)
{
    putc('"', to);
    for (; *text; text++) {
        if (*text == '"')
            putc('"', to);
        putc(*text, to);
    }
    putc('"', to);
}

int readbench_samples_csv(const void *context, FILE *to, cm_error *err)
{
    const cm_readbench_session *s = context;
    (void)err;

    fputs("epoch,rank,batch,place,number,part,variable,lag,start,shape,crc32c,emulated\n", to);
    for (size_t i = 0; i < s->nlogged; i++) {
        const cm_readbench_sample *l = &s->logged[i];
        const cm_readbench_part *p = l->part < s->nparts ? &s->part[l->part] : NULL;
        fprintf(to, "%u,%u,%u,%u,%" PRIu64 ",%u,", l->epoch, l->rank, l->batch, l->place, l->number,
                l->part);
        print_field(p && p->variable ? p->variable : "", to);
        fprintf(to, ",%" PRId64 ",", p ? p->lag : 0);
        print_lengths(p ? p->rank : 0, l->start, to);
        putc(',', to);
        print_lengths(p ? p->rank : 0, l->shape, to);
        fprintf(to, ",%08x,%d\n", l->crc32c, s->emulated);
    }
    return CM_OK;
}

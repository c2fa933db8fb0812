/* A step's time by what it went to, from the records of its batches. */

#include "readbench.h"

const char *const READBENCH_STAGE[CM_READBENCH_STAGES] = {"storage", "decode", "assemble",
                                                          "convert"};

static double span(uint64_t from, uint64_t to)
{
    return to > from ? (double)(to - from) / 1e9 : 0;
}

bool readbench_is_step(const cm_readbench_batch *b)
{
    return (b->epoch > 0 || b->number > 0) && !b->failed;
}

void readbench_batch_times(const cm_readbench_batch *b, readbench_times *out)
{
    uint64_t got = b->got_ns > b->want_ns ? b->got_ns : b->want_ns;
    uint64_t ready = b->ready_ns > got ? b->ready_ns : got;

    const uint64_t made = b->end_ns > b->want_ns ? b->end_ns : b->want_ns;

    out->loader = span(b->want_ns, got);
    out->runtime = span(made, got);
    out->memcpy = span(got, ready);
    out->step = span(ready, b->done_ns);
    out->total = span(b->want_ns, b->done_ns);
}

void readbench_break_down(const cm_readbench_session *s, double host_share,
                          readbench_breakdown *out)
{
    *out = (readbench_breakdown){0};
    for (size_t i = 0; i < s->nrecords; i++) {
        readbench_times t;
        if (!readbench_is_step(&s->record[i]))
            continue;
        readbench_batch_times(&s->record[i], &t);
        out->n++;
        out->step += t.total;
        out->loader += t.loader - t.runtime;
        out->runtime += t.runtime;
        out->memcpy += t.memcpy;
        out->kernel += t.step * (1 - host_share);
        out->cpu += t.step * host_share;
    }
    if (out->n == 0)
        return;
    double n = (double)out->n;
    out->step /= n;
    out->loader /= n;
    out->runtime /= n;
    out->memcpy /= n;
    out->kernel /= n;
    out->cpu /= n;
    /* Less than a nanosecond is rounding. */
    double rest = out->step - out->loader - out->runtime - out->memcpy - out->kernel - out->cpu;
    out->other = rest >= 1e-9 ? rest : 0;
}

bool readbench_emulated(const cm_readbench_report *r)
{
    for (size_t i = 0; i < r->nsessions; i++)
        if (r->session[i].emulated)
            return true;
    return false;
}

const cm_readbench_session *readbench_main_session(const cm_readbench_report *r)
{
    return &r->session[r->best < r->nsessions ? r->best : 0];
}

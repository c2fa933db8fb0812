/* Causes in a sentence: which dimensions make chunks wrong, and what decides a comparison. */
#include <math.h>
#include <stdio.h>

#include "readbench.h"

enum {
    MAX_DIMS = 3 /* in a sentence */
};

/* A difference of two stores that a cause is named for. */
#define CLEAR 1.1

/* That a sample takes the most of. */
static const cm_readbench_part *main_part(const cm_readbench_session *s)
{
    const cm_readbench_part *most = NULL;
    for (size_t i = 0; i < s->nparts; i++)
        if (s->part[i].chunked && (most == NULL || s->part[i].nbytes > most->nbytes))
            most = &s->part[i];
    return most;
}

static double excess(const cm_readbench_part *p, unsigned d)
{
    return p->sample[d] > 0 ? (double)p->chunk[d] / (double)p->sample[d] : 0;
}

/* The dimension with the most excess below MOST; the rank: there is none. */
static unsigned next_dim(const cm_readbench_part *p, double most)
{
    unsigned found = p->rank;
    for (unsigned d = 0; d < p->rank; d++)
        if (excess(p, d) > 1 && excess(p, d) < most &&
            (found == p->rank || excess(p, d) > excess(p, found)))
            found = d;
    return found;
}

char *readbench_why(const cm_readbench_session *s, char *buf, size_t size)
{
    const cm_readbench_part *p = main_part(s);
    buf[0] = '\0';
    if (s->cause != CM_CAUSE_CHUNK_SHAPE || p == NULL)
        return buf;
    unsigned d = next_dim(p, INFINITY);
    if (d == p->rank)
        snprintf(buf, size, "Its chunks are small: a sample lies in %.3g of them.",
                 s->predicted.chunks);
    size_t used = 0;
    for (unsigned n = 0; d < p->rank && n < MAX_DIMS && used < size; n++) {
        used += (size_t)snprintf(buf + used, size - used, "%s%.64s (%llu for %llu)",
                                 n == 0 ? "Its chunks are longer than samples along " : ", ",
                                 p->dim_name[d] != NULL ? p->dim_name[d] : "a dimension",
                                 (unsigned long long)p->chunk[d], (unsigned long long)p->sample[d]);
        d = next_dim(p, excess(p, d));
    }
    return buf;
}

/* The cause as an end of "waits for"; NULL: there is none, or it is not known. */
static const char *held_up_by(cm_readbench_cause cause)
{
    switch (cause) {
    case CM_CAUSE_CONTENTION:
        return "CPUs that other programs use";
    case CM_CAUSE_DEVICE_COPY:
        return "copies to the device";
    case CM_CAUSE_CHUNK_SHAPE:
        return "chunks of the wrong shape";
    case CM_CAUSE_USER_LOADER:
        return "the loader behind it";
    case CM_CAUSE_LIBRARY:
        return "libnetcdf";
    case CM_CAUSE_STORAGE:
        return "storage";
    case CM_CAUSE_FEW_REQUESTS:
        return "reads, of which storage would do more at once";
    case CM_CAUSE_CPUS:
    case CM_CAUSE_WORK:
        return "decoding, with all CPUs at work";
    case CM_CAUSE_FEW_WORKERS:
        return "workers, while CPUs are idle";
    case CM_CAUSE_UNEVEN:
        return "single batches that come late";
    default:
        return NULL;
    }
}

/* The two that the heading of a comparison is about; false: it compares none. */
static bool compared(const cm_readbench_report *r, size_t *best, size_t *other)
{
    if (r->best < r->nsessions || r->nsessions < 2 || r->ratio == NULL)
        return false;
    *best = 0;
    for (size_t i = 1; i < r->nsessions; i++)
        if (r->ratio[i] > r->ratio[*best])
            *best = i;
    *other = *best != 0 ? 0 : 1;
    return r->ratio[*other] > 0 && r->ratio[*best] / r->ratio[*other] >= CLEAR;
}

char *readbench_lead(const cm_readbench_report *r, char *buf, size_t size)
{
    size_t best, other;
    buf[0] = '\0';
    if (!compared(r, &best, &other))
        return buf;
    const cm_readbench_session *b = &r->session[best], *o = &r->session[other];
    const double few = b->amplification[0], many = o->amplification[0];
    const char *held = held_up_by(o->cause);
    if (few > 0 && many / few >= CLEAR && o->cause == CM_CAUSE_CHUNK_SHAPE)
        snprintf(buf, size,
                 "The chunks decide: for each byte of a sample %.100s decodes %.3g, %.100s %.3g",
                 b->label, few, o->label, many);
    else if (held != NULL)
        snprintf(buf, size, "%.100s waits for %s", o->label, held);
    return buf;
}

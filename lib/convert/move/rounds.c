#include "convert/move/rounds.h"

#include <math.h>

#include "base/number.h"
#include "convert/plan/part_cut.h"
#include "format/multi/multi.h"

enum {
    FINER = 4 /* blocks of a round: with one, three rounds of four blocks begin with two of them */
};

/* Rows of target chunks after which shards end, too. */
static uint64_t grain_of(const cm_transfer *t)
{
    return t->target->outer.chunk[0] / t->target->grid.chunk[0];
}

/*
 * Parts what T moves into about as many shares as there are ROUNDS.  A shard that is begun in one
 * round is finished in it: plans count the shards of one variable at a time.
 */
static void part(cm_transfer *t, uint64_t rounds)
{
    cm_sweep *s = &t->sweep;
    t->together = 0;
    if (cm_transfer_is_direct(t)) {
        t->together = 1;
        return;
    }
    if (s->rank == 0 || t->target->grid.nchunks == 0)
        return;
    const uint64_t grain = grain_of(t);
    const uint64_t count = cm_div_ceil(s->axis[0].n, s->axis[0].target) - s->first[0];
    (void)cm_sweep_split(s, cm_div_ceil(count, FINER * rounds), grain);
    if (s->nblocks[0] == 1 || s->block[0] % grain == 0)
        t->together = s->total_blocks / s->nblocks[0];
}

/* The share of all variables' bytes that this process moves. */
static double share_of(const cm_job *job)
{
    double all = 0, own = 0;
    for (size_t i = 0; i < job->nvars; i++) {
        const cm_job_var *v = &job->var[i];
        double nbytes = (double)v->source->dtype.nbytes;
        for (unsigned j = 0; j < v->view.rank; j++)
            nbytes *= (double)v->view.shape[j];
        all += nbytes;
        own += v->share.is_part ? (double)cm_parts_nbytes(v) : nbytes;
    }
    return own < all ? own / all : 1;
}

uint64_t cm_rounds_plan(const cm_job *job, cm_transfer *list, size_t n)
{
    uint64_t rounds = n < 2 ? 1 : cm_multi_stretches(job->source);
    if (rounds > 1)
        rounds = (uint64_t)ceil((double)rounds * share_of(job));
    for (size_t i = 0; i < n && rounds > 1; i++)
        part(&list[i], rounds);
    return cm_max_u64(rounds, 1);
}

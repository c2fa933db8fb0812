#include "convert/plan/budget.h"

#include "base/budget.h"
#include "base/clock.h"
#include "base/cpu.h"

enum {
    STEP = 4 << 20
};

/*
 * The resident memory in steps, so that a few pages more or less change no plan: runs that are
 * alike read alike.  The reserve gives half a step.
 */
static uint64_t held_nbytes(uint64_t resident)
{
    return (resident + STEP - 1) / STEP * STEP + CM_BUDGET_RESERVE - STEP / 2;
}

void cm_budget_begin(cm_budget *b, uint64_t asked)
{
    const uint64_t resident = cm_peak_rss();
    b->held_nbytes = held_nbytes(resident);
    b->limit_nbytes = asked > 0 ? asked : cm_memory_available() / 2 + resident;
}

uint64_t cm_budget_free(const cm_budget *b)
{
    return b->limit_nbytes > b->held_nbytes ? b->limit_nbytes - b->held_nbytes : 0;
}

uint64_t cm_budget_used(const cm_budget *b, size_t worker_nbytes)
{
    return b->held_nbytes + b->nthreads * worker_nbytes + b->slots_nbytes + b->shards_nbytes +
           b->early_nbytes + b->ahead_nbytes;
}

void cm_budget_report(const cm_budget *b, cm_transform_report *report)
{
    report->nthreads = b->nthreads;
    report->memory_limit = b->limit_nbytes;
    report->memory_peak = cm_peak_rss();
}

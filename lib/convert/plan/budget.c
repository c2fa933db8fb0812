#include "convert/plan/budget.h"

#include "base/budget.h"
#include "base/clock.h"
#include "base/cpu.h"

void cm_budget_begin(cm_budget *b, uint64_t asked)
{
    const uint64_t resident = cm_peak_rss();
    b->held_nbytes = resident + CM_BUDGET_RESERVE;
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

#include "bench/pipeline.h"

#include <math.h>

static double alone(const cm_pipeline *p)
{
    double total = 0;
    for (size_t k = 0; k < p->n; k++)
        total += p->service[k] * p->slower + p->step;
    return total;
}

double cm_pipeline_seconds(const cm_pipeline *p)
{
    double free_at[CM_PIPELINE_MOST] = {0}; /* each worker */
    double taken_at[CM_PIPELINE_MOST] = {0};
    const unsigned workers = p->workers < CM_PIPELINE_MOST ? p->workers : CM_PIPELINE_MOST;
    const unsigned ahead = p->ahead < CM_PIPELINE_MOST ? p->ahead : CM_PIPELINE_MOST;
    double done = 0;
    if (workers == 0 || ahead == 0)
        return alone(p);
    for (size_t k = 0; k < p->n; k++) {
        const double asked = k < ahead ? 0 : taken_at[k % ahead];
        double *worker = &free_at[k % workers];
        *worker = fmax(asked, *worker) + p->service[k] * p->slower;
        taken_at[k % ahead] = fmax(done, *worker);
        done = taken_at[k % ahead] + p->step;
    }
    return done;
}

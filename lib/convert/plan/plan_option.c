#include "convert/plan/plan_option.h"

#include "plan/rechunk.h"

cm_plan_option *cm_plan_choose(cm_plan_options *options, bool probed)
{
    cm_plan_option *best = NULL;
    double least = 0;
    for (unsigned i = 0; i < options->n; i++) {
        const double cost = options->item[i].cost;
        least = i == 0 || cost < least ? cost : least;
    }
    for (unsigned i = 0; i < options->n; i++) {
        cm_plan_option *o = &options->item[i];
        if (o->cost <= (probed ? CM_ROUTE_NOISE : 1) * least &&
            (best == NULL || o->traffic < best->traffic))
            best = o;
    }
    return best;
}

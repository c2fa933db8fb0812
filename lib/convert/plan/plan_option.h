/* Ways to plan a conversion, of which one is chosen. */
#ifndef CM_CONVERT_PLAN_OPTION_H
#define CM_CONVERT_PLAN_OPTION_H

#include <stdbool.h>
#include <stddef.h>

enum {
    CM_PLAN_OPTIONS = 64 /* four for each halving of the workers */
};

/* One way: the means that it may use, its workers, and all arrays by the routes it leads to. */
typedef struct cm_plan_option {
    unsigned nthreads;
    bool may_spill, may_clip, may_send;
    unsigned ahead; /* chunks that each has on their way */
    size_t piece_nbytes;
    double cost;    /* seconds, or what stands for them */
    double traffic; /* bytes */
} cm_plan_option;

typedef struct cm_plan_options {
    cm_plan_option item[CM_PLAN_OPTIONS];
    unsigned n;
} cm_plan_options;

/*
 * The way of the least cost; where PROBED, of those within the noise of a probe (CM_ROUTE_NOISE)
 * the one of the fewest bytes.  NULL: there is none.
 */
cm_plan_option *cm_plan_choose(cm_plan_options *options, bool probed);

#endif

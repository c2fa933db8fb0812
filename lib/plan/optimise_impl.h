/* Shared by the parts of the optimiser.  See optimise.h for the method. */
#ifndef CM_PLAN_OPTIMISE_IMPL_H
#define CM_PLAN_OPTIMISE_IMPL_H

#include "plan/optimise.h"

typedef unsigned __int128 cm_u128;

/* The quantity that a search minimises: the spec's objective, or the seconds of one read alone. */
typedef struct cm_goal {
    cm_objective objective;
    int read; /* -1: all of them */
} cm_goal;

/* A value and what decides between equal ones. */
typedef struct cm_score {
    double value, bytes, requests;
} cm_score;

typedef struct cm_free_dim {
    unsigned index; /* in the array */
    uint64_t most;  /* no length is longer */
    uint64_t *length;
    double *mean; /* of read r with length k: mean[k * nreads + r] */
    size_t n;
} cm_free_dim;

typedef struct cm_found {
    bool valid;
    cm_score score;
    uint64_t chunk[CM_MAX_RANK]; /* of the array, fixed dimensions included */
} cm_found;

typedef struct cm_front_point {
    double bytes, requests;
    uint64_t number; /* of a combination of the lists, or FRONT_LOOSE + an index into loose */
} cm_front_point;

typedef struct cm_search {
    const cm_optimise_spec *spec;
    double weight[CM_MAX_READS]; /* their sum is 1 */
    uint64_t chunk[CM_MAX_RANK]; /* the fixed lengths, 1 elsewhere */
    cm_u128 unit;                /* bytes of that */
    uint64_t min_nbytes, max_nbytes;
    double unit_mean[CM_MAX_READS]; /* product over the fixed dimensions */
    unsigned nfree;
    cm_free_dim free[CM_MAX_RANK];
    const double *own; /* seconds of each read with its own best; NULL: not known yet */
    cm_front_point *front;
    size_t nfront, front_capacity;
    cm_found *found_own; /* nreads, or NULL when they are known */
    uint64_t nevaluated;
} cm_search;

double cm_search_mean(const cm_search *s, size_t read, unsigned index, uint64_t length);
/* Q[r] is the mean number of chunks that read r meets. */
cm_score cm_search_score(const cm_search *s, cm_goal goal, double nbytes, const double *q);
bool cm_score_less(const cm_score *a, const cm_score *b);

/* Fills the lists of lengths. */
int cm_search_list(cm_search *s, cm_error *err);
/* Tries all combinations: the best by GOAL, the best for each read (found_own), and the front. */
int cm_search_all(cm_search *s, cm_goal goal, bool want_front, cm_found *best, cm_error *err);
/* The chunk of a point of the front. */
void cm_search_decode(const cm_search *s, uint64_t number, uint64_t *chunk);

/* Moves FOUND, whose chunk is within the bounds, downhill; sets its score. */
void cm_search_refine(cm_search *s, cm_goal goal, cm_found *found);
/*
 * A shape within the bounds, grown from single elements; found->valid is false when there is
 * none.
 */
void cm_search_grow(cm_search *s, cm_goal goal, cm_found *found);

#endif

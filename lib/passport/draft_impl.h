/* A draft from inside: what draft.c gathers and draft_finish.c judges. */
#ifndef CM_PASSPORT_DRAFT_IMPL_H
#define CM_PASSPORT_DRAFT_IMPL_H

#include "model/calendar.h"
#include "passport/counter.h"
#include "passport/draft.h"
#include "passport/findings.h"

typedef struct cm_draft_entry {
    cm_passport_variable *v; /* of the passport */
    uint8_t fill[8];
    cm_counter_options options;
    cm_counter *counter;
    double scale, offset;
    bool packed;
    bool has_low, has_high; /* valid values, as readers show them */
    double low, high;
    bool is_axis; /* a time: */
    cm_time_axis axis;
    bool is_latitude, is_longitude, is_timely; /* the last: a time by its attributes */
} cm_draft_entry;

struct cm_draft {
    cm_passport *passport;
    cm_draft_entry *entry;
    size_t n;
};

/* The coordinate variable of dimension J of V, one of numbers; NULL: there is none. */
const cm_draft_entry *cm_draft_coordinate(const cm_draft *d, const cm_passport_variable *v,
                                          unsigned j);

#endif

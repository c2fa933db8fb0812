/* Terms that the sink of a job sets for the steps before it. */
#ifndef CM_CONVERT_TERMS_H
#define CM_CONVERT_TERMS_H

#include <stdbool.h>

/* All false: one process makes a store, or a node, that is its own. */
typedef struct cm_terms {
    const char *against; /* a store that is compared with the source, instead of one that is made */
    bool alike;          /* several processes plan the same: nothing depends on this machine */
    bool foreseen;       /* nothing is written: the plan is shown */
    bool in_part;        /* this process's share alone; documents are written when all are done */
    bool unconsolidated; /* documents stand alone, whatever the source has */
    bool grows; /* documents are those of a store that is there, changed where a length stands */
} cm_terms;

#endif

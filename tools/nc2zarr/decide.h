/* Options that decide all findings of a survey, their costs, and the command line with them. */
#ifndef CM_TOOLS_NC2ZARR_DECIDE_H
#define CM_TOOLS_NC2ZARR_DECIDE_H

#include <chunkmill/archive.h>

struct archive_job;

/* --NAME VALUE. */
typedef struct nc2zarr_option {
    const char *name;
    char value[600];
} nc2zarr_option;

/* The option that decides F; false: there is none. */
bool nc2zarr_option_of(const cm_finding *f, nc2zarr_option *o);

/* One option, and what it decides. */
typedef struct nc2zarr_decision {
    nc2zarr_option option;
    cm_finding_kind kind;
    char **variable; /* that it is about, each once */
    size_t nvariables;
    size_t nfiles;
    char *other;     /* of a name: what it becomes */
    double apart;    /* the largest difference */
    bool of_store;   /* a store grows by the files */
    bool voluntary;  /* the files could be converted without it, unless their data differ */
    char *type[2];   /* of the first variable, in files and in the store; NULL: not known */
    uint64_t nadded; /* bytes, decoded, that it adds to the store */
    uint64_t nfilled, nsteps; /* steps that it fills, of those that there are */
} nc2zarr_decision;

/* All options that a conversion of the files needs. */
typedef struct nc2zarr_decisions {
    nc2zarr_decision *of;
    size_t n;
    bool compares;   /* steps that several files have, while data move */
    char *obstacle;  /* what no option decides; NULL: the files can be converted */
    uint64_t nbytes; /* of the store, decoded */
    char *line;      /* the command line; NULL: there is none */
} nc2zarr_decisions;

/* decide.c: tries options on what JOB surveyed until none is missing. */
int nc2zarr_decide(const struct archive_job *job, nc2zarr_decisions *out, cm_error *err);
void nc2zarr_decisions_release(nc2zarr_decisions *d);

#endif

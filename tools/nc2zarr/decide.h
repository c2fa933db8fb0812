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

/* The part of one variable in a decision. */
typedef struct nc2zarr_share {
    size_t nfiles;            /* that the finding concerns */
    uint64_t nfilled, nsteps; /* steps that are filled, of those that there are */
} nc2zarr_share;

/* One option, and what it decides. */
typedef struct nc2zarr_decision {
    nc2zarr_option option;
    cm_finding_kind kind;
    char **variable;      /* that it is about, each once, */
    nc2zarr_share *share; /* and of each what */
    size_t nvariables;
    size_t nfiles;    /* the most */
    char *other;      /* of a name: what it becomes; of dimensions: for --merge-along */
    double apart;     /* the largest difference */
    uint64_t nlost;   /* bytes, decoded, that files have and the store does not get */
    bool promotes;    /* STATIC: --promote would keep all that files have */
    bool limits;      /* MEANING: of valid numbers, too */
    bool shifts;      /* COORDINATE: of another grid rather than rounded */
    size_t nstores;   /* that --store-per makes */
    bool of_store;    /* a store grows by the files */
    bool of_stack;    /* one of the variables is a channel of a stack, and cannot be left out */
    bool voluntary;   /* the files could be converted without it, unless their data differ */
    char *type[2];    /* of the first variable, in files and in the store; NULL: not known */
    uint64_t nadded;  /* bytes, decoded, that it adds to the store */
    bool widens;      /* PACKING: files have several types, and elements of some get larger */
    uint64_t nfilled; /* the most steps that it fills of a variable */
} nc2zarr_decision;

enum {
    NC2ZARR_RIVALS = 4 /* dimensions that are tried besides that which was found */
};

/* All options that a conversion of the files needs. */
typedef struct nc2zarr_decisions {
    nc2zarr_decision *of;
    size_t n;
    bool compares; /* steps that several files have, while data move */
    bool ordered;  /* along a joined dimension, by values of it */
    bool cuts;     /* stores have parts of one series each */
    bool instead;  /* of the dimension that findings name, another is joined that drops less */
    char *rival[NC2ZARR_RIVALS]; /* dimensions that may be joined instead */
    size_t nrivals;
    bool apart;      /* OBSTACLE: the files do not follow each other */
    bool asks;       /* OBSTACLE: it names an option that only a user can know to be right */
    char *obstacle;  /* what no option decides; NULL: the files can be converted */
    uint64_t nbytes; /* of the store, decoded */
    uint64_t nlater; /* bytes that only data tell whether they are dropped: then the run stops */
    char *line;      /* the command line; NULL: there is none */
} nc2zarr_decisions;

/* Whether the option of F is D's: false where another option made it needless. */
bool nc2zarr_takes(const nc2zarr_decisions *d, const cm_finding *f);

/* Whether V has the dimension NAME. */
bool nc2zarr_has_dim(const cm_archive_variable *v, const char *name);
/* decide_costs.c: bytes that the files of R have of V together, decoded. */
uint64_t nc2zarr_nbytes_in_files(const cm_archive_report *r, const cm_archive_variable *v);
/* Counts what D, which decides F, drops of NAME. */
void nc2zarr_count_lost(nc2zarr_decision *d, const cm_archive_report *r, const char *name,
                        const cm_finding *f);
/* Counts what D's options cost by the N reports of a join with them. */
int nc2zarr_count_costs(nc2zarr_decisions *d, const struct archive_job *job,
                        const cm_archive_report *const *report, size_t n, cm_error *err);

/*
 * decide_options.c: OUT becomes ASKED with the options of D, and holds lists that are to be
 * released; texts stay D's and ASKED's.
 */
int nc2zarr_copy_options(const cm_archive_options *asked, const nc2zarr_decisions *d,
                         cm_archive_options *out, cm_error *err);
void nc2zarr_release_options(cm_archive_options *o);
/* Whether O is one of NAMEs, of which the last is NULL. */
bool nc2zarr_is_one_of(const nc2zarr_option *o, const char *const *name);

/*
 * decide_along.c: where neither an option nor a coordinate says along which dimension the files of
 * one store are joined, those that most of the data lie along, and with them what D drops or
 * repeats, or what stops it.  JOINED is the report of the last join by D's options.
 */
int nc2zarr_find_rivals(nc2zarr_decisions *d, const struct archive_job *job,
                        const cm_archive_report *joined, cm_error *err);
/* Whether RIVAL joins the files and drops less than BEST, or as much and repeats less. */
bool nc2zarr_is_better(const nc2zarr_decisions *rival, const nc2zarr_decisions *best);

/* decide_stores.c: whether --store-per goes with all else that was asked for. */
bool nc2zarr_may_make_stores(const struct archive_job *job);
/*
 * Whether D joins nothing, leaves out what lies along a dimension or drops fields of other files,
 * or takes two grids for one.
 */
bool nc2zarr_may_be_several(const struct archive_job *job, const nc2zarr_decisions *d);
/* Whether D joins the files, and drops no element of them. */
bool nc2zarr_keeps_all(const nc2zarr_decisions *d);
/* Whether D makes several stores, in a folder. */
bool nc2zarr_makes_stores(const nc2zarr_decisions *d);
/* Whether two of N stores hold a variable of one shape, of most dimensions, at different steps. */
bool nc2zarr_cuts_series(const struct archive_job *job, const cm_archive_report *const *report,
                         size_t n);

/* decide.c: tries options on what JOB surveyed until none is missing. */
int nc2zarr_decide(const struct archive_job *job, nc2zarr_decisions *out, cm_error *err);
/* Adds to ERR, of files whose data clash, which stores would keep all of them. */
void nc2zarr_explain_clash(const struct archive_job *job, cm_error *err);
void nc2zarr_decisions_release(nc2zarr_decisions *d);

#endif

/*
 * Many files as one dataset: what they hold, how they hang together, and where they disagree.
 *
 *     cm_archive_open(&options, &archive, err);        surveys all files, once
 *     for (i = 0; i < cm_archive_nstores(archive); i++)
 *         cm_archive_join(archive, i, &report, err);   joins those of one store, and says how
 *         transform.dataset = cm_archive_dataset(...)  what cm_transform converts
 *     cm_archive_close(archive);
 *
 * Nothing is written.  A disagreement is a finding; one that needs a decision has no dataset.
 */
#ifndef CHUNKMILL_ARCHIVE_H
#define CHUNKMILL_ARCHIVE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include <chunkmill/error.h>
#include <chunkmill/monitor.h>
#include <chunkmill/net.h>
#include <chunkmill/texts.h>

struct cm_dataset;
struct json_object; /* a JSON value of the library */

typedef enum cm_archive_order {
    CM_ORDER_COORDINATE,
    CM_ORDER_NAME,
    CM_ORDER_GIVEN
} cm_archive_order;

typedef enum cm_archive_overlap {
    CM_OVERLAP_ERROR, /* identical data pass */
    CM_OVERLAP_FIRST,
    CM_OVERLAP_LAST
} cm_archive_overlap;

typedef enum cm_archive_gaps {
    CM_GAPS_KEEP,
    CM_GAPS_FILL,
    CM_GAPS_ERROR
} cm_archive_gaps;

/*
 * Whether the file PATH, or the object of that name with NBYTES and TAG (its ETag, or what stands
 * for it; NULL: it is a file), is in a store already.
 */
typedef int cm_archive_listed(void *context, const char *path, uint64_t nbytes, const char *tag,
                              bool *out, cm_error *err);

typedef struct cm_archive_options {
    cm_texts inputs;    /* files, folders, patterns, "@LIST", "@-" */
    FILE *standard;     /* what "@-" reads; or NULL */
    bool zero;          /* NUL between the paths of lists */
    const char *target; /* what is made: not searched for inputs; or NULL */
    const char *cache;  /* file of records: read, and written where they changed; or NULL */
    /*
     * A store that grows by the files: it counts as the first of them, and what it has stays as
     * it is.  LISTED tells of files that are in it already and are not looked at.
     */
    const char *base;   /* its folder, or where it lies in a bucket; NULL: there is none */
    cm_net *net;        /* for what lies behind a network; or NULL */
    bool base_yields;   /* of steps that it has too, files give the data */
    bool base_rechecks; /* files that it has are looked at, too: their steps are compared */
    cm_archive_listed *listed;
    void *listed_context;
    const char *scratch;     /* folder for the records; NULL: the system's */
    const char *fetched;     /* folder for files that are fetched; NULL: that of the net */
    uint64_t fetched_nbytes; /* that they may take at once; 0: half of what is free there */
    unsigned nprocesses;     /* 0: the CPUs that this process may use */
    uint64_t memory;         /* bytes that the user allows; 0: nothing is said */
    cm_monitor *monitor;     /* or NULL */

    const char *along; /* dimension; NULL: found */
    cm_texts new_dim;  /* "NAME=PATTERN": of names; "NAME=@X": an attribute or a scalar; a BASE
                              has the dimension */
    const char
        *store_per;       /* pattern; "": 2 to 4 stores of files whose paths differ in digits alone,
                              each called by a pattern of them; NULL: one store */
    cm_texts file_attr;   /* "NAME": a global attribute that becomes a coordinate */
    cm_texts promote;     /* "A,B": variables that get a dimension that they lack */
    cm_texts merge_along; /* "DIM=V,V": a dimension that the conversion takes out, and that files
                              may lack */
    cm_texts rename;      /* "OLD=NEW": where files call a thing differently */
    cm_texts variable;    /* "A,B": others are not looked at; */
    cm_texts exclude;     /* "A,B" */
    cm_texts dtype;       /* "[VAR:]TYPE": what joins types that none holds every value of; the
                              other casts are for the conversion */
    cm_texts fill_value;  /* "VAR:X": of a variable that has several, or several types */
    cm_texts statics;     /* "[VAR:]first": fields without the joined dimension that differ are the
                              first file's; "error" refuses them, as no text does */
    const char *time_units;
    double tolerance; /* of coordinates that are not joined, and of their bounds */
    int order;        /* cm_archive_order */
    int overlap;      /* cm_archive_overlap */
    int gaps;         /* cm_archive_gaps */
    /* The other decisions; false: a file that needs one is a finding. */
    int unpack;       /* packings that differ */
    int fill_missing; /* variables that some files lack */
    int first_attrs;  /* attributes that differ */
    int skip_bad;     /* files that cannot be read */
    int skip_offline; /* files that a tape system has */
    bool strict;      /* differing chunks and codecs are a finding */
} cm_archive_options;

/* The subject of a finding: a row of the table of disagreements. */
typedef enum cm_finding_kind {
    CM_FINDING_UNREADABLE,
    CM_FINDING_OFFLINE,
    CM_FINDING_UNITS,
    CM_FINDING_TIME_UNITS,
    CM_FINDING_CALENDAR,
    CM_FINDING_PACKING,
    CM_FINDING_TYPE,
    CM_FINDING_FILL,
    CM_FINDING_MISSING,
    CM_FINDING_STATIC,
    CM_FINDING_COORDINATE,
    CM_FINDING_OVERLAP,
    CM_FINDING_GAP,
    CM_FINDING_INTERLEAVED,
    CM_FINDING_MEANING,
    CM_FINDING_MISSING_VALUE, /* numbers that are missing in one file are data in another */
    CM_FINDING_ATTRIBUTE,
    CM_FINDING_ORDER,     /* of dimensions */
    CM_FINDING_DIRECTION, /* of an axis */
    CM_FINDING_NAME,
    CM_FINDING_LAYOUT, /* chunks */
    CM_FINDING_DIMENSIONS,
    CM_FINDING_LENGTH, /* of a dimension that is not joined */
    CM_FINDING_ALONG,  /* along what is not found */
    CM_FINDING_HOLES,
    CM_FINDING_REPEATED, /* a file named twice */
    CM_FINDING_NEW_DIMENSION,
    CM_FINDING_NEW_VARIABLE, /* the store that grows has none of its name */
    CM_FINDING_INDEX,        /* places along a dimension that is joined */
    CM_FINDING_KINDS
} cm_finding_kind;

typedef enum cm_finding_weight {
    CM_WEIGHT_NOTE,    /* happens by itself, and changes nothing that a reader sees */
    CM_WEIGHT_WARNING, /* converted, and a user should know */
    CM_WEIGHT_DECISION /* not converted before a decision */
} cm_finding_weight;

/* Decides a finding, if its kind alone does not. */
typedef enum cm_decider {
    CM_DECIDER_OF_KIND,
    CM_DECIDER_ALONG, /* fields of cm_archive_options */
    CM_DECIDER_NEW_DIM,
    CM_DECIDER_PROMOTE,
    CM_DECIDER_DTYPE,
    CM_DECIDER_TOLERANCE,
    CM_DECIDER_ORDER,
    CM_DECIDER_EXCLUDE,
    CM_DECIDER_RENAME,
    CM_DECIDER_MERGE_ALONG,
    CM_DECIDER_CHAR /* `char_mode` of the conversion */
} cm_decider;

typedef struct cm_finding {
    cm_finding_kind kind;
    cm_finding_weight weight;
    bool decided;   /* by an option; it is no decision any more */
    bool of_store;  /* files differ from a store that is added to, and keeps what it has */
    char *variable; /* or dimension; NULL: it is about files */
    char *file;     /* the first that it concerns; or NULL */
    char *last;     /* the last */
    size_t nfiles;
    /* COORDINATE, STATIC: the largest difference, of times in seconds; 0: it is no matter of one */
    double apart;
    uint64_t nelements; /* LENGTH: that all files have along the dimension */
    bool promotes;      /* STATIC: `promote` would keep all of them */
    bool shifts;        /* COORDINATE: by more than a twentieth of a step, which is no rounding */
    bool limits;        /* MEANING, ATTRIBUTE: of valid numbers, which readers go by, too */
    /*
     * NAME: the name that it has elsewhere.  DIMENSIONS: what `merge_along` would be given to make
     * one field of the variable, where BY is another.  MISSING, of files that give a store nothing:
     * what `rename` would be given if theirs are the store's variables; "": no pair is alike.  Else
     * NULL.
     */
    char *other;
    cm_decider by;
    char *value; /* that BY would be given; NULL: there is none that would do */
    char *text;  /* one sentence, which names neither */
} cm_finding;

/* Consecutive steps of a joined dimension that as many files have. */
typedef struct cm_covered {
    uint64_t nsteps;
    unsigned nfiles;    /* 0: no file has them; 1; 2: more than one */
    char *first, *last; /* coordinate, for people; NULL: it has none, or it cannot be told */
} cm_covered;

/* The coverage of variables that have the same, from the first step to the last. */
typedef struct cm_coverage {
    char **variable;
    size_t nvariables;
    cm_covered *span;
    size_t nspans;
} cm_coverage;

/* A joined dimension. */
typedef struct cm_archive_axis {
    char *name;
    uint64_t length;
    char *first, *last; /* coordinate, for people; NULL: it has none */
    char *step;         /* "1 day", "1 month", NULL: irregular */
    size_t nparts;      /* distinct pieces that files give */
    uint64_t nmissing;  /* steps between the first and the last */
    uint64_t nrepeated; /* steps in more than one file */
    cm_coverage *coverage;
    size_t ncoverages;
} cm_archive_axis;

typedef struct cm_archive_variable {
    char *name;
    char *type;
    unsigned rank;
    uint64_t shape[32];
    char *dim_name[32];
    size_t nfiles;      /* that hold it */
    unsigned narrowest; /* bytes of an element in the file that has the smallest; 0: in none */
    /* `overlap` drops elements that differ from those it keeps, or were not compared with them. */
    bool drops;
} cm_archive_variable;

typedef struct cm_archive_report {
    uint64_t nlater; /* bytes, decoded, that are compared only while data move: if they are others
                        than those of the first file, they stop the conversion */
    char *name;      /* "2000 files in archive"; NULL where no file could be read */
    char *begins;    /* what the paths of all of them begin with; NULL as NAME */
    char *store;     /* name of the store in the output folder; NULL: the output itself */
    size_t nfiles, nskipped;
    size_t nlooked; /* files of all stores that were opened: others are known from `cache` */
    size_t nopened; /* those of this store */
    size_t nlisted; /* files that are in `base` already, and not among those */
    uint64_t nbytes;
    double seconds; /* of the survey */
    char *how;      /* one sentence: how the files hang together */
    cm_archive_axis axis[2];
    size_t naxes;
    cm_archive_variable *variable;
    size_t nvariables;
    cm_finding *finding;
    size_t nfindings;
    size_t ndecisions; /* findings that need one */
} cm_archive_report;

typedef struct cm_archive cm_archive;

/*
 * Surveys.  CM_EINVAL for options that have no meaning, CM_ENOTFOUND for inputs that are not
 * there.
 */
int cm_archive_open(const cm_archive_options *options, cm_archive **out, cm_error *err);
/*
 * Joins the files that SURVEYED found by other decisions: OPTIONS have the same inputs.  No file is
 * opened again but to read values.  SURVEYED is closed after OUT.
 */
int cm_archive_open_again(cm_archive *surveyed, const cm_archive_options *options, cm_archive **out,
                          cm_error *err);
/* A value of `store_per`, owned, and how many stores it makes. */
typedef struct cm_store_pattern {
    char *text;
    size_t nstores;
} cm_store_pattern;

/*
 * Values of `store_per` by which the files of A make from 2 to 64 stores, and no more than there
 * are files: the fewest stores first.  Whether the files of each can be joined, a join tells.
 */
int cm_archive_store_patterns(const cm_archive *a, cm_store_pattern **out, size_t *n,
                              cm_error *err);
/* Whether `store_per` PATTERN puts the files X and Y of A, by their paths, into no store both. */
int cm_archive_sets_apart(const cm_archive *a, const char *pattern, const char *x, const char *y,
                          bool *out, cm_error *err);
void cm_store_patterns_free(cm_store_pattern *list, size_t n);
/* Whether pair PAIR of `rename` joined names of store I; if not, it is for the conversion. */
bool cm_archive_renames(const cm_archive *a, size_t i, size_t pair);
/* Why what the file of `cache` held was not believed; NULL: it was, or there was none. */
const char *cm_archive_cache_refused(const cm_archive *a);
size_t cm_archive_nstores(const cm_archive *a);
/*
 * Joins the files of store I.  REPORT is owned by A.  CM_OK also with findings that need a
 * decision: then there is no dataset.
 */
int cm_archive_join(cm_archive *a, size_t i, const cm_archive_report **report, cm_error *err);
/* The joined dataset of store I, to be converted; owned by A. */
int cm_archive_dataset(cm_archive *a, size_t i, struct cm_dataset **out, cm_error *err);
/*
 * Metadata of file FILE of store I (counting readable files) that the joined dataset lacks or has
 * with another value: an object of "attributes" (of groups, "/" being the root, and of variables),
 * "types", "fill_values" and "text_lengths", to be freed; NULL: none.  *PATH is NULL past the last
 * file.
 */
int cm_archive_left_out(const cm_archive *a, size_t i, size_t file, const char **path,
                        struct json_object **out, cm_error *err);
void cm_archive_close(cm_archive *a); /* NULL accepted */

/* A short name of KIND for machines: "units", "static", ... */
const char *cm_finding_name(cm_finding_kind kind);

#endif

/*
 * The contents of all files of an archive: the records made by child processes, kept in an unlinked
 * file (or a cache) and read from there file by file.
 *
 * Memory: a few windows of the lists of files, and one copy of metadata that files share.  The rest
 * is on disk, mapped.
 */
#ifndef CM_ARCHIVE_SURVEY_SURVEY_H
#define CM_ARCHIVE_SURVEY_SURVEY_H

#include <chunkmill/archive.h>

#include "archive/survey/inputs.h"
#include "archive/survey/known.h"
#include "archive/survey/wire.h"
#include "base/paged.h"
#include "format/located.h"
#include "watch/monitor.h"

/* A variable as a file describes it.  Like ones are one object. */
typedef struct cm_described {
    const char *name; /* with its groups */
    cm_dtype dtype;
    unsigned rank;
    const char **dim;
    bool *unlimited;
    bool is_char, is_coordinate, has_fill_value, has_fill, has_chunk;
    uint8_t fill_value[16], fill[16];
    uint8_t scale_nbytes, offset_nbytes; /* as of cm_variable */
    const char *fill_text, *unsupported;
    const char *decoded_from; /* as of cm_variable */
    uint64_t *chunk;
    /* Its attributes as JSON, mapped, and parsed as long as they are used: */
    const uint8_t *text;
    size_t text_nbytes;
    cm_json *attrs;
    bool kept;                        /* they stay parsed */
    const struct cm_reading *reading; /* cm_described_reading */
    struct cm_records *records;
} cm_described;

/*
 * The attributes of D.  They may go at the next cm_survey_rest, unless D is kept.  NULL where
 * there is no memory, or they are damaged: cm_survey_failed says so later.
 */
const cm_json *cm_described_attrs(const cm_described *d);

/*
 * The reading (model/meaning.h) that was made of the attributes of D, which then need not be parsed
 * for each question; NULL: none yet, or there was no memory.
 */
const struct cm_reading *cm_described_reading(const cm_described *d);
void cm_described_keep_reading(const cm_described *d, const struct cm_reading *reading);

/* The variables of a file.  Like files have one object. */
typedef struct cm_skeleton {
    const char *format;
    size_t nvars;
    cm_described **var;
    size_t nwarnings;
    const char **warning;
    size_t nnumbers; /* lengths of all variables together */
    size_t index;    /* a number of its own, from 0 */
} cm_skeleton;

typedef struct cm_surveyed {
    const char *path; /* borrowed from the inputs */
    size_t given;
    uint64_t dev, ino, nbytes, mtime_ns;
    cm_status status; /* CM_OK, or why there is nothing: */
    const char *why;  /* mapped */
    bool offline;     /* a tape system has it: it was not opened */
    bool opened;      /* for this survey */
    bool is_base;     /* the store that grows */
    cm_copy *copy;    /* an object behind a network; NULL: a file */
    cm_skeleton *skeleton;
    struct cm_records *records;
    const uint8_t *base;         /* of the record */
    const uint8_t *record, *end; /* what follows the skeleton's digest; mapped */
} cm_surveyed;

/* Where a file's record lies, and what the file was before it was looked at. */
typedef struct cm_spot {
    uint64_t offset, nbytes; /* 0: it has none yet */
    uint64_t mtime_ns, ctime_ns;
    bool regular;
} cm_spot;

typedef struct cm_survey_options {
    cm_texts inputs;
    FILE *standard;            /* for "@-"; or NULL */
    bool zero;                 /* NUL between the paths of lists */
    const char *avoid;         /* a folder that is not searched; or NULL */
    const char *scratch;       /* folder for the records; NULL: the system's */
    const char *fetched;       /* folder for copies of objects; NULL: that of the net */
    uint64_t fetched_nbytes;   /* of them; 0: see store/copies.h */
    const char *cache;         /* file of records; or NULL */
    const char *base;          /* a store that is the first file; or NULL */
    cm_net *net;               /* for a base behind a network; or NULL */
    cm_archive_listed *listed; /* or NULL */
    void *listed_context;
    unsigned nprocesses; /* 0: as many as the CPUs that this process may use */
    uint64_t memory;     /* bytes that the user allows for all; 0: nothing is said */
    cm_monitor *monitor; /* or NULL */
} cm_survey_options;

typedef struct cm_survey {
    cm_inputs inputs;
    cm_surveyed *file; /* by name */
    size_t nfiles;
    size_t nlisted; /* files that are in the base already: they are not among those */
    size_t nlooked; /* files that were opened, and not known from the cache */
    size_t nskeletons;
    uint64_t nbytes; /* of all files */
    struct cm_records *records;
    cm_copies *copies;   /* of objects behind a network; NULL: there are none */
    cm_paged *paged;     /* what is found of each file, and lists of it */
    char *cache_refused; /* why what the cache held was not believed; NULL: it was, or is new */
} cm_survey;

int cm_survey_run(const cm_survey_options *options, cm_survey *out, cm_error *err);
void cm_survey_release(cm_survey *s);

/* File I, which is going to be read or written, with its path. */
cm_surveyed *cm_survey_file(const cm_survey *s, size_t i);
/* The description of a file is going to be read. */
void cm_survey_touch(cm_survey *s);
/* Nobody holds attributes of a description that is not kept: those that are parsed may go. */
void cm_survey_rest(cm_survey *s);
/* Attributes were asked for in vain, and what was made since is not to be used. */
int cm_survey_failed(const cm_survey *s, cm_error *err);

/* Parses the record at SPOT into F; the records are mapped. */
int cm_surveyed_read(cm_survey *s, cm_surveyed *f, const cm_spot *spot, cm_error *err);

/* The groups of F: path and attributes, the latter to be freed. */
size_t cm_surveyed_ngroups(const cm_surveyed *f);
int cm_surveyed_group(const cm_survey *s, const cm_surveyed *f, size_t i, const char **path,
                      cm_digest *attrs, cm_error *err);
int cm_survey_json(const cm_survey *s, cm_digest digest, cm_json **out, cm_error *err);

typedef struct cm_surveyed_var {
    const cm_described *var;
    uint64_t shape[CM_MAX_RANK];
    bool has_values;
    cm_digest values; /* their digest */
    bool is_located;
    cm_digest form;     /* of where its bytes lie */
    cm_located located; /* without the form; its places are mapped */
} cm_surveyed_var;

/* Variables of F in turn: cm_surveyed_iter it = cm_surveyed_begin(f); while (...next(...)). */
typedef struct cm_surveyed_iter {
    const cm_surveyed *file;
    cm_wire_in at;
    size_t i; /* of the next variable */
} cm_surveyed_iter;
cm_surveyed_iter cm_surveyed_begin(const cm_surveyed *f);
bool cm_surveyed_next(cm_surveyed_iter *it, cm_surveyed_var *out);
bool cm_surveyed_find(const cm_surveyed *f, const char *name, cm_surveyed_var *out);

/* The form of a variable that is located; owned by S. */
int cm_survey_form(const cm_survey *s, cm_digest digest, const cm_form **out, cm_error *err);

/* Values by their digest, mapped; NULL: they are not there. */
const void *cm_survey_values(const cm_survey *s, cm_digest digest, size_t *nbytes);

#endif

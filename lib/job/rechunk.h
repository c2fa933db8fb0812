/*
 * The state of one rechunking, passed from step to step:
 *
 *     open -> select -> layout -> plan -> write -> verify
 */
#ifndef CM_JOB_RECHUNK_H
#define CM_JOB_RECHUNK_H

#include <chunkmill/rechunk.h>

#include "exec/engine/engine.h"
#include "format/zarr/open.h"
#include "job/codec_option.h"
#include "job/journal.h"
#include "job/output.h"
#include "job/presence.h"
#include "plan/rechunk.h"

typedef enum cm_re_how {
    CM_RE_ELEMENTS, /* through the engine, as elements or as stored bytes */
    CM_RE_STRINGS,  /* variable-length elements, chunk by chunk */
    CM_RE_OBJECTS   /* not understood: its objects are copied */
} cm_re_how;

typedef struct cm_re_array {
    const cm_zarr_node *node; /* of the source */
    cm_array *source;         /* NULL where objects are copied */
    cm_presence presence;     /* of the source's chunks */
    size_t cache_nbytes;      /* of the source's shard indices */

    /* rechunk_layout.c */
    cm_re_how how;
    bool passes; /* chunks and codecs stay: stored bytes go through */
    uint64_t chunk[CM_MAX_RANK];
    uint64_t shard[CM_MAX_RANK];
    bool sharded;
    bool same_codec;
    cm_codec_choice codec; /* where it does not stay */
    cm_zarr_meta meta;     /* of the target */

    /* rechunk_plan.c */
    cm_zarr_writer *writer;
    cm_transfer transfer;
    cm_route route;
    bool routed; /* false: nothing to plan */
    cm_transfer_counts counts;
    cm_rechunk_counts planned;

    cm_journal *journal;             /* of the job */
    const char *target;              /* the folder's path, for messages */
    size_t index;                    /* in the job */
    uint64_t ncopied, copied_nbytes; /* objects, where they are copied */
    char *digest;
} cm_re_array;

typedef struct cm_re_job {
    const cm_rechunk_options *options;
    cm_rechunk_report *report;
    char *path; /* of the source, with the node in it */
    cm_store *store;
    cm_zarr_tree tree;
    cm_zarr_conflicts conflicts;
    int zarr_format; /* of the target */
    cm_re_array *array;
    size_t narrays;

    struct { /* of this machine, decoded bytes a second; 0: not probed */
        double read, decode, encode, write, scratch; /* decode and encode: by one thread */
    } probed;
    cm_rates rates; /* of the workers that are planned for */
    unsigned nthreads;
    uint64_t memory_limit;
    uint64_t held_nbytes; /* of it: the process before any chunk, and its reserve */
    size_t slots_nbytes;
    size_t worker_nbytes; /* of one */
    size_t text_nbytes;   /* of the longest chunk of strings that was moved */
    char *scratch;        /* folder */
    const char *guarded;  /* the source: what no file that the options name may be */
    cm_outfile trace;     /* claimed where the options ask for one */
    cm_error trace_error; /* a trace that failed does not cost the target */
    struct cm_re_into *into;
} cm_re_job;

/* rechunk_into.c: a target inside a store. */
typedef struct cm_re_into {
    char *root;        /* the store's folder; NULL: there is no target */
    char *node;        /* in it; "": the target is a store of its own */
    char *folder;      /* that of the node */
    size_t nthere;     /* bytes of FOLDER's path that were there before */
    cm_store *store;   /* ROOT; NULL: it is to be made */
    int zarr_format;   /* of the store that is there; else 0 */
    bool consolidates; /* the store that is made has consolidated metadata */
    cm_zarr_tree tree; /* what was written */
} cm_re_into;

/* "STORE::NODE" in its parts, if TARGET is that; checked against what is there, which stays untouched. */
int cm_re_into_find(const char *target, cm_re_into *into, cm_error *err);
/* Before the target is begun, or what is there erased: it is taken out of consolidated metadata. */
int cm_re_into_begin(cm_re_into *into, cm_error *err);
/* When TARGET, the folder as a store, is complete: groups above it, and consolidated metadata. */
int cm_re_into_finish(cm_re_into *into, const cm_re_job *job, cm_store *target, cm_error *err);
/* After the target's folder was removed: those above it that were made. */
void cm_re_into_discard(cm_re_into *into);
void cm_re_into_release(cm_re_into *into);

/* rechunk_plan.c: as many as are asked for, or one for each CPU. */
unsigned cm_re_threads(const cm_rechunk_options *options);

/* rechunk_report.c.  Sentences for the user; out of memory is an error like any other. */
int cm_re_warn(cm_re_job *job, cm_error *err, const char *format, ...)
    __attribute__((format(printf, 3, 4)));
int cm_re_note(cm_re_job *job, cm_error *err, const char *format, ...)
    __attribute__((format(printf, 3, 4)));
int cm_re_differ(cm_re_job *job, cm_error *err, const char *format, ...)
    __attribute__((format(printf, 3, 4)));
int cm_re_report(cm_re_job *job, bool written, cm_error *err);
/* "blosc:zstd:2:shuffle", "transpose+gzip:5": the chain that encodes chunks; NULL: no memory. */
char *cm_re_codec_text(const cm_zarr_meta *meta, cm_error *err);

/* rechunk_open.c: the source, and which of its arrays. */
int cm_re_open(cm_re_job *job, cm_error *err);
int cm_re_select(cm_re_job *job, cm_error *err);
/* True for a group that the target has too. */
bool cm_re_wants_group(const cm_re_job *job, const char *path);
const cm_shard_spec *cm_re_sharding(const cm_zarr_meta *meta); /* NULL: no shards */

/* rechunk_notice.c: warns of what comes out otherwise than a reader might expect. */
int cm_re_notice(cm_re_job *job, cm_error *err);

/* rechunk_layout.c: chunks, shards, codecs and metadata of the target. */
int cm_re_layout(cm_re_job *job, cm_error *err);

/* rechunk_prepare.c: A's writer into STORE, and its transfer before any plan. */
int cm_re_prepare(cm_re_array *a, cm_store *store, cm_error *err);

/* rechunk_plan.c: writers into STORE, and the routes of all arrays within the memory. */
int cm_re_plan(cm_re_job *job, cm_store *store, cm_error *err);
/* rechunk_probe.c: how quickly this machine reads, decodes, encodes and writes A's chunks. */
int cm_re_probe(cm_re_job *job, cm_re_array *a, const char *folder, cm_error *err);

/* rechunk_run.c */
int cm_re_run(cm_re_job *job, cm_store *store, cm_error *err);
/* rechunk_strings.c */
int cm_re_move_strings(cm_re_job *job, cm_re_array *a, cm_error *err);

/* rechunk_metadata.c: of all groups and arrays; the target is complete then. */
int cm_re_write_metadata(cm_re_job *job, cm_store *store, cm_error *err);
/*
 * Writes them to memory, reads them as the verification will, and forgets them:
 * what that takes of many arrays is then in the process's peak, from which the
 * plan starts.
 */
int cm_re_rehearse_metadata(cm_re_job *job, cm_error *err);

/* rechunk_verify.c: CM_EDIFFER when the target, in STORE, differs. */
int cm_re_verify(cm_re_job *job, cm_store *store, cm_error *err);

#endif

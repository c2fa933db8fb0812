/*
 * The state of one calculation, passed from step to step:
 *
 *     open the store -> dimensions -> reads -> layouts -> recommendation -> audit -> comparison
 *
 * Reads are those that the options name, or those of a log (access.c): grouped by their shape, and
 * the chunks that they meet counted box by box.
 */
#ifndef CM_CHUNKCALC_CHUNKCALC_H
#define CM_CHUNKCALC_CHUNKCALC_H

#include <chunkmill/chunkcalc.h>

#include "chunkcalc/recommend.h"
#include "format/array.h"
#include "format/zarr/meta.h"
#include "plan/optimise.h"

#define CM_CALC_SAME         UINT64_MAX
#define CM_CALC_SHARD_TARGET (UINT64_C(256) << 20) /* bytes, as nc2zarr's */

/* A shape as typed, where lengths may have a stride: "time=8:6,lat=full" or "8:6x64". */
typedef struct cm_calc_shape {
    char *text;
    unsigned n;
    bool by_name;
    char *name[CM_MAX_RANK];
    uint64_t length[CM_MAX_RANK]; /* 0: full; CM_CALC_SAME: of the chunk, or shard, that is there */
    uint64_t step[CM_MAX_RANK];
} cm_calc_shape;

void cm_calc_shape_release(cm_calc_shape *shape);

typedef struct cm_calc {
    const cm_chunkcalc_options *options;
    cm_chunkcalc_report *report;
    cm_calc_shape sample, array, shards;
    cm_calc_shape *read, *chunks, *against;
    size_t nread, nchunks, nagainst; /* parsed so far: those to release */
    cm_align align;
    uint64_t every;
    cm_optimise_spec spec; /* reads, cost and bounds, in the optimiser's terms */
    cm_read reads[CM_MAX_READS];
    uint64_t present_chunk[CM_MAX_RANK], present_shard[CM_MAX_RANK];
    bool has_present, present_sharded;
    bool present_apart; /* each chunk, or shard, is a file or an object */
    bool shards_given;  /* as an option; else options->shards are those of a sharded store */
    cm_zarr_meta present_words; /* where these are of several lengths; else zeroed */
    cm_suit_run run;
    cm_suit_costs costs;
    cm_shape_costs shape_costs;    /* of the layout that is filled in */
    const char *storage;           /* the preset below the costs */
    double stored_ratio;           /* of the chunks that are there; 0: not known */
    struct cm_calc_access *access; /* reads of a log; or NULL */
    struct cm_calc_input *input;   /* store.c: kept open for them; or NULL */
} cm_calc;

/* An array's name for people: a store that is one array has none. */
static inline const char *cm_calc_label(const char *name)
{
    return name[0] != '\0' ? name : "/";
}

/* Sentences for the user; out of memory is an error like any other. */
int cm_calc_warn(cm_calc *calc, cm_error *err, const char *format, ...)
    __attribute__((format(printf, 3, 4)));
int cm_calc_note(cm_calc *calc, cm_error *err, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

/* store.c: bytes that all workers together may take. */
uint64_t cm_calc_memory(const cm_chunkcalc_options *o);
/*
 * store.c: opens, describes, and samples chunks: with CHOOSE those of the
 * variable that reads are meant for, which gives the dimensions; otherwise of all, or of those that
 * `variable` names.
 */
int cm_calc_open(cm_calc *calc, bool choose, cm_error *err);
/*
 * Of chunks of this shape, made of the array's elements as its own chunks are; nchunks 0: not
 * measured.  Only of a store that `access` is about, which stays open until cm_calc_close.
 */
int cm_calc_shape_costs(cm_calc *calc, const uint64_t *chunk, cm_shape_costs *out, cm_error *err);
void cm_calc_close(cm_calc *calc);

/* access.c: reads of a log. */
/* Reads `access`; the name of the variable of DS that most was read of goes to *NAME. */
int cm_calc_access_open(cm_calc *calc, const cm_dataset *ds, const char **name, cm_error *err);
/* The reads of the calculation, by their shapes. */
int cm_calc_access_reads(cm_calc *calc, cm_error *err);
/* Counts what reads of group READ meet with the chunks and shards of L, as cm_touch_read does. */
int cm_calc_access_touch(const cm_calc *calc, size_t read, const cm_chunkcalc_layout *l,
                         cm_touch_stats *out, cm_error *err);
void cm_calc_access_free(struct cm_calc_access *access); /* NULL accepted */

/* dims.c: what the texts mean. */
int cm_calc_parse(cm_calc *calc, cm_error *err);
/* LENGTH (and STEP, which may be NULL) get one entry for each dimension; 0: not named. */
int cm_calc_shape_apply(const cm_calc *calc, const char *option, const cm_calc_shape *shape,
                        uint64_t *length, uint64_t *step, cm_error *err);
int cm_calc_reads(cm_calc *calc, cm_error *err);

/*
 * present.c: the grids of chunks and of objects of L, where it is the present one and lengths
 * differ along a dimension; false: all have its lengths.
 */
bool cm_calc_cut_grids(const cm_calc *calc, const cm_chunkcalc_layout *l, cm_grid *chunks,
                       cm_grid *objects);
/* A note where the arrays in the folder STORE are very many files, of which shards make few. */
int cm_calc_note_files(cm_calc *calc, const cm_store *store, cm_error *err);
int cm_calc_add_layout(cm_calc *calc, const char *rule, const uint64_t *chunk,
                       const uint64_t *shard, size_t *index, cm_error *err);
/*
 * The shards of CHUNK by --shards; *sharded is false without.  A length of CHUNK that was chosen, 0
 * in TYPED (NULL: all were), need not divide the shard's, which is rounded up.
 */
int cm_calc_shards_for(const cm_calc *calc, const uint64_t *chunk, const uint64_t *typed,
                       uint64_t *shard, bool *sharded, cm_error *err);
/* Sets each read's cost with L relative to its own best chunks, once these are known. */
void cm_calc_set_pays(const cm_chunkcalc_report *report, cm_chunkcalc_layout *l);
int cm_calc_list(cm_calc *calc, cm_error *err);
/* After the recommendation, which must not depend on them. */
int cm_calc_list_against(cm_calc *calc, cm_error *err);
int cm_calc_warn_layouts(cm_calc *calc, cm_error *err);

/* advice.c */
int cm_calc_recommend(cm_calc *calc, cm_error *err);

/* "24x64x64", or by name "time=24,lat=64,lon=64"; NULL: no memory.  free() releases it. */
char *cm_calc_shape_text(const cm_calc *calc, const uint64_t *shape, cm_error *err);

#endif

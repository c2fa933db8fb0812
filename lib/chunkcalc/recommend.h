/*
 * Which chunks suit the reads of an array: one answer for chunkcalc, nc2zarr and rechunk.
 *
 * The costs are measured where they can be: storage on the files of the source, or by requests to
 * the store behind a network that it lies in; decoding on elements of the array that are encoded
 * with the codec that its chunks will have.  What cannot be measured comes from a preset
 * (plan/cost.h).
 */
#ifndef CM_CHUNKCALC_RECOMMEND_H
#define CM_CHUNKCALC_RECOMMEND_H

#include "format/dataset.h"
#include "plan/optimise.h"
#include "watch/costs.h"

enum {
    CM_MANY_OBJECTS = 10000, /* more chunks than these are stored in shards */
    /*
     * A chunk has as much at least where nobody says otherwise: the block of a file system, and a
     * shard's index takes 16 bytes for each chunk.
     */
    CM_SUIT_LEAST = 4096
};

typedef struct cm_suit_source {  /* all borrowed */
    cm_array *array;             /* prepared */
    const char *path;            /* the file or folder that it lies in; or a URL, or NULL */
    const cm_codec_spec *codecs; /* of the chunks to be made */
    size_t ncodecs;
    bool cold;     /* storage is measured from the disk in any case */
    bool any_size; /* an array of less than 4 MiB is measured, too */
    /* Where chunks are to lie as those of OBJECTS do, in STORE behind a network; or NULL. */
    cm_store *store;
    const cm_variable *objects;
} cm_suit_source;

typedef struct cm_suit_costs {
    cm_cost_model cost;
    /* Measured; else the preset's.  Storage of files only where decoding is, too. */
    bool storage, decode;
    bool cold;         /* from the disk: so wanted, or the array exceeds half the memory */
    bool remote;       /* storage: by requests over a network, */
    bool bandwidth;    /* which told the rate, too */
    bool other;        /* decode: on elements of another array */
    uint64_t nchunks;  /* that were encoded and decoded */
    uint64_t needs;    /* bytes: more than measuring may take, so that decode is false; or 0 */
    char refused[256]; /* why elements could not be read, so that decode is false; or "" */
    char text[640];    /* how, for people */
} cm_suit_costs;

/*
 * Measurements shared by one run, within an eighth of MEMORY and two seconds in all, network
 * requests included.  After that an array takes the costs of the nearest in size with its type and
 * codec, and is measured only if there is none.
 */
typedef struct cm_suit_run {
    uint64_t memory; /* 0: half of what is available */
    uint64_t spent_ns;
    cm_storage_costs storage[3]; /* from memory, from the disk, by requests */
    bool has_storage[3];
    struct cm_suit_known *known; /* codecs */
    size_t nknown;
} cm_suit_run;

void cm_suit_run_init(cm_suit_run *run, uint64_t memory);
void cm_suit_run_release(cm_suit_run *run);

/*
 * Costs for chunks of SOURCE (NULL: nothing is measured), on top of PRESET.  All sources of one RUN
 * have the same path and store.  What cannot be read is not measured, and is no error here: OUT
 * says why.
 */
int cm_suit_measure(cm_suit_run *run, const cm_suit_source *source, const char *preset,
                    cm_suit_costs *out, cm_error *err);

/*
 * Candidate number I for one read of SAMPLE (SHAPE 0: endless): powers of two in one and two
 * dimensions; above, the sample times a quarter to four, up to 64 MiB.  False past the last; one
 * that is too large has *listed false.
 */
bool cm_suit_candidate(unsigned rank, const uint64_t *shape, uint64_t itemsize,
                       const uint64_t *sample, unsigned i, uint64_t *chunk, bool *listed);

/* False: they are the preset's. */
bool cm_suit_measured(const cm_suit_costs *costs);

/*
 * The least bytes of a chunk of an array that is there, where nobody says otherwise.  Without
 * measured costs it is chunkcalc's default: an array that is too small to measure is not worth many
 * small files.
 */
uint64_t cm_suit_least(bool measured);

/*
 * cm_optimise that starts from these candidates, Rew's rule and PRESENT (or NULL) too, with bounds
 * that have room for the candidates where SPEC's are 0.  With MEASURED costs (cm_suit_measured) the
 * choice is made with cm_cost_rounded, and not below CM_SUIT_LEAST; what it is worth is said with
 * the costs as they are.  SPEC's bounds are set.
 */
int cm_suit_optimise(cm_optimise_spec *spec, bool measured, const uint64_t *present,
                     cm_optimum *out, cm_error *err);

#endif

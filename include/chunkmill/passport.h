/*
 * A passport: facts about a dataset for whoever publishes or receives it, counted while its
 * elements pass: its variables, statistics of each step of their outer dimension, small pictures,
 * and findings, steps whose values are out of line.
 *
 * Values are those that readers show: fill values and NaN are missing, scale_factor and add_offset
 * applied.  A step is an index of the time dimension of a variable, or of its first dimension.
 */
#ifndef CHUNKMILL_PASSPORT_H
#define CHUNKMILL_PASSPORT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <chunkmill/error.h>
#include <chunkmill/monitor.h>
#include <chunkmill/net.h>

/* One step, or several neighbours where there are very many. */
typedef struct cm_passport_step {
    uint64_t count; /* not missing; 0: the other numbers mean nothing */
    uint64_t missing;
    double min, max, mean, std; /* std: NaN where a number is infinite */
} cm_passport_step;

/* A field, sampled on a coarse grid; NaN is missing. */
typedef struct cm_passport_picture {
    uint64_t step;
    char *label; /* of the step by its coordinate; NULL where it has none */
    unsigned width, height;
    float *value; /* rows of the second-last dimension, from index 0 */
} cm_passport_picture;

enum {
    CM_PASSPORT_PICTURES = 3
};

typedef struct cm_passport_variable {
    char *name;      /* with its groups */
    char *long_name; /* these three: NULL where it has none */
    char *standard_name;
    char *units;
    char *type;
    unsigned rank;
    uint64_t shape[32];
    char *dim_name[32];
    bool is_coordinate;
    bool is_counted; /* its elements are numbers; else what follows is empty */
    bool is_time;    /* the step dimension is a time */
    unsigned step_dim;
    uint64_t nsteps;
    char *first_label, *last_label; /* of steps; NULL where they have no coordinate */
    uint64_t together;              /* steps that are counted as one */
    cm_passport_step *step;
    size_t nstep; /* of `step` */
    cm_passport_step all;
    cm_passport_picture picture[CM_PASSPORT_PICTURES];
    unsigned npictures;
    bool picture_is_whole; /* the only picture is of all steps, one a row */
    bool north_is_up;      /* row 0 of the pictures lies in the north */
    bool has_latitude;     /* rows are latitudes */
    char *digest;          /* 32 hex digits, where the store was read for it; else NULL */
    char *unread;          /* why it was not read to its end, and so not counted; else NULL */

    /* Layout, where the store was read for it (of a conversion, its report has that). */
    bool has_layout;
    uint64_t chunk[32], shard[32]; /* shard: 0 where there is none */
    char *codec;
    uint64_t nchunks, decoded_nbytes, stored_nbytes; /* stored: 0 where it is not known */
} cm_passport_variable;

typedef struct cm_passport_finding {
    const char *kind; /* "gap", "zeros", ... (docs/passport.md) */
    char *variable;
    bool has_steps; /* false: it is about the whole variable */
    uint64_t first, last;
    char *from, *to;        /* these steps by their coordinate; NULL where it has none */
    double value, expected; /* NaN: none */
    char *sentence;
} cm_passport_finding;

typedef struct cm_passport_text {
    char *name, *text;
} cm_passport_text;

typedef struct cm_passport {
    cm_passport_text *attribute; /* of the root group that are text or numbers */
    size_t nattributes;
    cm_passport_variable *variable;
    size_t nvariables;
    cm_passport_finding *finding;
    size_t nfindings;
    uint64_t nleft_out; /* findings beyond the most that are kept of one variable and kind */
    char *first_time, *last_time; /* the period, by the longest time coordinate; NULL: none */
    char **warning;               /* of a store that was read: sentences */
    size_t nwarnings;
    double seconds; /* that counting took, all threads together */
} cm_passport;

/*
 * Reads the Zarr store or NetCDF file PATH once: of its arrays all, or those that VARIABLE, "A,B",
 * names.  NET, which may be NULL, reaches stores
 * behind a network.  MEMORY: of the whole process, in bytes; 0: up to 1 GiB, and half of what is
 * available.
 */
int cm_passport_read(const char *path, const char *variable, cm_net *net, unsigned nthreads,
                     uint64_t memory, cm_monitor *monitor, cm_passport **out, cm_error *err);
void cm_passport_free(cm_passport *p); /* NULL accepted */

#endif

/*
 * One dataset as one file and as many, cut at random along t: what is made of both is the same.
 */
#ifndef TESTS_MULTI_FIXTURE_H
#define TESTS_MULTI_FIXTURE_H

#include <fcntl.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

#include <netcdf.h>

#include <chunkmill/transform.h>

#include "../unit.h"
#include "format/multi/multi.h"

#define NC(call)                                                                                   \
    do {                                                                                           \
        int nc_rc = (call);                                                                        \
        if (nc_rc != NC_NOERR)                                                                     \
            fail_msg("%s: %s", #call, nc_strerror(nc_rc));                                         \
    } while (0)

enum {
    NY = 7,
    NX = 9,
    NTEXT = 5,
    MAX_FILES = 64,
    NVARS = 7
};

static char multi_folder[] = "/tmp/chunkmill-multi-XXXXXX";
static uint64_t multi_seed = 1;

static inline unsigned any(unsigned below)
{
    multi_seed = multi_seed * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
    return (unsigned)((multi_seed >> 33) % below);
}

/* How one file is written. */
typedef struct way {
    bool classic;
    size_t chunk[3]; /* of v: t, y, x */
    int deflate;     /* -1: none */
    bool shuffle, fletcher;
    bool unlimited;
    bool leaves_out; /* some chunks of v are never written */
} way;

/* Elements T0 to T1 of everything. */
static inline void write_file(const char *path, unsigned t0, unsigned t1, const way *w)
{
    int file, dim[4], id[NVARS];
    size_t n = t1 - t0;
    NC(nc_create(path, NC_CLOBBER | (w->classic ? NC_64BIT_OFFSET : NC_NETCDF4), &file));
    NC(nc_def_dim(file, "t", w->unlimited ? NC_UNLIMITED : n, &dim[0]));
    NC(nc_def_dim(file, "y", NY, &dim[1]));
    NC(nc_def_dim(file, "x", NX, &dim[2]));
    NC(nc_def_dim(file, "n", NTEXT, &dim[3]));
    NC(nc_def_var(file, "v", NC_FLOAT, 3, dim, &id[0]));
    NC(nc_def_var(file, "w", NC_SHORT, 3, dim, &id[1]));
    int along = dim[0];
    /* In a classic file what is unlimited comes first. */
    if (w->classic && w->unlimited)
        NC(nc_def_dim(file, "tt", n > 0 ? n : 1, &along));
    NC(nc_def_var(file, "u", NC_DOUBLE, 2, (int[]){dim[1], along}, &id[2]));
    NC(nc_def_var(file, "b", NC_BYTE, 1, dim, &id[3]));
    NC(nc_def_var(file, "s", NC_FLOAT, 2, &dim[1], &id[4]));
    NC(nc_def_var(file, "c", NC_CHAR, 2, (int[]){dim[0], dim[3]}, &id[5]));
    NC(nc_put_att_float(file, id[0], "_FillValue", NC_FLOAT, 1, &(float){-999}));
    if (!w->classic) {
        NC(nc_def_var(file, "z", NC_STRING, 1, dim, &id[6]));
        size_t chunk[3] = {w->chunk[0], w->chunk[1], w->chunk[2]};
        if (!w->unlimited && chunk[0] > n)
            chunk[0] = n;
        NC(nc_def_var_chunking(file, id[0], NC_CHUNKED, chunk));
        if (w->fletcher)
            NC(nc_def_var_fletcher32(file, id[0], NC_FLETCHER32));
        if (w->deflate >= 0)
            NC(nc_def_var_deflate(file, id[0], w->shuffle, 1, w->deflate));
    }
    NC(nc_enddef(file));
    float *v = malloc((n + 1) * NY * NX * sizeof(*v));
    short *s = malloc((n + 1) * NY * NX * sizeof(*s));
    double *u = malloc((n + 1) * NY * sizeof(*u));
    signed char *b = malloc(n + 1);
    char *c = malloc((n + 1) * NTEXT);
    float fixed[NY * NX];
    for (size_t t = 0; t < n; t++) {
        size_t at = t0 + t;
        for (size_t i = 0; i < NY * NX; i++) {
            v[t * NY * NX + i] =
                w->leaves_out && at % 16 >= 8 ? -999 : (float)(at * 1000 + i) * 0.5F;
            s[t * NY * NX + i] = (short)(at * 31 + i * 7);
        }
        for (size_t y = 0; y < NY; y++)
            u[y * n + t] = (double)at + (double)y / 16;
        b[t] = (signed char)(at % 100);
        snprintf(c + t * NTEXT, NTEXT, "%04zu", at % 10000);
    }
    for (size_t i = 0; i < NY * NX; i++)
        fixed[i] = (float)i;
    size_t zero[3] = {0}, maps[3] = {1, NY, NX}, all[3] = {n, NY, NX}, columns[2] = {NY, n},
           texts[2] = {n, NTEXT};
    for (size_t t = 0; t < n; t++) {
        if (w->leaves_out && (t0 + t) % 16 >= 8)
            continue;
        NC(nc_put_vara_float(file, id[0], (size_t[]){t, 0, 0}, maps, v + t * NY * NX));
    }
    if (n > 0) {
        NC(nc_put_vara_short(file, id[1], zero, all, s));
        NC(nc_put_vara_double(file, id[2], zero, columns, u));
        NC(nc_put_vara_schar(file, id[3], zero, all, b));
        NC(nc_put_vara_text(file, id[5], zero, texts, c));
    }
    NC(nc_put_var_float(file, id[4], fixed));
    for (size_t t = 0; t < n && !w->classic; t++) {
        char text[32];
        const char *pointer = text;
        snprintf(text, sizeof text, "step %zu", (size_t)t0 + t);
        NC(nc_put_var1_string(file, id[6], (size_t[]){t}, &pointer));
    }
    free(v);
    free(s);
    free(u);
    free(b);
    free(c);
    NC(nc_close(file));
}

/* One archive: its files, and the specification that joins them. */
typedef struct archive {
    unsigned nfiles, total;
    char path[MAX_FILES][96];
    cm_multi_file file[MAX_FILES];
    way way[MAX_FILES];
    cm_multi_part part[NVARS][MAX_FILES];
    cm_multi_var var[NVARS];
    cm_multi_group root;
    cm_json *empty;
    cm_multi_spec spec;
} archive;

static inline void identify(const char *path, cm_multi_file *f)
{
    struct stat st;
    assert_int_equal(stat(path, &st), 0);
    *f = (cm_multi_file){.path = path,
                         .dev = st.st_dev,
                         .ino = st.st_ino,
                         .nbytes = (uint64_t)st.st_size,
                         .mtime_ns = (uint64_t)st.st_mtim.tv_sec * 1000000000u +
                                     (uint64_t)st.st_mtim.tv_nsec};
}

/* File K holds steps FROM to TO of all, of which those from ORIGIN on, COUNT of them, count. */
static inline void add_file(archive *a, unsigned from, unsigned to, unsigned origin, unsigned count,
                            const way *w)
{
    unsigned k = a->nfiles++;
    assert_true(k < MAX_FILES);
    snprintf(a->path[k], sizeof a->path[k], "%s/part%03u.nc", multi_folder, k);
    write_file(a->path[k], from, to, w);
    identify(a->path[k], &a->file[k]);
    a->way[k] = *w;
    if (count == 0)
        return;
    for (unsigned i = 0; i < NVARS; i++) {
        cm_multi_var *v = &a->var[i];
        if (i == 4 && v->nparts > 0)
            continue;
        a->part[i][v->nparts++] = (cm_multi_part){.file = k,
                                                  .origin = {origin},
                                                  .first = {origin - from},
                                                  .count = {count},
                                                  .length = {to - from}};
    }
    a->total += count;
}

static inline void begin_archive(archive *a)
{
    memset(a, 0, sizeof *a);
    a->empty = cm_json_object();
}

/* Where all files are there.  WITHOUT: variables from this one on are left out. */
static inline void end_archive(archive *a, unsigned without)
{
    static const char *const name[NVARS] = {"v", "w", "u", "b", "s", "c", "z"};
    static const char *const dims[NVARS] = {"tyx", "tyx", "yt", "t", "yx", "tn", "t"};
    const cm_dtype type[NVARS] = {cm_dtype_make(CM_KIND_FLOAT, 4), cm_dtype_make(CM_KIND_INT, 2),
                                  cm_dtype_make(CM_KIND_FLOAT, 8), cm_dtype_make(CM_KIND_INT, 1),
                                  cm_dtype_make(CM_KIND_FLOAT, 4), cm_dtype_make(CM_KIND_BYTES, 1),
                                  cm_dtype_make(CM_KIND_STRING, 0)};
    static const char *const letter[] = {"t", "y", "x", "n"};
    for (unsigned i = 0; i < NVARS; i++) {
        cm_multi_var *v = &a->var[i];
        v->name = name[i];
        v->dtype = type[i];
        v->rank = (unsigned)strlen(dims[i]);
        v->attrs = a->empty;
        v->is_char = i == 5;
        v->part = a->part[i];
        for (unsigned j = 0; j < v->rank; j++) {
            const char at = dims[i][j];
            v->dim_name[j] = letter[at == 't' ? 0 : at == 'y' ? 1 : at == 'x' ? 2 : 3];
            v->shape[j] = at == 't' ? a->total : at == 'y' ? NY : at == 'x' ? NX : NTEXT;
            if (at == 't') {
                v->naxes = 1;
                v->axis[0] = j;
            }
        }
        const float fill = -999, nothing = NC_FILL_FLOAT;
        const double none = NC_FILL_DOUBLE;
        const short none16 = NC_FILL_SHORT;
        const signed char none8 = NC_FILL_BYTE;
        v->has_fill = i != 6;
        v->has_fill_value = i == 0;
        memcpy(v->fill_value, &fill, 4);
        if (i == 0)
            memcpy(v->fill, &fill, 4);
        else if (i == 1)
            memcpy(v->fill, &none16, 2);
        else if (i == 2)
            memcpy(v->fill, &none, 8);
        else if (i == 3)
            memcpy(v->fill, &none8, 1);
        else if (i == 4)
            memcpy(v->fill, &nothing, 4);
    }
    a->root = (cm_multi_group){.path = "", .attrs = a->empty};
    a->spec = (cm_multi_spec){.name = "an archive",
                              .format_name = "NetCDF-4",
                              .file = a->file,
                              .nfiles = a->nfiles,
                              .group = &a->root,
                              .ngroups = 1,
                              .var = a->var,
                              .nvars = without};
}

static inline void release_archive(archive *a)
{
    for (unsigned i = 0; i < a->nfiles; i++)
        unlink(a->path[i]);
    cm_json_free(a->empty);
}

static inline int make_folder(void **state)
{
    (void)state;
    return mkdtemp(multi_folder) == NULL ? -1 : 0;
}

static inline int remove_folder(void **state)
{
    char command[128];
    (void)state;
    snprintf(command, sizeof command, "rm -rf '%s'", multi_folder);
    return system(command);
}

#endif

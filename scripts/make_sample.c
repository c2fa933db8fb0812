/*
 * make_sample OUT.nc: a month of weather as archives hold it, 100 MB decoded.
 * make_sample --archive FOLDER: surface fields of the same month in twelve files.
 *
 * As in real archives, the twelve files do not agree: each counts time from its own first
 * day; the fifth lacks `msl`, and the eighth packs `t2m` otherwise.
 *
 * NetCDF-4, one time step a chunk, shuffle and deflate, packed shorts beside
 * floats, CF coordinates with bounds.  The fields are sums of travelling waves
 * and noise, rounded as model output is, so that they compress like weather and
 * come out the same at every run.
 */
#include <math.h>
#include <netcdf.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

enum {
    NTIME = 96, /* six-hourly, 24 days */
    NLEVEL = 2,
    NLAT = 181,
    NLON = 360,
    NCELL = NLAT * NLON,
    NWAVE = 6,
    NFILES = 12,
    STEPS_A_DAY = 4,
    LACKS_MSL = 4, /* files of the archive, from 0 */
    REPACKED = 7
};

#define PI 3.14159265358979323846

#define CHECK(call)                                                                                \
    do {                                                                                           \
        int status_ = (call);                                                                      \
        if (status_ != NC_NOERR) {                                                                 \
            fprintf(stderr, "make_sample: %s: %s\n", #call, nc_strerror(status_));                 \
            return 1;                                                                              \
        }                                                                                          \
    } while (0)

typedef struct sample {
    int nc;
    int time, level, lat, lon, bounds; /* dimensions */
    unsigned first, nsteps;            /* of the month's steps */
} sample;

/* One field's character: mean, how it falls towards the poles, waves, noise, and rounding. */
typedef struct field {
    double mean, polar, wave, noise, step;
    uint64_t seed;
} field;

static uint64_t next_random(uint64_t *state)
{
    *state += 0x9e3779b97f4a7c15u; /* splitmix64 */
    uint64_t z = *state;
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
    return z ^ (z >> 31);
}

/* The field at one time step.  Waves are separable, so that a step costs NWAVE products a cell. */
static void make_step(const field *f, unsigned step, float *out)
{
    static double along[NWAVE][NLON], across[NWAVE][NLAT];
    uint64_t state = f->seed;
    for (int k = 0; k < NWAVE; k++) {
        double phase = 2 * PI * (double)(next_random(&state) >> 11) / 9007199254740992.0;
        double speed = 0.05 + 0.04 * k;
        for (int x = 0; x < NLON; x++)
            along[k][x] = f->wave / (1 + k) * cos((k + 1) * PI * x / 180 - speed * step + phase);
        for (int y = 0; y < NLAT; y++)
            across[k][y] = sin(PI * y / (NLAT - 1)) * cos((k % 3) * PI * y / 45 + phase);
    }
    state = f->seed * 1000 + step;
    for (int y = 0; y < NLAT; y++) {
        double base = f->mean - f->polar * fabs(y - 90.0) / 90;
        for (int x = 0; x < NLON; x++) {
            double v = base;
            for (int k = 0; k < NWAVE; k++)
                v += along[k][x] * across[k][y];
            v += f->noise * ((double)(next_random(&state) >> 40) / 8388608.0 - 1);
            out[y * NLON + x] = (float)(f->step * nearbyint(v / f->step));
        }
    }
}

static int put_text(int nc, int var, const char *name, const char *text)
{
    return nc_put_att_text(nc, var, name, strlen(text), text);
}

static int describe(int nc, int var, const char *standard, const char *longer, const char *units)
{
    if (standard)
        CHECK(put_text(nc, var, "standard_name", standard));
    if (longer)
        CHECK(put_text(nc, var, "long_name", longer));
    CHECK(put_text(nc, var, "units", units));
    return 0;
}

static double clip(double v, double low, double high)
{
    return fmin(fmax(v, low), high);
}

/* A coordinate with bounds half a step to either side; latitudes end at the poles. */
static int put_axis(const sample *s, const char *name, int dim, size_t n, double first, double step,
                    const char *standard, const char *units, const char *axis)
{
    double high = dim == s->lat ? 90 : 1e9, low = -high;
    char bounds[NC_MAX_NAME];
    double value[NTIME > NLON ? NTIME : NLON], edge[2 * (NTIME > NLON ? NTIME : NLON)];
    int var, bounds_var, dims[2] = {dim, s->bounds};
    size_t start[2] = {0, 0}, count[2] = {n, 2};
    snprintf(bounds, sizeof(bounds), "%s_bnds", name);
    CHECK(nc_def_var(s->nc, name, NC_DOUBLE, 1, dims, &var));
    CHECK(describe(s->nc, var, standard, NULL, units));
    CHECK(put_text(s->nc, var, "axis", axis));
    CHECK(put_text(s->nc, var, "bounds", bounds));
    if (dim == s->time) {
        size_t chunk[2] = {s->nsteps, 2};
        CHECK(put_text(s->nc, var, "calendar", "standard"));
        CHECK(nc_def_var_chunking(s->nc, var, NC_CHUNKED, chunk));
        CHECK(nc_def_var(s->nc, bounds, NC_DOUBLE, 2, dims, &bounds_var));
        CHECK(nc_def_var_chunking(s->nc, bounds_var, NC_CHUNKED, chunk));
    } else {
        CHECK(nc_def_var(s->nc, bounds, NC_DOUBLE, 2, dims, &bounds_var));
    }
    for (size_t i = 0; i < n; i++) {
        value[i] = first + step * (double)i;
        edge[2 * i] = clip(value[i] - step / 2, low, high);
        edge[2 * i + 1] = clip(value[i] + step / 2, low, high);
    }
    CHECK(nc_put_vara_double(s->nc, var, start, count, value));
    CHECK(nc_put_vara_double(s->nc, bounds_var, start, count, edge));
    return 0;
}

static int define_dimensions(sample *s)
{
    static const char title[] = "Sample of made-up weather";
    char units[64];
    snprintf(units, sizeof(units), "hours since 2020-01-%02u 00:00:00", 1 + s->first / STEPS_A_DAY);
    CHECK(nc_def_dim(s->nc, "time", NC_UNLIMITED, &s->time));
    CHECK(nc_def_dim(s->nc, "level", NLEVEL, &s->level));
    CHECK(nc_def_dim(s->nc, "lat", NLAT, &s->lat));
    CHECK(nc_def_dim(s->nc, "lon", NLON, &s->lon));
    CHECK(nc_def_dim(s->nc, "bnds", 2, &s->bounds));
    CHECK(put_text(s->nc, NC_GLOBAL, "Conventions", "CF-1.8"));
    CHECK(put_text(s->nc, NC_GLOBAL, "title", title));
    CHECK(put_text(s->nc, NC_GLOBAL, "source", "make_sample: waves and noise, no observation"));
    CHECK(put_axis(s, "time", s->time, s->nsteps, 0, 6, "time", units, "T"));
    CHECK(put_axis(s, "lat", s->lat, NLAT, 90, -1, "latitude", "degrees_north", "Y"));
    CHECK(put_axis(s, "lon", s->lon, NLON, 0, 1, "longitude", "degrees_east", "X"));
    return 0;
}

static int put_level(const sample *s)
{
    static const int pressure[NLEVEL] = {850, 500};
    int var;
    CHECK(nc_def_var(s->nc, "level", NC_INT, 1, &s->level, &var));
    CHECK(describe(s->nc, var, "air_pressure", "pressure level", "hPa"));
    CHECK(put_text(s->nc, var, "positive", "down"));
    CHECK(nc_put_var_int(s->nc, var, pressure));
    return 0;
}

/* Two dimensions, flags, a fill value: the sort of variable that rides along. */
static int put_mask(const sample *s)
{
    static signed char mask[NCELL];
    static float land[NCELL];
    static const field shape = {0, 0, 1, 0.05, 0.001, 77};
    const signed char fill = -1, flags[2] = {0, 1};
    int var, dims[2] = {s->lat, s->lon};
    make_step(&shape, 0, land);
    for (int i = 0; i < NCELL; i++)
        mask[i] = land[i] > 0.3f;
    CHECK(nc_def_var(s->nc, "lsm", NC_BYTE, 2, dims, &var));
    CHECK(nc_def_var_deflate(s->nc, var, 0, 1, 1));
    CHECK(nc_put_att_schar(s->nc, var, "_FillValue", NC_BYTE, 1, &fill));
    CHECK(describe(s->nc, var, "land_binary_mask", "land-sea mask", "1"));
    CHECK(nc_put_att_schar(s->nc, var, "flag_values", NC_BYTE, 2, flags));
    CHECK(put_text(s->nc, var, "flag_meanings", "sea land"));
    CHECK(nc_put_var_schar(s->nc, var, mask));
    return 0;
}

static int define_field(const sample *s, const char *name, nc_type type, int has_level,
                        const char *standard, const char *longer, const char *units, int *var)
{
    int dims[4] = {s->time, has_level ? s->level : s->lat, has_level ? s->lat : s->lon, s->lon};
    size_t chunk[4] = {1, has_level ? 1 : NLAT, has_level ? NLAT : NLON, NLON};
    CHECK(nc_def_var(s->nc, name, type, has_level ? 4 : 3, dims, var));
    CHECK(nc_def_var_chunking(s->nc, *var, NC_CHUNKED, chunk));
    CHECK(nc_def_var_deflate(s->nc, *var, 1, 1, 1));
    CHECK(describe(s->nc, *var, standard, longer, units));
    return 0;
}

/* A field stored as shorts with scale_factor and add_offset; below FLOOR it is FLOOR. */
static int put_packed(const sample *s, const char *name, const char *standard, const char *longer,
                      const char *units, const field *f, double scale, double offset, double floor)
{
    static float step[NCELL];
    static short packed[NCELL];
    const short fill = -32767;
    int var;
    if (define_field(s, name, NC_SHORT, 0, standard, longer, units, &var) != 0)
        return 1;
    CHECK(nc_put_att_short(s->nc, var, "_FillValue", NC_SHORT, 1, &fill));
    CHECK(nc_put_att_short(s->nc, var, "missing_value", NC_SHORT, 1, &fill));
    CHECK(nc_put_att_double(s->nc, var, "scale_factor", NC_DOUBLE, 1, &scale));
    CHECK(nc_put_att_double(s->nc, var, "add_offset", NC_DOUBLE, 1, &offset));
    for (unsigned t = 0; t < s->nsteps; t++) {
        size_t start[3] = {t, 0, 0}, count[3] = {1, NLAT, NLON};
        make_step(f, s->first + t, step);
        for (int i = 0; i < NCELL; i++) {
            double v = nearbyint((fmax(step[i], floor) - offset) / scale);
            packed[i] = (short)clip(v, -32766, 32767);
        }
        CHECK(nc_put_vara_short(s->nc, var, start, count, packed));
    }
    return 0;
}

/* A field of floats, on both pressure levels where FIELDS holds two. */
static int put_float(const sample *s, const char *name, const char *standard, const char *longer,
                     const char *units, const field *fields, unsigned nfields)
{
    static float step[NCELL];
    int var;
    if (define_field(s, name, NC_FLOAT, nfields > 1, standard, longer, units, &var) != 0)
        return 1;
    for (unsigned t = 0; t < s->nsteps; t++) {
        for (unsigned k = 0; k < nfields; k++) {
            size_t start3[3] = {t, 0, 0}, count3[3] = {1, NLAT, NLON};
            size_t start4[4] = {t, k, 0, 0}, count4[4] = {1, 1, NLAT, NLON};
            make_step(&fields[k], s->first + t, step);
            CHECK(nc_put_vara_float(s->nc, var, nfields > 1 ? start4 : start3,
                                    nfields > 1 ? count4 : count3, step));
        }
    }
    return 0;
}

static const field T2M = {300, 55, 6, 0.3, 0.001, 1}, TP = {-2, 0, 4, 0.3, 0.01, 2};
static const field MSL = {101300, 1500, 700, 6, 0.5, 3};
static const field Z[NLEVEL] = {{15000, 3000, 900, 8, 0.5, 4}, {57000, 8000, 1500, 10, 0.5, 5}};

/* T2M_SCALE and T2M_OFFSET are its packing. */
static int put_surface(const sample *s, double t2m_scale, double t2m_offset, int has_msl)
{
    if (put_packed(s, "t2m", "air_temperature", "temperature at 2 m", "K", &T2M, t2m_scale,
                   t2m_offset, 0) != 0 ||
        put_packed(s, "tp", "precipitation_amount", "precipitation of 6 h", "kg m-2", &TP, 0.001,
                   30, 0) != 0)
        return 1;
    if (!has_msl)
        return 0;
    return put_float(s, "msl", "air_pressure_at_mean_sea_level", "pressure at sea level", "Pa",
                     &MSL, 1);
}

static int make_file(const char *path)
{
    sample s = {.first = 0, .nsteps = NTIME};
    CHECK(nc_create(path, NC_NETCDF4 | NC_CLOBBER, &s.nc));
    if (define_dimensions(&s) != 0 || put_level(&s) != 0 || put_mask(&s) != 0 ||
        put_surface(&s, 0.002, 270, 1) != 0 ||
        put_float(&s, "z", "geopotential", "geopotential", "m2 s-2", Z, NLEVEL) != 0)
        return 1;
    CHECK(nc_close(s.nc));
    return 0;
}

/* FOLDER/weather_20200101.nc and so on, two days each. */
static int make_archive(const char *folder)
{
    (void)mkdir(folder, 0777);
    for (unsigned i = 0; i < NFILES; i++) {
        char path[4096];
        sample s = {.first = i * NTIME / NFILES, .nsteps = NTIME / NFILES};
        snprintf(path, sizeof(path), "%s/weather_202001%02u.nc", folder, 1 + s.first / STEPS_A_DAY);
        CHECK(nc_create(path, NC_NETCDF4 | NC_CLOBBER, &s.nc));
        if (define_dimensions(&s) != 0 || put_mask(&s) != 0 ||
            put_surface(&s, i == REPACKED ? 0.0025 : 0.002, 270, i != LACKS_MSL) != 0)
            return 1;
        CHECK(nc_close(s.nc));
    }
    return 0;
}

int main(int argc, char **argv)
{
    if (argc == 2 && argv[1][0] != '-')
        return make_file(argv[1]);
    if (argc == 3 && strcmp(argv[1], "--archive") == 0)
        return make_archive(argv[2]);
    fprintf(stderr, "usage: make_sample OUT.nc\n       make_sample --archive FOLDER\n");
    return 2;
}

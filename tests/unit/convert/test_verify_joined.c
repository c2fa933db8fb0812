/*
 * Verification does not believe the conversions of a joined dataset: an error that is planted in
 * what says how files become one is told, though the store has exactly what was said.
 */
#include <math.h>

#include "../fixtures/multi_fixture.h"

enum {
    NFILES = 2,
    STEPS = 2
};

typedef struct packed {
    char path[NFILES][96];
    cm_multi_file file[NFILES];
    cm_multi_part time[NFILES], part[NFILES];
    cm_multi_how how[NFILES];
    double values[NFILES * STEPS];
    cm_multi_var var[2];
    cm_multi_group root;
    cm_multi_spec spec;
    cm_json *empty, *attrs;
} packed;

/* Days counted from a date of its own; a packing and a fill value of its own. */
static void write_packed(const char *path, int k)
{
    int file, dim[2], id[2];
    char units[64];
    const double days[STEPS] = {0, 1}, scale = k == 0 ? 0.5 : 0.25, offset = 10;
    const short fill = (short)(-1 - k), data[STEPS * 3] = {1, 2, fill, 3, 4, 5};
    snprintf(units, sizeof units, "days since 2000-01-%02d", 1 + k * STEPS);
    NC(nc_create(path, NC_CLOBBER | NC_NETCDF4, &file));
    NC(nc_def_dim(file, "time", STEPS, &dim[0]));
    NC(nc_def_dim(file, "x", 3, &dim[1]));
    NC(nc_def_var(file, "time", NC_DOUBLE, 1, dim, &id[0]));
    NC(nc_def_var(file, "p", NC_SHORT, 2, dim, &id[1]));
    NC(nc_put_att_text(file, id[0], "units", strlen(units), units));
    NC(nc_put_att_short(file, id[1], "_FillValue", NC_SHORT, 1, &fill));
    NC(nc_put_att_double(file, id[1], "scale_factor", NC_DOUBLE, 1, &scale));
    NC(nc_put_att_double(file, id[1], "add_offset", NC_DOUBLE, 1, &offset));
    NC(nc_enddef(file));
    NC(nc_put_var_double(file, id[0], days));
    NC(nc_put_var_short(file, id[1], data));
    NC(nc_close(file));
}

static void join(packed *a)
{
    const double nan = NAN;
    memset(a, 0, sizeof *a);
    a->empty = cm_json_object();
    a->attrs = cm_json_object();
    assert_int_equal(cm_json_set(a->attrs, "units", cm_json_string("days since 2000-01-01"), NULL),
                     CM_OK);
    for (unsigned k = 0; k < NFILES; k++) {
        const short fill = (short)(-1 - (int)k);
        snprintf(a->path[k], sizeof a->path[k], "%s/packed%u.nc", multi_folder, k);
        write_packed(a->path[k], (int)k);
        identify(a->path[k], &a->file[k]);
        a->how[k] = (cm_multi_how){.dtype = cm_dtype_make(CM_KIND_INT, 2),
                                   .unpacks = true,
                                   .scale = k == 0 ? 0.5 : 0.25,
                                   .offset = 10,
                                   .replaces_fill = true};
        memcpy(a->how[k].fill, &fill, sizeof fill);
        a->time[k] = a->part[k] =
            (cm_multi_part){.file = k, .origin = {k * STEPS}, .count = {STEPS}, .length = {STEPS}};
        a->part[k].how = &a->how[k];
        for (unsigned i = 0; i < STEPS; i++)
            a->values[k * STEPS + i] = k * STEPS + i;
    }
    a->var[0] = (cm_multi_var){.name = "time",
                               .dtype = cm_dtype_make(CM_KIND_FLOAT, 8),
                               .rank = 1,
                               .shape = {NFILES * STEPS},
                               .dim_name = {"time"},
                               .attrs = a->attrs,
                               .is_coordinate = true,
                               .values = a->values,
                               .said = a->time,
                               .nsaid = NFILES};
    a->var[1] = (cm_multi_var){.name = "p",
                               .dtype = cm_dtype_make(CM_KIND_FLOAT, 8),
                               .rank = 2,
                               .shape = {NFILES * STEPS, 3},
                               .dim_name = {"time", "x"},
                               .attrs = a->empty,
                               .has_fill_value = true,
                               .has_fill = true,
                               .naxes = 1,
                               .part = a->part,
                               .nparts = NFILES};
    memcpy(a->var[1].fill_value, &nan, sizeof nan);
    memcpy(a->var[1].fill, &nan, sizeof nan);
    a->root = (cm_multi_group){.path = "", .attrs = a->empty};
    a->spec = (cm_multi_spec){.name = "two files",
                              .format_name = "NetCDF-4",
                              .file = a->file,
                              .nfiles = NFILES,
                              .group = &a->root,
                              .ngroups = 1,
                              .var = a->var,
                              .nvars = 2};
}

static void release(packed *a)
{
    cm_json_free(a->empty);
    cm_json_free(a->attrs);
}

static void nothing(packed *a)
{
    (void)a;
}

static void wrong_scale(packed *a)
{
    a->how[1].scale = 0.5;
}

static void wrong_offset(packed *a)
{
    a->how[0].offset = 10.000000001;
}

static void wrong_fill(packed *a)
{
    a->how[1].fill[0] = 0xff; /* that of the other file */
}

static void not_unpacked(packed *a)
{
    a->how[0].unpacks = false;
}

static void an_hour_late(packed *a)
{
    a->values[2] += 1.0 / 24;
}

static void not_rebased(packed *a)
{
    a->values[2] = 0;
    a->values[3] = 1;
}

static void other_units(packed *a)
{
    assert_int_equal(cm_json_set(a->attrs, "units", cm_json_string("days since 2000-01-02"), NULL),
                     CM_OK);
}

static const struct {
    const char *name;
    void (*plant)(packed *a);
    const char *variable; /* that differs; NULL: none */
} PLANTED[] = {
    {"nothing", nothing, NULL},
    {"the scale of another file", wrong_scale, "p"},
    {"an offset that is a little off", wrong_offset, "p"},
    {"the fill value of another file", wrong_fill, "p"},
    {"packed numbers", not_unpacked, "p"},
    {"a time that is an hour late", an_hour_late, "time"},
    {"times that were not moved", not_rebased, "time"},
    {"units that the numbers do not have", other_units, "time"},
};

static void test_planted(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof PLANTED / sizeof *PLANTED; i++) {
        char target[96], command[160];
        cm_error err = {0};
        cm_transform_report report;
        cm_transform_options o;
        packed a;
        print_message("  %s\n", PLANTED[i].name);
        join(&a);
        PLANTED[i].plant(&a);
        snprintf(target, sizeof target, "%s/planted.zarr", multi_folder);
        cm_transform_options_init(&o, CM_DEFAULTS_CHOOSE);
        o.target = target;
        o.verify = CM_VERIFY_FULL;
        assert_int_equal(cm_multi_dataset_open(&a.spec, NULL, &o.dataset, &err), CM_OK);
        int rc = cm_transform(&o, &report, &err);
        if (rc != (PLANTED[i].variable != NULL ? CM_EDIFFER : CM_OK))
            fail_msg("status %d: %s", rc, err.text);
        assert_true(report.written);
        if (PLANTED[i].variable != NULL) {
            size_t n = strlen(PLANTED[i].variable);
            assert_true(report.ndifferences > 0);
            assert_memory_equal(report.difference[0], PLANTED[i].variable, n);
        }
        cm_transform_report_release(&report);
        cm_dataset_close(o.dataset);
        release(&a);
        snprintf(command, sizeof command, "rm -rf '%s'*", target);
        assert_int_equal(system(command), 0);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_planted)};
    return cmocka_run_group_tests(tests, make_folder, remove_folder);
}

/*
 * Choosing the data to convert: names (select.c), elements (subset.c) and types (view.c), by a
 * table over one small file.
 */
#include <stdio.h>
#include <unistd.h>

#include <netcdf.h>

#include "../unit.h"
#include "convert/job.h"

static char path[] = "/tmp/chunkmill-choice-XXXXXX";

#define NC(call) assert_int_equal(call, NC_NOERR)

static int define(int file, const char *name, nc_type type, int rank, const int *dim)
{
    int var;
    NC(nc_def_var(file, name, type, rank, dim, &var));
    return var;
}

static void put_text(int file, int var, const char *name, const char *text)
{
    NC(nc_put_att_text(file, var, name, strlen(text), text));
}

/*
 * time(10) in days, lat(4) downwards with bounds, tas(time, lat) packed, pr(time, lat) with a
 * coordinate, label(4 x 5 characters), and g/deep(time).
 */
static int make_file(void **state)
{
    (void)state;
    int fd = mkstemp(path), file, group, dim[4], bounds[2], grid[2], text[2];
    if (fd < 0)
        return -1;
    close(fd);
    NC(nc_create(path, NC_CLOBBER | NC_NETCDF4, &file));
    NC(nc_def_dim(file, "time", 10, &dim[0]));
    NC(nc_def_dim(file, "lat", 4, &dim[1]));
    NC(nc_def_dim(file, "two", 2, &dim[2]));
    NC(nc_def_dim(file, "length", 5, &dim[3]));
    bounds[0] = dim[1], bounds[1] = dim[2];
    grid[0] = dim[0], grid[1] = dim[1];
    text[0] = dim[1], text[1] = dim[3];
    int time = define(file, "time", NC_DOUBLE, 1, &dim[0]);
    put_text(file, time, "units", "days since 2000-01-01");
    int lat = define(file, "lat", NC_DOUBLE, 1, &dim[1]);
    put_text(file, lat, "bounds", "lat_bnds");
    define(file, "lat_bnds", NC_DOUBLE, 2, bounds);
    int tas = define(file, "tas", NC_SHORT, 2, grid);
    const double scale = 0.5, offset = 200;
    NC(nc_put_att_double(file, tas, "scale_factor", NC_DOUBLE, 1, &scale));
    NC(nc_put_att_double(file, tas, "add_offset", NC_DOUBLE, 1, &offset));
    int pr = define(file, "pr", NC_FLOAT, 2, grid);
    put_text(file, pr, "coordinates", "height absent");
    define(file, "height", NC_DOUBLE, 0, NULL);
    define(file, "label", NC_CHAR, 2, text);
    NC(nc_def_grp(file, "g", &group));
    define(group, "deep", NC_INT, 1, &dim[0]);
    NC(nc_enddef(file));
    const double times[10] = {0, 1, 2, 3, 4, 5, 6, 7, 8, 9}, lats[4] = {60, 40, 20, 0};
    NC(nc_put_var_double(file, time, times));
    NC(nc_put_var_double(file, lat, lats));
    return nc_close(file);
}

static int remove_file(void **state)
{
    (void)state;
    return unlink(path);
}

static void release(cm_job *job)
{
    for (size_t i = 0; i < job->nvars; i++)
        free(job->var[i].name);
    free(job->var);
    cm_dataset_close(job->source);
    cm_transform_report_release(job->report);
}

/*
 * "name type[start+shape*step,...] ..." of what OPTIONS choose, sorted as the job has it; or
 * the error.
 */
static int choose(cm_transform_options *options, char *out, size_t size)
{
    cm_transform_report report = {0};
    cm_job job = {.options = options, .report = &report, .from = {.path = path, .group = ""}};
    cm_error err = {0};
    char type[32];
    size_t n = 0;
    int rc = cm_dataset_open(path, "", NULL, &job.source, &err);
    rc = rc == CM_OK ? cm_job_select(&job, &err) : rc;
    for (size_t i = 0; rc == CM_OK && i < job.nvars; i++)
        rc = cm_dataset_prepare(job.source, job.var[i].source, &err);
    rc = rc == CM_OK ? cm_job_view(&job, &err) : rc;
    out[0] = '\0';
    if (rc != CM_OK)
        snprintf(out, size, "%s", err.text);
    for (size_t i = 0; rc == CM_OK && i < job.nvars; i++) {
        const cm_job_var *v = &job.var[i];
        n += (size_t)snprintf(out + n, size - n, "%s%s %s[", i ? " " : "", v->name,
                              cm_dtype_name(&v->view.type, type, sizeof type));
        for (unsigned j = 0; j < v->view.rank; j++)
            n += (size_t)snprintf(out + n, size - n, "%s%llu+%llu*%llu", j ? "," : "",
                                  (unsigned long long)v->view.start[j],
                                  (unsigned long long)v->view.shape[j],
                                  (unsigned long long)v->view.step[j]);
        n += (size_t)snprintf(out + n, size - n, "]");
    }
    release(&job);
    return rc;
}

typedef struct row {
    const char *variable, *exclude, *rename, *subset, *dtype, *unpack;
    const char *expected; /* what is chosen; or, behind a '!', a part of the error */
} row;

static void check_rows(const row *rows, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        const row *r = &rows[i];
        cm_transform_options o;
        char got[2000];
        cm_transform_options_init(&o, CM_DEFAULTS_CHOOSE);
        o.char_mode = CM_CHAR_JOIN;
#define ONE(member)                                                                                \
    if (r->member != NULL)                                                                         \
        o.member = (cm_texts){&r->member, 1};
        ONE(variable)
        ONE(exclude)
        ONE(rename)
        ONE(subset)
        ONE(dtype)
        ONE(unpack)
#undef ONE
        const int rc = choose(&o, got, sizeof got);
        if (r->expected[0] == '!') {
            if (rc != CM_EINVAL || strstr(got, r->expected + 1) == NULL)
                fail_msg("row %zu: %d %s, not an error with %s", i, rc, got, r->expected + 1);
        } else if (rc != CM_OK || strcmp(got, r->expected) != 0) {
            fail_msg("row %zu: %d\n%s\nand not\n%s", i, rc, got, r->expected);
        }
    }
}

#define TIME "time float64[0+10*1]"
#define LAT  "lat float64[0+4*1] lat_bnds float64[0+4*1,0+2*1]"

static void test_names(void **state)
{
    static const row rows[] = {
        /* A chosen variable brings its coordinates, their bounds, and those in its attributes. */
        {.variable = "tas", .expected = TIME " " LAT " tas int16[0+10*1,0+4*1]"},
        {.variable = "pr", .expected = TIME " " LAT " pr float32[0+10*1,0+4*1] height float64[]"},
        {.variable = "height", .expected = "height float64[]"},
        {.variable = "h*,time", .expected = TIME " height float64[]"},
        {.variable = "deep", .expected = TIME " g/deep int32[0+10*1]"},
        {.variable = "g/deep", .expected = TIME " g/deep int32[0+10*1]"},
        {.variable = "label", .expected = LAT " label string[0+4*1]"},
        {.variable = "time,lat", .exclude = "lat_bnds", .expected = TIME " lat float64[0+4*1]"},
        {.variable = "time", .rename = "time=t", .expected = "t float64[0+10*1]"},
        {.variable = "tas",
         .exclude = "tas,lat*,time",
         .expected = "!`exclude` leaves no variable of the file"},
        {.variable = "nothing", .expected = "!nothing"},
        {.variable = "time,,lat", .expected = "!`variable`"},
        {.exclude = "nothing", .expected = "!nothing"},
        {.variable = "time", .rename = "lat=y", .expected = "!lat"},
        {.variable = "time", .rename = "time", .expected = "!`rename`"},
        {.variable = "time,height", .rename = "time=height", .expected = "!height"},
    };
    (void)state;
    check_rows(rows, sizeof rows / sizeof rows[0]);
}

static void test_elements(void **state)
{
    static const row rows[] = {
        {.variable = "time", .subset = "time=2:5", .expected = "time float64[2+3*1]"},
        {.variable = "time", .subset = "time=2:9:3", .expected = "time float64[2+3*3]"},
        {.variable = "time", .subset = "time=:", .expected = "time float64[0+10*1]"},
        {.variable = "time", .subset = "time=-3:", .expected = "time float64[7+3*1]"},
        {.variable = "time", .subset = "time=:-8", .expected = "time float64[0+2*1]"},
        {.variable = "time", .subset = "time=5:100", .expected = "time float64[5+5*1]"},
        {.variable = "time", .subset = "time=9::7", .expected = "time float64[9+1*1]"},
        {.variable = "deep",
         .subset = "time=0:1",
         .expected = "time float64[0+1*1] g/deep int32[0+1*1]"},
        /*
         * By value: both ends count, dates mean all of the day, and the order is the axis's or
         * not.
         */
        {.variable = "time", .subset = "time=3..5", .expected = "!3"},
        {.variable = "time",
         .subset = "time=2000-01-03..2000-01-05",
         .expected = "time float64[2+3*1]"},
        {.variable = "time", .subset = "time=2000-01-08..", .expected = "time float64[7+3*1]"},
        {.variable = "time", .subset = "time=2000..2000", .expected = "time float64[0+10*1]"},
        {.variable = "lat",
         .subset = "lat=20..40",
         .expected = "lat float64[1+2*1] lat_bnds float64[1+2*1,0+2*1]"},
        {.variable = "lat",
         .subset = "lat=40..20",
         .expected = "lat float64[1+2*1] lat_bnds float64[1+2*1,0+2*1]"},
        {.variable = "time", .subset = "time=5:5", .expected = "!5:5"},
        {.variable = "time", .subset = "time=a:b", .expected = "!a"},
        {.variable = "time", .subset = "time=1:5:0", .expected = "!step"},
        {.variable = "time", .subset = "time=1:5:-1", .expected = "!step"},
        {.variable = "time", .subset = "time", .expected = "!`subset`"},
        {.variable = "time", .subset = "=1:2", .expected = "!`subset`"},
        {.variable = "time", .subset = "time=7", .expected = "!`subset`"},
        {.variable = "time", .subset = "lat=0:1", .expected = "!lat"},
        {.variable = "lat", .subset = "lat=41..59", .expected = "!lat"},
        {.variable = "label", .subset = "length=0:2", .expected = "!length"},
        {.variable = "lat_bnds", .subset = "two=0..1", .expected = "!two"},
    };
    (void)state;
    check_rows(rows, sizeof rows / sizeof rows[0]);
}

static void test_types(void **state)
{
    static const row rows[] = {
        /* Without a name it is not for coordinates. */
        {.variable = "time", .dtype = "float32", .expected = "time float64[0+10*1]"},
        {.variable = "pr",
         .dtype = "float64",
         .expected = TIME " " LAT " pr float64[0+10*1,0+4*1] height float64[]"},
        {.variable = "g/deep", .dtype = "deep:int64", .expected = TIME " g/deep int64[0+10*1]"},
        {.variable = "tas",
         .dtype = "tas:int32",
         .expected = TIME " " LAT " tas int32[0+10*1,0+4*1]"},
        {.variable = "tas",
         .unpack = "tas",
         .dtype = "tas:float32",
         .expected = TIME " " LAT " tas float32[0+10*1,0+4*1]"},
        {.variable = "tas", .unpack = "all", .expected = TIME " " LAT " tas float64[0+10*1,0+4*1]"},
        /* A name is that in the store. */
        {.variable = "time",
         .rename = "time=t",
         .dtype = "t:float32",
         .expected = "t float32[0+10*1]"},
        {.variable = "time", .rename = "time=t", .dtype = "time:float32", .expected = "!time"},
        {.variable = "time", .dtype = "pr:float64", .expected = "!pr"},
        {.variable = "pr", .dtype = "float99", .expected = "!float99"},
        {.variable = "label", .dtype = "label:int32", .expected = "!label"},
        {.variable = "time", .unpack = "tas", .expected = "!tas"},
    };
    (void)state;
    check_rows(rows, sizeof rows / sizeof rows[0]);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_names),
        cmocka_unit_test(test_elements),
        cmocka_unit_test(test_types),
    };
    return cmocka_run_group_tests_name("choice", tests, make_file, remove_file);
}

/*
 * Joined variables, whose files say the same in different ways: other types, fill values,
 * orders of dimensions, packings and units of time; files without the joined dimension; two
 * joined dimensions; files that changed, and that do not agree; the digests of files.
 */
#include <fcntl.h>
#include <netcdf.h>
#include <sys/resource.h>
#include <sys/stat.h>

#include "base/threads.h"
#include "format/multi/multi.h"
#include "nc_support.h"

#define NC(call) assert_int_equal(call, NC_NOERR)

enum {
    NFILES = 6,
    NT = 4,
    NX = 3
};

static char path[NFILES][300];
static cm_multi_file file[NFILES];

static void identify(unsigned k)
{
    struct stat st;
    assert_int_equal(stat(path[k], &st), 0);
    file[k] = (cm_multi_file){.path = path[k],
                              .dev = st.st_dev,
                              .ino = st.st_ino,
                              .nbytes = (uint64_t)st.st_size,
                              .mtime_ns = (uint64_t)st.st_mtim.tv_sec * 1000000000u +
                                          (uint64_t)st.st_mtim.tv_nsec};
}

/* v(t, x) of TYPE, or v(x, t) where TURNED, or v(x) where NTIMES is 0: value T0 + t + x / 10. */
static void make(unsigned k, nc_type type, unsigned t0, unsigned ntimes, bool turned, bool chunked)
{
    int id, t, x, v;
    snprintf(path[k], sizeof path[k], "%s", temp_path("multi"));
    snprintf(path[k] + strlen(path[k]), 16, "%u.nc", k);
    NC(nc_create(path[k], NC_CLOBBER | NC_NETCDF4, &id));
    NC(nc_def_dim(id, "t", ntimes > 0 ? ntimes : 1, &t));
    NC(nc_def_dim(id, "x", NX, &x));
    int dim[2] = {turned ? x : t, turned ? t : x};
    NC(nc_def_var(id, "v", type, ntimes > 0 ? 2 : 1, ntimes > 0 ? dim : &x, &v));
    if (chunked)
        NC(nc_def_var_deflate(id, v, 1, 1, 1));
    NC(nc_enddef(id));
    for (size_t i = 0; i < (ntimes > 0 ? ntimes : 1); i++)
        for (size_t j = 0; j < NX; j++) {
            size_t at[2] = {turned ? j : i, turned ? i : j};
            double value = t0 + (double)i + (type < NC_FLOAT ? 0 : (double)j / 8);
            NC(nc_put_var1_double(id, v, ntimes > 0 ? at : &j, &value));
        }
    NC(nc_close(id));
    identify(k);
}

static int remove_files(void **state)
{
    (void)state;
    for (unsigned k = 0; k < NFILES; k++)
        unlink(path[k]);
    return 0;
}

/* One variable of N parts, NT steps each. */
typedef struct joined {
    cm_multi_part part[NFILES];
    cm_multi_var var;
    cm_multi_spec spec;
    cm_multi_group root;
    cm_json *attrs;
    cm_dataset *ds;
} joined;

static void join(joined *j, cm_dtype dtype, unsigned nparts, unsigned steps)
{
    *j = (joined){.attrs = cm_json_object()};
    for (unsigned k = 0; k < nparts; k++)
        j->part[k] =
            (cm_multi_part){.file = k, .origin = {k * steps}, .count = {steps}, .length = {steps}};
    j->var = (cm_multi_var){.name = "v",
                            .dtype = dtype,
                            .rank = 2,
                            .shape = {(uint64_t)nparts * steps, NX},
                            .dim_name = {"t", "x"},
                            .attrs = j->attrs,
                            .naxes = 1,
                            .part = j->part,
                            .nparts = nparts};
    j->root = (cm_multi_group){.path = "", .attrs = j->attrs};
    j->spec = (cm_multi_spec){.name = "archive",
                              .file = file,
                              .nfiles = NFILES,
                              .group = &j->root,
                              .ngroups = 1,
                              .var = &j->var,
                              .nvars = 1};
}

static void leave(joined *j)
{
    cm_dataset_close(j->ds);
    cm_json_free(j->attrs);
    j->ds = NULL;
    remove_files(NULL);
}

/* All of it into DST, by this program's readers or by libraries; the status. */
static int read_joined(joined *j, bool by_library, void *dst, cm_error *err)
{
    int rc = j->ds == NULL ? cm_multi_dataset_open(&j->spec, NULL, &j->ds, err) : CM_OK;
    if (rc == CM_OK)
        rc = cm_dataset_prepare(j->ds, &j->ds->var[0], err);
    if (rc == CM_OK) /* whichever way it is read */
        assert_ptr_equal(cm_multi_var_of(&j->ds->var[0]), &j->spec.var[0]);
    if (rc != CM_OK)
        return rc;
    cm_box box = whole(j->ds->var[0].array);
    return by_library ? cm_dataset_read(j->ds, &j->ds->var[0], &box, dst, err)
                      : cm_array_read(j->ds->var[0].array, NULL, &box, dst, err);
}

/* Element (t, x) is t + x / 8, or a whole number. */
static void expect_counting(joined *j, unsigned n, bool whole_numbers)
{
    for (int by_library = 0; by_library < 2; by_library++) {
        double got[NFILES * NT * NX];
        cm_error err = {0};
        ASSERT_OK(read_joined(j, by_library != 0, got, &err), err);
        for (unsigned t = 0; t < n; t++)
            for (unsigned x = 0; x < NX; x++)
                assert_true(got[t * NX + x] == t + (whole_numbers ? 0 : x / 8.0));
    }
}

static const cm_dtype f64 = {.kind = CM_KIND_FLOAT, .nbytes = 8};

static void test_types_and_orders(void **state)
{
    const cm_multi_how narrow = {.dtype = {.kind = CM_KIND_FLOAT, .nbytes = 4}};
    const cm_multi_how turned = {.dtype = f64, .transposed = true, .order = {1, 0}};
    const cm_multi_how both = {
        .dtype = {.kind = CM_KIND_FLOAT, .nbytes = 4}, .transposed = true, .order = {1, 0}};
    (void)state;
    for (int chunked = 0; chunked < 2; chunked++) {
        joined j;
        make(0, NC_DOUBLE, 0, NT, false, chunked != 0);
        make(1, NC_FLOAT, NT, NT, false, chunked != 0);
        make(2, NC_DOUBLE, 2 * NT, NT, true, chunked != 0);
        make(3, NC_FLOAT, 3 * NT, NT, true, chunked == 0);
        join(&j, f64, 4, NT);
        j.part[1].how = &narrow;
        j.part[2].how = &turned;
        j.part[3].how = &both;
        expect_counting(&j, 4 * NT, false);
        leave(&j);
    }
}

/* Files of one step each, which lack the dimension. */
static void test_new_dimension(void **state)
{
    const cm_multi_how lacks = {.dtype = f64, .lacks_axis = {true}};
    joined j;
    (void)state;
    for (unsigned k = 0; k < 3; k++)
        make(k, NC_DOUBLE, k, 0, false, k == 1);
    join(&j, f64, 3, 1);
    for (unsigned k = 0; k < 3; k++)
        j.part[k].how = &lacks;
    expect_counting(&j, 3, false);
    leave(&j);
}

static void test_packing(void **state)
{
    const cm_multi_how packed = {
        .dtype = {.kind = CM_KIND_INT, .nbytes = 2}, .unpacks = true, .scale = 0.5, .offset = 100};
    joined j;
    double got[2 * NT * NX];
    cm_error err = {0};
    (void)state;
    make(0, NC_SHORT, 0, NT, false, true);
    make(1, NC_DOUBLE, NT, NT, false, true);
    join(&j, f64, 2, NT);
    j.part[0].how = &packed;
    ASSERT_OK(read_joined(&j, false, got, &err), err);
    for (unsigned t = 0; t < NT; t++)
        assert_true(got[t * NX + 1] == 100 + t * 0.5);
    assert_true(got[NT * NX + 1] == NT + 1 / 8.0);
    leave(&j);
}

/* v(t, x), NT texts of LENGTH characters: (T0 + t) * 16 + x + 1. */
static void make_texts(unsigned k, unsigned t0, unsigned length, bool chunked)
{
    int id, dim[2], v;
    uint8_t text[NT * 16];
    snprintf(path[k], sizeof path[k], "%s", temp_path("multi"));
    snprintf(path[k] + strlen(path[k]), 16, "%u.nc", k);
    NC(nc_create(path[k], NC_CLOBBER | NC_NETCDF4, &id));
    NC(nc_def_dim(id, "t", NT, &dim[0]));
    NC(nc_def_dim(id, "x", length, &dim[1]));
    NC(nc_def_var(id, "v", NC_CHAR, 2, dim, &v));
    if (chunked)
        NC(nc_def_var_deflate(id, v, 1, 1, 1));
    NC(nc_enddef(id));
    for (unsigned t = 0; t < NT; t++)
        for (unsigned x = 0; x < length; x++)
            text[t * length + x] = (uint8_t)((t0 + t) * 16 + x + 1);
    NC(nc_put_var_text(id, v, (const char *)text));
    NC(nc_close(id));
    identify(k);
}

/* Any box of texts of which each file has another length: behind a text stand NULs. */
static void test_texts_of_several_lengths(void **state)
{
    enum {
        LONGEST = 7
    };
    static const unsigned LENGTH[] = {5, LONGEST, 1};
    const cm_dtype character = {.kind = CM_KIND_BYTES, .nbytes = 1};
    (void)state;
    for (unsigned i = 0; i < 2; i++) {
        cm_multi_how how[3];
        joined j;
        cm_error err = {0};
        uint8_t all[3 * NT * LONGEST], got[sizeof(all)];
        join(&j, character, 3, NT);
        j.var.shape[1] = LONGEST;
        j.var.is_char = true;
        for (unsigned k = 0; k < 3; k++) {
            make_texts(k, k * NT, LENGTH[k], i == 1);
            how[k] =
                (cm_multi_how){.dtype = character, .pads = LENGTH[k] < LONGEST, .width = LENGTH[k]};
            j.part[k].how = &how[k];
        }
        ASSERT_OK(read_joined(&j, false, all, &err), err);
        for (unsigned t = 0; t < 3 * NT; t++)
            for (unsigned x = 0; x < LONGEST; x++)
                assert_int_equal(all[t * LONGEST + x],
                                 x < LENGTH[t / NT] ? (uint8_t)(t * 16 + x + 1) : 0);
        for (unsigned x = 0; x < LONGEST; x++)
            for (unsigned n = 1; n <= LONGEST - x; n++)
                for (int by_library = 0; by_library < 2; by_library++) {
                    const cm_box box = {.rank = 2, .start = {1, x}, .shape = {3 * NT - 1, n}};
                    cm_variable *v = &j.ds->var[0];
                    ASSERT_OK(by_library ? cm_dataset_read(j.ds, v, &box, got, &err)
                                         : cm_array_read(v->array, NULL, &box, got, &err),
                              err);
                    for (unsigned t = 1; t < 3 * NT; t++)
                        assert_memory_equal(got + (t - 1) * n, all + t * LONGEST + x, n);
                }
        cm_dataset_close(j.ds);
        j.ds = NULL;
        how[0].width = LONGEST + 1; /* longer than the variable's */
        assert_int_equal(read_joined(&j, false, all, &err), CM_EINVAL);
        leave(&j);
    }
}

static void test_fill_values(void **state)
{
    cm_multi_how other = {.dtype = f64, .replaces_fill = true};
    const double own = NT + 1, store = -5;
    double got[2 * NT * NX];
    cm_error err = {0};
    joined j;
    (void)state;
    memcpy(other.fill, &own, sizeof own);
    make(0, NC_DOUBLE, 0, NT, false, true);
    make(1, NC_DOUBLE, NT, NT, false, true);
    join(&j, f64, 2, NT);
    j.part[1].how = &other;
    j.var.has_fill_value = true;
    memcpy(j.var.fill_value, &store, sizeof store);
    ASSERT_OK(read_joined(&j, false, got, &err), err);
    assert_true(got[(NT + 1) * NX] == store && got[NT * NX] == NT && got[NX] == 1);
    cm_dataset_close(j.ds);
    j.ds = NULL;
    /* Data that equal the store's fill value: which file, which element. */
    const double clash = NT + 2;
    memcpy(j.var.fill_value, &clash, sizeof clash);
    assert_int_equal(read_joined(&j, false, got, &err), CM_EFORMAT);
    assert_non_null(strstr(err.text, path[1]));
    assert_non_null(strstr(err.text, "6/0"));
    cm_dataset_close(j.ds);
    j.ds = NULL;
    other.replaces_fill = false;
    other.checks_fill = true;
    assert_int_equal(read_joined(&j, false, got, &err), CM_EFORMAT);
    leave(&j);
}

static void test_times(void **state)
{
    cm_time_coding hours = {.dtype = f64}, days = {.dtype = f64};
    cm_multi_how how = {.dtype = f64, .time_from = &hours, .time_to = &days};
    double got[2 * NT * NX];
    cm_error err = {0};
    joined j;
    (void)state;
    ASSERT_OK(cm_time_axis_parse("hours since 2000-01-02", "standard", &hours.axis, &err), err);
    ASSERT_OK(cm_time_axis_parse("days since 2000-01-01", "standard", &days.axis, &err), err);
    make(0, NC_DOUBLE, 0, NT, false, true);
    make(1, NC_DOUBLE, 24, NT, false, true);
    join(&j, f64, 2, NT);
    j.part[1].how = &how;
    /* 25.125 hours are no day that a double holds. */
    assert_int_equal(read_joined(&j, false, got, &err), CM_EFORMAT);
    assert_non_null(strstr(err.text, path[1]));
    leave(&j);
    make(0, NC_SHORT, 0, 1, false, true);
    make(1, NC_SHORT, 24, 1, false, true);
    hours.dtype = days.dtype = cm_dtype_make(CM_KIND_INT, 2);
    how.dtype = hours.dtype;
    join(&j, hours.dtype, 2, 1);
    j.part[1].how = &how;
    short small[2 * NX];
    ASSERT_OK(read_joined(&j, false, small, &err), err);
    assert_int_equal(small[NX], 2); /* a day after the second of January */
    leave(&j);
}

/* Two by two files, and the same with a hole. */
static void test_two_axes(void **state)
{
    (void)state;
    for (int nparts = 4; nparts >= 3; nparts--) {
        const double nothing = -1;
        double got[4 * NT * NX];
        cm_error err = {0};
        joined j;
        for (unsigned k = 0; k < 4; k++)
            make(k, NC_DOUBLE, 10 * k, NT, false, true);
        join(&j, f64, (unsigned)nparts, NT);
        j.var.naxes = 2;
        j.var.axis[1] = 1;
        j.var.shape[0] = 2 * NT;
        j.var.shape[1] = 2 * NX;
        j.var.has_fill = true;
        memcpy(j.var.fill, &nothing, sizeof nothing);
        for (unsigned k = 0; k < 4; k++)
            j.part[k] = (cm_multi_part){.file = k,
                                        .origin = {k / 2 * NT, k % 2 * NX},
                                        .count = {NT, NX},
                                        .length = {NT, NX}};
        ASSERT_OK(read_joined(&j, false, got, &err), err);
        assert_true(j.ds->var[0].array->chunked);
        for (unsigned t = 0; t < 2 * NT; t++)
            for (unsigned x = 0; x < 2 * NX; x++) {
                unsigned k = t / NT * 2 + x / NX;
                double want = (int)k < nparts ? 10.0 * k + t % NT + (x % NX) / 8.0 : nothing;
                assert_true(got[t * 2 * NX + x] == want);
            }
        leave(&j);
    }
}

static void test_holes(void **state)
{
    const double nothing = -1;
    double got[3 * NT * NX];
    (void)state;
    for (int chunked = 0; chunked < 2; chunked++) {
        cm_error err = {0};
        joined j;
        make(0, NC_DOUBLE, 0, NT, false, chunked != 0);
        make(1, NC_DOUBLE, 2 * NT, NT, false, chunked != 0);
        join(&j, f64, 2, NT);
        j.part[1].origin[0] = 2 * NT;
        j.var.shape[0] = 3 * NT;
        j.var.has_fill = true;
        memcpy(j.var.fill, &nothing, sizeof nothing);
        ASSERT_OK(read_joined(&j, false, got, &err), err);
        for (unsigned t = 0; t < 3 * NT; t++)
            assert_true(got[t * NX] == (t / NT == 1 ? nothing : t));
        leave(&j);
    }
}

static void test_changed_file(void **state)
{
    static const char *const what[] = {"written to", "size", "gone", "another file"};
    (void)state;
    for (unsigned i = 0; i < 4; i++) {
        double got[2 * NT * NX];
        cm_error err = {0};
        joined j;
        make(0, NC_DOUBLE, 0, NT, false, true);
        make(1, NC_DOUBLE, NT, NT, false, true);
        join(&j, f64, 2, NT);
        j.spec.nfiles = 2;
        ASSERT_OK(cm_multi_dataset_open(&j.spec, NULL, &j.ds, &err), err);
        ASSERT_OK(cm_dataset_prepare(j.ds, &j.ds->var[0], &err), err);
        ASSERT_OK(cm_multi_unchanged(j.ds, &err), err);
        if (i == 0)
            assert_int_equal(utimensat(AT_FDCWD, path[1], (struct timespec[2]){{1, 1}, {1, 1}}, 0),
                             0);
        else if (i == 1)
            assert_int_equal(truncate(path[1], 100), 0);
        else
            assert_int_equal(unlink(path[1]), 0);
        if (i == 3) {
            cm_multi_file old = file[1];
            make(1, NC_DOUBLE, NT, NT, false, true);
            old.ino = file[1].ino + 1; /* another than the new file's, whatever that is */
            file[1] = old;
        }
        assert_int_not_equal(read_joined(&j, false, got, &err), CM_OK);
        if (strstr(err.text, path[1]) == NULL || (i != 2 && strstr(err.text, what[i]) == NULL))
            fail_msg("%s: %s", what[i], err.text);
        assert_int_not_equal(cm_multi_unchanged(j.ds, &err), CM_OK);
        leave(&j);
    }
}

static void test_checks(void **state)
{
    cm_error err = {0};
    cm_multi_clash clash;
    joined j;
    (void)state;
    /* The last step of the first file is the first one of the second; and not of the third. */
    make(0, NC_DOUBLE, 0, NT, false, true);
    make(1, NC_DOUBLE, NT - 1, NT, false, true);
    make(2, NC_DOUBLE, 50, NT, false, false);
    join(&j, f64, 1, NT);
    cm_multi_check check[2] = {{.what = "overlapping steps"}, {.what = "overlapping steps"}};
    for (unsigned i = 0; i < 2; i++) {
        check[i].part[0] = j.part[0];
        check[i].part[0].origin[0] = check[i].part[0].first[0] = NT - 1;
        check[i].part[0].count[0] = 1;
        check[i].part[1] =
            (cm_multi_part){.file = i + 1, .origin = {NT - 1}, .count = {1}, .length = {NT}};
    }
    j.spec.check = check;
    j.spec.nchecks = 2;
    ASSERT_OK(cm_multi_dataset_open(&j.spec, NULL, &j.ds, &err), err);
    ASSERT_OK(cm_dataset_prepare(j.ds, &j.ds->var[0], &err), err);
    for (unsigned again = 0; again < 2; again++) {
        ASSERT_OK(cm_multi_check_run(j.ds, 0, &clash, &err), err);
        assert_int_equal(clash.ndiffering, 0);
        ASSERT_OK(cm_multi_check_run(j.ds, 1, &clash, &err), err);
        assert_int_equal(clash.ndiffering, NX);
        assert_int_equal(clash.first[0], NT - 1);
        assert_string_equal(clash.value[0], "3");
        assert_string_equal(clash.value[1], "50");
    }
    leave(&j);
}

/* A file whose variable was located while it was open, as a survey does. */
static void locate(unsigned k, cm_located *out)
{
    cm_error err = {0};
    cm_dataset *ds;
    ASSERT_OK(cm_dataset_open(path[k], "", NULL, &ds, &err), err);
    ASSERT_OK(cm_dataset_prepare(ds, &ds->var[0], &err), err);
    ASSERT_OK(cm_dataset_locate(ds, &ds->var[0], out, &err), err);
    cm_dataset_close(ds);
    assert_int_not_equal(out->form->kind, CM_LOCATED_NOT);
}

/* Parts that are whole, and told where they lie: by stored bytes first, then by elements. */
static void test_checks_by_place(void **state)
{
    enum {
        ALIKE,
        OTHERWISE,
        DIFFERENT,
        NCHECKS
    };
    cm_error err = {0};
    cm_multi_clash clash;
    cm_located located[NCHECKS + 1];
    joined j;
    (void)state;
    make(0, NC_DOUBLE, 0, NT, false, true);
    make(1 + ALIKE, NC_DOUBLE, 0, NT, false, true);
    make(1 + OTHERWISE, NC_DOUBLE, 0, NT, false, false);
    make(1 + DIFFERENT, NC_DOUBLE, 50, NT, false, true);
    join(&j, f64, 1, NT);
    cm_multi_check check[NCHECKS];
    for (unsigned i = 0; i <= NCHECKS; i++)
        locate(i, &located[i]);
    j.part[0].located = &located[0];
    for (unsigned i = 0; i < NCHECKS; i++) {
        check[i] = (cm_multi_check){.what = "a static field", .part = {j.part[0], j.part[0]}};
        check[i].part[1].file = i + 1;
        check[i].part[1].located = &located[i + 1];
    }
    j.spec.check = check;
    j.spec.nchecks = NCHECKS;
    ASSERT_OK(cm_multi_dataset_open(&j.spec, NULL, &j.ds, &err), err);
    ASSERT_OK(cm_dataset_prepare(j.ds, &j.ds->var[0], &err), err);
    for (unsigned i = 0; i < NCHECKS; i++) {
        ASSERT_OK(cm_multi_check_run(j.ds, i, &clash, &err), err);
        assert_int_equal(clash.ndiffering, i == DIFFERENT ? NT * NX : 0);
        if (i == DIFFERENT)
            assert_string_equal(clash.value[1], "50");
    }
    /* A specification is checked against the file. */
    cm_chunk_place *place = (cm_chunk_place *)(uintptr_t)located[1 + ALIKE].place;
    const cm_chunk_place good = place[0];
    place[0].address = file[1 + ALIKE].nbytes - 1;
    assert_int_equal(cm_multi_check_run(j.ds, ALIKE, &clash, &err), CM_EFORMAT);
    assert_non_null(strstr(err.text, path[1 + ALIKE]));
    place[0] = good;
    located[1 + ALIKE].nplaces--;
    assert_int_equal(cm_multi_check_run(j.ds, ALIKE, &clash, &err), CM_EFORMAT);
    assert_non_null(strstr(err.text, path[1 + ALIKE]));
    located[1 + ALIKE].nplaces++;
    leave(&j);
    for (unsigned i = 0; i <= NCHECKS; i++)
        cm_located_release(&located[i]);
}

/* A file that changed after it was surveyed, before it was compared. */
static void test_check_of_a_changed_file(void **state)
{
    cm_error err = {0};
    cm_multi_clash clash;
    cm_located located[2];
    joined j;
    (void)state;
    make(0, NC_DOUBLE, 0, NT, false, true);
    make(1, NC_DOUBLE, 0, NT, false, true);
    join(&j, f64, 1, NT);
    for (unsigned i = 0; i < 2; i++)
        locate(i, &located[i]);
    j.part[0].located = &located[0];
    cm_multi_check check = {.what = "a static field", .part = {j.part[0], j.part[0]}};
    check.part[1].file = 1;
    check.part[1].located = &located[1];
    j.spec.check = &check;
    j.spec.nchecks = 1;
    ASSERT_OK(cm_multi_dataset_open(&j.spec, NULL, &j.ds, &err), err);
    ASSERT_OK(cm_dataset_prepare(j.ds, &j.ds->var[0], &err), err);
    assert_int_equal(utimensat(AT_FDCWD, path[1], (struct timespec[2]){{1, 1}, {1, 1}}, 0), 0);
    assert_int_equal(cm_multi_check_run(j.ds, 0, &clash, &err), CM_EFORMAT);
    assert_non_null(strstr(err.text, path[1]));
    assert_non_null(strstr(err.text, "written to"));
    leave(&j);
    for (unsigned i = 0; i < 2; i++)
        cm_located_release(&located[i]);
}

/* Invalid specifications. */
static void test_bad_specifications(void **state)
{
    (void)state;
    for (unsigned i = 0; i < 5; i++) {
        double got[4 * NT * NX];
        cm_error err = {0};
        joined j;
        make(0, NC_DOUBLE, 0, NT, false, true);
        make(1, NC_DOUBLE, NT, NT, false, true);
        join(&j, f64, 2, NT);
        switch (i) {
        case 0:
            j.part[1].origin[0] = NT - 1; /* overlap */
            break;
        case 1:
            j.part[1].origin[0] = NT + 1; /* reaches out */
            break;
        case 2:
            j.part[1].first[0] = 1; /* more than the file has */
            break;
        case 3:
            j.part[1].file = NFILES;
            break;
        default:
            j.var.axis[0] = 2;
            break;
        }
        int rc = read_joined(&j, false, got, &err);
        if (rc != CM_EINVAL)
            fail_msg("%u: %d %s", i, rc, err.text);
        leave(&j);
    }
}

/* Lowers the limit of open files; returns the one that was. */
static struct rlimit allow_few_files(void)
{
    struct rlimit before;
    assert_int_equal(getrlimit(RLIMIT_NOFILE, &before), 0);
    const struct rlimit few = {.rlim_cur = 24, .rlim_max = before.rlim_max};
    assert_int_equal(setrlimit(RLIMIT_NOFILE, &few), 0);
    return before;
}

/* More files than may be open. */
static void test_few_open_files(void **state)
{
    joined j;
    (void)state;
    for (unsigned k = 0; k < NFILES; k++)
        make(k, NC_DOUBLE, k * NT, NT, false, k % 2 == 0);
    const struct rlimit before = allow_few_files();
    join(&j, f64, NFILES, NT);
    expect_counting(&j, NFILES * NT, false);
    leave(&j);
    assert_int_equal(setrlimit(RLIMIT_NOFILE, &before), 0);
}

/* ---- digests ---- */

static char want[NFILES][65], want_xxh[NFILES][CM_XXH128_TEXT];

/* Files of any bytes: nothing of them is opened. */
static void make_bytes(unsigned k, size_t nbytes)
{
    cm_sha256 sha;
    cm_xxh128 xxh;
    cm_sha256_begin_plain(&sha);
    cm_xxh128_begin(&xxh);
    snprintf(path[k], sizeof path[k], "%s", temp_path("multi"));
    snprintf(path[k] + strlen(path[k]), 16, "%u.nc", k);
    FILE *f = fopen(path[k], "w");
    assert_non_null(f);
    for (size_t i = 0; i < nbytes; i++) {
        const uint8_t byte = (uint8_t)((i * 2654435761u + k) >> 7);
        cm_sha256_add(&sha, &byte, 1);
        cm_xxh128_add(&xxh, &byte, 1);
        assert_int_equal(fputc(byte, f), byte);
    }
    assert_int_equal(fclose(f), 0);
    cm_sha256_text(&sha, want[k]);
    cm_xxh128_text(&xxh, want_xxh[k]);
    identify(k);
}

static void make_all_bytes(joined *j)
{
    static const size_t nbytes[NFILES] = {200000, 65536, 131072, 65537, 1, 300000};
    cm_error err = {0};
    for (unsigned k = 0; k < NFILES; k++)
        make_bytes(k, nbytes[k]);
    join(j, f64, NFILES, NT);
    ASSERT_OK(cm_multi_dataset_open(&j->spec, NULL, &j->ds, &err), err);
}

static void test_digests(void **state)
{
    cm_error err = {0};
    joined j;
    (void)state;
    make_all_bytes(&j);
    for (unsigned n = 1; n <= CM_MULTI_DIGESTS; n++)
        for (unsigned first = 0; first + n <= NFILES; first++) {
            char text[CM_MULTI_DIGESTS][65];
            ASSERT_OK(cm_multi_file_sha256(j.ds, first, n, text, &err), err);
            for (unsigned k = 0; k < n; k++)
                assert_string_equal(text[k], want[first + k]);
        }
    char xxh[CM_XXH128_TEXT], text[CM_MULTI_DIGESTS][65];
    for (unsigned k = 0; k < NFILES; k++) {
        ASSERT_OK(cm_multi_file_xxh128(j.ds, k, xxh, &err), err);
        assert_string_equal(xxh, want_xxh[k]);
    }
    cm_dataset_close(j.ds); /* and the files that it has open */
    ASSERT_OK(cm_multi_dataset_open(&j.spec, NULL, &j.ds, &err), err);
    assert_int_equal(utimensat(AT_FDCWD, path[1], (struct timespec[2]){{1, 1}, {1, 1}}, 0), 0);
    assert_int_equal(cm_multi_file_sha256(j.ds, 0, CM_MULTI_DIGESTS, text, &err), CM_EFORMAT);
    assert_non_null(strstr(err.text, path[1]));
    assert_int_equal(cm_multi_file_xxh128(j.ds, 1, xxh, &err), CM_EFORMAT);
    assert_non_null(strstr(err.text, path[1]));
    leave(&j);
}

static void digest_some(void *context, unsigned index)
{
    joined *j = context;
    for (unsigned i = 0; i < 20; i++) {
        char text[CM_MULTI_DIGESTS][65];
        unsigned first = (index + i) % 2 * CM_MULTI_DIGESTS;
        cm_error err = {0};
        ASSERT_OK(cm_multi_file_sha256(j->ds, first, CM_MULTI_DIGESTS, text, &err), err);
        for (unsigned k = 0; k < CM_MULTI_DIGESTS; k++)
            assert_string_equal(text[k], want[first + k]);
    }
}

/* More threads than files that may be open: none waits for what another one keeps. */
static void test_digests_of_few_open_files(void **state)
{
    joined j;
    (void)state;
    const struct rlimit before = allow_few_files();
    make_all_bytes(&j);
    cm_threads_run(8, digest_some, &j);
    assert_int_equal(cm_multi_stretches(j.ds), 1); /* all six stay open */
    leave(&j);
    assert_int_equal(setrlimit(RLIMIT_NOFILE, &before), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_teardown(test_types_and_orders, remove_files),
        cmocka_unit_test_teardown(test_new_dimension, remove_files),
        cmocka_unit_test_teardown(test_packing, remove_files),
        cmocka_unit_test_teardown(test_texts_of_several_lengths, remove_files),
        cmocka_unit_test_teardown(test_fill_values, remove_files),
        cmocka_unit_test_teardown(test_times, remove_files),
        cmocka_unit_test_teardown(test_two_axes, remove_files),
        cmocka_unit_test_teardown(test_holes, remove_files),
        cmocka_unit_test_teardown(test_changed_file, remove_files),
        cmocka_unit_test_teardown(test_checks, remove_files),
        cmocka_unit_test_teardown(test_checks_by_place, remove_files),
        cmocka_unit_test_teardown(test_check_of_a_changed_file, remove_files),
        cmocka_unit_test_teardown(test_bad_specifications, remove_files),
        cmocka_unit_test_teardown(test_few_open_files, remove_files),
        cmocka_unit_test_teardown(test_digests, remove_files),
        cmocka_unit_test_teardown(test_digests_of_few_open_files, remove_files),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

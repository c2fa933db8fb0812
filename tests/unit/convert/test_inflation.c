/* The warning of stores that are much larger than what they are made of. */

#include "format/multi/multi.h"
#include "job_fixture.h"

#define MIB ((uint64_t)1 << 20)

static const made_file ONE = {"f", .var = {{"v", "int16", "x=2"}}};

/* ---- of one dataset ---- */

typedef struct one {
    const char *name;
    cm_kind kind; /* of the store, and its bytes */
    unsigned nbytes;
    bool unpack, typed, objects, strings, other, empty;
    uint64_t nelem;
    const char *warning; /* "": there is none */
} one;

#define GROWS                                                                                      \
    "1 variable (v): 16.00 MiB of elements in the inputs become 32.00 MiB in the store, before "   \
    "compression, as packed numbers are unpacked; `dtype` names a smaller type"

static const one ROWS[] = {
    {"16 MiB more", CM_KIND_FLOAT, 4, true, .nelem = 8 * MIB, .warning = GROWS},
    {"not quite", CM_KIND_FLOAT, 4, true, .nelem = 8 * MIB - 1, .warning = ""},
    {"four times as many, and as much more", CM_KIND_FLOAT, 8, true, .nelem = 8 * MIB / 3 + 1,
     .warning = "1 variable (v): 5.33 MiB of elements in the inputs become 21.33 MiB in the store, "
                "before compression, as packed numbers are unpacked; `dtype` names a smaller type"},
    {"not unpacked", CM_KIND_FLOAT, 8, false, .nelem = 8 * MIB, .warning = ""},
    {"of no more bytes", CM_KIND_INT, 2, true, .nelem = 80 * MIB, .warning = ""},
    {"of the type that was asked for", CM_KIND_FLOAT, 4, true, .typed = true, .nelem = 8 * MIB,
     .warning = ""},
    {"objects that are copied", CM_KIND_FLOAT, 4, true, .objects = true, .nelem = 8 * MIB,
     .warning = ""},
    {"texts", CM_KIND_FLOAT, 4, true, .strings = true, .nelem = 8 * MIB, .warning = ""},
    {"of another dataset", CM_KIND_FLOAT, 4, true, .other = true, .nelem = 8 * MIB, .warning = ""},
    {"lengths that are not told", CM_KIND_STRING, 0, true, .nelem = 8 * MIB, .warning = ""},
    {"nothing", CM_KIND_FLOAT, 4, true, .empty = true, .nelem = 8 * MIB, .warning = ""},
    {"more than 64 bits count", CM_KIND_FLOAT, 8, true, .nelem = (uint64_t)1 << 62,
     .warning = "1 variable (v): 8.00 EiB of elements in the inputs become 16.00 EiB in the store, "
                "before compression, as packed numbers are unpacked; `dtype` names a smaller type"},
};

static const char *warning_of(const planned *p)
{
    assert_true(p->report.nwarnings <= 1);
    return p->report.nwarnings > 0 ? p->report.warning[0] : "";
}

static void of_one_dataset(void **state)
{
    unsigned bad = 0;
    (void)state;
    for (size_t i = 0; i < COUNT(ROWS); i++) {
        const one *row = &ROWS[i];
        planned p;
        planned_make(&p, &ONE, NULL, STEP_VIEW);
        cm_job_var *v = &p.job.var[0];
        v->view.type = cm_dtype_make(row->kind, row->nbytes);
        v->view.conversion.unpack = row->unpack;
        v->view.typed = row->typed;
        v->view.as_strings = row->strings;
        v->view.shape[0] = row->nelem;
        v->stored.as_objects = row->objects;
        v->dataset = row->other ? p.made : NULL;
        v->source->shape[0] = row->empty ? 0 : 2;
        OK(cm_job_notice_growth(&p.job, err));
        tell_compare(row->name, warning_of(&p), row->warning, &bad);
        planned_release(&p);
    }
    assert_int_equal(bad, 0);
}

/* Variables count together, and only those that grow by half. */
static void together(void **state)
{
    static const made_file THREE = {
        "f", .var = {{"a", "int16", "x=2"}, {"b", "float64", "x=2"}, {"c", "int16", "x=2"}}};
    static const uint64_t N = 4 * MIB;
    planned p;
    (void)state;
    planned_make(&p, &THREE, NULL, STEP_VIEW);
    for (size_t i = 0; i < 3; i++) {
        p.job.var[i].view.type = cm_dtype_make(CM_KIND_FLOAT, i == 1 ? 8 : 4);
        p.job.var[i].view.conversion.unpack = true;
        p.job.var[i].view.shape[0] = N;
    }
    OK(cm_job_notice_growth(&p.job, err));
    assert_string_equal(
        warning_of(&p),
        "2 variables (a, ...): 16.00 MiB of elements in the inputs become 32.00 MiB in the store, "
        "before "
        "compression, as packed numbers are unpacked; `dtype` names a smaller type");
    planned_release(&p);
}

/* ---- of many files ---- */

/* "v", of T files with a step each, Y, which no file has on its own where they lack it, and X. */
typedef struct many {
    const char *name;
    unsigned nbytes; /* of an element in files */
    bool unpacks, lacks_step, transposed, lacks_row;
    uint64_t nfiles, count, y, x;
    const char *warning;
} many;

static const many MANY[] = {
    {"as files have it", 4, .nfiles = 4, .count = 1, .y = 1024, .x = 4096, .warning = ""},
    {"packed in all", 2, true, .nfiles = 4, .count = 1, .y = 1024, .x = 2048,
     .warning =
         "1 variable (v): 16.00 MiB of elements in the inputs become 32.00 MiB in the store, "
         "before compression, as packed numbers are unpacked; `dtype` names a smaller type"},
    {"of a wider type alone", 2, .nfiles = 4, .count = 1, .y = 1024, .x = 4096, .warning = ""},
    {"each is a step", 4, .lacks_step = true, .nfiles = 4, .count = 1, .y = 1024, .x = 4096,
     .warning = ""},
    {"each is three steps", 4, .lacks_step = true, .nfiles = 2, .count = 3, .y = 1024, .x = 2048,
     .warning = "1 variable (v): 16.00 MiB of elements in the inputs become 48.00 MiB in the "
                "store, before compression, as they get a dimension that files lack; `dtype` names "
                "a smaller type"},
    {"rows that files lack", 4, .transposed = true, .lacks_row = true, .nfiles = 4, .count = 1,
     .y = 1024, .x = 4096,
     .warning = "1 variable (v): 64.00 KiB of elements in the inputs become 64.00 MiB in the "
                "store, before compression, as they get a dimension that files lack; `dtype` names "
                "a smaller type"},
    {"that they do not lack", 4, .lacks_row = true, .nfiles = 4, .count = 1, .y = 1024, .x = 4096,
     .warning = ""},
    {"both", 2, true, .transposed = true, .lacks_row = true, .nfiles = 4, .count = 1, .y = 1024,
     .x = 4096,
     .warning = "1 variable (v): 32.00 KiB of elements in the inputs become 64.00 MiB in the "
                "store, before compression, as packed numbers are unpacked and they get a "
                "dimension that files lack; `dtype` names a smaller type"},
    {"half as large again", 4, .lacks_step = true, .nfiles = 1, .count = 3, .y = 1024, .x = 4096,
     .warning = "1 variable (v): 16.00 MiB of elements in the inputs become 48.00 MiB in the "
                "store, before compression, as they get a dimension that files lack; `dtype` names "
                "a smaller type"},
};

static void make_parts(const many *row, const cm_multi_how *how, cm_multi_part *part)
{
    for (uint32_t i = 0; i < row->nfiles; i++)
        part[i] = (cm_multi_part){.file = i,
                                  .origin = {i * row->count},
                                  .count = {row->count},
                                  .length = {row->count},
                                  .how = how};
}

static void of_many_files(void **state)
{
    static const cm_dataset_options NONE;
    cm_json *empty = cm_json_object();
    const cm_multi_file file[4] = {{.path = "a"}, {.path = "b"}, {.path = "c"}, {.path = "d"}};
    const cm_multi_group root = {"", empty};
    unsigned bad = 0;
    (void)state;
    for (size_t i = 0; i < COUNT(MANY); i++) {
        const many *row = &MANY[i];
        const cm_multi_how how = {.dtype = cm_dtype_make(CM_KIND_INT, row->nbytes),
                                  .transposed = row->transposed,
                                  .order = {0, 1, 2},
                                  .lacks_axis = {row->lacks_step},
                                  .repeats = {[1] = row->lacks_row},
                                  .unpacks = row->unpacks};
        cm_multi_part part[4];
        make_parts(row, &how, part);
        const cm_multi_var var = {.name = "v",
                                  .dtype = cm_dtype_make(CM_KIND_FLOAT, 4),
                                  .rank = 3,
                                  .shape = {row->nfiles * row->count, row->y, row->x},
                                  .dim_name = {"t", "y", "x"},
                                  .attrs = empty,
                                  .naxes = 1,
                                  .part = part,
                                  .nparts = row->nfiles};
        const cm_multi_spec spec = {.name = "all",
                                    .file = file,
                                    .nfiles = row->nfiles,
                                    .group = &root,
                                    .ngroups = 1,
                                    .var = &var,
                                    .nvars = 1};
        cm_transform_report report = {0};
        cm_transform_options options = {0};
        cm_dataset *ds;
        OK(cm_multi_dataset_open(&spec, &NONE, &ds, err));
        cm_job_var v = {
            .source = &ds->var[0], .name = (char[]){"v"}, .view = {.type = var.dtype, .rank = 3}};
        memcpy(v.view.shape, var.shape, sizeof var.shape);
        cm_job job = {.options = &options, .report = &report, .source = ds, .var = &v, .nvars = 1};
        OK(cm_job_notice_growth(&job, err));
        tell_compare(row->name, report.nwarnings > 0 ? report.warning[0] : "", row->warning, &bad);
        cm_transform_report_release(&report);
        cm_dataset_close(ds);
    }
    cm_json_free(empty);
    assert_int_equal(bad, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(of_one_dataset), cmocka_unit_test(together),
                                       cmocka_unit_test(of_many_files)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}

/* Metadata of an array by the rules: fill values, what readers take for missing, attributes. */

#include "job_fixture.h"

static const made_file NUMBERS = {
    "f", .var = {{"plain", "int16", "t*=2 y=3", .attrs = "{'units': 'K'}"},
                 {"i", "int16", "t*=2", .fill = "-9", .attrs = "{'units': 'K'}"},
                 {"u", "uint8", "t*=2", .fill = "255", .attrs = "{'_Unsigned': 'false'}"},
                 {"ul", "uint64", "t*=2", .fill = "18446744073709551615"},
                 {"f", "float32", "t*=2", .fill = "1e20"},
                 {"p", "int16", "t*=2", .fill = "-9",
                  .attrs = "{'scale_factor': 0.5, 'add_offset': 1.0, 'valid_min': 0, 'valid_max': "
                           "9, 'valid_range': [0, 9], 'missing_value': -9, 'units': 'K'}"},
                 {"l", "int64", "t*=2", .fill = "-9223372036854775808"},
                 {"b", "int8", "t*=2", .fill = "-1"}}};
static const made_file CHARACTERS = {"f",
                                     .var = {{"c", "char", "t*=2 n=3", .values = "abcdef",
                                              .attrs = "{'_Encoding': 'utf-8', 'note': 'x'}"}}};

/* "fill -9 survives stays {attributes}": with ' for ". */
static const char *say_doc(planned *p)
{
    char number[64];
    cm_buf attrs = {0};
    tell_begin(&p->text);
    if (p->status != CM_OK)
        return (const char *)p->text.data;
    const cm_array_doc *doc = &p->job.var[0].doc;
    const cm_zarr_meta *m = &doc->meta;
    assert_int_equal(m->separator, m->zarr_format == 3 ? '/' : '.');
    assert_true(cm_dtype_equal(&m->dtype, &p->job.var[0].view.type));
    if (m->has_fill && m->fill != NULL)
        tell(&p->text, "fill %s", made_text(&m->dtype, m->fill, number, sizeof number));
    else
        tell(&p->text, "%s", m->has_fill ? "empty text" : "no fill");
    tell(&p->text, "%s%s", doc->fill_survives ? " survives" : "", doc->fill_stays ? " stays" : "");
    OK(cm_json_write(m->attrs, false, &attrs, err));
    for (size_t i = 0; i < attrs.nbytes; i++)
        attrs.data[i] = attrs.data[i] == '"' ? '\'' : attrs.data[i];
    tell(&p->text, " %.*s", (int)attrs.nbytes, (const char *)attrs.data);
    cm_buf_release(&attrs);
    return (const char *)p->text.data;
}

#define ONE(name, ...)                                                                             \
    {                                                                                              \
        .variable = TEXTS(name), __VA_ARGS__                                                       \
    }
#define V2 .zarr_format = 2

static const struct {
    const char *name;
    const made_file *file;
    cm_transform_options options;
    const char *doc, *error;
} ROWS[] = {
    {"nothing is missing: zeros are unwritten", &NUMBERS, ONE("plain"),
     "fill 0 survives stays {'units':'K'}", NULL},
    {"of Zarr 2: nothing that readers mask", &NUMBERS, ONE("plain", V2), "no fill {'units':'K'}",
     NULL},
    {"an integer, twice", &NUMBERS, ONE("i"),
     "fill -9 survives stays {'units':'K','_FillValue':-9}", NULL},
    {"once", &NUMBERS, ONE("i", V2), "fill -9 survives stays {'units':'K'}", NULL},
    {"one that is read with a sign", &NUMBERS, ONE("u"),
     "fill 255 survives stays {'_Unsigned':'false','_FillValue':-1}", NULL},
    {"the largest", &NUMBERS, ONE("ul"),
     "fill 18446744073709551615 survives stays {'_FillValue':18446744073709551615}", NULL},
    {"the least", &NUMBERS, ONE("l"),
     "fill -9223372036854775808 survives stays {'_FillValue':-9223372036854775808}", NULL},
    {"less than zero", &NUMBERS, ONE("b"), "fill -1 survives stays {'_FillValue':-1}", NULL},
    {"a float as base64 of a double", &NUMBERS, ONE("f"),
     "fill 1.0000000200408773e+20 survives stays {'_FillValue':'AAAAgB2vFUQ='}", NULL},
    {"of Zarr 2", &NUMBERS, ONE("f", V2), "fill 1.0000000200408773e+20 survives stays {}", NULL},
    {"of another type", &NUMBERS, ONE("i", .dtype = TEXTS("i:float64")),
     "fill -9 survives stays {'units':'K','_FillValue':'AAAAAAAAIsA='}", NULL},
    {"a wider float", &NUMBERS, ONE("f", .dtype = TEXTS("f:float64")),
     "fill 1.0000000200408773e+20 survives stays {'_FillValue':'AAAAgB2vFUQ='}", NULL},
    {"packed numbers", &NUMBERS, ONE("p"),
     "fill -9 survives stays "
     "{'scale_factor':0.5,'add_offset':1.0,'valid_min':0,'valid_max':9,'valid_range':[0,9],'"
     "missing_value':-9,'units':'K','_FillValue':-9}",
     NULL},
    {"and plain ones", &NUMBERS, ONE("p", .unpack = TEXTS("p")),
     "fill nan survives stays {'units':'K','_FillValue':'AAAAAAAA+H8='}", NULL},
    {"of Zarr 2, too", &NUMBERS, ONE("p", V2, .unpack = TEXTS("p")),
     "fill nan survives stays {'units':'K'}", NULL},
    {"what is asked for", &NUMBERS, ONE("plain", .fill_value = TEXTS("plain:7")),
     "fill 7 survives {'units':'K'}", NULL},
    {"beside what is missing", &NUMBERS, ONE("i", .fill_value = TEXTS("i:7")),
     "fill 7 survives {'units':'K','_FillValue':-9}", NULL},
    {"of Zarr 2 what is asked for is masked", &NUMBERS,
     ONE("plain", V2, .fill_value = TEXTS("plain:7")), "fill 7 survives {'units':'K'}", NULL},
    {"what the type has not", &NUMBERS, ONE("b", .fill_value = TEXTS("b:300")), NULL,
     "`fill_value` b:300: not a value of type int8"},
    {"what is no number", &NUMBERS, ONE("b", .fill_value = TEXTS("b:x")), NULL,
     "`fill_value` b:x: not a value of type int8"},
    {"characters", &CHARACTERS, ONE("c", .char_mode = CM_CHAR_KEEP),
     "fill \"\" survives stays {'_Encoding':'utf-8','note':'x'}", NULL},
    {"as text", &CHARACTERS, ONE("c", .char_mode = CM_CHAR_JOIN),
     "empty text survives {'note':'x'}", NULL},
    {"of Zarr 2: empty, if never written", &CHARACTERS, ONE("c", V2, .char_mode = CM_CHAR_JOIN),
     "no fill {'note':'x'}", NULL},
    {"text has no other fill value", &CHARACTERS,
     ONE("c", .char_mode = CM_CHAR_JOIN, .fill_value = TEXTS("c:x")), NULL,
     "`fill_value` c:x: text has no other than the empty one"},
};

static void documents(void **state)
{
    unsigned bad = 0;
    (void)state;
    for (size_t i = 0; i < COUNT(ROWS); i++) {
        planned p;
        planned_make(&p, ROWS[i].file, &ROWS[i].options, STEP_DESCRIBE);
        tell_compare(ROWS[i].name, p.status == CM_OK ? "" : p.error.text,
                     ROWS[i].error != NULL ? ROWS[i].error : "", &bad);
        tell_compare(ROWS[i].name, say_doc(&p), ROWS[i].doc, &bad);
        planned_release(&p);
    }
    assert_int_equal(bad, 0);
}

static const struct {
    cm_transform_options options;
    const char *dims;
} DIMS[] = {
    {ONE("plain", .chunks = TEXTS("plain:1x3")), "t=2/1 y=3/3"},
    {ONE("plain", .chunks = TEXTS("plain:1x1"), .shards = TEXTS("plain:2x3")), "t=2/2 y=3/3"},
    {ONE("plain", .chunks = TEXTS("plain:1x2"), .subset = TEXTS("y=1:3")), "t=2/1 y=2/2"},
};

/* Lengths, chunks or shards, and names. */
static void dimensions(void **state)
{
    unsigned bad = 0;
    (void)state;
    for (size_t i = 0; i < COUNT(DIMS); i++) {
        planned p;
        planned_make(&p, &NUMBERS, &DIMS[i].options, STEP_DESCRIBE);
        if (p.status != CM_OK)
            fail_msg("%s: %s", DIMS[i].dims, p.error.text);
        const cm_zarr_meta *m = &p.job.var[0].doc.meta;
        assert_true(m->has_dim_names);
        tell_begin(&p.text);
        for (unsigned j = 0; j < m->rank; j++)
            tell(&p.text, "%s%s=%u/%u", j > 0 ? " " : "", m->dim_name[j], (unsigned)m->shape[j],
                 (unsigned)m->chunk[j]);
        tell_compare("dimensions", (const char *)p.text.data, DIMS[i].dims, &bad);
        planned_release(&p);
    }
    assert_int_equal(bad, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(documents), cmocka_unit_test(dimensions)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}

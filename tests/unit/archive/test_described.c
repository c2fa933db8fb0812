/* Descriptions of variables by files: texts, signs, packing, and references to each other. */

#include "archive/tables/described.h"
#include "archive_fixture.h"

/* A variable with ATTRS, of one file. */
static cm_described described(const char *name, const char *type, unsigned rank, const char *attrs)
{
    cm_described d = {.name = name, .rank = rank, .attrs = made_json(attrs)};
    OK(cm_dtype_parse(type, &d.dtype, err));
    return d;
}

/* ---- one variable ---- */

static const struct {
    const char *type, *attrs;
    bool time, other_sign;
    const char *unpacked; /* NULL: it is not packed */
} MEANINGS[] = {
    {"int16", "{}", false, false, NULL},
    {"int16", "{'units': 'days since 2000-01-01'}", true, false, NULL},
    {"int16", "{'units': 'days'}", false, false, NULL},
    {"int16", "{'units': 5}", false, false, NULL},
    {"int16", "{'_Unsigned': 'true'}", false, true, NULL},
    {"int16", "{'_Unsigned': 'false'}", false, false, NULL},
    {"uint8", "{'_Unsigned': 'false'}", false, true, NULL},
    {"uint8", "{'_Unsigned': 'true'}", false, false, NULL},
    {"uint8", "{'_Unsigned': 'True'}", false, false, NULL},
    {"float32", "{'_Unsigned': 'true'}", false, false, NULL},
    {"int16", "{'scale_factor': 0.5}", false, false, "float64"},
    {"int16", "{'add_offset': 5.0}", false, false, "float64"},
};

static void meanings(void **state)
{
    char text[32];
    (void)state;
    for (size_t i = 0; i < COUNT(MEANINGS); i++) {
        cm_described d = described("v", MEANINGS[i].type, 1, MEANINGS[i].attrs);
        d.scale_nbytes = d.offset_nbytes = 8;
        if (cm_join_counts_time(&d) != MEANINGS[i].time ||
            cm_join_has_other_sign(&d) != MEANINGS[i].other_sign)
            fail_msg("%s %s", MEANINGS[i].type, MEANINGS[i].attrs);
        if (MEANINGS[i].unpacked != NULL) {
            const cm_dtype type = cm_join_unpacked(&d);
            assert_string_equal(cm_dtype_name(&type, text, sizeof text), MEANINGS[i].unpacked);
        }
        cm_json_free(d.attrs);
    }
    cm_described d = described("v", "int16", 1, "{'units': 'K', 'n': 3}");
    assert_string_equal(cm_join_text(&d, "units"), "K");
    assert_null(cm_join_text(&d, "n"));
    assert_null(cm_join_text(&d, "none"));
    cm_json_free(d.attrs);
}

/* ---- references ---- */

static const struct {
    const char *name, *attrs;   /* of a variable that refers */
    bool auxiliary, coordinate; /* whether "lat" is */
} REFERENCES[] = {
    {"nobody", "{}", false, false},
    {"as bounds", "{'bounds': 'lat'}", true, false},
    {"of a climatology", "{'climatology': 'lat'}", true, false},
    {"as a mapping", "{'grid_mapping': 'lat'}", true, false},
    {"as a coordinate", "{'coordinates': 'lat'}", true, true},
    {"the first of two", "{'coordinates': 'lat lon'}", true, true},
    {"the last", "{'coordinates': 'lon lat'}", true, true},
    {"behind a comma", "{'coordinates': 'lon, lat'}", true, true},
    {"on another line", "{'coordinates': 'lon\\nlat\\theight'}", true, true},
    {"a shorter name", "{'coordinates': 'la lon'}", false, false},
    {"a longer name", "{'coordinates': 'latitude'}", false, false},
    {"one that ends so", "{'coordinates': 'flat'}", false, false},
    {"a number", "{'coordinates': 7}", false, false},
    {"another attribute", "{'ancillary_variables': 'lat'}", false, false},
    {"an empty text", "{'coordinates': ''}", false, false},
};

static void references(void **state)
{
    (void)state;
    for (size_t i = 0; i < COUNT(REFERENCES); i++) {
        cm_described lat = described("lat", "float32", 2, "{}"),
                     v = described("v", "float32", 2, REFERENCES[i].attrs);
        cm_join_var var[] = {{.name = "lat", .like = &lat}, {.name = "v", .like = &v}};
        const cm_join_tables tables = {.var = var, .nvars = 2};
        if (cm_join_is_auxiliary(&tables, 0) != REFERENCES[i].auxiliary ||
            cm_join_is_coordinate(&tables, 0) != REFERENCES[i].coordinate)
            fail_msg("%s", REFERENCES[i].name);
        assert_false(cm_join_is_auxiliary(&tables, 1));
        v.rank = 0; /* a number is of no field */
        assert_true(cm_join_is_auxiliary(&tables, 1));
        cm_json_free(lat.attrs);
        cm_json_free(v.attrs);
    }
}

/* ---- by file ---- */

static void by_file(void **state)
{
    static const made_file FILES[] = {
        {"a", .var = {STEP(0), {"v", "int16", "t*=1 y=2"}}},
        {"b", .var = {{"w", "int16", "t*=1"}, {"v", "int16", "t*=1 y=2"}, STEP(1)}},
        {NULL}};
    joined a;
    cm_surveyed_var record;
    (void)state;
    joined_make(&a, FILES, NULL);
    const cm_join_input *in = &a.join->in;
    const cm_join_tables *tables = &a.join->tables;
    for (uint32_t at = 0; at < tables->nvars; at++)
        for (uint32_t f = 0; f < 2; f++) {
            const cm_described *d = cm_join_described(in, tables, at, f);
            const bool there = f == 1 || strcmp(tables->var[at].name, "w") != 0;
            assert_int_equal(d != NULL, there);
            assert_int_equal(cm_join_record(in, tables, at, f, &record), there);
            if (there)
                assert_string_equal(d->name, tables->var[at].name);
        }
    joined_release(&a);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(meanings), cmocka_unit_test(references),
                                       cmocka_unit_test(by_file)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}

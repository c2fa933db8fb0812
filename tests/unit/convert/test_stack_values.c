/* Type, packing and missing values of a stack, and what becomes of each member's elements. */

#include <math.h>

#include "job_fixture.h"

#define PACKED(scale, offset) "{'scale_factor': " scale ", 'add_offset': " offset "}"

static const made_file NUMBERS = {
    "f", .var = {{"i", "int16", "x=2", .values = "1 2"},
                 {"u", "uint16", "x=2", .values = "1 2"},
                 {"f", "float32", "x=2", .values = "1 2"},
                 {"l", "int64", "x=2", .values = "1 2"},
                 {"ul", "uint64", "x=2", .values = "1 2"},
                 {"p", "int16", "x=2", .values = "1 2", .attrs = PACKED("0.5", "10.0")},
                 {"q", "int16", "x=2", .values = "1 2", .attrs = PACKED("0.5", "10.0")},
                 {"r", "int16", "x=2", .values = "1 2", .attrs = PACKED("0.25", "10.0")}}};
static const made_file MISSING = {
    "f",
    .var = {
        {"none", "int16", "x=2", .values = "1 2"},
        {"a", "int16", "x=2", .values = "1 -9", .fill = "-9", .attrs = "{'missing_value': -9}"},
        {"b", "int16", "x=2", .values = "1 -8", .fill = "-8", .attrs = "{'missing_value': [-8]}"},
        {"odd", "int16", "x=2", .values = "1 -8", .fill = "-8", .attrs = "{'missing_value': -7}"},
        {"f", "float32", "x=2", .values = "1 1e30", .fill = "1e30"},
        {"nan", "float64", "x=2", .values = "1 NaN", .fill = "NaN"},
        {"p", "int16", "x=2", .values = "1 -9", .fill = "-9", .attrs = PACKED("0.5", "0.0")},
        {"u", "int8", "x=2", .values = "1 -1", .attrs = "{'_Unsigned': 'true'}"}}};
static const made_file TYPES = {"f", .var = {{"i", "int32", "x=2", .values = "1 2"},
                                             {"u", "uint32", "x=2", .values = "1 2"},
                                             {"l", "int64", "x=2", .values = "1 2"},
                                             {"ul", "uint64", "x=2", .values = "1 2"},
                                             {"f", "float32", "x=2", .values = "1 2"},
                                             {"d", "float64", "x=2", .values = "1 2"}}};
static const made_file ALONE = {
    "f", .var = {{"none", "int16", "x=2", .values = "1 2"},
                 {"a", "int16", "x=2", .values = "1 -9", .fill = "-9"},
                 {"m", "int16", "x=2", .values = "1 -7", .attrs = "{'missing_value': -7}"},
                 {"two", "int16", "x=2", .values = "1 -7", .attrs = "{'missing_value': [-7, -6]}"},
                 {"p", "int16", "x=2", .values = "1 -7",
                  .attrs = "{'missing_value': -7, 'scale_factor': 0.5}"},
                 {"f", "float32", "x=2", .values = "1 8", .fill = "8"},
                 {"l", "int64", "x=2", .values = "1 2"},
                 {"u", "int8", "x=2", .values = "1 -9", .fill = "-9",
                  .attrs = "{'_Unsigned': 'true'}"}}};

/* "float32 fill -9 missing | a | p unpacks 0.5 10": what becomes of the elements of each. */
static const char *say_values(planned *p)
{
    char text[64];
    tell_begin(&p->text);
    if (p->status != CM_OK)
        return (const char *)p->text.data;
    const cm_stack *s = &p->job.stacks->stack[0];
    const cm_multi_var *out = &p->job.stacks->var[0];
    tell(&p->text, "%s", cm_dtype_name(&out->dtype, text, sizeof text));
    if (out->has_fill_value) {
        tell(&p->text, " fill %s", made_text(&out->dtype, out->fill_value, text, sizeof text));
        assert_true(out->has_fill);
        assert_memory_equal(out->fill, out->fill_value, out->dtype.nbytes);
    }
    if (s->keeps_missing)
        tell(&p->text, " keeps");
    for (size_t i = 0; i < s->nmembers; i++) {
        const cm_stack_member *m = &s->member[i];
        const cm_multi_how *how = &m->how;
        tell(&p->text, " | %s", m->var->name);
        if (how->unpacks)
            tell(&p->text, " unpacks %g %g", how->scale, how->offset);
        if (how->other_sign)
            tell(&p->text, " other sign");
        if (how->exact)
            tell(&p->text, " exactly");
        if (how->replaces_fill)
            tell(&p->text, " replaces %s", made_text(&m->var->dtype, how->fill, text, sizeof text));
        if (how->checks_fill)
            tell(&p->text, " checks");
        assert_int_equal(m->unpacks, how->unpacks);
        assert_true(cm_dtype_equal(&how->dtype, &m->var->dtype));
    }
    return (const char *)p->text.data;
}

#define STACK(text, ...)                                                                           \
    {                                                                                              \
        .stack = TEXTS("s=" text), __VA_ARGS__                                                     \
    }

static const struct {
    const char *name;
    const made_file *file;
    cm_transform_options options;
    const char *values, *error;
} ROWS[] = {
    {"one type", &NUMBERS, STACK("i"), "int16 keeps | i", NULL},
    {"one that has both", &NUMBERS, STACK("i,u"), "int32 | i | u", NULL},
    {"a wider one before", &NUMBERS, STACK("f,i"), "float32 | f | i", NULL},
    {"none holds both", &NUMBERS, STACK("l,ul"), NULL,
     "`stack` s=l,ul: no type holds every value of ul (uint64) and of the others (int64); with "
     "`dtype` s:int64 a number that this does not hold exactly stops the run"},
    {"nor three, of which two go together", &NUMBERS, STACK("i,l,f"), NULL,
     "`stack` s=i,l,f: no type holds every value of l (int64) and of the others (float32); with "
     "`dtype` s:float64 a number that this does not hold exactly stops the run"},
    {"one holds three", &TYPES, STACK("u,d,i"), "float64 | u | d | i", NULL},
    {"in any order", &TYPES, STACK("u,i,d"), "float64 | u | i | d", NULL},
    {"one that is asked for", &TYPES, STACK("l,ul", .dtype = TEXTS("s:float64")),
     "float64 | l exactly | ul exactly", NULL},
    {"of which a smaller one is made", &TYPES, STACK("l,f,d", .dtype = TEXTS("float32")),
     "float64 | l exactly | f exactly | d", NULL},
    {"but no integer of what is unpacked", &ALONE,
     STACK("p,l", .unpack = TEXTS("s"), .dtype = TEXTS("s:int64")), NULL,
     "`stack` s=p,l: no type holds every value of l (int64) and of the others (float64); with "
     "`dtype` s:float64 a number that this does not hold exactly stops the run"},
    {"not needed", &NUMBERS, STACK("i,f", .dtype = TEXTS("s:float64")), "float32 | i | f", NULL},
    {"packed alike", &NUMBERS, STACK("p,q"), "int16 keeps | p | q", NULL},
    {"and unpacked all the same", &NUMBERS, STACK("p,q", .unpack = TEXTS("s")),
     "int16 keeps | p | q", NULL},
    {"packed in two ways", &NUMBERS, STACK("p,r"), NULL,
     "`stack` s=p,r: p and r are packed differently; `unpack` s makes plain values of them"},
    {"unpacked", &NUMBERS, STACK("p,r", .unpack = TEXTS("s")),
     "float64 | p unpacks 0.5 10 | r unpacks 0.25 10", NULL},
    {"like all variables", &NUMBERS, STACK("p,r", .unpack = TEXTS("all")),
     "float64 | p unpacks 0.5 10 | r unpacks 0.25 10", NULL},
    {"all of them, which need not be", &NUMBERS, STACK("p,q", .unpack = TEXTS("all")),
     "int16 keeps | p | q", NULL},
    {"one of two", &NUMBERS, STACK("p,r", .unpack = TEXTS("p")), NULL,
     "`stack` s=p,r: p and r are packed differently; `unpack` s makes plain values of them"},
    {"one of two that are packed alike", &NUMBERS, STACK("p,q", .unpack = TEXTS("q")), NULL,
     "`stack` s=p,q: q would be unpacked, and p not; `unpack` s makes plain values of them"},
    {"each by its name", &NUMBERS, STACK("p,r", .unpack = TEXTS("r", "p")),
     "float64 | p unpacks 0.5 10 | r unpacks 0.25 10", NULL},
    {"by a pattern of names", &NUMBERS, STACK("p,r", .unpack = TEXTS("[pr]")),
     "float64 | p unpacks 0.5 10 | r unpacks 0.25 10", NULL},
    {"packed beside one that is not", &NUMBERS, STACK("i,p"), NULL,
     "`stack` s=i,p: i and p are packed differently; `unpack` s makes plain values of them"},
    {"nothing is missing in one", &MISSING, STACK("none,a"), "int16 fill -9 | none checks | a",
     NULL},
    {"in none", &MISSING, STACK("none"), "int16 keeps | none", NULL},
    {"one fill value, and one attribute", &MISSING, STACK("a"), "int16 fill -9 keeps | a", NULL},
    {"two: the first", &MISSING, STACK("a,b"), "int16 fill -9 | a | b replaces -8", NULL},
    {"or the other", &MISSING, STACK("b,a"), "int16 fill -8 | b | a replaces -9", NULL},
    {"an attribute of its own", &MISSING, STACK("odd"), "int16 fill -8 keeps | odd", NULL},
    {"that the others do not have", &MISSING, STACK("b,odd"), NULL,
     "`stack` s=b,odd: odd has several missing values (_FillValue, missing_value), and an array of "
     "several variables has one"},
    {"two of its own", &ALONE, STACK("two"), "int16 keeps | two", NULL},
    {"beside others", &ALONE, STACK("none,two"), NULL,
     "`stack` s=none,two: two has several missing values (_FillValue, missing_value), and an array "
     "of several variables has one"},
    {"an attribute alone", &ALONE, STACK("m"), "int16 keeps | m", NULL},
    {"which is the array's fill value", &ALONE, STACK("m,none"), "int16 fill -7 | m | none checks",
     NULL},
    {"or becomes it", &ALONE, STACK("a,m"), "int16 fill -9 | a | m replaces -7", NULL},
    {"in a wider type", &ALONE, STACK("m,f"), "float32 fill -7 | m replaces -7 | f replaces 8",
     NULL},
    {"and unpacked", &ALONE, STACK("p,m", .unpack = TEXTS("s")),
     "float64 fill nan | p unpacks 0.5 0 replaces -7 | m replaces -7", NULL},
    {"one that is asked for", &MISSING, STACK("a,b", .fill_value = TEXTS("s:-5")),
     "int16 fill -5 | a replaces -9 | b replaces -8", NULL},
    {"for data without one", &MISSING, STACK("none,a", .fill_value = TEXTS("s:-5")),
     "int16 fill -5 | none checks | a replaces -9", NULL},
    {"of numbers that are unpacked", &MISSING,
     STACK("a,p", .unpack = TEXTS("s"), .fill_value = TEXTS("s:-5")),
     "float64 fill -5 | a replaces -9 | p unpacks 0.5 0 replaces -9", NULL},
    {"where all have another", &MISSING, STACK("a", .fill_value = TEXTS("s:-5")),
     "int16 fill -9 keeps | a", NULL},
    {"that the type does not have", &MISSING, STACK("a,b", .fill_value = TEXTS("s:99999")),
     "int16 fill -9 | a | b replaces -8", NULL},
    {"for another array", &MISSING, STACK("a,b", .fill_value = TEXTS("t:-5")),
     "int16 fill -9 | a | b replaces -8", NULL},
    {"of another sign, by its number", &ALONE, STACK("u,none"),
     "int16 fill 247 | u other sign replaces -9 | none checks", NULL},
    {"in a wider type", &MISSING, STACK("a,f"),
     "float32 fill -9 | a replaces -9 | f replaces 1.0000000150474662e+30", NULL},
    {"that of a float", &MISSING, STACK("f,a"),
     "float32 fill 1.0000000150474662e+30 | f | a replaces -9", NULL},
    {"NaN is itself", &MISSING, STACK("nan,f"),
     "float64 fill nan | nan | f replaces 1.0000000150474662e+30", NULL},
    {"NaN of what is unpacked", &MISSING, STACK("a,p", .unpack = TEXTS("s")),
     "float64 fill nan | a replaces -9 | p unpacks 0.5 0 replaces -9", NULL},
    {"of another sign", &MISSING, STACK("u,none"), "int16 | u other sign | none", NULL},
    {"which all have", &MISSING, STACK("u"), "int8 keeps | u", NULL},
};

static void values(void **state)
{
    unsigned bad = 0;
    (void)state;
    for (size_t i = 0; i < COUNT(ROWS); i++) {
        planned p;
        planned_make(&p, ROWS[i].file, &ROWS[i].options, STEP_OPEN);
        tell_compare(ROWS[i].name, say_values(&p), ROWS[i].values, &bad);
        tell_compare(ROWS[i].name, p.status == CM_OK ? "" : p.error.text,
                     ROWS[i].error != NULL ? ROWS[i].error : "", &bad);
        planned_release(&p);
    }
    assert_int_equal(bad, 0);
}

/* A missing_value of floats: NaN is the fill value NaN, and no other number's. */
static void missing_floats(void **state)
{
    static const struct {
        double fill, missing;
        bool stands;
    } FLOATS[] = {{NAN, NAN, true}, {NAN, 1, false}, {1, NAN, false}, {1, 1, true}, {1, -1, false}};
    (void)state;
    for (size_t i = 0; i < COUNT(FLOATS); i++) {
        cm_json *attrs = cm_json_object();
        OK(cm_json_set(attrs, "missing_value", cm_json_double(FLOATS[i].missing), err));
        cm_variable var[2] = {{.dtype = cm_dtype_make(CM_KIND_FLOAT, 8)},
                              {.name = "v",
                               .dtype = cm_dtype_make(CM_KIND_FLOAT, 8),
                               .attrs = attrs,
                               .has_fill_value = true}};
        memcpy(var[1].fill_value, &FLOATS[i].fill, sizeof FLOATS[i].fill);
        cm_stack_member member[2] = {{.var = &var[0]}, {.var = &var[1]}};
        const cm_multi_var out = {.dtype = var[0].dtype};
        cm_stack s = {.text.text = "s=u,v", .member = member, .nmembers = 2};
        const int rc = cm_stack_check_missing(&s, &out, NULL);
        if (rc != (FLOATS[i].stands ? CM_OK : CM_EINVAL))
            fail_msg("%g of %g: %d", FLOATS[i].missing, FLOATS[i].fill, rc);
        assert_false(s.keeps_missing);
        cm_json_free(attrs);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(values), cmocka_unit_test(missing_floats)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}

/* The dimensions of a stack: which variables and levels it takes, and how theirs lie in it. */

#include "job_fixture.h"

static const made_file LEVELS = {
    "f", .var = {{"t", "int32", "t=2", .attrs = "{'units': 'days since 2000-01-01'}"},
                 {"z", "float32", "z=3", .values = "1000 0.1 100"},
                 {"a", "int16", "t=2 x=4"},
                 {"b", "int16", "x=4 t=2"},
                 {"c", "int16", "t=2 z=3 x=4"},
                 {"d", "int16", "x=4 t=2 z=3"},
                 {"e", "int16", "x=4"},
                 {"s", "int16", ""}}};
static const made_file RECORDS = {"f", .var = {{"a", "int16", "n*=2 x=4"},
                                               {"b", "int16", "n*=2 x=4"},
                                               {"m", "int16", "x=4 y=2"},
                                               {"c", "int16", "n*=2 k=2 x=4"},
                                               {"square", "int16", "n*=2 x=4 y=4"},
                                               {"squares", "int16", "n*=2 y=4 x=4"},
                                               {"same", "int16", "q=3 q=3"},
                                               {"again", "int16", "q=3 q=3"}}};

/* "t=2 channel=3 x=4 | a lacks it | c 0 2 1": how the dimensions of members lie, where not so. */
static const char *say_shape(planned *p)
{
    tell_begin(&p->text);
    if (p->status != CM_OK)
        return (const char *)p->text.data;
    const cm_stack *s = &p->job.stacks->stack[0];
    const cm_multi_var *out = &p->job.stacks->var[0];
    for (unsigned j = 0; j < out->rank; j++)
        tell(&p->text, "%s%s%s=%u", j > 0 ? " " : "", out->dim_name[j],
             out->unlimited[j] ? "*" : "", (unsigned)out->shape[j]);
    assert_int_equal(out->naxes, 1);
    assert_int_equal(out->axis[0], s->channel);
    assert_string_equal(out->dim_name[s->channel], s->dim);
    for (size_t i = 0; i < s->nmembers; i++) {
        const cm_stack_member *m = &s->member[i];
        tell(&p->text, " | %s%s", m->var->name, m->how.lacks_axis[0] ? "" : " has it");
        for (unsigned j = 0; j < out->rank && m->how.transposed; j++)
            if (j != s->channel || !m->how.lacks_axis[0])
                tell(&p->text, " %u", m->how.order[j]);
        for (size_t k = 0; m->index != NULL && k < m->nchannels; k++)
            tell(&p->text, "%s%u", k == 0 ? " at " : ",", (unsigned)m->index[k]);
        assert_true(m->index != NULL || m->nchannels == 1);
    }
    return (const char *)p->text.data;
}

#define STACK(text)                                                                                \
    {                                                                                              \
        .stack = TEXTS("new=" text)                                                                \
    }

static const struct {
    const char *name;
    const made_file *file;
    cm_transform_options options;
    const char *shape, *error;
} ROWS[] = {
    {"channels come after time", &LEVELS, STACK("a,a@x"), NULL,
     "`stack` new=a,a@x: a 2x4 and a 2x4 do not have the same dimensions"},
    {"two of one shape",
     &LEVELS,
     {.stack = TEXTS("new=a", "other=a")},
     "t=2 new_channel=1 x=4 | a",
     NULL},
    {"dimensions the other way round", &LEVELS, STACK("a,b"), "t=2 channel=2 x=4 | a | b 1 0",
     NULL},
    {"and in the first one", &LEVELS, STACK("b,a"), "channel=2 x=4 t=2 | b | a 1 0", NULL},
    {"first without time", &LEVELS, STACK("e"), "channel=1 x=4 | e", NULL},
    {"of no dimension", &LEVELS, STACK("s"), "channel=1 | s", NULL},
    {"behind a dimension that may grow", &RECORDS, STACK("a,b"), "n*=2 channel=2 x=4 | a | b",
     NULL},
    {"not behind one that does not", &RECORDS, STACK("m"), "channel=1 x=4 y=2 | m", NULL},
    {"where levels stood", &LEVELS, STACK("c@z"), "t=2 channel=3 x=4 | c has it at 0,1,2", NULL},
    {"where they stood last", &LEVELS, STACK("d@z"), "x=4 t=2 channel=3 | d has it at 0,1,2", NULL},
    {"levels and a variable without them", &LEVELS, STACK("a,c@z"),
     "t=2 channel=4 x=4 | a | c has it at 0,1,2", NULL},
    {"levels in two places", &LEVELS, STACK("c@z,d@z"),
     "t=2 channel=6 x=4 | c has it at 0,1,2 | d has it 1 2 0 at 0,1,2", NULL},
    {"some of them, as a float32 has them", &LEVELS, STACK("c@z=0.1/1000"),
     "t=2 channel=2 x=4 | c has it at 1,0", NULL},
    {"one of them twice", &LEVELS, STACK("c@z=100/100"), NULL,
     "`stack` new=c@z=100/100: two channels would be labelled c_100"},
    {"of a dimension without a coordinate", &RECORDS, STACK("c@k"),
     "n*=2 channel=2 x=4 | c has it at 0,1", NULL},
    {"values of it", &RECORDS, STACK("c@k=1"), NULL,
     "`stack` new=c@k=1: dimension k has no numeric coordinate variable"},
    {"two dimensions of one length", &RECORDS, STACK("square,squares"),
     "n*=2 channel=2 x=4 y=4 | square | squares 0 2 1", NULL},
    {"two of one name", &RECORDS, STACK("same,again"), "channel=2 q=3 q=3 | same | again", NULL},
    {"one more dimension", &LEVELS, STACK("a,c"), NULL,
     "`stack` new=a,c: a 2x4 and c 2x3x4 do not have the same dimensions; VAR@DIM makes channels "
     "of a dimension"},
    {"one less", &LEVELS, STACK("c,a"), NULL,
     "`stack` new=c,a: c 2x3x4 and a 2x4 do not have the same dimensions"},
    {"other lengths", &RECORDS, STACK("a,m"), NULL,
     "`stack` new=a,m: a 2x4 and m 4x2 do not have the same dimensions"},
    {"a coordinate", &LEVELS, STACK("a,z"), NULL, "`stack` new=a,z: z is a coordinate"},
    {"a variable that is not there", &LEVELS, STACK("a,q"), NULL,
     "`stack` new=a,q: the file has no variable q"},
    {"a dimension that is not", &LEVELS, STACK("a@z"), NULL,
     "`stack` new=a@z: a has no dimension z"},
    {"a value that is not", &LEVELS, STACK("c@z=0.2"), NULL,
     "`stack` new=c@z=0.2: dimension z has no value 0.2"},
};

static void shapes(void **state)
{
    unsigned bad = 0;
    (void)state;
    for (size_t i = 0; i < COUNT(ROWS); i++) {
        planned p;
        planned_make(&p, ROWS[i].file, &ROWS[i].options, STEP_OPEN);
        tell_compare(ROWS[i].name, say_shape(&p), ROWS[i].shape, &bad);
        tell_compare(ROWS[i].name, p.status == CM_OK ? "" : p.error.text,
                     ROWS[i].error != NULL ? ROWS[i].error : "", &bad);
        planned_release(&p);
    }
    assert_int_equal(bad, 0);
}

/* ---- variables that cannot be channels ---- */

static void no_channels(void **state)
{
    static const made_file OTHERS = {"f", .var = {{"text", "string", "x=2"},
                                                  {"c", "char", "x=2"},
                                                  {"v", "int16", "x=2"},
                                                  {"empty", "int16", "x=2 z=0"},
                                                  {"long", "int32", "k=65537"}}};
    static const struct {
        const char *stack, *error;
    } CASES[] = {
        {"new=v,text", "`stack` new=v,text: text holds no numbers"},
        {"new=v,c", "`stack` new=v,c: c holds no numbers"},
        {"new=v,empty@z", "`stack` new=v,empty@z: dimension z of empty has 0 elements"},
        {"new=long@k", "`stack` new=long@k: dimension k of long has 65537 elements"},
    };
    unsigned bad = 0;
    (void)state;
    for (size_t i = 0; i < COUNT(CASES); i++) {
        const cm_transform_options options = {.stack = TEXTS(CASES[i].stack)};
        planned p;
        planned_make(&p, &OTHERS, &options, STEP_OPEN);
        tell_compare(CASES[i].stack, p.error.text, CASES[i].error, &bad);
        planned_release(&p);
    }
    assert_int_equal(bad, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(shapes), cmocka_unit_test(no_channels)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}

/* Attributes of a stack: one where all say the same, else a list of each channel's. */

#include "job_fixture.h"

static const made_file PLAIN = {
    "f", .var = {{"z", "int32", "z=2", .values = "500 850"},
                 {"a", "int16", "t=2", .attrs = "{'units': 'K', 'long_name': 'A', 'valid_min': 1}"},
                 {"b", "int16", "t=2", .attrs = "{'long_name': 'B', 'units': 'K', 'note': [1, 2]}"},
                 {"c", "int16", "t=2 z=2", .attrs = "{'units': 'm', 'long_name': 'C'}"},
                 {"d", "int16", "t=2 k=2"},
                 {"x", "int16", "t=2", .attrs = "{'coordinates': 'lat lon height'}"},
                 {"y", "int16", "t=2", .attrs = "{'coordinates': 'lon  lat'}"},
                 {"w", "int16", "t=2", .attrs = "{'coordinates': 'latitude'}"}}};
static const made_file PACKED = {
    "f", .var = {{"p", "int16", "t=2",
                  .attrs = "{'scale_factor': 0.5, 'valid_range': [0, 9], "
                           "'units': 'K', '_Unsigned': 'true'}"},
                 {"q", "int16", "t=2",
                  .attrs = "{'scale_factor': 0.5, 'valid_range': [0, 9], "
                           "'units': 'K', '_Unsigned': 'true'}"},
                 {"r", "int16", "t=2", .attrs = "{'scale_factor': 0.25, 'units': 'K'}"},
                 {"n", "int16", "t=2", .attrs = "{'valid_range': [1, 2], 'units': 'K'}"},
                 {"m", "int16", "t=2", .fill = "-9", .attrs = "{'missing_value': -9}"},
                 {"o", "int16", "t=2", .fill = "-8", .attrs = "{'missing_value': -8}"},
                 {"u", "int8", "t=2", .attrs = "{'_Unsigned': 'true'}"},
                 {"v", "int16", "t=2"}}};
static const made_file SPELLED = {
    "f", .var = {{"e", "int16", "t=2", .attrs = "{'add_offset': 10, 'valid_min': 1}"},
                 {"g", "int16", "t=2",
                  .attrs = "{'add_offset': 10.0, 'scale_factor': 1, 'valid_min': 2}"},
                 {"h", "int16", "t=2", .attrs = "{'add_offset': 10, 'scale_factor': 1.0}"}}};

/* Attributes as JSON with ' for ", of the array and of its labels. */
static const char *say_attrs(planned *p)
{
    cm_buf text = {0};
    tell_begin(&p->text);
    if (p->status != CM_OK)
        return (const char *)p->text.data;
    const cm_stack *s = &p->job.stacks->stack[0];
    OK(cm_json_write(s->attrs, false, &text, err));
    OK(cm_buf_printf(&text, err, " "));
    OK(cm_json_write(s->label_attrs, false, &text, err));
    for (size_t i = 0; i < text.nbytes; i++)
        text.data[i] = text.data[i] == '"' ? '\'' : text.data[i];
    tell(&p->text, "%.*s", (int)text.nbytes, (const char *)text.data);
    cm_buf_release(&text);
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
    const char *attrs;
} ROWS[] = {
    {"of one variable", &PLAIN, STACK("a"),
     "{'units':'K','long_name':'A','valid_min':1} {'variable':['a']}"},
    {"of two, which agree on one", &PLAIN, STACK("a,b"),
     "{'units':'K','channel_long_name':['A','B'],'channel_valid_min':[1,null],'channel_note':[null,"
     "[1,2]]} {'variable':['a','b']}"},
    {"that only the second has", &PLAIN, STACK("d@k,a"),
     "{'channel_units':[null,null,'K'],'channel_long_name':[null,null,'A'],'channel_valid_min':["
     "null,null,1]} {'variable':['d','d','a']}"},
    {"of levels, each with its variable's", &PLAIN, STACK("a,c@z"),
     "{'channel_units':['K','m','m'],'channel_long_name':['A','C','C'],'channel_valid_min':[1,null,"
     "null]} {'variable':['a','c','c'],'level':[null,500.0,850.0]}"},
    {"of levels that have no coordinate", &PLAIN, STACK("d@k"), "{} {'variable':['d','d']}"},
    {"coordinates that all have", &PLAIN, STACK("x,y"),
     "{'coordinates':'lat lon','channel_coordinates':['lat lon height','lon  lat']} "
     "{'variable':['x','y']}"},
    {"by whole words", &PLAIN, STACK("x,w"),
     "{'channel_coordinates':['lat lon height','latitude']} {'variable':['x','w']}"},
    {"and one without", &PLAIN, STACK("x,a"),
     "{'channel_coordinates':['lat lon "
     "height',null],'channel_units':[null,'K'],'channel_long_name':[null,'A'],'channel_valid_min':["
     "null,1]} {'variable':['x','a']}"},
    {"packed alike", &PACKED, STACK("p,q"),
     "{'scale_factor':0.5,'valid_range':[0,9],'units':'K','_Unsigned':'true'} "
     "{'variable':['p','q']}"},
    {"packed alike, spelled otherwise", &SPELLED, STACK("e,g,h"),
     "{'add_offset':10,'channel_valid_min':[1,2,null]} {'variable':['e','g','h']}"},
    {"of numbers that will be unpacked", &SPELLED, STACK("e,g,h", .unpack = TEXTS("s")),
     "{'add_offset':10} {'variable':['e','g','h']}"},
    {"plain numbers are not packed", &PACKED, STACK("p,r", .unpack = TEXTS("s")),
     "{'units':'K'} {'variable':['p','r']}"},
    {"of what is not unpacked, all stays", &PACKED, STACK("p,n", .unpack = TEXTS("s")),
     "{'channel_valid_range':[null,[1,2]],'units':'K'} {'variable':['p','n']}"},
    {"of another sign, which its numbers have then", &PACKED, STACK("u,v"),
     "{} {'variable':['u','v']}"},
    {"one missing_value", &PACKED, STACK("m"), "{'missing_value':-9} {'variable':['m']}"},
    {"two, for which the fill value stands", &PACKED, STACK("m,o"), "{} {'variable':['m','o']}"},
    {"a name of its own for channels",
     &PLAIN,
     {.stack = TEXTS("s=a,b", "t2=a")},
     "{'units':'K','s_channel_long_name':['A','B'],'s_channel_valid_min':[1,null],'s_channel_note':"
     "[null,[1,2]]} {'variable':['a','b']}"},
};

static void attributes(void **state)
{
    unsigned bad = 0;
    (void)state;
    for (size_t i = 0; i < COUNT(ROWS); i++) {
        planned p;
        planned_make(&p, ROWS[i].file, &ROWS[i].options, STEP_OPEN);
        if (p.status != CM_OK)
            fail_msg("%s: %s", ROWS[i].name, p.error.text);
        tell_compare(ROWS[i].name, say_attrs(&p), ROWS[i].attrs, &bad);
        planned_release(&p);
    }
    assert_int_equal(bad, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(attributes)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}

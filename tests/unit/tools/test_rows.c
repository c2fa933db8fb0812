/* Every row of the four option tables: it sets its field, only that, and its default holds. */
#include <stdio.h>

#include "../../../tools/chunkcalc/chunkcalc.h"
#include "../../../tools/nc2zarr/nc2zarr.h"
#include "../../../tools/readbench/readbench.h"
#include "../../../tools/rechunk/rechunk.h"
#include "../unit.h"

typedef union values {
    nc2zarr_values nc2zarr;
    rechunk_values rechunk;
    chunkcalc_values chunkcalc;
    readbench_values readbench;
} values;

static void init_nc2zarr(values *v)
{
    cm_transform_options_init(&v->nc2zarr.o, CM_DEFAULTS_CHOOSE);
}

static void init_rechunk(values *v)
{
    cm_transform_options_init(&v->rechunk.o, CM_DEFAULTS_KEEP);
}

static void init_chunkcalc(values *v)
{
    cm_chunkcalc_options_init(&v->chunkcalc.o);
}

static void init_readbench(values *v)
{
    readbench_values_init(&v->readbench);
}

static const struct program {
    const cm_tool *tool;
    void (*init)(values *v);
    size_t nbytes;       /* of its values */
    size_t library;      /* of those, at the beginning, that are the options of the verb */
    const char *decided; /* "a b": fields for which the program has another default than the verb */
} PROGRAM[] = {
    {&NC2ZARR, init_nc2zarr, sizeof(nc2zarr_values), sizeof(cm_transform_options), "zarr-format"},
    {&RECHUNK, init_rechunk, sizeof(rechunk_values), sizeof(cm_transform_options), ""},
    {&CHUNKCALC, init_chunkcalc, sizeof(chunkcalc_values), sizeof(cm_chunkcalc_options), ""},
    {&READBENCH, init_readbench, sizeof(readbench_values), sizeof(cm_readbench_options), ""},
};

enum {
    NPROGRAMS = sizeof(PROGRAM) / sizeof(PROGRAM[0])
};

typedef struct parsed {
    values v;
    cm_common_options common;
    cm_texts paths;
    char option[64], text[64]; /* what the values point to */
} parsed;

/* NAME and VALUE may be NULL. */
static void parse(const struct program *p, const char *name, const char *value, parsed *out)
{
    char *argv[] = {(char *)(uintptr_t)p->tool->name, out->option, out->text, NULL};
    int argc = 1;
    memset(out, 0, sizeof *out);
    if (name) {
        snprintf(out->option, sizeof out->option, "--%s", name);
        argc++;
    }
    if (value) {
        snprintf(out->text, sizeof out->text, "%s", value);
        argc++;
    }
    argv[argc] = NULL;
    p->init(&out->v);
    assert_int_equal(cm_tool_parse(p->tool, argc, argv, &out->v, &out->common, &out->paths),
                     CM_TOOL_RUN);
}

static void release(const struct program *p, parsed *out)
{
    cm_tool_release(p->tool, &out->v, &out->paths);
}

/* A value that O takes and that is not its default; NULL for an option that takes none. */
static const char *value_of(const cm_option *o, char *buf, size_t size)
{
    const char *word = NULL;
    size_t n = 0;
    uint64_t usual;
    switch (o->kind) {
    case CM_OPTION_UINT:
    case CM_OPTION_U64:
    case CM_OPTION_SIZE:
        usual = o->preset ? strtoull(o->preset, NULL, 10) : UINT64_MAX;
        snprintf(buf, size, "%llu",
                 (unsigned long long)(o->min + 1 == usual ? o->min + 2 : o->min + 1));
        return buf;
    case CM_OPTION_CHOICE:
    case CM_OPTION_WORD:
        for (size_t i = 0; cm_option_word(o->words, i, &word, &n); i++) {
            snprintf(buf, size, "%.*s", (int)n, word);
            /* Not the one that stands for zero, so that the field changes. */
            if ((o->kind == CM_OPTION_WORD || o->number + (int)i != 0) &&
                (!o->preset || strcmp(buf, o->preset) != 0))
                return buf;
        }
        fail_msg("--%s has one value only", o->name);
        return NULL;
    case CM_OPTION_DOUBLE:
        return "2.5";
    case CM_OPTION_TIME:
        return "2500ms";
    case CM_OPTION_RATE:
        return "2.5B/s";
    case CM_OPTION_TEXT:
    case CM_OPTION_LIST:
        return "given";
    case CM_OPTION_FLAG:
    case CM_OPTION_SET:
    case CM_OPTION_LEVEL:
    case CM_OPTION_ACTION:
        break;
    }
    return NULL;
}

static void check_value(const cm_option *o, const char *given, const void *field)
{
    const char *word = NULL;
    size_t n = 0;
    int position = 0;
    switch (o->kind) {
    case CM_OPTION_FLAG:
        assert_true(*(const bool *)field);
        break;
    case CM_OPTION_SET:
        assert_int_equal(*(const int *)field, o->number);
        break;
    case CM_OPTION_LEVEL:
        assert_int_equal(*(const int *)field, 1);
        break;
    case CM_OPTION_TEXT:
    case CM_OPTION_WORD:
        assert_string_equal(*(const char *const *)field, given);
        break;
    case CM_OPTION_LIST:
        assert_int_equal(((const cm_texts *)field)->n, 1);
        assert_string_equal(((const cm_texts *)field)->text[0], given);
        break;
    case CM_OPTION_UINT:
        assert_int_equal(*(const unsigned *)field, strtoull(given, NULL, 10));
        break;
    case CM_OPTION_U64:
    case CM_OPTION_SIZE:
        assert_true(*(const uint64_t *)field == strtoull(given, NULL, 10));
        break;
    case CM_OPTION_DOUBLE:
    case CM_OPTION_TIME:
    case CM_OPTION_RATE:
        assert_true(*(const double *)field == 2.5);
        break;
    case CM_OPTION_CHOICE:
        while (cm_option_word(o->words, (size_t)position, &word, &n) &&
               (strlen(given) != n || memcmp(given, word, n) != 0))
            position++;
        assert_int_equal(*(const int *)field, o->number + position);
        break;
    case CM_OPTION_ACTION:
        break;
    }
}

/* The bytes of A and B are the same but for those of FIELD, which differ. */
static void check_only(const char *name, const char *a, const char *b, size_t nbytes,
                       const cm_field *field)
{
    size_t inside = 0;
    for (size_t i = 0; i < nbytes; i++) {
        bool in = i >= field->offset && i - field->offset < field->nbytes;
        if (a[i] != b[i] && !in)
            fail_msg("--%s changes byte %zu, its field lies at %zu", name, i, field->offset);
        inside += a[i] != b[i];
    }
    if (inside == 0)
        fail_msg("--%s does not change its field", name);
}

static void test_a_row_sets_its_field_and_no_other(void **state)
{
    (void)state;
    for (size_t k = 0; k < NPROGRAMS; k++) {
        const struct program *p = &PROGRAM[k];
        const cm_option *o;
        bool common;
        for (size_t i = 0; (o = cm_tool_option(p->tool, i, &common)); i++) {
            char buf[64];
            if (o->kind == CM_OPTION_ACTION)
                continue;
            const char *value = value_of(o, buf, sizeof buf);
            assert_int_equal(value != NULL, cm_option_argument(o) != NULL);
            parsed with, without;
            parse(p, NULL, NULL, &without);
            parse(p, o->name, value, &with);
            const char *a = common ? (const char *)&with.common : (const char *)&with.v;
            const char *b = common ? (const char *)&without.common : (const char *)&without.v;
            const size_t n = common ? offsetof(cm_common_options, given) : p->nbytes;
            assert_in_range(o->field.offset + o->field.nbytes, 1, n);
            check_only(o->name, a, b, n, &o->field);
            check_value(o, value, a + o->field.offset);
            if (!common)
                assert_true(cm_tool_given(p->tool, &with.common, o->name));
            release(p, &with);
            release(p, &without);
        }
    }
}

static void test_a_row_has_the_size_of_its_field(void **state)
{
    (void)state;
    for (size_t k = 0; k < NPROGRAMS; k++) {
        const cm_option *o;
        size_t n = 0;
        for (; (o = cm_tool_option(PROGRAM[k].tool, n, NULL)); n++)
            if (cm_option_nbytes(o) != o->field.nbytes)
                fail_msg("--%s stores %zu bytes in a field of %zu", o->name, cm_option_nbytes(o),
                         o->field.nbytes);
        assert_in_range(n, 1, CM_MOST_OPTIONS);
    }
}

static void test_no_two_rows_set_the_same_field(void **state)
{
    (void)state;
    for (size_t k = 0; k < NPROGRAMS; k++) {
        const cm_option *a, *b;
        bool common;
        for (size_t i = 0; (a = cm_tool_option(PROGRAM[k].tool, i, &common)) && !common; i++)
            for (size_t j = 0; j < i && (b = cm_tool_option(PROGRAM[k].tool, j, NULL)); j++)
                if (a->kind != CM_OPTION_SET &&
                    a->field.offset < b->field.offset + b->field.nbytes &&
                    b->field.offset < a->field.offset + a->field.nbytes)
                    fail_msg("--%s and --%s share a field", a->name, b->name);
    }
}

static bool decided(const struct program *p, const char *name)
{
    return strstr(p->decided, name) != NULL;
}

/* The default in the help is the library's behaviour without the option. */
static void test_a_preset_is_the_default_of_the_library(void **state)
{
    (void)state;
    for (size_t k = 0; k < NPROGRAMS; k++) {
        const struct program *p = &PROGRAM[k];
        const cm_option *o;
        bool common;
        parsed at;
        values usual;
        memset(&usual, 0, sizeof usual);
        p->init(&usual);
        parse(p, NULL, NULL, &at);
        for (size_t i = 0; (o = cm_tool_option(p->tool, i, &common)) && !common; i++) {
            const char *a = (const char *)&at.v + o->field.offset;
            const char *b = (const char *)&usual + o->field.offset;
            if (!o->preset || o->field.offset >= p->library || decided(p, o->name))
                continue;
            if (o->kind == CM_OPTION_TEXT || o->kind == CM_OPTION_WORD)
                assert_string_equal(*(const char *const *)a, *(const char *const *)b);
            else if (memcmp(a, b, o->field.nbytes) != 0)
                fail_msg("%s --%s: %s is not the library's default", p->tool->name, o->name,
                         o->preset);
        }
        release(p, &at);
    }
}

/* A default stands in one place of the row, and help shows it. */
static void test_help_ends_with_the_default(void **state)
{
    (void)state;
    for (size_t k = 0; k < NPROGRAMS; k++) {
        const cm_option *o;
        for (size_t i = 0; (o = cm_tool_option(PROGRAM[k].tool, i, NULL)); i++) {
            assert_false(o->preset && o->unset);
            assert_null(strstr(o->help, "Default: "));
            const char *shown = cm_option_default(o);
            if (shown)
                assert_true(shown[0] != '\0' && shown[strlen(shown) - 1] != '.');
        }
    }
}

static void test_options_that_exclude_others(void **state)
{
    static const char *const ALLOWED[] = {"digest", NULL};
    const struct program *p = &PROGRAM[1];
    const cm_option *o;
    bool common;
    (void)state;
    for (size_t i = 0; (o = cm_tool_option(p->tool, i, &common)) && !common; i++) {
        char buf[64];
        parsed at;
        /* Also where the value given is the default. */
        parse(p, o->name, o->preset ? o->preset : value_of(o, buf, sizeof buf), &at);
        assert_int_equal(cm_tool_refuse_others(p->tool, &at.common, ALLOWED),
                         strcmp(o->name, "digest") == 0 ? CM_TOOL_RUN : CM_EXIT_USAGE);
        release(p, &at);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_a_row_sets_its_field_and_no_other),
        cmocka_unit_test(test_a_row_has_the_size_of_its_field),
        cmocka_unit_test(test_no_two_rows_set_the_same_field),
        cmocka_unit_test(test_a_preset_is_the_default_of_the_library),
        cmocka_unit_test(test_help_ends_with_the_default),
        cmocka_unit_test(test_options_that_exclude_others),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

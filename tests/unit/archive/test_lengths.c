/* Lengths of one name, held against each other. */
#include "../fixtures/ok.h"

#include "archive/survey/lengths.h"

enum {
    MOST = 3
};

typedef struct length_row {
    const char *about;
    struct {
        const char *name, *dim[2];
        uint64_t shape[2];
    } var[MOST];
    const char *says; /* NULL: they agree */
} length_row;

static const length_row ROWS[] = {
    {"one variable", {{"a", {"t", "x"}, {2, 3}}}, NULL},
    {"two alike", {{"a", {"t", "x"}, {2, 3}}, {"b", {"t"}, {2}}}, NULL},
    {"a longer one",
     {{"a", {"t", "x"}, {2, 3}}, {"b", {"x", "t"}, {3, 4}}},
     "variable b has 4 elements along t, and a has 2: they must be resized to one length first"},
    {"the third of them",
     {{"a", {"x"}, {3}}, {"b", {"t"}, {2}}, {"c", {"x", "t"}, {3, 1}}},
     "variable c has 1 element along t, and b has 2: they must be resized to one length first"},
    {"twice in one", {{"a", {"x", "x"}, {3, 3}}}, NULL},
    {"twice, not alike",
     {{"a", {"x", "x"}, {3, 5}}},
     "variable a has 5 elements along x, and a has 3: they must be resized to one length first"},
    {"without a name", {{"a", {"t", NULL}, {2, 3}}, {"b", {NULL, "t"}, {7, 2}}}, NULL},
    {"of another group", {{"a", {"t"}, {2}}, {"g/b", {"t"}, {4}}, {"h/b", {"t"}, {5}}}, NULL},
    {"of one group",
     {{"g/a", {"t"}, {2}}, {"h", {"t"}, {4}}, {"g/b", {"t"}, {5}}},
     "variable g/b has 5 elements along t, and g/a has 2: they must be resized to one length "
     "first"},
};

static void test_lengths(void **state)
{
    (void)state;
    for (size_t r = 0; r < sizeof(ROWS) / sizeof(ROWS[0]); r++) {
        const length_row *row = &ROWS[r];
        cm_variable var[MOST] = {0};
        cm_dataset ds = {.var = var};
        for (; ds.nvars < MOST && row->var[ds.nvars].name != NULL; ds.nvars++) {
            cm_variable *v = &var[ds.nvars];
            v->name = row->var[ds.nvars].name;
            v->dim_name = (char *const *)(uintptr_t)row->var[ds.nvars].dim;
            for (v->rank = 0; v->rank < 2 && row->var[ds.nvars].shape[v->rank] > 0; v->rank++)
                v->shape[v->rank] = row->var[ds.nvars].shape[v->rank];
        }
        cm_error err = {0};
        const int rc = cm_lengths_check(&ds, &err);
        if (rc != (row->says == NULL ? CM_OK : CM_EFORMAT) ||
            (row->says != NULL && strcmp(err.text, row->says) != 0))
            fail_msg("%s: %d, %s", row->about, rc, err.text);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_lengths)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}

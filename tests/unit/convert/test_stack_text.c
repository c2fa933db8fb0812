/* Texts of `stack`: what each names, and what is not of its form. */

#include "../fixtures/tell.h"
#include "base/number.h"
#include "convert/stack/stack.h"

#define FORM ": not of the form NAME=A,B,C, where C may be VAR@DIM or VAR@DIM=VALUE/VALUE"

static const struct {
    const char *text;
    const char *parsed; /* "s: a b@z c@z[500 850]"; NULL: it is refused */
    const char *error;  /* behind "`stack` TEXT"; NULL: it is not asked for */
} ROWS[] = {
    {"s=a", "s: a", NULL},
    {"s=a,b", "s: a b", NULL},
    {"s=a,a", "s: a a", NULL}, /* what it means is another's to judge */
    {"s=z@level", "s: z@level", NULL},
    {"s=z@level=500", "s: z@level[500.0]", NULL},
    {"s=z@level=500/850/-1.5e3,a", "s: z@level[500.0 850.0 -1500.0] a", NULL},
    {"s=z@level=850/500", "s: z@level[850.0 500.0]", NULL}, /* in the order asked for */
    {"g/s=g/a", "g/s: g/a", NULL},
    {"s=a\\,b,c", "s: a,b c", NULL},
    {"s\\=t=a", "s=t: a", NULL},
    {"s=a\\@b@z\\=x=1", "s: a@b@z=x[1.0]", NULL},
    {"s=a@b@c", "s: a@b@c", NULL}, /* a dimension of that name */
    {"s=a\\\\b", "s: a\\b", NULL},
    {"s=a\\b", "s: a\\b", NULL},
    {"", NULL, FORM},
    {"s", NULL, FORM},
    {"s=", NULL, FORM},
    {"=a", NULL, FORM},
    {"s=@z", NULL, FORM},
    {"s=a@", NULL, FORM},
    {"s=a@=5", NULL, FORM},
    {"s=a@z=", NULL, FORM},
    {"s=a=5", NULL, FORM},
    {"s=a,b=5", NULL, FORM},
    {"s=a,,b", NULL, NULL},
    {"s=a,", NULL, NULL},
    {"s=a@z=500/", NULL, NULL},
    {"s=a@z=/500", NULL, NULL},
    {"s=a@z=500hPa", NULL, NULL},
    {"s=a@z=500/x", NULL, NULL},
};

static void say_text(cm_buf *text, const cm_stack_text *t)
{
    char number[32];
    tell_begin(text);
    tell(text, "%s:", t->name);
    for (size_t i = 0; i < t->nitems; i++) {
        const cm_stack_item *item = &t->item[i];
        tell(text, " %s%s%s", item->name, item->dim != NULL ? "@" : "",
             item->dim != NULL ? item->dim : "");
        for (size_t k = 0; k < item->nvalues; k++)
            tell(text, "%s%s", k == 0 ? "[" : " ",
                 cm_format_double(item->value[k], number, sizeof number));
        tell(text, "%s", item->nvalues > 0 ? "]" : "");
        assert_int_equal(item->value != NULL, item->nvalues > 0);
    }
}

static void texts(void **state)
{
    unsigned bad = 0;
    cm_buf text = {0};
    (void)state;
    for (size_t i = 0; i < COUNT(ROWS); i++) {
        cm_stack_text t;
        cm_error why = {0};
        char wanted[200];
        const int rc = cm_stack_text_parse(ROWS[i].text, &t, &why);
        if (rc != (ROWS[i].parsed != NULL ? CM_OK : CM_EINVAL))
            fail_msg("%s: %d", ROWS[i].text, rc);
        snprintf(wanted, sizeof wanted, "`stack` %s%s", ROWS[i].text,
                 ROWS[i].error != NULL ? ROWS[i].error : "");
        if (rc == CM_OK) {
            say_text(&text, &t);
            tell_compare(ROWS[i].text, (const char *)text.data, ROWS[i].parsed, &bad);
            assert_ptr_equal(t.text, ROWS[i].text);
        } else if (ROWS[i].error != NULL) {
            tell_compare(ROWS[i].text, why.text, wanted, &bad);
        } else if (strncmp(why.text, wanted, strlen(wanted)) != 0) {
            fail_msg("%s: %s", ROWS[i].text, why.text);
        }
        cm_stack_text_release(&t);
        assert_true(t.name == NULL && t.item == NULL && t.nitems == 0);
    }
    cm_buf_release(&text);
    assert_int_equal(bad, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(texts)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}

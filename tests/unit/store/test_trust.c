/* Which bundle of certificates libcurl is told to use. */
#include <stdlib.h>

#include "../unit.h"
#include "store/net/trust.h"

static const char *company(const char *name)
{
    return strcmp(name, "CURL_CA_BUNDLE") == 0  ? "/company.pem"
           : strcmp(name, "SSL_CERT_FILE") == 0 ? "/other.pem"
                                                : "";
}

static const char *nothing(const char *name)
{
    (void)name;
    return NULL;
}

static void test_choice(void **state)
{
    (void)state;
    const char *const places[] = {"/gone/a.pem", "/dev/null", "/etc/passwd", NULL};
    const char *const none[] = {"/gone/a.pem", NULL};
    const struct {
        const char *(*variable)(const char *);
        const char *file, *folder;
        const char *const *places;
        const char *expected;
    } row[] = {
        {company, "/etc/passwd", "/etc", places, "/company.pem"},
        {company, NULL, NULL, none, "/company.pem"},
        {nothing, "/etc/passwd", NULL, places, NULL},
        {nothing, "/gone.pem", "/etc", places, NULL},
        {nothing, "/gone.pem", "/gone", places, "/dev/null"},
        {nothing, NULL, NULL, places, "/dev/null"},
        {NULL, NULL, NULL, places, "/dev/null"},
        {nothing, NULL, NULL, none, NULL},
    };
    for (size_t i = 0; i < sizeof(row) / sizeof(row[0]); i++) {
        const cm_net_settings settings = {.variable = row[i].variable};
        const char *got = cm_trust_choose(&settings, row[i].file, row[i].folder, row[i].places);
        if (row[i].expected == NULL)
            assert_null(got);
        else
            assert_string_equal(got, row[i].expected);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_choice)};
    return cmocka_run_group_tests_name("trust", tests, NULL, NULL);
}

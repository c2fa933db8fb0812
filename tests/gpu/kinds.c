#include "kinds.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

const kind *present_kind(void **state)
{
    const kind *k = *state;
    if (!k->present)
        skip();
    return k;
}

cm_device *open_with(const kind *k, cm_device_hooks hooks)
{
    cm_device *d;
    cm_error err = {0};
    hooks.cuda_driver = k->driver;
    if (cm_device_open(k->text, &hooks, &d, &err) != CM_OK)
        fail_msg("%s", err.text);
    return d;
}

cm_device *open_kind(const kind *k)
{
    return open_with(k, (cm_device_hooks){0});
}

void fill(uint8_t *p, size_t nbytes, uint64_t seed)
{
    for (size_t i = 0; i < nbytes; i++) {
        seed = seed * UINT64_C(6364136223846793005) + 1442695040888963407;
        p[i] = (uint8_t)(seed >> 56);
    }
}

/* Only a machine without driver or device skips: whatever else is wrong must be seen. */
static bool is_present(const char *text)
{
    cm_device *d;
    cm_error err;
    const int rc = cm_device_open(text, NULL, &d, &err);
    if (rc == CM_OK)
        cm_device_close(d);
    else
        printf("# %s: %s\n", text, err.text);
    return rc != CM_ENOTFOUND;
}

int run_with_each_kind(const char *group, const device_test *tests, size_t ntests,
                       const char *program)
{
    enum {
        NKINDS = 3,
        MAX_TESTS = 32
    };
    static char driver[4096], names[NKINDS * MAX_TESTS][96];
    static struct CMUnitTest all[NKINDS * MAX_TESTS];
    const char *slash = strrchr(program, '/');
    snprintf(driver, sizeof driver, "%.*s/../lib/fake_cuda_12.so",
             slash ? (int)(slash - program) : 1, slash ? program : ".");
    static kind kinds[NKINDS] = {{"host", "host", NULL, true},
                                 {"fake cuda", "cuda", driver, true},
                                 {"cuda", "cuda", NULL, false}};
    kinds[2].present = is_present("cuda");
    if (ntests > MAX_TESTS)
        return 1;
    for (size_t k = 0; k < NKINDS; k++)
        for (size_t t = 0; t < ntests; t++) {
            const size_t i = k * ntests + t;
            snprintf(names[i], sizeof names[i], "%s: %s", kinds[k].label, tests[t].name);
            all[i] = (struct CMUnitTest){names[i], tests[t].run, NULL, NULL, &kinds[k]};
        }
    return _cmocka_run_group_tests(group, all, NKINDS * ntests, NULL, NULL);
}

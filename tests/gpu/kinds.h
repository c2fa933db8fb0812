/*
 * Tests of any device run against `host`, against `cuda` with a fake
 * driver that works on memory of the host, and against `cuda` itself where a
 * device is present; where none is, those tests are counted as skipped.
 */
#ifndef CM_TEST_KINDS_H
#define CM_TEST_KINDS_H

#include <stdbool.h>

#include "../unit/unit.h"
#include "gpu/device.h"

typedef struct kind {
    const char *label, *text;
    const char *driver; /* NULL: the machine's own */
    bool present;
} kind;

/* The kind that a test was given; skips the test where it is not present. */
const kind *present_kind(void **state);

cm_device *open_with(const kind *k, cm_device_hooks hooks);
cm_device *open_kind(const kind *k);

/* CALL, whose last argument is the error WHY, must succeed. */
#define OK(call)                                                                                   \
    do {                                                                                           \
        cm_error error_ = {0};                                                                     \
        cm_error *const why = &error_;                                                             \
        if ((call) != CM_OK)                                                                       \
            fail_msg("%s: %s", #call, error_.text);                                                \
    } while (0)

/* Repeatable bytes. */
void fill(uint8_t *p, size_t nbytes, uint64_t seed);

typedef struct device_test {
    const char *name;
    CMUnitTestFunction run;
} device_test;

/* Runs all tests with each kind; PROGRAM is argv[0], beside which the fake driver is found. */
int run_with_each_kind(const char *group, const device_test *tests, size_t ntests,
                       const char *program);

#endif

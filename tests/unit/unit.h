/* Included first by every unit test: cmocka, after the headers that it needs before it. */
#ifndef TESTS_UNIT_H
#define TESTS_UNIT_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#define COUNT(table) (sizeof(table) / sizeof *(table))

/* The stride of a loop over cases that take long: N, and 1 in the long version (tests/run.sh
 * BUILD long).  N shares no factor with the cases' kinds, so that each kind is met. */
static inline unsigned stride(unsigned n)
{
    const char *is_long = getenv("CHUNKMILL_LONG");
    return is_long != NULL && *is_long != '\0' ? 1 : n;
}

#endif

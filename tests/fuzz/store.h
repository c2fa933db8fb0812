/* A store in memory, made from one input: what several fuzzers do with it. */
#ifndef CM_TESTS_FUZZ_STORE_H
#define CM_TESTS_FUZZ_STORE_H

#include "format/zarr/open.h"

/* Reads every array of STORE that can be opened: its chunks one by one, many at once, and boxes. */
void fuzz_read_store(cm_store *store);

#endif

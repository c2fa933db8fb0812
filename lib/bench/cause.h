/* The one cause that explains why steps waited, and what kind of session it is. */
#ifndef CM_BENCH_CAUSE_H
#define CM_BENCH_CAUSE_H

#include "bench/facts.h"

/* libnetcdf read the data, so storage and decoding cannot be separated. */
bool cm_readbench_by_library(const cm_readbench_session *s);
bool cm_readbench_by_user(const cm_readbench_session *s); /* a loader of the user's */
bool cm_readbench_is_planned(const cm_readbench_session *s);
bool cm_readbench_is_sync(const cm_readbench_session *s);
bool cm_readbench_is_cold(const cm_readbench_session *s); /* the page cache was emptied before */
/* The value that setting NAME was given; "" where none was. */
const char *cm_readbench_setting_of(const cm_readbench_session *s, const char *name);

/*
 * Share of the loader's time that other chunks would save: of reading and decoding, what is done
 * for bytes that the best chunks would not touch.
 */
double cm_readbench_shape_saves(const cm_readbench_session *s, const cm_readbench_facts *f);

cm_readbench_cause cm_readbench_find_cause(const cm_readbench_session *s,
                                           const cm_readbench_facts *f);

#endif

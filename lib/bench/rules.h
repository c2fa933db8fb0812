/*
 * Turns the numbers of sessions into findings.
 *
 * cause.c finds the one cause why steps waited: the one whose removal would save the loader the
 * most time.  The closing sentence names it.  A rule sees only the numbers of a finished session;
 * if it holds, it adds a finding whose sentence quotes them.  Rules that advise against the cause
 * stay silent, and so do all rules of times and CPUs where other programs used the CPUs.
 * Findings come in this order: what makes the numbers worthless; what explains time, the most
 * first; what is good to know.  Pure: no clock, no file.
 */
#ifndef CM_BENCH_RULES_H
#define CM_BENCH_RULES_H

#include <chunkmill/readbench.h>

/* Where a rule begins to hold: above the value, shares from 0 to 1. */
#define CM_RULE_WAITS 0.30 /* of the time: the loader is worth a look */
/* of the time, storage taking most of the loader's: bound by I/O */
#define CM_RULE_IO_WAITS      0.40
#define CM_RULE_STORAGE       0.50 /* of the loader's time */
#define CM_RULE_KEEPS_UP      0.05 /* of the time: less is no waiting */
#define CM_RULE_CORE_BUSY     0.95 /* one core alone ... */
#define CM_RULE_CORE_IDLE     0.50 /* ... the others below */
#define CM_RULE_ALL_BUSY      0.90 /* every core */
#define CM_RULE_IDLE          0.50 /* of all: nothing waits for a CPU */
#define CM_RULE_LOOKS         0.50 /* of the looks at the CPUs: in so many it must be so */
#define CM_RULE_EPOCH_GROWTH  0.01 /* of resident memory, from each epoch to the next */
#define CM_RULE_GROWTH_NBYTES (UINT64_C(4) << 20) /* in all: less is noise of the allocator */
/* Decoded bytes over logical ones, where it is not known what the best chunks would decode; */
#define CM_RULE_AMPLIFICATION 4.0
#define CM_RULE_EXCESS        2.0  /* and over what those would, where it is */
#define CM_RULE_SPARED        0.20 /* of the time of reading and decoding: less is not worth it */
#define CM_RULE_SMALL_CHUNKS  0.60 /* the same, where no fewer bytes would be decoded */
#define CM_RULE_SHAPE_SAVES   0.33 /* of the loader's time: then other chunks are the first thing */
/* CPUs that other programs used, as a share of all: the times are not the store's, */
#define CM_RULE_OTHERS       0.25
#define CM_RULE_OTHERS_FULL  0.10 /* and where none was left, so few are enough */
#define CM_RULE_FULL         0.85
#define CM_RULE_RESIDENT     0.90 /* of the store in the page cache */
#define CM_RULE_STORAGE_RATE 0.80 /* of what storage gave without decoding: it gives no more */
#define CM_RULE_GAIN         0.05 /* of samples/s from more workers: less is saturated */
/* Gain of samples/s that a simulated change must promise: another setting, a store written anew, */
#define CM_RULE_PROPOSED  0.10
#define CM_RULE_REWRITTEN 0.25
#define CM_RULE_CLEARER   0.10 /* and over a change that is as easy, or easier, to make */

enum {
    CM_RULE_LEAST_LOOKS = 3, /* at the CPUs: fewer say nothing about others */
    CM_RULE_EPOCHS = 3 /* at least: in fewer, buffers that reach their size look like a leak */
};

/* Fills S's findings and its sentence. */
int cm_readbench_explain(cm_readbench_session *s, cm_error *err);

/*
 * Adds "saturated" to each of N sessions whose samples/s are less than CM_RULE_GAIN
 * above those of the one with the next fewer workers and else the same setting.
 */
int cm_readbench_explain_workers(cm_readbench_session *session, size_t n, cm_error *err);

#endif

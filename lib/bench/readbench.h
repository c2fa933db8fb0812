/*
 * The state of one measurement: one store under one setting.
 *
 * A measurement runs a cm_load_run (load/run.h): each of its epochs is run by a thread
 * for each rank.  The numbers are computed from the records at the end.
 */
#ifndef CM_BENCH_READBENCH_H
#define CM_BENCH_READBENCH_H

#include <chunkmill/readbench.h>

#include "load/run.h"
#include "watch/resources.h"

/* Hooks for tests, which set them in the options. */
struct cm_readbench_hook {
    const cm_device_hooks *device;
    bool no_probe; /* this machine's raw rates stay unknown: a session then takes no second */
};

/* setting.c: what the options say of the measurement, besides the loader that is measured. */
typedef struct cm_bench_setting {
    double step_ns, step_per_sample_ns;
    cm_readbench_validate validate; /* never CM_READBENCH_VALIDATE_DEFAULT */
} cm_bench_setting;

/* The measurement. */
typedef struct cm_bench cm_bench;

typedef struct cm_bench_rank {
    cm_bench *bench;
    cm_load_rank *load; /* also where errors go */
    cm_stage_report timed;
    bool has_timed;
    cm_readbench_batch *record; /* of all epochs */
    size_t nrecords;
    cm_readbench_sample *logged;
    size_t nlogged;
    uint64_t nvalidated_batches, nvalidated, nmismatches;
    uint64_t validated_ns;
    char *first_failure;
    int status;
} cm_bench_rank;

struct cm_bench {
    const cm_readbench_options *options;
    cm_load_options load_options; /* of these, the loader's */
    cm_bench_setting setting;
    cm_readbench_session *session;
    cm_readbench_report *report;
    cm_monitor *monitor;
    uint64_t origin_ns;   /* of all times in the report */
    uint64_t peak_before; /* resident, of this process until the session began */
    cm_load_run load;
    cm_resources *resources;
    cm_bench_rank *rank;
    uint64_t setup_start_ns, setup_end_ns;
    uint64_t *epoch_start_ns, *epoch_end_ns;
    uint64_t nepochs; /* run so far */
    double cpu_seconds;
};

/* LOAD gets the options of the loader; CM_EINVAL where these or the measurement's are wrong. */
int cm_bench_setting_make(const cm_readbench_options *options, cm_load_options *load,
                          cm_bench_setting *out, cm_error *err);

/* describe.c.  Sentences for the user; out of memory is an error like any other. */
int cm_bench_warn(cm_bench *b, cm_error *err, const char *format, ...)
    __attribute__((format(printf, 3, 4)));
int cm_bench_note(cm_bench *b, cm_error *err, const char *format, ...)
    __attribute__((format(printf, 3, 4)));
/* The setting as it is run, and the parts of a sample, for the report. */
int cm_bench_describe(cm_bench *b, const char *store, cm_error *err);

/* needs.c: bytes that measuring takes besides: records, device, validation. */
uint64_t cm_bench_other_nbytes(const cm_bench *b);
/* Bytes for probing after the epochs, when workers and batches are gone. */
uint64_t cm_bench_after_nbytes(const cm_bench *b);

/* workers.c: the workers, and who watches them. */
int cm_bench_start_workers(cm_bench *b, cm_error *err);
/*
 * Adds the lives of workers to the session's events, until the last epoch's end; call it before
 * they are stopped.
 */
int cm_bench_note_lives(cm_bench *b, cm_error *err);
/* The same, and the monitor's samples of the machine. */
int cm_bench_note_workers(cm_bench *b, cm_error *err);

typedef struct cm_bench_sharing { /* stores that are measured in turn, and share the memory */
    unsigned n;
    uint64_t nbytes; /* arenas of those opened already */
} cm_bench_sharing;

/* session.c.  *OUT is to be closed whatever is returned. */
int cm_bench_open(const cm_readbench_options *options, const char *store,
                  const cm_bench_sharing *sharing, cm_monitor *monitor, uint64_t origin_ns,
                  cm_readbench_report *report, cm_readbench_session *session, cm_bench **out,
                  cm_error *err);
/* Nanoseconds of cm_now_ns since the session's origin, 0 for what was before it. */
uint64_t cm_bench_since(const cm_bench *b, uint64_t at_ns);
uint64_t cm_bench_now(const cm_bench *b);
/* Of all ranks' batches in an epoch, as delivered: for progress. */
uint64_t cm_bench_epoch_nbytes(const cm_bench *b);
int cm_bench_epoch(cm_bench *b, uint64_t epoch, cm_error *err);
/*
 * Stops the workers and whatever watches them, closes the device, and gives the batches'
 * memory back.
 */
int cm_bench_stop(cm_bench *b, cm_error *err);
/* Fills in the numbers where it was MEASURED, and frees B in any case; NULL accepted. */
int cm_bench_close(cm_bench *b, bool measured, cm_error *err);

/* rank.c */
typedef int cm_bench_batch_fn(void *context, const cm_load_batch *batch);
/* The first epoch's batches made once more, for EACH that is whole; counts them and their time. */
int cm_bench_rank_again(cm_bench_rank *rank, cm_bench_batch_fn *each, void *context);
/* One rank's epoch; sets rank->status. */
void cm_bench_rank_epoch(cm_bench_rank *rank, uint64_t epoch);

/* stage.c: batches on their way to the device. */
int cm_bench_stage_open(cm_bench *b, cm_error *err);
int cm_bench_stage_describe(cm_bench *b, cm_error *err);
/* Keeps the reports of the timed pass. */
void cm_bench_stage_keep(cm_bench *b);
/* Waits for the oldest copy. */
int cm_bench_stage_wait(cm_bench_rank *rank, cm_staged *staged);
int cm_bench_stage_step(cm_bench_rank *rank);
int cm_bench_stage_stepped(cm_bench_rank *rank, cm_stage_step_times *times);
int cm_bench_stage_validate(cm_bench_rank *rank);
int cm_bench_stage_summarise(cm_bench *b, cm_error *err);

/* report.c */
void cm_bench_session_release(cm_readbench_session *session);

/*
 * validate.c: the batches of the first epoch once more, against what is read
 * directly: box by box, by another way through the code.
 */
int cm_bench_validate(cm_bench *b, cm_error *err);
/* temperature.c: makes the files cold or warm as asked for, and notes the result in the session. */
int cm_bench_temperature(cm_bench *b, cm_error *err);
int cm_bench_evict(const cm_bench *b, cm_error *err);
/*
 * Bytes of the files that are read (0: too many to check all), and the share in memory; negative:
 * not known.
 */
int cm_bench_residency(const cm_bench *b, uint64_t *nbytes, double *share, cm_error *err);
/* predict.c */
/* Offsets are uniform over all that fit, independently in each dimension. */
bool cm_bench_is_uniform(const cm_bench *b);
int cm_bench_predict(cm_bench *b, cm_error *err);
/* Elements that PART takes along its dimension D. */
uint64_t cm_bench_sample_along(const cm_bench *b, const cm_sample_part *part, unsigned d);
/* best_chunks.c: with costs measured here, after the epochs. */
int cm_bench_best_chunks(cm_bench *b, cm_error *err);
/* foresee.c: a batch alone, predicted and measured, after the epochs. */
int cm_bench_foresee(cm_bench *b, cm_error *err);
uint64_t cm_bench_foreseeing_nbytes(const cm_bench *b); /* that it takes */
/* probe.c: raw rates of this machine, after the epochs. */
int cm_bench_probe(cm_bench *b, cm_error *err);
uint64_t cm_bench_probing_nbytes(const cm_bench *b); /* that asking the storage takes */
/* summary.c: every number of the session that follows from its records. */
int cm_bench_summarise(cm_bench *b, cm_error *err);
/* Logical bytes of batches that did not fail, without those of missing chunks. */
uint64_t cm_bench_read_nbytes(const cm_readbench_counts *counts);
/* record.c */
int cm_bench_event(cm_bench *b, const cm_readbench_event *event, cm_error *err);
cm_readbench_batch *cm_bench_record(cm_bench_rank *rank, cm_error *err);
cm_readbench_sample *cm_bench_log(cm_bench_rank *rank, cm_error *err);
cm_readbench_times cm_bench_times(double *seconds, size_t n); /* sorts SECONDS */

#endif

/*
 * Sweeps and tuning: chooses the settings to run, and the best of those that ran.  Runs nothing
 * itself.
 */
#ifndef CM_BENCH_TUNE_H
#define CM_BENCH_TUNE_H

#include <chunkmill/readbench.h>

enum {
    CM_TUNE_MAX_RUNS = 12,  /* of a tuning, repeats among them */
    CM_TUNE_SETTINGS = 8,   /* that are tried */
    CM_TUNE_MOST_CLOSE = 4, /* settings that are repeated after a sweep */
    CM_TUNE_MOST_TUNED = 2  /* and after a tuning */
};

/* Two sessions whose samples/s differ by less are equally fast. */
#define CM_TUNE_NOISE 0.02
/*
 * Settings this close to the best after their first round are run again: one run may be off by as
 * much.
 */
#define CM_TUNE_CLOSE 0.15

/* Samples a second: the median of S's rounds. */
double cm_readbench_rate(const cm_readbench_session *s);

/*
 * The sessions of REPORT that are too close for one round to decide, fastest first, at most MOST of
 * them in OUT; 0 where one is clearly the fastest.
 */
size_t cm_readbench_close(const cm_readbench_report *report, size_t *out, size_t most);

/*
 * Fills REPORT's ratios from pairs of epochs, and, of several stores that were measured in turn,
 * the sentence that compares them.
 */
int cm_readbench_compare_sessions(const cm_readbench_options *options, cm_readbench_report *report,
                                  cm_error *err);

/*
 * Fills REPORT's best, reason and data_loader after a sweep, and adds findings about more
 * workers.
 */
int cm_readbench_judge_sweep(cm_readbench_report *report, cm_error *err);

/* The same after a tuning whose baseline is set. */
int cm_readbench_judge_tuning(cm_readbench_report *report, cm_error *err);

/*
 * The session with the most samples/s (bytes/s where samples differ in size); of
 * those within CM_TUNE_NOISE, or inside the spread of its rounds, the one with the
 * fewest threads, then the shortest prefetch, then the first.  Sessions with failed
 * batches do not count; SIZE_MAX: none is left.
 */
size_t cm_readbench_best(const cm_readbench_session *session, size_t n);

/*
 * "DataLoader(num_workers=4, prefetch_factor=2, ...)", the arguments of PyTorch's that S
 * stands for.
 */
char *cm_readbench_data_loader(const cm_readbench_session *s, cm_error *err);

/*
 * The settings of a tuning.  First the baseline: the user's setting or, without workers in it,
 * DataLoader's default of 0; then that of --advise; then steps around the best so far: more and
 * fewer workers, prefetch, threads of a worker, the planned loader.  Another setting becomes the
 * best for a gain of CM_RULE_GAIN, or for the same rate with fewer threads.  The tuning ends when
 * no step is left, when training steps no longer wait, or after CM_TUNE_SETTINGS.  Then the best
 * and its rival are run again, in turn.
 */
typedef struct cm_tuner cm_tuner;

/* OPTIONS are borrowed. */
int cm_tuner_create(const cm_readbench_options *options, cm_tuner **out, cm_error *err);
void cm_tuner_free(cm_tuner *tuner);

/*
 * The next setting to run, whose session will be the next of REPORT; false when it
 * is over.  LABEL is valid until the tuner is freed.
 */
bool cm_tuner_next(cm_tuner *tuner, const cm_readbench_report *report, cm_readbench_options *next,
                   const char **label);

/*
 * After the last setting: the one to run again, whose rate is one more round of *SESSION; false
 * when there are rounds enough.
 */
bool cm_tuner_again(cm_tuner *tuner, const cm_readbench_report *report, cm_readbench_options *next,
                    size_t *session);

/* Notes that the last setting could not run (it does not fit the memory) and left no session. */
void cm_tuner_refused(cm_tuner *tuner);

/* Fills REPORT's best, baseline, reason and data_loader, and adds findings about more workers. */
int cm_tuner_judge(const cm_tuner *tuner, cm_readbench_report *report, cm_error *err);

#endif

/* The parts of the readbench program. */
#ifndef CM_TOOLS_READBENCH_H
#define CM_TOOLS_READBENCH_H

#include <stdio.h>

#include <chunkmill/readbench.h>

#include "../common/document.h"
#include "../common/options.h"

typedef struct readbench_values {
    cm_readbench_options o; /* what most options set */
    cm_net_settings net;
    cm_texts sweep;
    const char *preset;
    const char *step_time;
    bool advise, compare;
    unsigned cpus;
    const char *out;
    bool no_out, overwrite;
    const char *trace;
    bool launched;    /* srun or mpirun said which rank this is */
    double rank_wait; /* seconds for another of these ranks */
} readbench_values;

extern const cm_tool READBENCH;
extern const char *const READBENCH_STAGE[CM_READBENCH_STAGES]; /* names of a worker's stages */

void readbench_values_init(readbench_values *values);

/*
 * Completes VALUES->o, what the library is asked for, but for a sweep.  CM_EINVAL with a
 * sentence that names the option when options are at odds or a value cannot be read.
 * VALUES->o then points into VALUES, PATHS and argv.
 */
int readbench_complete(readbench_values *values, const cm_common_options *common,
                       const cm_texts *paths, cm_error *err);

enum {
    READBENCH_MOST_POINTS = 1024
};

/* The points of a sweep. */
typedef struct readbench_sweep {
    cm_readbench_point *point; /* the last key varies fastest */
    size_t n;
    readbench_values *values;  /* of each point */
    struct readbench_key *key; /* what was parsed; holds the texts */
    size_t nkeys;
} readbench_sweep;

/*
 * Every combination of VALUES->sweep, each text of which is "KEY=V1,V2", or
 * "KEY=V1;V2" where values hold commas.  Keys are the options whose rows say that they
 * may be swept, without the dashes; those without a value take yes and no.  CM_EINVAL
 * names --sweep: an unknown key, a value that the option does not take, a key or value
 * given twice, more than READBENCH_MOST_POINTS.  OUT is valid, and to be released,
 * whatever is returned; it points into what VALUES does.
 */
int readbench_sweep_make(const readbench_values *values, const cm_common_options *common,
                         const cm_texts *paths, readbench_sweep *out, cm_error *err);
void readbench_sweep_release(readbench_sweep *sweep); /* NULL accepted */

/* ---- what is told of a run ---- */

/* Means of a step in seconds, over all steps but the first of each rank. */
typedef struct readbench_breakdown {
    uint64_t n;
    double step; /* from when the batch was wanted to the step's end: the sum of the others */
    double kernel, memcpy, loader, cpu, other;
    double memset;  /* none: missing elements are filled before a batch is copied */
    double runtime; /* the batch was made, and the step did not have it yet */
} readbench_breakdown;

/* The command line of this run, for commands that measure again; they never hold --tune. */
typedef struct readbench_typed {
    int argc;
    char **argv;
    bool overwrite; /* reports are to be replaced; else theirs get a folder of their own */
} readbench_typed;

typedef struct readbench_run {
    const cm_readbench_report *report;
    const cm_error *failure;      /* or NULL */
    const char *command;          /* as it was typed; or NULL */
    const readbench_typed *typed; /* or NULL */
    unsigned nthreads;            /* -j of that command; 0: not given */
    const char *started;          /* "2026-03-01T12:00:00Z" */
    const char *out;              /* folder of the files; or NULL */
    bool replaces;                /* an older report is there */
    const char *trace;            /* file of a trace; or NULL */
    cm_net *net;                  /* that stores were read through; or NULL */
    double host_share;            /* of a step: its part on the CPU, by --step-time's other=T */
    bool preset;                  /* the settings are those of --preset */
} readbench_run;

/* Whether a session was emulated: every output then says so. */
bool readbench_emulated(const cm_readbench_report *report);
/* The session that speaks for the report: the best, or the only one, or the first. */
const cm_readbench_session *readbench_main_session(const cm_readbench_report *report);

/*
 * One batch: seconds of waiting for the loader, of these after it was made (runtime), of waiting
 * for the copy, of the step, and all together.
 */
typedef struct readbench_times {
    double loader, runtime, memcpy, step, total;
} readbench_times;
void readbench_batch_times(const cm_readbench_batch *batch, readbench_times *out);
/*
 * Whether it counts in the statistics of steps: a rank's first pays for starting up and
 * is told apart, and on one that failed no step was taken.
 */
bool readbench_is_step(const cm_readbench_batch *batch);
void readbench_break_down(const cm_readbench_session *session, double host_share,
                          readbench_breakdown *out);

/*
 * why.c, for the pages, into BUF, which is returned: the cause of a comparison; the dimensions that
 * make chunks the cause of S.  "" where it is another one.
 */
enum {
    READBENCH_WHY = 512
};
char *readbench_lead(const cm_readbench_report *r, char *buf, size_t size);
char *readbench_why(const cm_readbench_session *s, char *buf, size_t size);

/* The closing summary, for people. */
int readbench_print(const readbench_run *run, const cm_common_options *common, FILE *to,
                    cm_error *err);

/* The document of --json and summary.json; ONLY limits it to one session, SIZE_MAX: all. */
int readbench_document(const readbench_run *run, size_t only, cm_json **out, cm_error *err);
/* Settings as they were run; part of the document and the whole of config.yaml. */
cm_json *readbench_settings(cm_document *d, const cm_readbench_session *session);
int readbench_print_json(const readbench_run *run, cm_error *err);

/* `readbench --advise`.  Returns the exit status. */
int readbench_advise(const readbench_values *values, const cm_common_options *common,
                     const cm_texts *paths);
/* `readbench --compare DIR DIR`.  Returns the exit status. */
int readbench_compare(const cm_common_options *common, const cm_texts *paths);
/*
 * `readbench STORE...`, which was typed as COMMAND, of the words TYPED.  Returns the exit status.
 */
int readbench_measure(readbench_values *values, const cm_common_options *common,
                      const cm_texts *paths, const char *command, const readbench_typed *typed);

/* ---- files ---- */

/*
 * Makes the folder that files will go to: PATH, or for NULL a new one below
 * results/readbench named after the time.  CM_EEXIST when PATH is there, unless OVERWRITE
 * is set and it is a report or empty; *MADE is false then.  The name, to be freed, goes
 * to *OUT.
 */
int readbench_out_create(const char *path, bool overwrite, char **out, bool *made, cm_error *err);
/* Removes the files of the report that PATH holds, and nothing else. */
int readbench_out_clear(const char *path, cm_error *err);
/* Whether the folder PATH holds a report. */
bool readbench_is_report(const char *path);
/* Removes it where nothing was written into it. */
void readbench_out_remove(const char *out);

/* Writes all files of RUN into run->out. */
int readbench_write_files(const readbench_run *run, cm_error *err);

#endif

#include "ranks.h"

#include <fcntl.h>
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "../common/print.h"
#include "../common/say.h"
#include "base/clock.h"
#include "base/number.h"
#include "file.h"
#include "watch/monitor.h"

enum {
    PAUSE_MS = 10,
    MAX_SENTENCE = 900
};

/* A rank is fed that waits for less of its time: as the summary counts accelerators. */
#define MOST_WAIT 0.1

static char *rank_path(const readbench_ranks *r, uint64_t rank, const char *name, cm_error *err)
{
    return cm_asprintf(err, "%s/rank-%" PRIu64 "/%s", r->folder, rank, name);
}

static const char *epoch_name(uint64_t turn, char *buf, size_t size)
{
    snprintf(buf, size, "epoch-%" PRIu64 ".here", turn);
    return buf;
}

static int text_content(const void *text, FILE *to, cm_error *err)
{
    (void)err;
    fwrite(text, 1, strlen(text), to); /* readbench_file_write looks for errors */
    return CM_OK;
}

/* Appears whole: a folder that several nodes share shows what was begun, too. */
static int leave(const readbench_ranks *r, const char *name, const char *text, cm_error *err)
{
    return readbench_file_write(r->own, name, text_content, text, err);
}

/* CM_EIO with the sentence of rank RANK where it said that it failed. */
static int check_alive(const readbench_ranks *r, uint64_t rank, cm_error *err)
{
    char text[MAX_SENTENCE + 1];
    char *path = rank_path(r, rank, "failed", err);
    if (path == NULL)
        return CM_ENOMEM;
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    free(path);
    if (fd < 0)
        return CM_OK;
    ssize_t n = read(fd, text, MAX_SENTENCE);
    close(fd);
    text[n > 0 ? n : 0] = '\0';
    return cm_fail(err, CM_EIO, "rank %" PRIu64 " failed: %s", rank, text);
}

/* Waits for the file PATH of rank RANK, which is to do WHAT. */
static int wait_for(const readbench_ranks *r, uint64_t rank, const char *path, const char *what,
                    cm_error *err)
{
    const struct timespec pause = {.tv_nsec = PAUSE_MS * 1000000L};
    const uint64_t start = cm_now_ns();
    for (;;) {
        /* First: of a run that failed before, in the same folder, other files are there, too. */
        int rc = check_alive(r, rank, err);
        if (rc != CM_OK || access(path, F_OK) == 0)
            return rc;
        if (cm_monitor_canceled(r->monitor))
            return cm_fail(err, CM_ECANCELED, "stopped by request");
        if ((double)(cm_now_ns() - start) * 1e-9 > r->wait_s)
            return cm_fail(err, CM_EIO,
                           "rank %" PRIu64 " did not %s within %g s; see whether it runs, and "
                           "whether %s is one folder on all nodes",
                           rank, what, r->wait_s, r->folder);
        nanosleep(&pause, NULL);
    }
    return CM_OK;
}

static int meet(void *context, cm_error *err)
{
    readbench_ranks *r = context;
    char what[64], name[64];
    uint64_t turn = r->turn++;
    snprintf(what, sizeof(what), "come to epoch %" PRIu64, turn + 1);
    int rc = leave(r, epoch_name(turn, name, sizeof(name)), "", err);
    for (uint64_t k = 0; rc == CM_OK && k < r->n; k++) {
        char *path = rank_path(r, k, name, err);
        rc = path == NULL ? CM_ENOMEM : wait_for(r, k, path, what, err);
        free(path);
    }
    return rc;
}

int readbench_ranks_begin(readbench_ranks *r, readbench_values *v, cm_monitor *monitor,
                          cm_error *err)
{
    if (!v->launched || v->out == NULL)
        return CM_OK;
    const char *odd = v->o.tune          ? "--tune"
                      : v->sweep.n > 0   ? "--sweep"
                      : v->overwrite     ? "--overwrite"
                      : v->o.store.n > 1 ? "a second store"
                                         : NULL;
    if (odd != NULL)
        return cm_fail(err, CM_EINVAL,
                       "%s does not go with --out where a launcher started %" PRIu64 " ranks", odd,
                       v->o.world_size);
    *r = (readbench_ranks){.on = true,
                           .n = v->o.world_size,
                           .rank = v->o.rank,
                           .wait_s = v->rank_wait,
                           .monitor = monitor};
    r->folder = cm_strdup(v->out, err);
    r->own = cm_asprintf(err, "%s/rank-%" PRIu64, v->out, v->o.rank);
    if (r->folder == NULL || r->own == NULL)
        return CM_ENOMEM;
    v->out = r->own;
    v->o.meet = meet;
    v->o.meet_context = r;
    return CM_OK;
}

void readbench_ranks_release(readbench_ranks *r)
{
    free(r->folder);
    free(r->own);
    *r = (readbench_ranks){0};
}

/* ---- what all of them say ---- */

typedef struct together {
    double samples, logical; /* a second */
    double least, most;      /* samples a second, of one rank */
    double wait, worst;      /* share of the time; a mean, and of one rank */
    uint64_t worst_rank;
    cm_json *list;
} together;

static int read_rank(const readbench_ranks *r, uint64_t rank, together *all, cm_error *err)
{
    cm_json *document = NULL;
    double samples, logical, wait;
    char *path = rank_path(r, rank, "summary.json", err);
    int rc = path == NULL ? CM_ENOMEM : readbench_file_json(path, &document, err);
    const cm_json *s = cm_json_at(cm_json_member(document, "sessions"), 0);
    const cm_json *rates = cm_json_member(s, "rates");
    if (rc == CM_OK &&
        !(cm_json_get_double(cm_json_member(rates, "samples"), &samples) &&
          cm_json_get_double(cm_json_member(rates, "logical"), &logical) &&
          cm_json_get_double(cm_json_member(cm_json_member(s, "training"), "wait_share"), &wait)))
        rc = cm_fail(err, CM_EFORMAT, "%s: has no rates", path);
    cm_json_free(document);
    free(path);
    if (rc != CM_OK)
        return rc;
    all->samples += samples;
    all->logical += logical;
    all->wait += wait / (double)r->n;
    all->least = rank == 0 || samples < all->least ? samples : all->least;
    all->most = samples > all->most ? samples : all->most;
    if (rank == 0 || wait > all->worst) {
        all->worst = wait;
        all->worst_rank = rank;
    }
    cm_document d = {CM_OK, err};
    cm_json *j = cm_json_object();
    cm_document_u64(&d, j, "rank", rank);
    cm_document_double(&d, j, "samples", samples, true);
    cm_document_double(&d, j, "logical", logical, true);
    cm_document_double(&d, j, "wait_share", wait, true);
    cm_document_append(&d, all->list, j);
    return d.status;
}

static int json_content(const void *context, FILE *to, cm_error *err)
{
    return cm_print_json(context, to, err);
}

static int write_all(const readbench_ranks *r, together *all, cm_error *err)
{
    cm_document d = {CM_OK, err};
    cm_json *o = cm_json_object();
    cm_document_text(&d, o, "schema", "readbench-ranks/1");
    cm_document_u64(&d, o, "ranks", r->n);
    cm_document_double(&d, o, "samples", all->samples, true);
    cm_document_double(&d, o, "logical", all->logical, true);
    cm_document_double(&d, o, "wait_share", all->wait, true);
    cm_document_put(&d, o, "rank", all->list);
    all->list = NULL;
    int rc = d.status;
    if (rc == CM_OK)
        rc = readbench_file_write(r->folder, "ranks.json", json_content, o, err);
    cm_json_free(o);
    return rc;
}

static void print_all(const readbench_ranks *r, const together *all, FILE *to)
{
    char rate[64];
    cm_print(to,
             "\nreadbench: %" PRIu64 " ranks, whose epochs began together: %.4g samples/s, %s in "
             "all; a rank %.4g to %.4g samples/s\n"
             "readbench: they waited for data %.0f %% of the time, rank %" PRIu64
             " %.0f %%: the %" PRIu64 " ranks are %s\n",
             r->n, all->samples, cm_format_rate(all->logical, rate, sizeof(rate)), all->least,
             all->most, all->wait * 100, all->worst_rank, all->worst * 100, r->n,
             all->worst <= MOST_WAIT ? "fed" : "not fed");
}

/* Removes the files by which ranks began together. */
static void tidy(const readbench_ranks *r)
{
    for (uint64_t k = 0; k < r->n; k++)
        for (uint64_t turn = 0; turn < r->turn; turn++) {
            char name[64], *path = rank_path(r, k, epoch_name(turn, name, sizeof(name)), NULL);
            if (path != NULL)
                unlink(path);
            free(path);
        }
}

static int merge(readbench_ranks *r, bool quiet, bool json, cm_error *err)
{
    together all = {.list = cm_json_array()};
    int rc = CM_OK;
    for (uint64_t k = 0; rc == CM_OK && k < r->n; k++) {
        char *path = rank_path(r, k, "report.html", err); /* the last that is written */
        rc = path == NULL ? CM_ENOMEM : wait_for(r, k, path, "write its report", err);
        free(path);
        if (rc == CM_OK)
            rc = read_rank(r, k, &all, err);
    }
    if (rc == CM_OK)
        rc = write_all(r, &all, err);
    cm_json_free(all.list);
    if (rc == CM_OK)
        tidy(r);
    if (rc == CM_OK && !quiet)
        print_all(r, &all, json ? stderr : stdout);
    return rc;
}

int readbench_ranks_end(readbench_ranks *r, const cm_error *failure, bool quiet, bool json,
                        cm_error *err)
{
    if (!r->on)
        return CM_OK;
    if (failure != NULL)
        return leave(r, "failed", failure->text, err);
    return r->rank == 0 ? merge(r, quiet, json, err) : CM_OK;
}

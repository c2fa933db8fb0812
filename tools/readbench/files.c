/* Everything that --out holds. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "../common/print.h"
#include "file.h"
#include "files.h"
#include "page.h"

static int json_content(const void *context, FILE *to, cm_error *err)
{
    return cm_print_json(context, to, err);
}

/* The bytes at P that YAML wants escaped: delete, C1, the end of a line; 0: none. */
static unsigned escaped_nbytes(const unsigned char *p)
{
    if (p[0] == 0xe2 && p[1] == 0x80 && (p[2] & 0xfe) == 0xa8)
        return 3;
    return p[0] == 0x7f ? 1 : p[0] == 0xc2 && p[1] < 0xa0 ? 2 : 0;
}

/*
 * JSON is YAML, but for what version 1.1, which PyYAML reads, does not take: an exponent
 * without a point before it, and in texts the characters above.
 */
static void print_yaml(const char *text, FILE *to)
{
    bool quoted = false, pointed = false;

    for (const unsigned char *p = (const unsigned char *)text; *p != '\0'; p++) {
        unsigned nbytes = escaped_nbytes(p);
        if (nbytes > 0) {
            fprintf(to, "\\u%04x", nbytes == 3 ? 0x2000u + p[2] - 0x80 : p[nbytes - 1]);
            p += nbytes - 1;
            continue;
        }
        if (quoted && *p == '\\')
            putc(*p++, to);
        else if (*p == '"')
            quoted = !quoted;
        else if (!quoted && *p == 'e' && p[-1] >= '0' && p[-1] <= '9' && !pointed)
            fputs(".0", to);
        pointed = *p == '.' || (pointed && *p >= '0' && *p <= '9');
        putc(*p, to);
    }
    putc('\n', to);
}

static int yaml_content(const void *context, FILE *to, cm_error *err)
{
    cm_buf text = {0};
    int rc = cm_json_write(context, true, &text, err);
    if (rc == CM_OK)
        rc = cm_buf_append(&text, "", 1, err);
    if (rc == CM_OK)
        print_yaml((const char *)text.data, to);
    cm_buf_release(&text);
    return rc;
}

static int write_summary(const readbench_run *run, size_t only, const char *folder, cm_error *err)
{
    cm_json *o = NULL;
    int rc = readbench_document(run, only, &o, err);
    if (rc == CM_OK)
        rc = readbench_file_write(folder, "summary.json", json_content, o, err);
    if (rc == CM_OK)
        rc = readbench_file_write(folder, "summary.yaml", yaml_content, o, err);
    cm_json_free(o);
    return rc;
}

/* The command and the settings as run: of one session, or of each under its label. */
static int write_config(const readbench_run *run, size_t only, const char *folder, cm_error *err)
{
    const cm_readbench_report *r = run->report;
    cm_document d = {CM_OK, err};
    cm_json *o = cm_json_object(), *a = cm_json_array();

    cm_document_text(&d, o, "command", run->command);
    cm_document_text(&d, o, "started", run->started);
    for (size_t i = 0; i < r->nsessions; i++) {
        if (only != SIZE_MAX && only != i)
            continue;
        cm_json *session = cm_json_object();
        cm_document_text(&d, session, "label", r->session[i].label);
        cm_document_text(&d, session, "store", r->session[i].store);
        cm_document_bool(&d, session, "emulated", r->session[i].emulated);
        cm_document_put(&d, session, "settings", readbench_settings(&d, &r->session[i]));
        cm_document_append(&d, a, session);
    }
    cm_document_put(&d, o, "sessions", a);
    int rc = d.status;
    if (rc == CM_OK)
        rc = readbench_file_write(folder, "config.yaml", yaml_content, o, err);
    cm_json_free(o);
    return rc;
}

/* "2026-03-01T12:00:00Z" as seconds since 1970; 0 where there is none. */
static double began(const readbench_run *run)
{
    struct tm tm = {0};
    return run->started != NULL && strptime(run->started, "%Y-%m-%dT%H:%M:%SZ", &tm) != NULL
               ? (double)timegm(&tm)
               : 0;
}

static int write_guide(const readbench_run *run, size_t i, const char *folder, cm_error *err)
{
    static const struct {
        const char *name;
        readbench_content *content;
    } DATA[] = {{"benchmark.log", readbench_guide_log},
                {"benchmark_workers.log", readbench_guide_workers_log},
                {"timing_results.csv", readbench_guide_timings_csv},
                {"timing_summary.yaml", readbench_guide_timings_yaml}};
    const readbench_guide g = {.session = &run->report->session[i], .began = began(run)};
    int rc = CM_OK;
    for (size_t k = 0; k < sizeof(DATA) / sizeof(DATA[0]) && rc == CM_OK; k++)
        rc = readbench_file_write(folder, DATA[k].name, DATA[k].content, &g, err);
    return rc;
}

static int write_session(const readbench_run *run, size_t i, const char *folder, bool alone,
                         cm_error *err)
{
    static const struct {
        const char *name;
        readbench_content *content;
    } DATA[] = {{"batches.csv", readbench_batches_csv},
                {"events.log", readbench_events_log},
                {"events_workers.log", readbench_worker_events_log},
                {"trace.json", readbench_chrome_trace}};
    const cm_readbench_session *s = &run->report->session[i];
    /* First: by its summary a folder is known as a report, whatever happens to the rest. */
    int rc = write_summary(run, alone ? SIZE_MAX : i, folder, err);

    for (size_t k = 0; k < sizeof(DATA) / sizeof(DATA[0]) && rc == CM_OK; k++)
        rc = readbench_file_write(folder, DATA[k].name, DATA[k].content, s, err);
    if (rc == CM_OK && s->nlogged > 0)
        rc = readbench_file_write(folder, "samples.csv", readbench_samples_csv, s, err);
    if (rc == CM_OK)
        rc = write_guide(run, i, folder, err);
    if (rc == CM_OK)
        rc = write_config(run, i, folder, err);
    /* After the numbers: a disk that fills up costs a picture rather than them. */
    for (const readbench_plot *p = READBENCH_PLOTS; p->name && rc == CM_OK; p++)
        rc = plot_write(p, s, folder, err);
    readbench_page page = {.run = run, .session = i, .alone = alone};
    /* Last: who sees the page finds all that it links to. */
    return rc == CM_OK
               ? readbench_file_write(folder, "report.html", readbench_session_page, &page, err)
               : rc;
}

static int write_below(const readbench_run *run, size_t i, cm_error *err)
{
    char name[256];
    char *folder = readbench_file_path(
        run->out, "", page_folder(run->report->session[i].label, name, sizeof(name)), err);
    if (folder == NULL)
        return CM_ENOMEM;
    struct stat st;
    /* A session's folder of an older report may hold what is not ours, and stay. */
    bool made = mkdir(folder, 0777) == 0;
    bool there = made || (run->replaces && errno == EEXIST && lstat(folder, &st) == 0 &&
                          S_ISDIR(st.st_mode));
    int rc = there ? write_session(run, i, folder, false, err)
                   : cm_fail_errno(err, errno, "%s: this folder cannot be made", folder);
    if (rc != CM_OK && made)
        (void)rmdir(folder); /* where nothing came into it */
    free(folder);
    return rc;
}

int readbench_write_files(const readbench_run *run, cm_error *err)
{
    const cm_readbench_report *r = run->report;
    int rc = run->replaces ? readbench_out_clear(run->out, err) : CM_OK;

    if (rc == CM_OK && r->nsessions == 1)
        return write_session(run, 0, run->out, true, err);
    if (rc == CM_OK)
        rc = write_summary(run, SIZE_MAX, run->out, err);
    for (size_t i = 0; i < r->nsessions && rc == CM_OK; i++)
        rc = write_below(run, i, err);
    if (rc == CM_OK)
        rc = write_config(run, SIZE_MAX, run->out, err);
    for (const readbench_comparison *p = READBENCH_COMPARISONS; p->name && rc == CM_OK; p++)
        rc = plot_comparison_write(p, r, run->out, err);
    readbench_page page = {.run = run};
    if (rc == CM_OK)
        rc = readbench_file_write(run->out, "report.html", readbench_index_page, &page, err);
    return rc;
}

/*
 * `readbench --compare BEFORE AFTER`: a step's time in two reports, and the settings that
 * differ between them, from their summary.json.
 */
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "../common/print.h"
#include "../common/say.h"
#include "base/number.h"
#include "file.h"
#include "readbench.h"

enum {
    NROWS = 8
};

static const struct {
    const char *label, *member;
} ROWS[NROWS] = {{"step", "step"},     {"kernel", "kernel"},   {"memcpy", "memcpy"},
                 {"memset", "memset"}, {"runtime", "runtime"}, {"loader", "loader"},
                 {"CPU", "cpu"},       {"other", "other"}};

typedef struct side {
    const char *folder;
    cm_json *document;
    const cm_json *session;
    const char *label;
    double seconds[NROWS];
    double samples; /* a second */
    bool emulated;
} side;

/* The session of a document that speaks for it: the only one, or the best of a sweep. */
static int choose_session(side *s, const char *path, cm_error *err)
{
    const cm_json *sessions = cm_json_member(s->document, "sessions");
    const char *schema = cm_json_text(cm_json_member(s->document, "schema"), NULL);
    size_t n = cm_json_length(sessions);
    uint64_t best = 0;

    if (schema == NULL || strcmp(schema, "readbench/1") != 0 ||
        !cm_json_is(sessions, CM_JSON_ARRAY) || n == 0)
        return cm_fail(err, CM_EFORMAT, "%s: this is not a summary of a readbench run", path);
    bool known = cm_json_get_u64(cm_json_member(s->document, "best"), &best) && best < n;
    if (n > 1 && !known)
        return cm_fail(err, CM_EUNSUPPORTED,
                       "%s: this report holds %zu measurements; compare the folder of one of them",
                       s->folder, n);
    s->session = cm_json_at(sessions, (size_t)best);
    return CM_OK;
}

static int read_side(side *s, cm_error *err)
{
    struct stat st;
    char *path = readbench_file_path(s->folder, "", "summary.json", err);
    if (path == NULL)
        return CM_ENOMEM;
    int rc = stat(s->folder, &st) != 0 ? cm_fail_errno(err, errno, "%s: cannot be read", s->folder)
                                       : CM_OK;
    if (rc == CM_OK && access(path, F_OK) != 0)
        rc = cm_fail(err, CM_ENOTFOUND,
                     "%s: this is not a report of readbench: no summary.json there", s->folder);
    if (rc == CM_OK)
        rc = readbench_file_json(path, &s->document, err);
    if (rc == CM_OK)
        rc = choose_session(s, path, err);
    const cm_json *b = cm_json_member(s->session, "breakdown");
    for (size_t k = 0; k < NROWS && rc == CM_OK; k++)
        if (!cm_json_get_double(cm_json_member(b, ROWS[k].member), &s->seconds[k]) ||
            !(s->seconds[k] >= 0 && isfinite(s->seconds[k])))
            rc = cm_fail(err, CM_EFORMAT, "%s: breakdown: %s is not a time", path, ROWS[k].member);
    if (rc == CM_OK) {
        s->label = cm_json_text(cm_json_member(s->session, "label"), NULL);
        cm_json_get_bool(cm_json_member(s->session, "emulated"), &s->emulated);
        cm_json_get_double(cm_json_member(cm_json_member(s->session, "rates"), "samples"),
                           &s->samples);
    }
    free(path);
    return rc;
}

/* ---- settings that differ ---- */

typedef struct change {
    const char *name, *before, *after; /* NULL: not there */
} change;

static const char *setting(const side *s, const char *name)
{
    return cm_json_text(cm_json_member(cm_json_member(s->session, "settings"), name), NULL);
}

/* The next setting of IT, which is SIDE's, that differs; in AFTER's, those that BEFORE has not. */
static bool next_change(cm_json_iter *it, const side *before, const side *after, bool of_before,
                        change *out)
{
    while (cm_json_next(it)) {
        *out = (change){it->name, setting(before, it->name), setting(after, it->name)};
        /* The limit follows the memory that is free: it differs from run to run. */
        if (strcmp(it->name, "memory") == 0 || (!of_before && out->before))
            continue;
        if (!out->before != !out->after || (out->before && strcmp(out->before, out->after) != 0))
            return true;
    }
    return false;
}

static void each_change(const side *a, const side *b, void *context,
                        void (*tell)(void *context, const change *c))
{
    const side *sides[] = {a, b};
    change c;
    for (size_t i = 0; i < 2; i++) {
        cm_json_iter it = cm_json_begin(cm_json_member(sides[i]->session, "settings"));
        while (next_change(&it, a, b, i == 0, &c))
            tell(context, &c);
    }
}

static void print_change(void *context, const change *c)
{
    unsigned *n = context;
    if ((*n)++ == 0)
        puts("settings that differ, before and after:");
    fputs("  ", stdout);
    cm_print_clean(c->name, stdout);
    fputs(": ", stdout);
    cm_print_clean(c->before ? c->before : "not given", stdout);
    fputs(", ", stdout);
    cm_print_clean(c->after ? c->after : "not given", stdout);
    putchar('\n');
}

typedef struct change_document {
    cm_document *d;
    cm_json *changes;
} change_document;

static void add_change(void *context, const change *c)
{
    change_document *x = context;
    cm_json *o = cm_json_object();
    cm_document_text(x->d, o, "before", c->before);
    cm_document_text(x->d, o, "after", c->after);
    cm_document_put(x->d, x->changes, c->name, o);
}

/* ---- what is told ---- */

static int print_table(const side *a, const side *b, cm_error *err)
{
    cm_table t = {.ncolumns = 6, .right = {false, true, true, true, true, true}};
    static const char *const HEADS[] = {"", "before", "share", "after", "share", "after/before"};
    char x[32], y[32];

    for (size_t k = 0; k < 6; k++)
        cm_table_cell(&t, "%s", HEADS[k]);
    for (size_t k = 0; k < NROWS; k++) {
        cm_table_cell(&t, "%s", ROWS[k].label);
        cm_table_cell(&t, "%s", cm_format_time(a->seconds[k], x, sizeof(x)));
        cm_table_cell(&t, "%s", cm_format_percent(a->seconds[k], a->seconds[0], y, sizeof(y)));
        cm_table_cell(&t, "%s", cm_format_time(b->seconds[k], x, sizeof(x)));
        cm_table_cell(&t, "%s", cm_format_percent(b->seconds[k], b->seconds[0], y, sizeof(y)));
        if (a->seconds[k] > 0)
            cm_table_cell(&t, "%.2f", b->seconds[k] / a->seconds[k]);
        else
            cm_table_cell(&t, "-");
    }
    bool ok = cm_table_print(&t, 0, stdout);
    cm_table_release(&t);
    if (!ok)
        return cm_fail(err, CM_ENOMEM, "no memory to print the table");
    const side *sides[] = {a, b};
    for (size_t i = 0; i < 2; i++) {
        cm_print(stdout, "%s: ", i ? "after" : "before");
        cm_print_clean(sides[i]->folder, stdout);
        if (sides[i]->label) {
            fputs(", ", stdout);
            cm_print_clean(sides[i]->label, stdout);
        }
        cm_print(stdout, ": %.4g samples/s%s\n", sides[i]->samples,
                 sides[i]->emulated ? ", EMULATED" : "");
    }
    unsigned nchanges = 0;
    each_change(a, b, &nchanges, print_change);
    return CM_OK;
}

static cm_json *side_document(cm_document *d, const side *s)
{
    cm_json *o = cm_json_object(), *b = cm_json_object();
    cm_document_text(d, o, "folder", s->folder);
    cm_document_text(d, o, "label", s->label);
    cm_document_bool(d, o, "emulated", s->emulated);
    cm_document_double(d, o, "samples", s->samples, true);
    for (size_t k = 0; k < NROWS; k++)
        cm_document_double(d, b, ROWS[k].member, s->seconds[k], true);
    cm_document_put(d, o, "breakdown", b);
    return o;
}

static int print_json(const side *a, const side *b, cm_error *err)
{
    cm_document d = {CM_OK, err};
    cm_json *o = cm_json_object();
    cm_document_head(&d, o, "readbench-compare/1", "done", NULL);
    cm_document_put(&d, o, "before", side_document(&d, a));
    cm_document_put(&d, o, "after", side_document(&d, b));
    change_document changes = {&d, cm_json_object()};
    each_change(a, b, &changes, add_change);
    cm_document_put(&d, o, "changed", changes.changes);
    return cm_document_print(&d, o, stdout);
}

int readbench_compare(const cm_common_options *common, const cm_texts *paths)
{
    static const char *const ALLOWED[] = {"compare", NULL};
    cm_error err = {0};

    int status = cm_tool_refuse_others(&READBENCH, common, ALLOWED);
    if (status != CM_TOOL_RUN)
        return status;
    if (paths->n != 2)
        return cm_tool_usage_error(&READBENCH, "--compare takes two folders, not %zu", paths->n);
    side a = {.folder = paths->text[0]}, b = {.folder = paths->text[1]};
    int rc = read_side(&a, &err);
    if (rc == CM_OK)
        rc = read_side(&b, &err);
    if (rc == CM_OK)
        rc = common->json ? print_json(&a, &b, &err) : print_table(&a, &b, &err);
    if (rc != CM_OK)
        cm_say(READBENCH.name, "%s", err.text);
    cm_json_free(a.document);
    cm_json_free(b.document);
    /* Folders that are no reports are a failure of the data, not of the command line. */
    return rc == CM_OK ? CM_EXIT_DONE : CM_EXIT_FAILED;
}

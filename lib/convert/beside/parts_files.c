#include "convert/beside/parts_files.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/glibc.h"
#include "base/number.h"
#include "convert/beside/journal_line.h"
#include "model/digest.h"

#define PLAN_NAME "plan"
#define PART_NAME "part-"

static const uint64_t MAX_NBYTES = (uint64_t)1 << 30;

char *cm_part_file(uint64_t number, const char *what, cm_error *err)
{
    return cm_asprintf(err, PART_NAME "%" PRIu64 ".%s", number + 1, what);
}

bool cm_parts_is_file(const char *name)
{
    return strcmp(name, PLAN_NAME) == 0 || strcmp(name, CM_PARTS_COMPLETE) == 0 ||
           strncmp(name, PART_NAME, strlen(PART_NAME)) == 0;
}

static cm_verdict judge_file(void *context, const char *below, cm_entry_kind kind)
{
    (void)context;
    return kind == CM_ENTRY_FILE && cm_parts_is_file(below) ? CM_REMOVE : CM_KEEP;
}

int cm_parts_forget(const cm_beside *b, cm_error *err)
{
    if (b->in == NULL)
        return CM_OK;
    /* The plan goes first: one that is there and not complete means that parts are missing. */
    int rc = cm_store_delete(b->in, PLAN_NAME, err);
    if (rc == CM_OK)
        rc = cm_store_sweep(b->in, "", judge_file, NULL, err);
    if (rc != CM_OK)
        cm_error_place(err, b->shown);
    return rc;
}

/* ---- documents: one line with a checksum each ---- */

/* Tries of a line that is not whole: an answer that a network made shorter looks like one. */
enum {
    MAX_TRIES = 3
};

/* *payload, in TEXT, is NULL where there is no such file or its line is not whole. */
static int read_line(const cm_beside *b, const char *name, cm_buf *text, bool *there,
                     char **payload, cm_error *err)
{
    *payload = NULL;
    *there = false;
    if (b->in == NULL)
        return CM_OK;
    for (int i = 0; *payload == NULL && i < MAX_TRIES; i++) {
        size_t at = 0;
        int rc = cm_store_get(b->in, name, MAX_NBYTES, text, err);
        *there = rc == CM_OK;
        if (rc == CM_ENOTFOUND)
            return CM_OK;
        if (rc != CM_OK) {
            cm_error_prefix(err, "%s", b->path);
            return rc;
        }
        *payload = cm_journal_line_next((char *)text->data, text->nbytes, &at);
    }
    return CM_OK;
}

static int line_of(const cm_json *json, cm_buf *line, cm_error *err)
{
    cm_buf payload = {0};
    int rc = cm_json_write(json, false, &payload, err);
    if (rc == CM_OK)
        rc = cm_journal_line_append(line, (const char *)payload.data, payload.nbytes, err);
    cm_buf_release(&payload);
    return rc;
}

int cm_part_note(const cm_beside *b, const char *name, const char *hash, cm_json *more,
                 cm_error *err)
{
    cm_buf line = {0};
    cm_json *j = more == NULL ? cm_json_object() : more;
    int rc = cm_json_set(j, "plan", cm_json_string(hash), err);
    if (rc == CM_OK)
        rc = line_of(j, &line, err);
    if (rc == CM_OK && (rc = cm_store_put(b->in, name, line.data, line.nbytes, err)) != CM_OK)
        cm_error_prefix(err, "%s", b->path);
    cm_buf_release(&line);
    cm_json_free(j);
    return rc;
}

int cm_part_noted(const cm_beside *b, const char *name, const char *hash, cm_json **out,
                  cm_error *err)
{
    cm_buf text = {0};
    cm_json *j = NULL;
    char *payload;
    bool there;
    *out = NULL;
    int rc = read_line(b, name, &text, &there, &payload, err);
    if (rc == CM_OK && payload != NULL &&
        cm_json_parse(payload, strlen(payload), &j, NULL) == CM_OK) {
        const char *plan = cm_json_text(cm_json_member(j, "plan"), NULL);
        if (plan != NULL && strcmp(plan, hash) == 0) {
            *out = j;
            j = NULL;
        }
    }
    cm_json_free(j);
    cm_buf_release(&text);
    return rc;
}

/* ---- the plan ---- */

void cm_parts_plan_release(cm_parts_plan *plan)
{
    cm_json_free(plan->json);
    *plan = (cm_parts_plan){0};
}

static void hash_of(const char *payload, char hash[33])
{
    cm_digest digest = {0};
    cm_digest_element(&digest, 0, payload, strlen(payload));
    cm_digest_text(&digest, hash);
}

int cm_parts_plan_read(const cm_beside *b, cm_parts_plan *out, cm_error *err)
{
    cm_buf text = {0};
    cm_json *complete = NULL;
    char *payload;
    bool there;
    *out = (cm_parts_plan){0};
    int rc = read_line(b, PLAN_NAME, &text, &there, &payload, err);
    if (rc == CM_OK && there) {
        if (payload == NULL || cm_json_parse(payload, strlen(payload), &out->json, NULL) != CM_OK ||
            !cm_json_get_u64(cm_json_member(out->json, "parts"), &out->nparts) ||
            !cm_json_get_u64(cm_json_member(out->json, "first index"), &out->first) ||
            !cm_json_get_u64(cm_json_member(out->json, "step"), &out->step) || out->nparts == 0 ||
            out->step == 0)
            rc = cm_fail(err, CM_EFORMAT,
                         "%s/" PLAN_NAME ": is damaged; remove the folder to begin again", b->path);
        else
            hash_of(payload, out->hash);
    }
    cm_buf_release(&text);
    if (rc == CM_EFORMAT) /* not what is wrong with a source */
        cm_error_place(err, b->shown);
    if (rc == CM_OK && out->json != NULL)
        rc = cm_part_noted(b, CM_PARTS_COMPLETE, out->hash, &complete, err);
    out->complete = complete != NULL;
    cm_json_free(complete);
    if (rc != CM_OK)
        cm_parts_plan_release(out);
    return rc;
}

/* A whole file with a name of its own, on the disk. */
static int write_file(const cm_beside *b, const char *name, const cm_buf *line, cm_error *err)
{
    int fd = openat(b->fd, name, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666), rc = CM_OK;
    if (fd < 0)
        return cm_fail_errno(err, errno, "%s/%s", b->path, name);
    int errnum = cm_fd_write(fd, line->data, line->nbytes);
    if (errnum != 0)
        rc = cm_fail_errno(err, errnum, "%s/%s", b->path, name);
    if (rc == CM_OK && fsync(fd) != 0)
        rc = cm_fail_errno(err, errno, "%s/%s", b->path, name);
    if (close(fd) != 0 && errno != EINTR && rc == CM_OK)
        rc = cm_fail_errno(err, errno, "%s/%s", b->path, name);
    return rc;
}

/* link(), or what the file system has instead: 0, EEXIST, or another errno. */
static int give_name(const cm_beside *b, const char *name)
{
    struct stat st;
    if (linkat(b->fd, name, b->fd, PLAN_NAME, 0) == 0)
        return 0;
    int errnum = errno;
    /* NFS may lose the answer of a request that was served. */
    if (fstatat(b->fd, name, &st, AT_SYMLINK_NOFOLLOW) == 0 && st.st_nlink == 2)
        return 0;
    if (errnum == EPERM || errnum == EOPNOTSUPP || errnum == ENOSYS || errnum == EMLINK)
        errnum = renameat2(b->fd, name, b->fd, PLAN_NAME, RENAME_NOREPLACE) == 0 ? 0 : errno;
    return errnum;
}

/* Whether the plan that is there is LINE. */
static int is_there(const cm_beside *b, const cm_buf *line, bool *out, cm_error *err)
{
    cm_buf now = {0};
    int rc = cm_store_get(b->in, PLAN_NAME, MAX_NBYTES, &now, err);
    *out =
        rc == CM_OK && now.nbytes == line->nbytes && memcmp(now.data, line->data, now.nbytes) == 0;
    cm_buf_release(&now);
    return rc == CM_ENOTFOUND ? CM_OK : rc;
}

/*
 * In a bucket.  One that is there already may be ours: an answer was lost, or another process has
 * published the same.  Without conditional writes the lock, which the caller has, must do.
 */
static int put_plan(const cm_beside *b, const cm_buf *line, bool *published, cm_error *err)
{
    int rc = cm_store_put_if(b->in, PLAN_NAME, line->data, line->nbytes, NULL, err);
    if (rc == CM_EUNSUPPORTED) {
        rc = cm_store_size(b->in, PLAN_NAME, NULL, err);
        if (rc == CM_ENOTFOUND)
            rc = cm_store_put(b->in, PLAN_NAME, line->data, line->nbytes, err);
    }
    if (rc == CM_OK || rc == CM_EEXIST)
        rc = is_there(b, line, published, err);
    if (rc != CM_OK)
        cm_error_place(err, b->path);
    return rc;
}

int cm_parts_plan_publish(const cm_beside *b, const cm_json *json, bool *published, cm_error *err)
{
    char name[64];
    cm_buf line = {0};
    *published = false;
    cm_beside_temporary(name, sizeof(name));
    int rc = line_of(json, &line, err);
    if (rc == CM_OK && b->remote) {
        rc = put_plan(b, &line, published, err);
        cm_buf_release(&line);
        return rc;
    }
    if (rc == CM_OK)
        rc = write_file(b, name, &line, err);
    if (rc == CM_OK) {
        struct stat st;
        int errnum = give_name(b, name);
        *published = errnum == 0;
        if (errnum == EEXIST && fstatat(b->fd, PLAN_NAME, &st, AT_SYMLINK_NOFOLLOW) == 0 &&
            !S_ISREG(st.st_mode))
            rc = cm_beside_refuse(b, PLAN_NAME, err);
        else if (errnum != 0 && errnum != EEXIST)
            rc = cm_fail_errno(err, errnum, "%s/" PLAN_NAME, b->path);
    }
    unlinkat(b->fd, name, 0);
    cm_buf_release(&line);
    return rc;
}

/* ---- others ---- */

typedef struct names {
    const cm_beside *b;
    uint64_t n;
    cm_lock_holder *who;
    bool glances;        /* watches none */
    uint64_t nunwatched; /* of those glanced at */
} names;

static int look_at_lock(void *context, const char *name, bool is_prefix, cm_error *err)
{
    names *found = context;
    size_t n = strlen(name);
    cm_lock_holder holder;
    if (is_prefix || strncmp(name, PART_NAME, strlen(PART_NAME)) != 0 || n < 5 ||
        strcmp(name + n - 5, ".lock") != 0)
        return CM_OK;
    int rc = found->glances ? cm_lock_glance(found->b, name, &holder, err)
                            : cm_lock_look(found->b, name, &holder, err);
    found->nunwatched += rc == CM_OK && holder.unwatched;
    if (rc == CM_OK && holder.state != CM_LOCK_FREE && found->n++ == 0)
        *found->who = holder;
    return rc;
}

int cm_parts_running(const cm_beside *b, uint64_t *n, cm_lock_holder *who, cm_error *err)
{
    /* All that look silent are watched at once, not one after the other. */
    names found = {.b = b, .who = who, .glances = true};
    int rc = b->in == NULL ? CM_OK : cm_store_list(b->in, "", look_at_lock, &found, err);
    if (rc == CM_OK && found.nunwatched > 0) {
        found = (names){.b = b, .who = who};
        rc = cm_store_list(b->in, "", look_at_lock, &found, err);
    }
    *n = found.n;
    return rc;
}

int cm_parts_check_none(cm_beside *b, bool overwrite, cm_error *err)
{
    cm_parts_plan plan = {0};
    cm_lock_holder who;
    uint64_t n = 0;
    int rc = b->in == NULL ? cm_beside_open(b, false, err) : CM_OK;
    if (rc == CM_OK)
        rc = cm_parts_running(b, &n, &who, err);
    if (rc == CM_OK && n > 0)
        rc = cm_fail(err, CM_EEXIST, "%s: %" PRIu64 " %s being written (%s); wait for the end",
                     b->shown, n, cm_of_count(n, "part of it is", "parts of it are"), who.who);
    if (rc == CM_OK && !overwrite)
        rc = cm_parts_plan_read(b, &plan, err);
    if (rc == CM_OK && !plan.complete && cm_json_has(plan.json, CM_PARTS_ADD))
        rc = cm_fail(err, CM_EEXIST,
                     "%s: %" PRIu64 " %s to it, and not all is done; run what is missing; an "
                     "append by one process with `break_lock` gives it up",
                     b->shown, plan.nparts, cm_of_count(plan.nparts, "part adds", "parts add"));
    else if (rc == CM_OK && !plan.complete && cm_json_has(plan.json, CM_PARTS_COMMIT))
        rc = cm_fail(err, CM_EEXIST,
                     "%s: %" PRIu64 " %s into it, and not all is done; run what is missing; a "
                     "conversion by one process with `overwrite`, or an append with `break_lock`, "
                     "gives it up",
                     b->shown, plan.nparts, cm_of_count(plan.nparts, "part writes", "parts write"));
    else if (rc == CM_OK && plan.json != NULL && !plan.complete)
        rc = cm_fail(err, CM_EEXIST,
                     "%s: was begun in %" PRIu64 " %s, and is not complete; run what is "
                     "missing; to begin again remove it and use `overwrite`",
                     b->shown, plan.nparts, cm_of_count(plan.nparts, "part", "parts"));
    cm_parts_plan_release(&plan);
    return rc;
}

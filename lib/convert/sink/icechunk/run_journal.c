#include "convert/sink/icechunk/run_journal.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/paged.h"
#include "convert/beside/parts_files.h"
#include "format/icechunk/key.h"

#define HEAD "icechunk"

enum {
    NFILES = 3,
    MOST_NBYTES = 64 << 20 /* of the head */
};

static const char *const NAMES[CM_RUN_NFILES] = {HEAD, "icechunk-chunks", "icechunk-small",
                                                 "icechunk-files"};
static const char *const PART_NAMES[CM_RUN_NFILES] = {"journal", "chunks", "small", "files"};

bool cm_run_journal_is_there(const cm_beside *b)
{
    return b->in != NULL && cm_store_size(b->in, HEAD, NULL, NULL) == CM_OK;
}

static void begin_look(cm_run_journal *j, cm_beside *b)
{
    *j = (cm_run_journal){.beside = b, .named = !b->remote, .fd = {-1, -1, -1}};
}

/* Reads the head of a journal whose files are named. */
static int look(cm_run_journal *j, cm_error *err)
{
    cm_buf text = {0};
    if (j->beside->in == NULL)
        return CM_OK;
    int rc = cm_store_get(j->beside->in, j->name[0], MOST_NBYTES, &text, err);
    j->there = rc == CM_OK;
    if (rc == CM_OK && cm_json_parse(text.data, text.nbytes, &j->head, NULL) != CM_OK)
        j->head = NULL;
    cm_buf_release(&text);
    return rc == CM_ENOTFOUND ? CM_OK : rc;
}

int cm_run_journal_look(cm_run_journal *j, cm_beside *b, cm_error *err)
{
    begin_look(j, b);
    for (unsigned i = 0; i < CM_RUN_NFILES; i++)
        snprintf(j->name[i], sizeof(j->name[i]), "%s", NAMES[i]);
    return look(j, err);
}

int cm_run_journal_look_part(cm_run_journal *j, cm_beside *b, uint64_t number, cm_error *err)
{
    begin_look(j, b);
    for (unsigned i = 0; i < CM_RUN_NFILES; i++) {
        char *name = cm_part_file(number, PART_NAMES[i], err);
        if (name == NULL)
            return CM_ENOMEM;
        snprintf(j->name[i], sizeof(j->name[i]), "%s", name);
        free(name);
    }
    return look(j, err);
}

int cm_run_journal_look_commit(cm_run_journal *j, cm_beside *b, cm_error *err)
{
    begin_look(j, b);
    for (unsigned i = 0; i < CM_RUN_NFILES; i++)
        snprintf(j->name[i], sizeof(j->name[i]), "part-commit.%s", PART_NAMES[i]);
    return look(j, err);
}

/* ---- files ---- */

static int open_named(cm_run_journal *j, unsigned i, int flags, cm_error *err)
{
    const char *name = j->name[i + 1];
    j->fd[i] = openat(j->beside->fd, name, O_RDWR | O_NOFOLLOW | O_CLOEXEC | flags, 0666);
    if (j->fd[i] >= 0)
        return CM_OK;
    if (errno == ELOOP)
        return cm_beside_refuse(j->beside, name, err);
    return cm_fail_errno(err, errno, "%s/%s", j->beside->path, name);
}

static int open_files(cm_run_journal *j, int flags, const char *scratch, cm_error *err)
{
    int rc = CM_OK;
    for (unsigned i = 0; rc == CM_OK && i < NFILES; i++) {
        if (j->named)
            rc = open_named(j, i, flags, err);
        else if ((j->fd[i] = cm_unnamed_file(scratch)) < 0)
            rc = cm_fail_errno(err, errno, "no scratch file for the journal");
    }
    return rc == CM_OK ? cm_ice_records_open(&j->records, j->fd[0], j->fd[1], j->fd[2], err) : rc;
}

int cm_run_journal_continue(cm_run_journal *j, cm_error *err)
{
    return open_files(j, O_CREAT, NULL, err);
}

int cm_run_journal_begin(cm_run_journal *j, const cm_json *head, const char *scratch, cm_error *err)
{
    cm_buf text = {0};
    int rc = open_files(j, O_CREAT | O_TRUNC, scratch, err);
    if (rc == CM_OK)
        rc = cm_json_write(head, true, &text, err);
    if (rc == CM_OK && j->named)
        rc = cm_store_put(j->beside->in, j->name[0], text.data, text.nbytes, err);
    cm_buf_release(&text);
    return rc;
}

/* The last file says whether the commit was made, as long as the head is there. */
void cm_run_journal_remove(cm_run_journal *j)
{
    if (!j->named || j->beside == NULL)
        return;
    for (unsigned i = 0; i < NFILES; i++) {
        if (i + 1 == NFILES)
            cm_beside_remove(j->beside, j->name[0]);
        cm_beside_remove(j->beside, j->name[i + 1]);
    }
}

void cm_run_journal_close(cm_run_journal *j)
{
    for (unsigned i = 0; i < NFILES; i++) {
        if (j->beside != NULL && j->fd[i] >= 0)
            close(j->fd[i]);
        j->fd[i] = -1;
    }
    cm_json_free(j->head);
    j->head = NULL;
}

/* ---- what the run made ---- */

bool cm_run_journal_snapshots(const cm_run_journal *j, size_t *n,
                              bool (*visit)(void *context, const uint8_t *id), void *context)
{
    uint8_t id[CM_ICE_ID];
    const uint64_t most = atomic_load(&j->records.nfiles);
    char kind;
    *n = 0;
    for (uint64_t i = 0; i < most; i++) {
        const bool named = cm_ice_records_named(&j->records, i, &kind, id);
        if (kind != CM_RUN_PUBLISHED && kind != CM_ICE_UNREADABLE)
            continue;
        ++*n;
        if (named && visit(context, id))
            return true;
    }
    return false;
}

static int compare_ids(const void *a, const void *b)
{
    return memcmp(a, b, CM_ICE_ID);
}

static bool is_among(const uint8_t *id, const uint8_t *list, size_t n)
{
    return n > 0 && bsearch(id, list, n, CM_ICE_ID, compare_ids) != NULL;
}

static int remove_file(cm_store *root, const char *folder, const uint8_t *id, cm_error *err)
{
    char key[CM_ICE_KEY_SIZE];
    cm_ice_key(folder, id, key);
    return cm_store_delete(root, key, err);
}

/* The file of an entry of KIND, unless it is among those that stay. */
static int remove_entry(cm_store *root, char kind, const uint8_t *id, const cm_run_files *stay,
                        cm_error *err)
{
    if (kind == 'c' && !is_among(id, stay->chunk, stay->nchunks))
        return remove_file(root, "chunks", id, err);
    if (kind == 'm' && !is_among(id, stay->manifest, stay->nmanifests))
        return remove_file(root, "manifests", id, err);
    if (kind == CM_RUN_INITIAL && cm_store_size(root, "repo", NULL, NULL) != CM_ENOTFOUND)
        return CM_OK;
    if ((kind != 's' && kind != CM_RUN_INITIAL) ||
        (stay->snapshot != NULL && memcmp(id, stay->snapshot, CM_ICE_ID) == 0))
        return CM_OK;
    int rc = remove_file(root, "transactions", id, err);
    return rc == CM_OK ? remove_file(root, "snapshots", id, err) : rc;
}

int cm_run_journal_tidy(const cm_run_journal *j, cm_store *root, const cm_run_files *stay,
                        cm_error *err)
{
    uint8_t id[CM_ICE_ID];
    char kind;
    const uint64_t most = atomic_load(&j->records.nfiles);
    int rc = CM_OK;
    for (uint64_t i = 0; rc == CM_OK && i < most; i++)
        if (cm_ice_records_named(&j->records, i, &kind, id))
            rc = remove_entry(root, kind, id, stay, err);
    return rc;
}

int cm_run_journal_erase(const cm_run_journal *j, cm_store *root, cm_error *err)
{
    return cm_run_journal_tidy(j, root, &(cm_run_files){0}, err);
}

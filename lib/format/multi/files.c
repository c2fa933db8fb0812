#include "format/multi/files.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include "format/multi/ahead.h"

enum {
    NO_SLOT = 0,        /* slots are numbered from 1 */
    SHARE_OF_LIMIT = 4, /* of the process's limit of open files; the rest is for output */
    LEAST_FILES = 4,    /* at once */
    MOST_FILES = 256,   /* more do not help: archives are read in order (cm_multi_stretches) */
    MOST_DATASETS = 8,  /* each takes a few descriptors, and the metadata of a file */
    FILES_PER_DATASET = 4
};

typedef enum slot_state {
    SLOT_EMPTY,
    SLOT_OPENING,
    SLOT_OPEN
} slot_state;

typedef struct slot {
    slot_state state;
    uint32_t file;
    unsigned users;
    uint64_t used; /* tick of the last use */
    int fd;
    cm_dataset *ds;
    cm_copy *copy; /* the copy taken for it */
} slot;

/* One kind of open file: descriptors, or datasets. */
typedef struct pool {
    slot *slot;
    unsigned nslots;
    uint16_t *at; /* slot of each file, from 1 */
    bool shared;  /* several threads may use one slot at once */
} pool;

struct cm_multi_files {
    const cm_multi_file *file;
    cm_dataset_options options;
    pthread_mutex_t lock;
    pthread_cond_t wake;
    uint64_t tick;
    pool raw, library;
    cm_multi_ahead *ahead; /* for objects behind a network; NULL: all files are local */
};

/* ---- one file ---- */

static uint64_t mtime_of(const struct stat *st)
{
    return (uint64_t)st->st_mtim.tv_sec * 1000000000u + (uint64_t)st->st_mtim.tv_nsec;
}

static int check_identity(const cm_multi_file *f, const struct stat *st, cm_error *err)
{
    const char *what = !S_ISREG(st->st_mode)                          ? "it is not a regular file"
                       : f->ino != st->st_ino || f->dev != st->st_dev ? "it is another file"
                       : f->nbytes != (uint64_t)st->st_size           ? "its size changed"
                       : f->mtime_ns != mtime_of(st)                  ? "it was written to"
                                                                      : NULL;
    if (what == NULL)
        return CM_OK;
    cm_fail(err, CM_EFORMAT, "%s: changed since it was surveyed: %s; start again", f->path, what);
    cm_error_place(err, f->path);
    return CM_EFORMAT;
}

/* Checks an open file against the survey; a copy has the identity of its object. */
static int check_open(const cm_multi_file *f, int fd, cm_error *err)
{
    struct stat st;
    if (f->copy != NULL)
        return CM_OK;
    return fstat(fd, &st) == 0 ? check_identity(f, &st, err)
                               : cm_fail_errno(err, errno, "%s", f->path);
}

/* Opens F, which lies at PATH.  *FULL: the process has no descriptors left. */
static int open_raw(const cm_multi_file *f, const char *path, slot *s, bool *full, cm_error *err)
{
    s->fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    if (s->fd < 0) {
        *full = errno == EMFILE;
        int rc = cm_fail_errno(err, errno, "%s: cannot be opened", f->path);
        cm_error_place(err, f->path);
        return rc;
    }
    int rc = check_open(f, s->fd, err);
    if (rc != CM_OK) {
        close(s->fd);
        s->fd = -1;
    }
    return rc;
}

static int check_path(const cm_multi_file *f, cm_error *err)
{
    struct stat st;
    if (f->copy != NULL)
        return CM_OK;
    if (stat(f->path, &st) == 0)
        return check_identity(f, &st, err);
    int rc = cm_fail_errno(err, errno, "%s", f->path);
    cm_error_place(err, f->path);
    return rc;
}

static int open_library(const cm_multi_files *files, const cm_multi_file *f, const char *path,
                        slot *s, cm_error *err)
{
    int rc = check_path(f, err);
    if (rc == CM_OK)
        rc = cm_dataset_open(path, "", &files->options, &s->ds, err);
    if (rc != CM_OK && f->copy != NULL)
        cm_copy_name(f->copy, path, err);
    if (rc == CM_OK)
        rc = check_path(f, err); /* checks that PATH still names the file that was opened */
    if (rc != CM_OK) {
        cm_dataset_close(s->ds);
        s->ds = NULL;
        cm_error_place(err, f->path);
    }
    return rc;
}

static void empty(slot *s)
{
    if (s->fd >= 0)
        close(s->fd);
    cm_dataset_close(s->ds);
    if (s->copy != NULL)
        cm_copy_give(s->copy);
    *s = (slot){.fd = -1};
}

/* ---- pools ---- */

static int pool_init(pool *p, unsigned nslots, size_t nfiles, bool shared, cm_error *err)
{
    p->nslots = nslots;
    p->shared = shared;
    p->slot = cm_calloc(nslots, sizeof(p->slot[0]), err);
    p->at = cm_calloc(nfiles + 1, sizeof(p->at[0]), err);
    if (p->slot == NULL || p->at == NULL)
        return CM_ENOMEM;
    for (unsigned i = 0; i < nslots; i++)
        p->slot[i].fd = -1;
    return CM_OK;
}

static void pool_release(pool *p)
{
    for (unsigned i = 0; p->slot != NULL && i < p->nslots; i++)
        empty(&p->slot[i]);
    free(p->slot);
    free(p->at);
}

/* The least recently used idle slot; NULL: all that are open are in use. */
static slot *idle_slot(const pool *p)
{
    slot *found = NULL;
    for (unsigned i = 0; i < p->nslots; i++) {
        slot *s = &p->slot[i];
        if (s->state == SLOT_OPEN && s->users == 0 && (found == NULL || s->used < found->used))
            found = s;
    }
    return found;
}

/* An empty slot, or an idle one; NULL: all are in use. */
static slot *free_slot(const pool *p)
{
    for (unsigned i = 0; i < p->nslots; i++)
        if (p->slot[i].state == SLOT_EMPTY)
            return &p->slot[i];
    return idle_slot(p);
}

/* Closes the idle file that was not used longest; false: there is none. */
static bool shrink(pool *p)
{
    slot *s = idle_slot(p);
    if (s == NULL)
        return false;
    p->at[s->file] = NO_SLOT;
    empty(s);
    return true;
}

/* Finds the local path of F.  *FULL: no room for its copy until an idle file is closed. */
static int find_place(const cm_multi_file *f, slot *s, bool last, char path[CM_COPY_PATH_SIZE],
                      bool *full, cm_error *err)
{
    bool taken = true;
    int rc = CM_OK;
    if (f->copy != NULL && s->copy == NULL) {
        rc = cm_copy_take(f->copy, last ? CM_COPY_NOW : CM_COPY_IF_ROOM, &taken, path, err);
        s->copy = taken ? f->copy : NULL;
        *full = rc == CM_OK && !taken;
    }
    return rc == CM_OK && taken && f->copy != NULL ? cm_copy_path(f->copy, path, err) : rc;
}

static int open_once(cm_multi_files *files, pool *p, slot *s, const cm_multi_file *f, bool last,
                     bool *full, cm_error *err)
{
    char place[CM_COPY_PATH_SIZE];
    const char *path = f->copy != NULL ? place : f->path;
    int rc = find_place(f, s, last, place, full, err);
    if (rc != CM_OK || *full)
        return rc;
    return p->shared ? open_raw(f, path, s, full, err) : open_library(files, f, path, s, err);
}

static int fill_slot(cm_multi_files *files, pool *p, slot *s, uint32_t i, cm_error *err)
{
    const cm_multi_file *f = &files->file[i];
    for (bool last = false;;) {
        cm_error why = {0};
        bool full = false;
        int rc = open_once(files, p, s, f, last, &full, &why);
        if (rc == CM_OK && !full)
            return rc;
        pthread_mutex_lock(&files->lock);
        bool shrunk =
            full && (shrink(p) ||
                     (rc == CM_OK && shrink(p == &files->raw ? &files->library : &files->raw)));
        pthread_mutex_unlock(&files->lock);
        /* With all copies in use, take one more than the budget allows. */
        if (shrunk || (rc == CM_OK && !last)) {
            last = !shrunk;
            continue;
        }
        if (err != NULL)
            *err = why;
        return rc;
    }
}

/* With the lock held: the slot of file I, with this user counted; NULL: the caller must open it. */
static slot *find(pool *p, uint32_t i)
{
    slot *s = p->at[i] == NO_SLOT ? NULL : &p->slot[p->at[i] - 1];
    return s;
}

static int take(cm_multi_files *files, pool *p, uint32_t i, slot **out, cm_error *err)
{
    int rc = CM_OK;
    pthread_mutex_lock(&files->lock);
    slot *s;
    for (;;) {
        s = find(p, i);
        if (s != NULL && s->state == SLOT_OPEN && (p->shared || s->users == 0))
            break;
        if (s == NULL && (s = free_slot(p)) != NULL) {
            if (s->state == SLOT_OPEN)
                p->at[s->file] = NO_SLOT;
            slot old = *s;
            *s = (slot){.state = SLOT_OPENING, .file = i, .users = 1, .fd = -1};
            p->at[i] = (uint16_t)(s - p->slot + 1);
            pthread_mutex_unlock(&files->lock);
            empty(&old);
            if (files->file[i].copy != NULL)
                cm_multi_ahead_of(files->ahead, i);
            rc = fill_slot(files, p, s, i, err);
            pthread_mutex_lock(&files->lock);
            s->users = 0;
            s->state = rc == CM_OK ? SLOT_OPEN : SLOT_EMPTY;
            if (rc != CM_OK)
                p->at[i] = NO_SLOT;
            if (rc != CM_OK)
                empty(s);
            pthread_cond_broadcast(&files->wake);
            break;
        }
        pthread_cond_wait(&files->wake, &files->lock);
    }
    if (rc == CM_OK) {
        s->users++;
        s->used = ++files->tick;
        *out = s;
    }
    pthread_mutex_unlock(&files->lock);
    return rc;
}

static void give(cm_multi_files *files, pool *p, uint32_t i)
{
    pthread_mutex_lock(&files->lock);
    slot *s = find(p, i);
    if (s != NULL && --s->users == 0)
        pthread_cond_broadcast(&files->wake);
    pthread_mutex_unlock(&files->lock);
}

/* ---- for callers ---- */

static unsigned between(uint64_t n, unsigned least, unsigned most)
{
    return n < least ? least : n > most ? most : (unsigned)n;
}

int cm_multi_files_create(const cm_multi_file *file, size_t n, const cm_dataset_options *options,
                          cm_multi_files **out, cm_error *err)
{
    struct rlimit limit;
    cm_multi_files *files = cm_calloc(1, sizeof(*files), err);
    *out = files;
    if (files == NULL)
        return CM_ENOMEM;
    files->file = file;
    if (options != NULL)
        files->options = *options;
    pthread_mutex_init(&files->lock, NULL);
    pthread_cond_init(&files->wake, NULL);
    uint64_t may = getrlimit(RLIMIT_NOFILE, &limit) == 0 ? (uint64_t)limit.rlim_cur : 64;
    unsigned share = between(may / SHARE_OF_LIMIT, LEAST_FILES, MOST_FILES);
    int rc = pool_init(&files->raw, share, n, true, err);
    if (rc == CM_OK)
        rc = pool_init(&files->library, between(share / FILES_PER_DATASET, 1, MOST_DATASETS), n,
                       false, err);
    if (rc == CM_OK)
        rc = cm_multi_ahead_create(file, n, &files->ahead, err);
    if (rc != CM_OK) {
        cm_multi_files_free(files);
        *out = NULL;
    }
    return rc;
}

void cm_multi_files_free(cm_multi_files *files)
{
    if (files == NULL)
        return;
    cm_multi_ahead_free(files->ahead);
    pool_release(&files->raw);
    pool_release(&files->library);
    pthread_cond_destroy(&files->wake);
    pthread_mutex_destroy(&files->lock);
    free(files);
}

size_t cm_multi_files_most(const cm_multi_files *files)
{
    return files->raw.nslots;
}

int cm_multi_files_take(cm_multi_files *files, uint32_t i, cm_source *out, cm_error *err)
{
    slot *s;
    int rc = take(files, &files->raw, i, &s, err);
    if (rc == CM_OK)
        *out = cm_source_of_fd(s->fd, files->file[i].nbytes);
    return rc;
}

void cm_multi_files_give(cm_multi_files *files, uint32_t i)
{
    give(files, &files->raw, i);
}

int cm_multi_files_open(cm_multi_files *files, uint32_t i, cm_dataset **out, cm_error *err)
{
    slot *s;
    *out = files->file[i].open;
    if (*out != NULL)
        return CM_OK;
    int rc = take(files, &files->library, i, &s, err);
    if (rc == CM_OK)
        *out = s->ds;
    return rc;
}

void cm_multi_files_close(cm_multi_files *files, uint32_t i)
{
    if (files->file[i].open != NULL)
        return;
    give(files, &files->library, i);
}

int cm_multi_file_check(const cm_multi_file *f, cm_error *err)
{
    return f->open == NULL ? check_path(f, err) : CM_OK;
}

#include "store/copies.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/fileurl.h"
#include "store/checksum.h"
#include "store/copies_folder.h"
#include "store/io.h"
#include "store/net/url.h"

enum {
    RANGE_NBYTES = 4 << 20,
    TOGETHER = 8
};

typedef enum copy_state {
    COPY_AWAY,
    COPY_AWAITED, /* room is reserved for it */
    COPY_COMING,
    COPY_HERE
} copy_state;

struct cm_copy {
    cm_copies *copies;
    const char *url;
    cm_object_stat told;
    uint64_t number; /* names its file */
    copy_state state;
    unsigned users;
    bool fresh;             /* fetched ahead, and not used yet */
    cm_copy *newer, *older; /* in the list of copies that are not in use */
};

struct cm_copies {
    cm_net *net;
    const char *above;
    uint64_t max_nbytes;
    cm_paged *paged;
    uint64_t ncopies;
    pthread_mutex_t lock; /* guards the rest, and the changing members of copies */
    pthread_cond_t wake;
    cm_copies_folder folder;
    bool stopped;
    /* Copies being fetched ahead: they can be dropped once they have arrived. */
    unsigned nahead;
    uint64_t nbytes, used_nbytes; /* of copies that exist or are being fetched; of those in use */
    cm_copy *newest, *oldest;     /* list of copies that are not in use */
};

/* ---- the list of unused copies ---- */

static void unlist(cm_copies *c, cm_copy *k)
{
    *(k->newer != NULL ? &k->newer->older : &c->newest) = k->older;
    *(k->older != NULL ? &k->older->newer : &c->oldest) = k->newer;
    k->newer = k->older = NULL;
}

static void list(cm_copies *c, cm_copy *k)
{
    k->older = c->newest;
    k->newer = NULL;
    *(c->newest != NULL ? &c->newest->newer : &c->oldest) = k;
    c->newest = k;
}

static int path_of(const cm_copies *c, const cm_copy *k, char path[CM_COPY_PATH_SIZE],
                   cm_error *err)
{
    int n =
        snprintf(path, CM_COPY_PATH_SIZE, "%s/%llu", c->folder.path, (unsigned long long)k->number);
    return n > 0 && n < CM_COPY_PATH_SIZE
               ? CM_OK
               : cm_fail(err, CM_EINVAL, "%s: the path is too long", c->above);
}

static void drop(cm_copies *c, cm_copy *k)
{
    char name[32];
    snprintf(name, sizeof(name), "%llu", (unsigned long long)k->number);
    (void)unlinkat(c->folder.fd, name, 0);
    unlist(c, k);
    k->state = COPY_AWAY;
    c->nbytes -= k->told.nbytes;
}

/* Makes room for NBYTES by dropping unused copies, those fetched ahead last, or not at all. */
static bool make_room(cm_copies *c, uint64_t nbytes, bool fresh_stay)
{
    for (int fresh = 0; fresh <= !fresh_stay; fresh++)
        for (cm_copy *k = c->oldest, *next; k != NULL && c->nbytes + nbytes > c->max_nbytes;
             k = next) {
            next = k->newer;
            if (!k->fresh || fresh)
                drop(c, k);
        }
    return c->nbytes + nbytes <= c->max_nbytes;
}

/* ---- fetching ---- */

/* Splits a URL into the object's store and its key there. */
static int split(const char *url, char **above, char **key, cm_error *err)
{
    const char *slash = strrchr(url, '/');
    *above = cm_asprintf(err, "%.*s", (int)(slash - url), url);
    *key = cm_strdup(slash + 1, err);
    if (*above == NULL || *key == NULL)
        return CM_ENOMEM;
    if (cm_url_kind_of(url) == CM_URL_HTTP)
        cm_url_decode(*key);
    return CM_OK;
}

static int open_place(cm_net *net, const char *url, cm_store **store, char **key, cm_error *err)
{
    char *above = NULL;
    *store = NULL;
    *key = NULL;
    int rc = split(url, &above, key, err);
    if (rc == CM_OK)
        rc = cm_store_open_remote(above, net, store, err);
    free(above);
    return rc;
}

int cm_copy_stat_url(cm_net *net, const char *url, cm_object_stat *out, cm_error *err)
{
    cm_store *store;
    char *key;
    int rc = open_place(net, url, &store, &key, err);
    if (rc == CM_OK)
        rc = cm_store_stat(store, key, out, err);
    if (rc == CM_ENOTFOUND)
        cm_fail(err, CM_ENOTFOUND, "%s: no such object", url);
    else if (rc != CM_OK && store != NULL)
        cm_error_place(err, cm_store_name(store));
    cm_store_free(store);
    free(key);
    return rc;
}

static int make_file(const char *path, const char *folder, uint64_t nbytes, int *fd, cm_error *err)
{
    *fd = open(path, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
    if (*fd < 0)
        return cm_fail_errno(err, errno, "%s: no file can be made for an input", folder);
    int errnum = nbytes > 0 ? posix_fallocate(*fd, 0, (off_t)nbytes) : 0;
    if (errnum == EOPNOTSUPP || errnum == EINVAL)
        errnum = ftruncate(*fd, (off_t)nbytes) == 0 ? 0 : errno;
    return errnum == 0 ? CM_OK
                       : cm_fail_errno(err, errnum, "%s: has no room for an input of %llu bytes",
                                       folder, (unsigned long long)nbytes);
}

/* Fetches the next ranges at *OFFSET, all at once. */
static int fetch_some(cm_store *store, cm_object_reader *reader, cm_buf *buf, int fd,
                      uint64_t *offset, cm_error *err)
{
    cm_store_read read[TOGETHER];
    uint64_t total = cm_object_nbytes(reader), nrequests;
    size_t n = 0;
    for (uint64_t at = *offset; at < total && n < TOGETHER; n++, at += RANGE_NBYTES)
        read[n] = (cm_store_read){.reader = reader,
                                  .offset = at,
                                  .nbytes = total - at < RANGE_NBYTES ? total - at : RANGE_NBYTES};
    int rc = cm_store_read_many(store, read, n, buf, &nrequests, err);
    for (size_t i = 0; rc == CM_OK && i < n; i++) {
        if (read[i].got_nbytes != read[i].nbytes)
            return cm_fail(err, CM_EIO, "the server sent less than it has");
        int errnum = cm_fd_write_at(fd, buf->data + read[i].at, read[i].got_nbytes, read[i].offset);
        if (errnum != 0)
            rc = cm_fail_errno(err, errnum, "an input cannot be kept here");
        *offset += read[i].got_nbytes;
    }
    return rc;
}

static int changed(const cm_copy *k, cm_error *err)
{
    cm_fail(err, CM_EFORMAT, "%s: changed since it was looked at; start again", k->url);
    cm_error_place(err, k->url);
    return CM_EFORMAT;
}

/* The error if the server answers but does not give the object. */
static int deny(cm_error *err)
{
    if (err != NULL)
        err->status = CM_EUNSUPPORTED;
    return CM_EUNSUPPORTED;
}

/* Compares size and time, if the object has no ETag. */
static int check_untagged(const cm_copy *k, cm_store *store, const char *key, cm_error *err)
{
    cm_object_stat now;
    if (k->told.tag[0] != '\0')
        return CM_OK;
    int rc = cm_store_stat(store, key, &now, err);
    bool same = now.nbytes == k->told.nbytes && now.modified_s == k->told.modified_s;
    return rc != CM_OK || same ? rc : changed(k, err);
}

static int fetch_from(const cm_copy *k, cm_store *store, const char *key, int fd, cm_error *err)
{
    cm_object_reader *reader;
    cm_buf buf = {0};
    int rc = check_untagged(k, store, key, err);
    if (rc == CM_OK)
        rc = cm_object_open_stat(store, key, &k->told, &reader, err);
    if (rc != CM_OK)
        return rc;
    if (cm_object_nbytes(reader) != k->told.nbytes)
        rc = changed(k, err);
    for (uint64_t offset = 0; rc == CM_OK && offset < k->told.nbytes;)
        rc = fetch_some(store, reader, &buf, fd, &offset, err);
    if (rc != CM_OK && cm_object_changed(reader))
        rc = changed(k, err);
    else if (rc == CM_EIO && cm_object_denied(reader))
        rc = deny(err);
    if (rc == CM_OK)
        rc = check_untagged(k, store, key, err);
    cm_buf_release(&buf);
    cm_object_close(reader);
    return rc;
}

/* Gives the copy the object's time of change. */
static int set_time(const cm_copy *k, int fd, cm_error *err)
{
    const struct timespec time[2] = {{.tv_sec = k->told.modified_s},
                                     {.tv_sec = k->told.modified_s}};
    return k->told.modified_s == 0 || futimens(fd, time) == 0
               ? CM_OK
               : cm_fail_errno(err, errno, "an input cannot be kept here");
}

static int fetch(const cm_copies *c, const cm_copy *k, const char *path, cm_error *err)
{
    cm_store *store = NULL;
    char *key = NULL;
    int fd;
    int rc = make_file(path, c->above, k->told.nbytes, &fd, err);
    if (rc == CM_OK)
        rc = open_place(c->net, k->url, &store, &key, err);
    if (rc == CM_OK)
        rc = fetch_from(k, store, key, fd, err);
    if (rc == CM_OK)
        rc = set_time(k, fd, err);
    if (fd >= 0)
        close(fd);
    if (rc != CM_OK && fd >= 0)
        unlink(path);
    /* The store's messages name the key: replace it by the URL. */
    if (rc != CM_OK && store != NULL)
        cm_copy_name(k, key, err);
    if (rc != CM_OK && store != NULL)
        cm_error_place(err, k->url);
    cm_store_free(store);
    free(key);
    return rc;
}

/* ---- taking and giving ---- */

static int prepare(cm_copies *c, cm_error *err)
{
    struct statvfs fs;
    if (c->folder.path != NULL)
        return CM_OK;
    int rc = cm_copies_folder_make(c->above, &c->folder, err);
    if (rc == CM_OK && c->max_nbytes == 0)
        c->max_nbytes =
            statvfs(c->above, &fs) == 0 ? (uint64_t)fs.f_bavail * fs.f_frsize / 2 : UINT64_MAX / 2;
    return rc;
}

int cm_copies_prepare(cm_copies *c, cm_error *err)
{
    pthread_mutex_lock(&c->lock);
    int rc = prepare(c, err);
    pthread_mutex_unlock(&c->lock);
    return rc;
}

/* Fetches K, which has no copy.  Lock held, and released meanwhile. */
static int bring(cm_copies *c, cm_copy *k, cm_copy_when when, cm_error *err)
{
    char path[CM_COPY_PATH_SIZE];
    int rc = path_of(c, k, path, err);
    if (rc != CM_OK)
        return rc;
    k->state = COPY_COMING;
    c->nahead += when == CM_COPY_AHEAD;
    pthread_mutex_unlock(&c->lock);
    rc = fetch(c, k, path, err);
    pthread_mutex_lock(&c->lock);
    c->nahead -= when == CM_COPY_AHEAD;
    c->used_nbytes -= k->told.nbytes;
    k->state = rc == CM_OK ? COPY_HERE : COPY_AWAY;
    k->fresh = when == CM_COPY_AHEAD;
    if (rc == CM_OK)
        list(c, k);
    else
        c->nbytes -= k->told.nbytes;
    pthread_cond_broadcast(&c->wake);
    return rc;
}

/* Reserves room for K, which has no copy, if there is some or it MUST be fetched. */
static bool keep_room(cm_copies *c, cm_copy *k, bool fresh_stay, bool must)
{
    if (!make_room(c, k->told.nbytes, fresh_stay) && !must)
        return false;
    k->state = COPY_AWAITED;
    c->nbytes += k->told.nbytes;
    c->used_nbytes += k->told.nbytes;
    return true;
}

int cm_copy_await(cm_copy *k, cm_error *err)
{
    cm_copies *c = k->copies;
    pthread_mutex_lock(&c->lock);
    int rc = prepare(c, err);
    while (rc == CM_OK && k->state == COPY_AWAY && !keep_room(c, k, false, c->used_nbytes == 0)) {
        if (c->stopped)
            rc = cm_fail(err, CM_ECANCELED, "stopped by request");
        else
            pthread_cond_wait(&c->wake, &c->lock);
    }
    pthread_mutex_unlock(&c->lock);
    return rc;
}

int cm_copy_take(cm_copy *k, cm_copy_when when, bool *taken, char path[CM_COPY_PATH_SIZE],
                 cm_error *err)
{
    cm_copies *c = k->copies;
    *taken = false;
    pthread_mutex_lock(&c->lock);
    int rc = prepare(c, err);
    while (rc == CM_OK && k->state != COPY_HERE) {
        if (k->state == COPY_AWAY && when != CM_COPY_AHEAD && c->nahead > 0 &&
            !make_room(c, k->told.nbytes, false)) {
            pthread_cond_wait(&c->wake, &c->lock);
            continue;
        }
        if (k->state == COPY_AWAY &&
            !keep_room(c, k, when == CM_COPY_AHEAD,
                       when == CM_COPY_NOW || (when == CM_COPY_IF_ROOM && c->used_nbytes == 0)))
            break;
        if (k->state == COPY_AWAITED)
            rc = bring(c, k, when, err);
        else
            pthread_cond_wait(&c->wake, &c->lock);
    }
    if (rc == CM_OK && k->state == COPY_HERE)
        rc = path_of(c, k, path, err);
    if (rc == CM_OK && k->state == COPY_HERE && when != CM_COPY_AHEAD) {
        if (k->users++ == 0) {
            unlist(c, k);
            c->used_nbytes += k->told.nbytes;
        }
        k->fresh = false;
        *taken = true;
    }
    pthread_mutex_unlock(&c->lock);
    return rc;
}

int cm_copy_path(const cm_copy *k, char path[CM_COPY_PATH_SIZE], cm_error *err)
{
    return path_of(k->copies, k, path, err);
}

void cm_copy_give(cm_copy *k)
{
    cm_copies *c = k->copies;
    pthread_mutex_lock(&c->lock);
    if (--k->users == 0) {
        list(c, k);
        c->used_nbytes -= k->told.nbytes;
        /* Drops copies if they exceed the limit. */
        (void)make_room(c, 0, false);
        pthread_cond_broadcast(&c->wake);
    }
    pthread_mutex_unlock(&c->lock);
}

bool cm_copy_is_here(cm_copy *k)
{
    pthread_mutex_lock(&k->copies->lock);
    bool here = k->state == COPY_HERE;
    pthread_mutex_unlock(&k->copies->lock);
    return here;
}

uint64_t cm_copy_room(cm_copy *k)
{
    cm_copies *c = k->copies;
    pthread_mutex_lock(&c->lock);
    /* The first fetch tells why there is no folder. */
    const uint64_t room = prepare(c, NULL) == CM_OK ? c->max_nbytes : UINT64_MAX;
    pthread_mutex_unlock(&c->lock);
    return room;
}

/* ---- all of them ---- */

int cm_copies_create(cm_net *net, const char *folder, uint64_t max_nbytes, cm_paged *paged,
                     cm_copies **out, cm_error *err)
{
    cm_copies *c = *out = cm_calloc(1, sizeof(*c), err);
    if (c == NULL)
        return CM_ENOMEM;
    c->net = net;
    c->above = folder != NULL ? folder : cm_net_scratch(net);
    c->max_nbytes = max_nbytes;
    c->paged = paged;
    c->folder.fd = c->folder.alive = -1;
    pthread_mutex_init(&c->lock, NULL);
    pthread_cond_init(&c->wake, NULL);
    return CM_OK;
}

void cm_copies_free(cm_copies *c)
{
    if (c == NULL)
        return;
    cm_copies_folder_remove(&c->folder);
    pthread_cond_destroy(&c->wake);
    pthread_mutex_destroy(&c->lock);
    free(c);
}

void cm_copies_stop(cm_copies *c, bool stop)
{
    pthread_mutex_lock(&c->lock);
    c->stopped = stop;
    pthread_cond_broadcast(&c->wake);
    pthread_mutex_unlock(&c->lock);
}

int cm_copies_add(cm_copies *c, const char *url, const cm_object_stat *told, cm_copy **out,
                  cm_error *err)
{
    cm_copy *k = *out = cm_paged_calloc(c->paged, 1, sizeof(*k), err);
    if (k == NULL)
        return CM_ENOMEM;
    k->copies = c;
    k->url = url;
    k->told = *told;
    k->number = c->ncopies++;
    return CM_OK;
}

const cm_object_stat *cm_copy_stat(const cm_copy *k)
{
    return &k->told;
}

void cm_copy_tag(const cm_copy *k, char tag[136])
{
    if (k->told.tag[0] != '\0')
        memcpy(tag, k->told.tag, sizeof(k->told.tag));
    else if (k->told.modified_s == 0)
        tag[0] = '\0';
    else
        snprintf(tag, 136, "modified %lld", (long long)k->told.modified_s);
}

bool cm_copy_is_marked(const cm_copy *k)
{
    return k->told.tag[0] != '\0' || k->told.modified_s != 0;
}

uint64_t cm_copy_mark(const cm_copy *k)
{
    uint64_t mark = k->told.tag[0] != '\0' ? cm_checksum64(k->told.tag, strlen(k->told.tag), 0)
                                           : (uint64_t)k->told.modified_s;
    return mark != 0 ? mark : 1;
}

void cm_copy_name(const cm_copy *k, const char *path, cm_error *err)
{
    char text[sizeof(err->text)];
    char *said = err != NULL ? err->text : NULL;
    const char *found = said != NULL ? strstr(said, path) : NULL;
    if (found == NULL)
        return;
    snprintf(text, sizeof(text), "%.*s%s%s", (int)(found - said), said, k->url,
             found + strlen(path));
    memcpy(said, text, sizeof(text));
}

#include "job/common/fetch.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/fd.h"
#include "store/impl.h"
#include "store/net/url.h"
#include "store/open.h"

enum {
    RANGE_NBYTES = 4 << 20,
    TOGETHER = 8
};

/* The store that the object lies in, and its key there. */
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

static int make_file(const char *folder, uint64_t nbytes, char **path, int *fd, cm_error *err)
{
    *path = cm_asprintf(err, "%s/chunkmill-XXXXXX", folder);
    if (*path == NULL)
        return CM_ENOMEM;
    *fd = mkostemp(*path, O_CLOEXEC);
    int rc =
        *fd < 0 ? cm_fail_errno(err, errno, "%s: no file can be made for an input", folder) : CM_OK;
    if (rc == CM_OK) {
        int errnum = nbytes > 0 ? posix_fallocate(*fd, 0, (off_t)nbytes) : 0;
        if (errnum == EOPNOTSUPP || errnum == EINVAL)
            errnum = ftruncate(*fd, (off_t)nbytes) == 0 ? 0 : errno;
        if (errnum != 0)
            rc = cm_fail_errno(err, errnum, "%s: has no room for an input of %llu bytes", folder,
                               (unsigned long long)nbytes);
    }
    if (rc != CM_OK && *fd < 0) {
        free(*path);
        *path = NULL;
    }
    return rc;
}

/* The next ranges at *OFFSET, all at once. */
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
        int errnum = cm_fd_write_at(fd, buf->data + read[i].at, read[i].got_nbytes, read[i].offset);
        if (errnum != 0)
            rc = cm_fail_errno(err, errnum, "an input cannot be kept here");
        *offset += read[i].got_nbytes;
    }
    return rc;
}

static int fetch(cm_store *store, const char *key, const char *folder, char **path, cm_error *err)
{
    cm_object_reader *reader;
    cm_identity identity;
    cm_buf buf = {0};
    int fd = -1;
    int rc = cm_store_identity(store, key, &identity, err);
    if (rc == CM_OK)
        rc = cm_object_open(store, key, &reader, err);
    if (rc != CM_OK)
        return rc;
    rc = make_file(folder, cm_object_nbytes(reader), path, &fd, err);
    for (uint64_t offset = 0; rc == CM_OK && offset < cm_object_nbytes(reader);)
        rc = fetch_some(store, reader, &buf, fd, &offset, err);
    const struct timespec time[2] = {{.tv_sec = identity.changed_ns / 1000000000},
                                     {.tv_sec = identity.changed_ns / 1000000000}};
    if (rc == CM_OK && futimens(fd, time) != 0)
        rc = cm_fail_errno(err, errno, "an input cannot be kept here");
    if (fd >= 0)
        close(fd);
    cm_buf_release(&buf);
    cm_object_close(reader);
    return rc;
}

int cm_fetch_file(const char *url, cm_net *net, const char *folder, char **path, cm_error *err)
{
    char *above = NULL, *key = NULL;
    cm_store *store = NULL;
    *path = NULL;
    int rc = split(url, &above, &key, err);
    if (rc == CM_OK)
        rc = cm_store_open(above, &(cm_store_options){.net = net}, &store, err);
    if (rc == CM_OK && (rc = fetch(store, key, folder, path, err)) != CM_OK)
        cm_error_place(err, above);
    if (rc != CM_OK && *path != NULL) {
        unlink(*path);
        free(*path);
        *path = NULL;
    }
    cm_store_free(store);
    free(above);
    free(key);
    return rc;
}

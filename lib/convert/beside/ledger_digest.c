/* Digests of files that the ledger lists. */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/mem.h"
#include "base/sha256.h"
#include "base/xxh128.h"
#include "convert/beside/ledger.h"

enum {
    STEP = 64 << 10 /* bytes: few enough to be hashed while in the CPU's cache */
};

/* Either of both, as WANTED has it. */
typedef struct digest {
    const cm_ledger_entry *wanted;
    cm_xxh128 xxh;
    cm_sha256 sha;
} digest;

static void begin(digest *d, const cm_ledger_entry *wanted)
{
    d->wanted = wanted;
    cm_xxh128_begin(&d->xxh);
    cm_sha256_begin(&d->sha);
}

static void add(digest *d, const void *data, size_t nbytes)
{
    if (d->wanted->xxh128[0] != '\0')
        cm_xxh128_add(&d->xxh, data, nbytes);
    else
        cm_sha256_add(&d->sha, data, nbytes);
}

static bool is_wanted(digest *d)
{
    char xxh128[CM_XXH128_TEXT], sha256[65];
    return d->wanted->xxh128[0] != '\0'
               ? strcmp(cm_xxh128_text(&d->xxh, xxh128), d->wanted->xxh128) == 0
               : strcmp(cm_sha256_text(&d->sha, sha256), d->wanted->sha256) == 0;
}

static int read_all(int fd, const char *path, digest *d, cm_error *err)
{
    uint8_t *buf = cm_calloc(1, STEP, err);
    ssize_t n = 0;
    if (buf == NULL)
        return CM_ENOMEM;
    while ((n = read(fd, buf, STEP)) > 0)
        add(d, buf, (size_t)n);
    int rc = n < 0 ? cm_fail_errno(err, errno, "%s", path) : CM_OK;
    free(buf);
    return rc;
}

int cm_ledger_holds(const cm_ledger_entry *entry, const char *path, bool *same, cm_error *err)
{
    digest d;
    *same = false;
    if (entry->xxh128[0] == '\0' && entry->sha256[0] == '\0')
        return CM_OK;
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        return cm_fail_errno(err, errno, "%s", path);
    begin(&d, entry);
    int rc = read_all(fd, path, &d, err);
    close(fd);
    *same = rc == CM_OK && is_wanted(&d);
    return rc;
}

/*
 * The central directory of a zip file, of which nothing is believed.
 *
 * It is read in pieces, so memory follows the entries that there are and not the sizes that the
 * file claims.
 */
#include <stdlib.h>
#include <string.h>

#include "base/fd.h"
#include "store/zip_impl.h"

enum {
    PIECE = 512 << 10, /* half of it is more than the longest entry of a directory */
    MAX_COMMENT = 65535,
    TAIL = CM_ZIP_LOCATOR64_NBYTES + CM_ZIP_END_NBYTES + MAX_COMMENT
};

/* Where the directory lies. */
typedef struct directory {
    uint64_t offset, nbytes, nentries;
} directory;

static int read_at(int fd, uint64_t offset, void *dst, size_t nbytes, cm_error *err)
{
    size_t got;
    int errnum = cm_fd_read_at(fd, dst, nbytes, offset, &got);
    if (errnum != 0)
        return cm_fail_errno(err, errnum, "cannot be read");
    return got == nbytes ? CM_OK : cm_fail(err, CM_EFORMAT, "became shorter while it was read");
}

/* ---- its end ---- */

/* The end's place in the NBYTES of TAIL: the last one whose comment ends with the file. */
static const uint8_t *find_end(const uint8_t *tail, size_t nbytes)
{
    for (size_t i = nbytes; i-- > 0;) {
        const uint8_t *p = tail + i;
        if (nbytes - i >= CM_ZIP_END_NBYTES && cm_load_le32(p) == CM_ZIP_END &&
            nbytes - i - CM_ZIP_END_NBYTES == cm_load_le16(p + 20))
            return p;
    }
    return NULL;
}

/* The end of ZIP64, which LOCATOR names and stands directly before. */
static int read_end64(int fd, const uint8_t *locator, uint64_t place, directory *out, cm_error *err)
{
    uint8_t end[CM_ZIP_END64_NBYTES];
    const uint64_t at = cm_load_le64(locator + 8);
    if (cm_load_le32(locator + 4) != 0 || cm_load_le32(locator + 16) > 1)
        return cm_fail(err, CM_EUNSUPPORTED, "is one part of a zip file of several");
    if (place < sizeof(end) || at > place - sizeof(end))
        return cm_fail(err, CM_EFORMAT, "its ZIP64 end lies outside of the file");
    int rc = read_at(fd, at, end, sizeof(end), err);
    if (rc != CM_OK)
        return rc;
    if (cm_load_le32(end) != CM_ZIP_END64 || cm_load_le64(end + 4) != place - at - 12)
        return cm_fail(err, CM_EFORMAT, "its ZIP64 end is damaged");
    if (cm_load_le32(end + 16) != 0 || cm_load_le32(end + 20) != 0 ||
        cm_load_le64(end + 24) != cm_load_le64(end + 32))
        return cm_fail(err, CM_EUNSUPPORTED, "is one part of a zip file of several");
    *out = (directory){cm_load_le64(end + 48), cm_load_le64(end + 40), cm_load_le64(end + 32)};
    if (out->nbytes > at || out->offset != at - out->nbytes)
        return cm_fail(err, CM_EFORMAT, "its directory does not lie where its ZIP64 end says");
    return CM_OK;
}

static int read_end(int fd, uint64_t file_nbytes, directory *out, cm_error *err)
{
    size_t nbytes = file_nbytes < TAIL ? (size_t)file_nbytes : TAIL;
    uint8_t *tail = cm_calloc(nbytes + 1, 1, err);
    if (tail == NULL)
        return CM_ENOMEM;
    int rc = read_at(fd, file_nbytes - nbytes, tail, nbytes, err);
    const uint8_t *end = rc == CM_OK ? find_end(tail, nbytes) : NULL;
    if (rc == CM_OK && end == NULL)
        rc = cm_fail(err, CM_EFORMAT,
                     "is not a zip file, or not a complete one: it does not end in a directory");
    if (rc != CM_OK) {
        free(tail);
        return rc;
    }
    const size_t before = (size_t)(end - tail);
    const uint64_t place = file_nbytes - nbytes + before;
    const uint8_t *locator = end - CM_ZIP_LOCATOR64_NBYTES;
    if (before >= CM_ZIP_LOCATOR64_NBYTES && cm_load_le32(locator) == CM_ZIP_LOCATOR64) {
        rc = read_end64(fd, locator, place - CM_ZIP_LOCATOR64_NBYTES, out, err);
    } else {
        *out = (directory){cm_load_le32(end + 16), cm_load_le32(end + 12), cm_load_le16(end + 10)};
        if (cm_load_le32(end + 4) != 0 || cm_load_le16(end + 8) != out->nentries)
            rc = cm_fail(err, CM_EUNSUPPORTED, "is one part of a zip file of several");
        else if (out->nbytes > place || out->offset != place - out->nbytes)
            rc = cm_fail(err, CM_EFORMAT, "its directory does not lie where its end says");
    }
    if (rc == CM_OK && out->nentries > out->nbytes / CM_ZIP_CENTRAL_NBYTES)
        rc = cm_fail(err, CM_EFORMAT, "its directory is too short for the %llu entries it claims",
                     (unsigned long long)out->nentries);
    free(tail);
    return rc;
}

/* ---- its entries ---- */

/* Takes a 64-bit field in place of *VALUE if that is all ones. */
static bool widen(uint64_t *value, const uint8_t *field, size_t nbytes, size_t *at)
{
    if (*value != UINT32_MAX)
        return true;
    if (nbytes - *at < 8)
        return false;
    *value = cm_load_le64(field + *at);
    *at += 8;
    return true;
}

/* Sizes and offset that do not fit in 32 bits stand in the extra field of ZIP64. */
static bool read_extra(const uint8_t *extra, size_t nbytes, uint64_t *full, uint64_t *packed,
                       uint64_t *offset)
{
    for (size_t i = 0; nbytes - i >= 4;) {
        const uint16_t id = cm_load_le16(extra + i);
        const size_t n = cm_load_le16(extra + i + 2);
        size_t at = 0;
        i += 4;
        if (n > nbytes - i)
            return false;
        if (id == CM_ZIP_EXTRA64)
            return widen(full, extra + i, n, &at) && widen(packed, extra + i, n, &at) &&
                   widen(offset, extra + i, n, &at);
        i += n;
    }
    return true;
}

/* The name of an entry, which becomes a key; that of a folder ends in '/'. */
static int add_name(cm_zip_table *t, const char *name, size_t nbytes, cm_zip_entry **out,
                    cm_error *err)
{
    if (memchr(name, '\0', nbytes) != NULL)
        return cm_fail(err, CM_EFORMAT, "the name of an entry has a zero byte");
    const bool folder = nbytes > 1 && name[nbytes - 1] == '/';
    int rc = cm_zip_add(t, name, nbytes - folder, out, err);
    if (rc == CM_OK && (rc = cm_key_check(cm_zip_key(t, *out), err)) != CM_OK)
        cm_error_prefix(err, "the name of an entry is no path inside of the file");
    if (rc != CM_OK)
        return rc;
    (*out)->dropped = folder;
    (*out)->name_nbytes = (uint16_t)nbytes;
    return CM_OK;
}

/* One entry of the NBYTES at P; *USED are its own. */
static int read_entry(cm_zip_table *t, const uint8_t *p, size_t nbytes, size_t *used, cm_error *err)
{
    static const char SHORT[] = "its directory ends within an entry";
    cm_zip_entry *e;
    if (nbytes < CM_ZIP_CENTRAL_NBYTES)
        return cm_fail(err, CM_EFORMAT, "%s", SHORT);
    if (cm_load_le32(p) != CM_ZIP_CENTRAL)
        return cm_fail(err, CM_EFORMAT, "entry %zu of its directory is damaged", t->n);
    const size_t name = cm_load_le16(p + 28), extra = cm_load_le16(p + 30);
    *used = CM_ZIP_CENTRAL_NBYTES + name + extra + cm_load_le16(p + 32);
    if (*used > nbytes)
        return cm_fail(err, CM_EFORMAT, "%s", SHORT);
    uint64_t full = cm_load_le32(p + 24), packed = cm_load_le32(p + 20);
    uint64_t offset = cm_load_le32(p + 42);
    const uint8_t *text = p + CM_ZIP_CENTRAL_NBYTES;
    int rc = add_name(t, (const char *)text, name, &e, err);
    if (rc != CM_OK)
        return rc;
    if (!read_extra(text + name, extra, &full, &packed, &offset))
        return cm_fail(err, CM_EFORMAT, "%s: its ZIP64 sizes are damaged", cm_zip_key(t, e));
    e->offset = offset;
    e->nbytes = packed;
    e->crc = cm_load_le32(p + 16);
    e->flags = cm_load_le16(p + 8);
    e->method = cm_load_le16(p + 10);
    const uint64_t head = CM_ZIP_LOCAL_NBYTES + name;
    if (offset > t->end || head > t->end - offset || packed > t->end - offset - head)
        return cm_fail(err, CM_EFORMAT, "%s: lies outside of the zip file", cm_zip_key(t, e));
    if (e->method == 0 && (e->flags & CM_ZIP_ENCRYPTED) == 0 && full != packed)
        return cm_fail(err, CM_EFORMAT, "%s: is stored, and has two sizes", cm_zip_key(t, e));
    return CM_OK;
}

static int read_entries(int fd, const directory *d, cm_zip_table *t, cm_error *err)
{
    uint8_t *piece = cm_calloc(PIECE, 1, err);
    uint64_t next = 0; /* byte of the directory behind those in PIECE */
    size_t have = 0, at = 0;
    int rc = piece == NULL ? CM_ENOMEM : CM_OK;
    for (uint64_t i = 0; rc == CM_OK && i < d->nentries; i++) {
        size_t used = 0;
        if (have - at < PIECE / 2 && next < d->nbytes) {
            memmove(piece, piece + at, have - at);
            have -= at;
            at = 0;
            const uint64_t rest = d->nbytes - next;
            const size_t n = rest < PIECE - have ? (size_t)rest : PIECE - have;
            rc = read_at(fd, d->offset + next, piece + have, n, err);
            have += n;
            next += n;
        }
        if (rc == CM_OK)
            rc = read_entry(t, piece + at, have - at, &used, err);
        at += used;
    }
    if (rc == CM_OK && (at != have || next != d->nbytes))
        rc = cm_fail(err, CM_EFORMAT, "its directory goes on behind its last entry");
    free(piece);
    return rc;
}

static int by_offset(const void *a, const void *b)
{
    const cm_zip_entry *x = a, *y = b;
    return (x->offset > y->offset) - (x->offset < y->offset);
}

/* Bytes that belong to two entries would be read many times: a bomb. */
static int check_overlaps(cm_zip_table *t, cm_error *err)
{
    if (t->n > 1)
        qsort(t->item, t->n, sizeof(t->item[0]), by_offset);
    for (size_t i = 0; i + 1 < t->n; i++) {
        const cm_zip_entry *e = &t->item[i], *next = e + 1;
        if (next->offset - e->offset < CM_ZIP_LOCAL_NBYTES + e->name_nbytes + e->nbytes)
            return cm_fail(err, CM_EFORMAT, "%s and %s overlap", cm_zip_key(t, e),
                           cm_zip_key(t, next));
    }
    return CM_OK;
}

int cm_zip_read(int fd, uint64_t nbytes, cm_zip_table *out, cm_error *err)
{
    directory d = {0};
    *out = (cm_zip_table){0};
    int rc = read_end(fd, nbytes, &d, err);
    if (rc == CM_OK) {
        out->end = d.offset;
        rc = read_entries(fd, &d, out, err);
    }
    if (rc == CM_OK)
        rc = check_overlaps(out, err);
    if (rc == CM_OK)
        cm_zip_sort(out);
    else
        cm_zip_release(out);
    return rc;
}

/* Computes digests of whole files, SHA-256 of several at once. */
#include "base/sha256.h"
#include "base/xxh128.h"
#include "format/multi/internal.h"

enum {
    STEP = 64 << 10, /* bytes of each file: few enough to be hashed while in the CPU's cache */
    LONG_STEP = CM_SHA256_LANES * STEP /* the same of one file alone */
};

static int check_canceled(const cm_multi_dataset *d, cm_error *err)
{
    const cm_dataset_options *o = &d->options;
    return o->canceled != NULL && o->canceled(o->canceled_context)
               ? cm_fail(err, CM_ECANCELED, "stopped by request")
               : CM_OK;
}

static int explain(const cm_multi_dataset *d, uint32_t file, int rc, cm_error *err)
{
    if (rc != CM_OK && rc != CM_ECANCELED)
        cm_error_place(err, d->spec->file[file].path);
    return rc;
}

/* One kind of digest, which takes bytes. */
typedef void adder(void *digest, const void *data, size_t nbytes);

static void add_sha256(void *digest, const void *data, size_t nbytes)
{
    cm_sha256_add(digest, data, nbytes);
}

static void add_xxh128(void *digest, const void *data, size_t nbytes)
{
    cm_xxh128_add(digest, data, nbytes);
}

/* Hashes the rest of FILE from AT on. */
static int add_rest(cm_multi_dataset *d, uint32_t file, uint64_t at, cm_buf *buf, adder *add,
                    void *digest, cm_error *err)
{
    cm_source source;
    int rc = cm_multi_files_take(d->files, file, &source, err);
    if (rc != CM_OK)
        return rc;
    for (; rc == CM_OK && at < source.nbytes; at += LONG_STEP) {
        size_t n = source.nbytes - at < LONG_STEP ? (size_t)(source.nbytes - at) : LONG_STEP;
        rc = check_canceled(d, err);
        if (rc == CM_OK)
            rc = cm_source_read(&source, at, buf->data, n, err);
        if (rc == CM_OK)
            add(digest, buf->data, n);
    }
    cm_multi_files_give(d->files, file);
    return explain(d, file, rc, err);
}

/*
 * Holds no file between two steps: threads that keep one while they wait for another could
 * deadlock.
 */
static int read_step(cm_multi_dataset *d, uint32_t file, uint64_t at, uint8_t *buf, size_t n,
                     cm_error *err)
{
    cm_source source;
    int rc = cm_multi_files_take(d->files, file, &source, err);
    if (rc != CM_OK)
        return rc;
    rc = cm_source_read(&source, at, buf, n, err);
    cm_multi_files_give(d->files, file);
    return explain(d, file, rc, err);
}

/*
 * Hashes the first NBYTES of several files in lockstep, beginning with FIRST; all have that many.
 */
static int add_common(cm_multi_dataset *d, uint32_t first, uint64_t nbytes, uint8_t *buf,
                      cm_sha256 *sha, cm_error *err)
{
    const void *data[CM_SHA256_LANES];
    int rc = CM_OK;
    for (uint64_t at = 0; rc == CM_OK && at < nbytes; at += STEP) {
        size_t n = nbytes - at < STEP ? (size_t)(nbytes - at) : STEP;
        rc = check_canceled(d, err);
        for (unsigned k = 0; rc == CM_OK && k < CM_SHA256_LANES; k++) {
            data[k] = buf + (size_t)k * STEP;
            rc = read_step(d, first + k, at, buf + (size_t)k * STEP, n, err);
        }
        if (rc == CM_OK)
            cm_sha256_add_each(sha, data, n);
    }
    return rc;
}

/* Bytes at the start of N files from FIRST on that are hashed in lockstep. */
static uint64_t common(const cm_multi_dataset *d, uint32_t first, unsigned n)
{
    uint64_t nbytes = UINT64_MAX;
    for (unsigned k = 0; k < n; k++) {
        const cm_multi_file *f = &d->spec->file[first + k];
        /* A copy that is released between two steps may have to be fetched again. */
        if (f->open != NULL || f->copy != NULL)
            return 0;
        nbytes = f->nbytes < nbytes ? f->nbytes : nbytes;
    }
    return n == CM_SHA256_LANES ? nbytes : 0;
}

int cm_multi_file_sha256(cm_dataset *ds, uint32_t first, unsigned n, char (*text)[65],
                         cm_error *err)
{
    cm_multi_dataset *d = (cm_multi_dataset *)cm_dataset_bottom(ds);
    cm_sha256 sha[CM_SHA256_LANES];
    const uint64_t together = common(d, first, n);
    cm_multi_scratch *s = cm_multi_scratch_take(d, err);
    if (s == NULL)
        return CM_ENOMEM;
    int rc = cm_buf_resize(&s->raw, LONG_STEP, err);
    for (unsigned k = 0; k < CM_SHA256_LANES; k++)
        cm_sha256_begin(&sha[k]);
    if (rc == CM_OK)
        rc = add_common(d, first, together, s->raw.data, sha, err);
    for (unsigned k = 0; rc == CM_OK && k < n; k++) {
        text[k][0] = '\0';
        if (d->spec->file[first + k].open != NULL)
            continue;
        if (together < d->spec->file[first + k].nbytes)
            rc = add_rest(d, first + k, together, &s->raw, add_sha256, &sha[k], err);
        if (rc == CM_OK)
            cm_sha256_text(&sha[k], text[k]);
    }
    cm_multi_scratch_give(d, s);
    return rc;
}

int cm_multi_file_xxh128(cm_dataset *ds, uint32_t file, char text[CM_XXH128_TEXT], cm_error *err)
{
    cm_multi_dataset *d = (cm_multi_dataset *)cm_dataset_bottom(ds);
    cm_xxh128 xxh;
    text[0] = '\0';
    if (d->spec->file[file].open != NULL)
        return CM_OK;
    cm_multi_scratch *s = cm_multi_scratch_take(d, err);
    if (s == NULL)
        return CM_ENOMEM;
    cm_xxh128_begin(&xxh);
    int rc = cm_buf_resize(&s->raw, LONG_STEP, err);
    if (rc == CM_OK)
        rc = add_rest(d, file, 0, &s->raw, add_xxh128, &xxh, err);
    if (rc == CM_OK)
        cm_xxh128_text(&xxh, text);
    cm_multi_scratch_give(d, s);
    return rc;
}

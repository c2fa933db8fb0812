/*
 * References into objects behind a network.
 *
 * A part takes one request: its place is in the document, so no size is asked for.  The ETag of a
 * file's first answer is required in all further requests, so that parts of two versions of a file
 * are never mixed; without one, all answers must tell the same time of change.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "store/net/parts.h"
#include "store/references_impl.h"

int cm_reference_open_origins(cm_reference_store *s, cm_net *net, cm_error *err)
{
    const cm_reference_table *t = &s->table;
    int rc = CM_OK;
    if (t->norigins == 0)
        return CM_OK;
    if (net == NULL)
        return cm_fail(err, CM_EINVAL, "%s: refers to %s, and only files are read here",
                       s->base.name, t->origin[0]);
    s->origin = cm_calloc(t->norigins, sizeof *s->origin, err);
    s->version = cm_calloc(t->nfiles + 1, sizeof *s->version, err);
    if (s->origin == NULL || s->version == NULL)
        return CM_ENOMEM;
    for (size_t i = 0; rc == CM_OK && i < t->norigins; i++)
        rc = cm_store_open_remote(t->origin[i], net, &s->origin[i], err);
    return rc;
}

void cm_reference_free_origins(cm_reference_store *s)
{
    for (size_t i = 0; s->origin != NULL && i < s->table.norigins; i++)
        cm_store_free(s->origin[i]);
    for (size_t i = 0; s->version != NULL && i < s->table.nfiles; i++)
        free(atomic_load(&s->version[i]));
    free(s->origin);
    free(s->version);
}

#define TIME "modified " /* what a version without an ETag begins with */

/* The version that the first answer about REF's file told; NULL: none yet. */
static const char *known_version(const cm_store *store, const cm_reference *ref)
{
    return atomic_load(&cm_reference_store_of(store)->version[ref->file]);
}

static bool is_time(const char *version)
{
    return strncmp(version, TIME, strlen(TIME)) == 0;
}

static cm_net_part part_of(const cm_store *store, const cm_reference *ref)
{
    const cm_reference_file *file = cm_reference_file_of(store, ref);
    const char *version = known_version(store, ref);
    return (cm_net_part){.key = file->key,
                         .shown = file->name,
                         .etag = version != NULL && !is_time(version) ? version : NULL};
}

/* Records the version of PART's file for all later answers, or compares it. */
static int remember(cm_store *store, const cm_reference *ref, const cm_net_part *part,
                    cm_error *err)
{
    char *was = NULL, *now = NULL;
    if (part->etag != NULL || (part->seen[0] == '\0' && part->modified_s == 0))
        return CM_OK;
    now = part->seen[0] != '\0' ? cm_strdup(part->seen, err)
                                : cm_asprintf(err, TIME "%lld", (long long)part->modified_s);
    if (now == NULL)
        return CM_ENOMEM;
    if (atomic_compare_exchange_strong(&cm_reference_store_of(store)->version[ref->file], &was,
                                       now))
        return CM_OK;
    bool same = strcmp(was, now) == 0 || is_time(was) != is_time(now);
    free(now);
    return same ? CM_OK : cm_fail(err, CM_EIO, "%s: changed while it was read", part->shown);
}

static int take(cm_store *store, const char *key, const cm_reference *ref, const cm_net_part *part,
                cm_error *err)
{
    /* A chunk that is not stored has no reference, so its file must exist. */
    if (part->rc == CM_ENOTFOUND)
        return cm_fail(err, CM_EFORMAT, "%s: refers to %s, which is not there", key, part->shown);
    int rc = remember(store, ref, part, err);
    if (rc != CM_OK)
        cm_error_prefix(err, "%s", key);
    return rc;
}

int cm_reference_net_read(cm_store *store, const char *key, const cm_reference *ref,
                          uint64_t offset, void *dst, size_t nbytes, cm_error *err)
{
    cm_store *origin =
        cm_reference_store_of(store)->origin[cm_reference_file_of(store, ref)->origin];
    cm_net_part part = part_of(store, ref);
    part.offset = ref->offset + offset;
    part.nbytes = nbytes;
    part.dst = dst;
    int rc = cm_net_read_parts(origin, &part, 1, NULL, err);
    if (rc == CM_OK)
        return take(store, key, ref, &part, err);
    cm_error_prefix(err, "%s", key);
    return rc;
}

int cm_reference_net_identify(cm_store *store, const char *key, const cm_reference *ref,
                              cm_identity *out, cm_error *err)
{
    const cm_reference_file *file = cm_reference_file_of(store, ref);
    int rc =
        cm_store_identity(cm_reference_store_of(store)->origin[file->origin], file->key, out, err);
    if (rc == CM_ENOTFOUND)
        return cm_fail(err, CM_EFORMAT, "%s: refers to %s, which is not there", key, file->name);
    if (rc != CM_OK) {
        cm_error_prefix(err, "%s: refers to %s", key, file->name);
        return rc;
    }
    if (ref->whole)
        return CM_OK;
    if (ref->offset + ref->nbytes > out->nbytes)
        return cm_fail(err, CM_EFORMAT, "%s: refers to bytes %llu to %llu of %s, which has %llu",
                       key, (unsigned long long)ref->offset,
                       (unsigned long long)(ref->offset + ref->nbytes), file->name,
                       (unsigned long long)out->nbytes);
    out->nbytes = ref->nbytes;
    return CM_OK;
}

/* ---- many at once ---- */

typedef struct many {
    cm_store *store;
    cm_store_read *read;
    const cm_reference **ref; /* of each read; NULL: none, or read already */
    cm_net_part *part;
    size_t *number; /* index of the read for each part */
} many;

static const char *key_of(const cm_store_read *read)
{
    return read->reader != NULL ? read->reader->key : read->key;
}

static int find_each(many *m, size_t n, cm_buf *buf, cm_error *err)
{
    for (size_t i = 0; i < n; i++) {
        cm_store_read *read = &m->read[i];
        int rc = CM_OK;
        if (read->reader != NULL)
            m->ref[i] = ((cm_reference_reader *)read->reader)->ref;
        else
            rc = cm_reference_find(&cm_reference_store_of(m->store)->table, read->key, &m->ref[i],
                                   err);
        read->absent = rc == CM_ENOTFOUND;
        if (rc == CM_OK && !cm_reference_is_remote(m->store, m->ref[i])) {
            rc = cm_store_read_each(m->store, read, 1, buf, err);
            m->ref[i] = NULL;
        }
        if (rc != CM_OK && !read->absent)
            return rc;
    }
    return CM_OK;
}

static int describe(many *m, size_t i, cm_net_part *p, cm_error *err)
{
    const cm_store_read *read = &m->read[i];
    const cm_reference *ref = m->ref[i];
    *p = part_of(m->store, ref);
    p->whole = ref->whole && read->reader == NULL;
    p->offset = ref->offset + (read->reader != NULL ? read->offset : 0);
    p->nbytes = read->reader != NULL ? read->nbytes : p->whole ? read->max_nbytes : ref->nbytes;
    if (read->reader == NULL && p->nbytes > read->max_nbytes)
        return cm_object_too_long(read->key, p->nbytes, read->max_nbytes, err);
    return CM_OK;
}

/* Reads all references with the same origin as FIRST. */
static int read_origin(many *m, size_t first, size_t n, cm_buf *buf, cm_error *err)
{
    uint32_t origin = cm_reference_file_of(m->store, m->ref[first])->origin;
    size_t np = 0;
    int rc = CM_OK;
    for (size_t i = first; rc == CM_OK && i < n; i++) {
        if (m->ref[i] == NULL || cm_reference_file_of(m->store, m->ref[i])->origin != origin)
            continue;
        m->number[np] = i;
        rc = describe(m, i, &m->part[np++], err);
    }
    if (rc != CM_OK)
        return rc;
    rc = cm_net_read_parts(cm_reference_store_of(m->store)->origin[origin], m->part, np, buf, err);
    for (size_t k = 0; rc != CM_OK && k < np; k++)
        if (m->part[k].rc == rc) {
            cm_error_prefix(err, "%s", key_of(&m->read[m->number[k]]));
            return rc;
        }
    for (size_t k = 0; rc == CM_OK && k < np; k++) {
        size_t i = m->number[k];
        rc = take(m->store, key_of(&m->read[i]), m->ref[i], &m->part[k], err);
        m->read[i].at = m->part[k].at;
        m->read[i].got_nbytes = m->part[k].got_nbytes;
        m->ref[i] = NULL;
    }
    return rc;
}

int cm_reference_read_many(cm_store *store, cm_store_read *read, size_t n, cm_buf *buf,
                           cm_error *err)
{
    many m = {.store = store,
              .read = read,
              .ref = cm_calloc(n + 1, sizeof *m.ref, err),
              .part = cm_calloc(n + 1, sizeof *m.part, err),
              .number = cm_calloc(n + 1, sizeof *m.number, err)};
    int rc = m.ref == NULL || m.part == NULL || m.number == NULL ? CM_ENOMEM : CM_OK;
    if (rc == CM_OK)
        rc = find_each(&m, n, buf, err);
    for (size_t i = 0; rc == CM_OK && i < n; i++)
        if (m.ref[i] != NULL)
            rc = read_origin(&m, i, n, buf, err);
    free(m.ref);
    free(m.part);
    free(m.number);
    return rc;
}

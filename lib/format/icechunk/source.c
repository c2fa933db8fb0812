/* The objects that chunks lie in. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "format/icechunk/key.h"
#include "format/icechunk/read_impl.h"
#include "store/checksum.h"

/* ---- which it is ---- */

/* The ETag as servers write it. */
static int take_etag(const cm_ice_text *etag, cm_ice_source *out, cm_error *err)
{
    const bool quoted = etag->n > 0 && (etag->bytes[0] == '"' || etag->bytes[0] == 'W');
    if (etag->n + 3 > sizeof(out->etag) || memchr(etag->bytes, '\0', etag->n) != NULL ||
        memchr(etag->bytes, '\n', etag->n) != NULL || memchr(etag->bytes, '\r', etag->n) != NULL)
        return cm_fail(err, CM_EUNSUPPORTED, "the ETag of '%s' is not one that can be compared",
                       out->spot.shown);
    if (etag->n > 0)
        snprintf(out->etag, sizeof(out->etag), "%s%.*s%s", quoted ? "" : "\"", (int)etag->n,
                 etag->bytes, quoted ? "" : "\"");
    return CM_OK;
}

int cm_ice_source_find(cm_ice_store *s, const char *key, const cm_ice_found *found,
                       cm_ice_source *out, cm_error *err)
{
    const cm_ice_chunk *chunk = &found->chunk;
    char name[CM_ICE_KEY_SIZE];
    int rc = CM_OK;
    *out = (cm_ice_source){0};
    if (chunk->where == CM_ICE_OUTSIDE) {
        out->is_outside = true;
        out->modified_s = chunk->modified_s;
        rc = cm_ice_outside_find(s->outside, found->manifest, chunk, &out->spot, err);
        if (rc == CM_OK)
            rc = take_etag(&chunk->etag, out, err);
        if (rc != CM_OK)
            cm_error_prefix(err, "%s", key);
        return rc;
    }
    cm_ice_key("chunks", chunk->id, name);
    out->spot = (cm_ice_spot){s->root, s->is_net, cm_strdup(name, err), cm_strdup(name, err)};
    return out->spot.key != NULL && out->spot.shown != NULL ? CM_OK : CM_ENOMEM;
}

void cm_ice_source_release(cm_ice_source *source)
{
    cm_ice_spot_release(&source->spot);
}

static bool is_same_text(const cm_ice_text *a, const cm_ice_text *b)
{
    return a->n == b->n && (a->n == 0 || memcmp(a->bytes, b->bytes, a->n) == 0);
}

bool cm_ice_source_is_same(const cm_ice_found *a, const cm_ice_found *b)
{
    const cm_ice_chunk *x = &a->chunk, *y = &b->chunk;
    if (x->where != y->where || x->where == CM_ICE_INLINE)
        return false;
    if (x->where == CM_ICE_IN_FILE)
        return memcmp(x->id, y->id, CM_ICE_ID) == 0;
    return a->manifest == b->manifest && x->is_compressed == y->is_compressed &&
           x->modified_s == y->modified_s && is_same_text(&x->location, &y->location) &&
           is_same_text(&x->etag, &y->etag);
}

/* ---- whether it is still the same ---- */

static int missing(const cm_ice_source *source, const char *key, cm_error *err)
{
    return cm_fail(err, CM_EFORMAT, "%s: its file %s is missing", key, source->spot.shown);
}

static int changed(const cm_ice_source *source, const char *key, cm_error *err)
{
    return cm_fail(err, CM_EFORMAT,
                   "%s: %s has changed since the reference to it was made; its chunks have to be "
                   "replaced",
                   key, source->spot.shown);
}

/* A local file, which has no ETag but the one that icechunk makes of its inode, time and size. */
static bool is_unchanged(const cm_ice_source *source, const struct stat *st)
{
    char etag[64];
    const int64_t ns = st->st_mtim.tv_nsec, s = st->st_mtim.tv_sec;
    snprintf(etag, sizeof(etag), "\"%" PRIx64 "-%" PRIx64 "-%" PRIx64 "\"", (uint64_t)st->st_ino,
             (uint64_t)(s * 1000000 + ns / 1000), (uint64_t)st->st_size);
    if (source->etag[0] != '\0' && strcmp(source->etag, etag) != 0)
        return false;
    return source->modified_s == 0 || s < source->modified_s ||
           (s == source->modified_s && ns == 0);
}

/* ---- reading it ---- */

int cm_ice_source_open(const cm_ice_source *source, const char *key, uint64_t end,
                       cm_object_reader **out, cm_error *err)
{
    struct stat st;
    int rc = cm_object_open(source->spot.store, source->spot.key, out, err);
    if (rc == CM_ENOTFOUND)
        return missing(source, key, err);
    if (rc != CM_OK) {
        cm_error_prefix(err, "%s", key);
        return rc;
    }
    if (source->is_outside && (stat(source->spot.shown, &st) != 0 || !is_unchanged(source, &st)))
        rc = changed(source, key, err);
    else if (end > cm_object_nbytes(*out))
        rc = cm_fail(err, CM_EFORMAT, "%s: ends behind the end of its file %s", key,
                     source->spot.shown);
    if (rc != CM_OK) {
        cm_object_close(*out);
        *out = NULL;
    }
    return rc;
}

cm_net_part cm_ice_source_part(const cm_ice_source *source, uint64_t offset, uint64_t nbytes)
{
    return (cm_net_part){.key = source->spot.key,
                         .shown = source->spot.shown,
                         .etag = source->etag[0] != '\0' ? source->etag : NULL,
                         .offset = offset,
                         .nbytes = nbytes};
}

int cm_ice_source_take(const cm_ice_source *source, const char *key, const cm_net_part *part,
                       int rc, cm_error *err)
{
    if (part->changed)
        return changed(source, key, err);
    if (rc != CM_OK) {
        cm_error_prefix(err, "%s", key);
        return rc;
    }
    if (part->rc == CM_ENOTFOUND)
        return missing(source, key, err);
    if (source->modified_s > 0 && part->modified_s == 0)
        return cm_fail(err, CM_EUNSUPPORTED, "%s: the server does not tell when %s has changed",
                       key, source->spot.shown);
    return source->modified_s > 0 && part->modified_s > source->modified_s
               ? changed(source, key, err)
               : CM_OK;
}

int cm_ice_source_read(const cm_ice_source *source, const char *key, uint64_t offset, void *dst,
                       size_t nbytes, cm_error *err)
{
    cm_net_part part = cm_ice_source_part(source, offset, nbytes);
    part.dst = dst;
    int rc = cm_net_read_parts(source->spot.store, &part, 1, NULL, err);
    return cm_ice_source_take(source, key, &part, rc, err);
}

/* ---- which bytes they are ---- */

/* Adds what the file outside is now. */
static int identify_outside(cm_ice_store *s, const char *key, const cm_ice_found *found,
                            cm_identity *out, cm_error *err)
{
    cm_ice_source source;
    cm_identity whole = {0};
    int rc = cm_ice_source_find(s, key, found, &source, err);
    if (rc != CM_OK)
        return rc;
    rc = cm_store_identity(source.spot.store, source.spot.key, &whole, err);
    if (rc == CM_ENOTFOUND)
        rc = missing(&source, key, err);
    const char *name = source.spot.shown;
    const uint64_t place[] = {whole.inode, whole.nbytes};
    out->changed_ns = whole.changed_ns;
    out->inode = cm_checksum64(place, sizeof(place), cm_checksum64(name, strlen(name), out->inode));
    cm_ice_source_release(&source);
    return rc;
}

int cm_ice_identity(cm_store *store, const char *key, cm_identity *out, cm_error *err)
{
    cm_ice_store *s = cm_ice_store_of(store);
    cm_ice_found found;
    *out = (cm_identity){0};
    int rc = cm_ice_find(s, key, false, &found, err);
    if (rc != CM_OK)
        return rc;
    const cm_ice_chunk *chunk = &found.chunk;
    const uint64_t place[] = {chunk->offset, chunk->nbytes};
    out->nbytes = chunk->nbytes;
    out->inode = chunk->where == CM_ICE_INLINE
                     ? cm_checksum64(chunk->bytes, (size_t)chunk->nbytes, 0)
                     : cm_checksum64(place, sizeof(place), 0);
    if (chunk->where == CM_ICE_IN_FILE) /* its id is never that of other bytes */
        out->inode = cm_checksum64(chunk->id, CM_ICE_ID, out->inode);
    else if (chunk->where == CM_ICE_OUTSIDE)
        rc = identify_outside(s, key, &found, out, err);
    cm_ice_found_release(s, &found);
    return rc;
}

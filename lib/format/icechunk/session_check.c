/* Leftovers of an earlier run: which chunks a session goes on with. */
#include <stdlib.h>
#include <string.h>

#include "base/crc32c.h"
#include "format/icechunk/key.h"
#include "format/icechunk/session_impl.h"

enum {
    OPEN_FILES = 16, /* that a check reads in turn */
    BATCH = 256      /* records */
};

/* Files of the repository that a check has open. */
typedef struct opened {
    uint8_t id[OPEN_FILES][CM_ICE_ID];
    cm_object_reader *reader[OPEN_FILES];
    unsigned next;
    cm_buf bytes;
} opened;

static cm_object_reader *open_file(cm_ice_session *s, opened *o, const uint8_t *id)
{
    char key[CM_ICE_KEY_SIZE];
    for (unsigned i = 0; i < OPEN_FILES; i++)
        if (o->reader[i] != NULL && memcmp(o->id[i], id, CM_ICE_ID) == 0)
            return o->reader[i];
    const unsigned at = o->next++ % OPEN_FILES;
    cm_object_close(o->reader[at]);
    o->reader[at] = NULL;
    cm_ice_key("chunks", id, key);
    if (cm_object_open(s->root, key, &o->reader[at], NULL) != CM_OK)
        return NULL;
    memcpy(o->id[at], id, CM_ICE_ID);
    return o->reader[at];
}

/* Whether the bytes of R are there as they were written. */
static bool is_whole(cm_ice_session *s, opened *o, const cm_ice_record *r)
{
    o->bytes.nbytes = 0;
    if (r->state == CM_ICE_EMPTY)
        return true;
    if (r->state == CM_ICE_SMALL)
        return r->nbytes <= CM_ICE_INLINE_NBYTES &&
               cm_buf_resize(&o->bytes, r->nbytes, NULL) == CM_OK &&
               cm_ice_records_small(s->records, r, o->bytes.data, NULL) == CM_OK;
    cm_object_reader *reader = open_file(s, o, r->id);
    if (reader == NULL || r->offset > cm_object_nbytes(reader) ||
        r->nbytes > cm_object_nbytes(reader) - r->offset)
        return false;
    if (!r->summed)
        return r->nbytes == cm_object_nbytes(reader);
    return cm_buf_resize(&o->bytes, r->nbytes, NULL) == CM_OK &&
           cm_object_read(reader, r->offset, o->bytes.data, r->nbytes, NULL) == CM_OK &&
           cm_crc32c(cm_cpu_simd(), o->bytes.data, r->nbytes) == r->sum;
}

int cm_ice_session_check(cm_store *store, bool (*canceled)(void *), void *context, uint64_t *nkept,
                         cm_error *err)
{
    cm_ice_session *s = cm_ice_session_of(store);
    opened o = {0};
    const cm_ice_record unknown = {0};
    int rc = CM_OK;
    *nkept = 0;
    for (uint64_t i = 0; rc == CM_OK && i < s->nchunks; i++) {
        cm_ice_record r;
        rc = cm_ice_records_get(s->records, i, 1, &r, err);
        if (rc == CM_OK && i % 64 == 0 && canceled(context))
            rc = cm_fail(err, CM_ECANCELED, "stopped by request");
        if (rc != CM_OK || r.state == CM_ICE_UNKNOWN)
            continue;
        if (is_whole(s, &o, &r))
            ++*nkept;
        else
            rc = cm_ice_records_set(s->records, i, &unknown, err);
    }
    for (unsigned i = 0; i < OPEN_FILES; i++)
        cm_object_close(o.reader[i]);
    cm_buf_release(&o.bytes);
    return rc;
}

static int compare_ids(const void *a, const void *b)
{
    return memcmp(a, b, CM_ICE_ID);
}

/* Sorts the N ids in LIST; how many there are without repetitions. */
static size_t unify(uint8_t *list, size_t n)
{
    size_t kept = 0;
    if (n > 1) /* LIST may be NULL without any */
        qsort(list, n, CM_ICE_ID, compare_ids);
    for (size_t i = 0; i < n; i++)
        if (kept == 0 ||
            memcmp(list + (kept - 1) * CM_ICE_ID, list + i * CM_ICE_ID, CM_ICE_ID) != 0)
            memmove(list + CM_ICE_ID * kept++, list + i * CM_ICE_ID, CM_ICE_ID);
    return kept;
}

int cm_ice_session_files(cm_store *store, uint8_t **id, size_t *n, cm_error *err)
{
    cm_ice_session *s = cm_ice_session_of(store);
    cm_ice_record record[BATCH];
    size_t room = 0;
    int rc = CM_OK;
    *id = NULL;
    *n = 0;
    for (uint64_t i = 0; rc == CM_OK && i < s->nchunks; i += BATCH) {
        const size_t batch = s->nchunks - i < BATCH ? (size_t)(s->nchunks - i) : BATCH;
        rc = cm_ice_records_get(s->records, i, batch, record, err);
        for (size_t k = 0; rc == CM_OK && k < batch; k++) {
            if (record[k].state != CM_ICE_STORED)
                continue;
            if (*n == room)
                *n = unify(*id, *n);
            uint8_t *list = cm_make_room(*id, *n, &room, CM_ICE_ID, 1024);
            if (list == NULL)
                return cm_fail(err, CM_ENOMEM, "no memory for ids");
            *id = list;
            memcpy(list + CM_ICE_ID * (*n)++, record[k].id, CM_ICE_ID);
        }
    }
    *n = unify(*id, *n);
    return rc;
}

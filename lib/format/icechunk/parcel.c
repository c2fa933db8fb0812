#include "format/icechunk/parcel.h"

#include <stdlib.h>
#include <string.h>

#include "base/crc32c.h"
#include "format/icechunk/session.h"
#include "model/digest.h"

static const char MARK[8] = "ICEPART\1";

enum {
    ROOM = 1 << 18, /* bytes on the way */
    BATCH = 256,    /* records */
    NUMBER = 8,
    HEAD = NUMBER + CM_ICE_RECORD_NBYTES,
    TAIL = NUMBER + 8 + 16
};

static const uint64_t END = UINT64_MAX;

/* ---- writing ---- */

typedef struct writing {
    cm_object_writer *object;
    uint8_t *room;
    size_t n;      /* bytes in it */
    uint64_t at;   /* bytes before them */
    uint64_t made; /* items */
    cm_digest sum; /* of their records, which have checksums of small chunks */
} writing;

static int flush(writing *w, cm_error *err)
{
    int rc = cm_object_write(w->object, w->at, w->room, w->n, err);
    w->at += w->n;
    w->n = 0;
    return rc;
}

static int add(writing *w, const cm_ice_records *records, uint64_t number, const cm_ice_record *r,
               cm_error *err)
{
    int rc = w->n + HEAD + CM_ICE_INLINE_NBYTES + TAIL > ROOM ? flush(w, err) : CM_OK;
    if (rc != CM_OK)
        return rc;
    cm_store_le64(w->room + w->n, number);
    cm_ice_record_pack(r, number, w->room + w->n + NUMBER);
    cm_digest_element(&w->sum, number, w->room + w->n + NUMBER, CM_ICE_RECORD_NBYTES);
    w->n += HEAD;
    w->made++;
    if (r->state != CM_ICE_SMALL)
        return CM_OK;
    if (r->nbytes > CM_ICE_INLINE_NBYTES)
        return cm_fail(err, CM_EFORMAT, "the journal: a small chunk is damaged");
    rc = cm_ice_records_small(records, r, w->room + w->n, err);
    w->n += r->nbytes;
    return rc;
}

static int add_span(writing *w, const cm_ice_records *records, cm_ice_span span, cm_error *err)
{
    cm_ice_record record[BATCH];
    int rc = CM_OK;
    for (uint64_t i = span.first; rc == CM_OK && i < span.end;) {
        const size_t n = span.end - i < BATCH ? (size_t)(span.end - i) : BATCH;
        rc = cm_ice_records_get(records, i, n, record, err);
        for (size_t k = 0; rc == CM_OK && k < n; k++, i++)
            if (record[k].state != CM_ICE_UNKNOWN)
                rc = add(w, records, i, &record[k], err);
    }
    return rc;
}

static int end(writing *w, cm_error *err)
{
    uint8_t *tail = w->room + w->n;
    cm_store_le64(tail, END);
    cm_store_le64(tail + NUMBER, w->made);
    cm_store_le64(tail + NUMBER + 8, w->sum.lo);
    cm_store_le64(tail + NUMBER + 16, w->sum.hi);
    w->n += TAIL;
    return flush(w, err);
}

int cm_ice_parcel_write(cm_store *to, const char *key, const cm_ice_records *records,
                        const cm_ice_span *span, size_t n, cm_error *err)
{
    const cm_object_form form = {.in_order = true};
    writing w = {.room = malloc(ROOM)};
    int rc = w.room == NULL ? cm_fail(err, CM_ENOMEM, "no memory for places of chunks")
                            : cm_object_create(to, key, &form, &w.object, err);
    if (rc == CM_OK) {
        memcpy(w.room, MARK, sizeof(MARK));
        w.n = sizeof(MARK);
    }
    for (size_t i = 0; rc == CM_OK && i < n; i++)
        rc = add_span(&w, records, span[i], err);
    if (rc == CM_OK)
        rc = end(&w, err);
    if (rc == CM_OK)
        rc = cm_object_commit(w.object, err);
    else
        cm_object_abort(w.object);
    free(w.room);
    return rc;
}

/* ---- reading ---- */

typedef struct reading {
    cm_object_reader *object;
    const char *key;
    uint8_t *room;
    size_t n, used; /* bytes in it, and of these those that were taken */
    uint64_t at;    /* of the object, behind them */
    cm_digest sum;  /* of records */
} reading;

static int damaged(const reading *r, cm_error *err)
{
    return cm_fail(err, CM_EFORMAT, "%s: is damaged; run that part again", r->key);
}

/* The next N bytes, which are few. */
static int take(reading *r, size_t n, const uint8_t **out, cm_error *err)
{
    int rc = CM_OK;
    if (r->n - r->used < n) {
        const uint64_t left = cm_object_nbytes(r->object) - r->at;
        memmove(r->room, r->room + r->used, r->n - r->used);
        r->n -= r->used;
        r->used = 0;
        const size_t more = left < ROOM - r->n ? (size_t)left : ROOM - r->n;
        rc = cm_object_read(r->object, r->at, r->room + r->n, more, err);
        r->at += more;
        r->n += more;
        if (rc == CM_OK && r->n < n)
            rc = damaged(r, err);
    }
    if (rc != CM_OK)
        return rc;
    *out = r->room + r->used;
    r->used += n;
    return CM_OK;
}

static bool is_within(uint64_t number, const cm_ice_span *span, size_t n)
{
    size_t low = 0, high = n;
    while (low < high) {
        const size_t middle = low + (high - low) / 2;
        if (number >= span[middle].end)
            low = middle + 1;
        else if (number < span[middle].first)
            high = middle;
        else
            return true;
    }
    return false;
}

static int read_end(reading *r, uint64_t made, cm_error *err)
{
    const uint8_t *tail;
    int rc = take(r, TAIL - NUMBER, &tail, err);
    if (rc == CM_OK && (cm_load_le64(tail) != made || cm_load_le64(tail + 8) != r->sum.lo ||
                        cm_load_le64(tail + 16) != r->sum.hi || r->used != r->n ||
                        r->at != cm_object_nbytes(r->object)))
        rc = damaged(r, err);
    return rc;
}

static int read_items(reading *r, const cm_ice_span *span, size_t n, cm_ice_parcel_visit *visit,
                      void *context, cm_error *err)
{
    const uint8_t *bytes, *small;
    int rc = take(r, sizeof(MARK), &bytes, err);
    if (rc == CM_OK && memcmp(bytes, MARK, sizeof(MARK)) != 0)
        rc = damaged(r, err);
    for (uint64_t made = 0; rc == CM_OK; made++) {
        cm_ice_record record;
        if ((rc = take(r, NUMBER, &bytes, err)) != CM_OK)
            return rc;
        const uint64_t number = cm_load_le64(bytes);
        if (number == END)
            return read_end(r, made, err);
        if ((rc = take(r, CM_ICE_RECORD_NBYTES, &bytes, err)) != CM_OK)
            return rc;
        cm_ice_record_unpack(bytes, number, &record);
        cm_digest_element(&r->sum, number, bytes, CM_ICE_RECORD_NBYTES);
        if (record.state == CM_ICE_UNKNOWN || !is_within(number, span, n) ||
            (record.state == CM_ICE_SMALL && record.nbytes > CM_ICE_INLINE_NBYTES))
            return damaged(r, err);
        small = NULL;
        if (record.state == CM_ICE_SMALL)
            rc = take(r, (size_t)record.nbytes, &small, err);
        if (rc == CM_OK && small != NULL &&
            cm_crc32c(cm_cpu_simd(), small, (size_t)record.nbytes) != record.sum)
            rc = damaged(r, err);
        if (rc == CM_OK)
            rc = visit(context, number, &record, small, err);
    }
    return rc;
}

int cm_ice_parcel_read(cm_store *from, const char *key, const cm_ice_span *span, size_t n,
                       cm_ice_parcel_visit *visit, void *context, cm_error *err)
{
    reading r = {.key = key, .room = malloc(ROOM)};
    int rc = r.room == NULL ? cm_fail(err, CM_ENOMEM, "no memory for places of chunks")
                            : cm_object_open(from, key, &r.object, err);
    if (rc == CM_OK)
        rc = read_items(&r, span, n, visit, context, err);
    cm_object_close(r.object);
    free(r.room);
    return rc;
}

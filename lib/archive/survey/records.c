#include "archive/survey/records.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "archive/survey/form.h"
#include "base/fd.h"
#include "base/glibc.h"
#include "model/meaning.h"

enum {
    WRITE_NBYTES = 64 << 10,   /* the system makes, and maps, pages as large as what is written */
    RESIDENT_NBYTES = 1 << 20, /* read between two times that pages are let go */
    TOUCHED_NBYTES = 1 << 10,  /* at least, each time: the system maps neighbours too */
    PARSED_VARIABLE = 1,
    PARSED_SKELETON = 2,
    PARSED_FORM = 3,
    BLOCK = 256,      /* of what files share, in one piece of memory */
    MOST_LOADED = 256 /* descriptions whose attributes are parsed at once */
};

int cm_records_create(const char *folder, cm_paged *paged, cm_records **out, cm_error *err)
{
    cm_records *r = cm_calloc(1, sizeof(*r), err);
    *out = r;
    if (r == NULL)
        return CM_ENOMEM;
    r->paged = paged;
    r->fd = cm_unnamed_file(folder);
    if (r->fd < 0)
        r->fd = memfd_create("survey", MFD_CLOEXEC);
    return r->fd < 0 ? cm_fail_errno(err, errno, "no file for the records of a survey") : CM_OK;
}

/* ---- attributes ---- */

static int note_loaded(cm_records *r, cm_described *d, cm_error *err)
{
    int rc = CM_GROW(r->loaded, r->nloaded, err);
    if (rc == CM_OK)
        r->loaded[r->nloaded++] = d;
    return rc;
}

const cm_json *cm_described_attrs(const cm_described *described)
{
    cm_described *d = (cm_described *)(uintptr_t)described; /* parsed when first asked for */
    cm_records *r = d->records;
    if (d->attrs != NULL || r == NULL)
        return d->attrs;
    cm_records_touch(r, d->text_nbytes);
    int rc = cm_json_parse(d->text, d->text_nbytes, &d->attrs, NULL);
    if (rc == CM_OK)
        rc = cm_json_is(d->attrs, CM_JSON_OBJECT) ? note_loaded(r, d, NULL) : CM_EFORMAT;
    if (rc != CM_OK) {
        cm_json_free(d->attrs);
        d->attrs = NULL;
        r->failed = rc;
    }
    return d->attrs;
}

const cm_reading *cm_described_reading(const cm_described *d)
{
    if (d->reading != NULL)
        cm_paged_touch(d->records->paged, d->reading, sizeof(*d->reading));
    return d->reading;
}

void cm_described_keep_reading(const cm_described *described, const cm_reading *reading)
{
    cm_described *d = (cm_described *)(uintptr_t)described; /* as its attributes are parsed */
    cm_reading *kept =
        d->records != NULL ? cm_paged_calloc(d->records->paged, 1, sizeof(*kept), NULL) : NULL;
    if (kept != NULL)
        *kept = *reading;
    d->reading = kept;
}

static void unload(cm_records *r, bool all)
{
    size_t kept = 0;
    for (size_t i = 0; i < r->nloaded; i++) {
        cm_described *d = r->loaded[i];
        if (d->kept && !all) {
            r->loaded[kept++] = d;
            continue;
        }
        cm_json_free(d->attrs);
        d->attrs = NULL;
    }
    r->nloaded = kept;
}

void cm_records_rest(cm_records *r)
{
    if (r->nloaded >= r->full) {
        unload(r, false);
        r->full = r->nloaded + MOST_LOADED;
    }
}

void cm_records_forget(cm_records *r)
{
    unload(r, true);
    for (size_t i = 0; i < r->nshared; i++) {
        cm_shared *s = cm_records_shared(r, i);
        cm_paged_touch(r->paged, s, sizeof(*s));
        if (s->kind == PARSED_FORM)
            cm_wire_free_form(s->parsed);
        s->parsed = NULL;
        s->kind = 0;
    }
    r->failed = CM_OK;
}

static void release(cm_records *r)
{
    cm_records_forget(r);
    free(r->shared);
    free(r->loaded);
    r->shared = NULL;
    r->loaded = NULL;
    r->nshared = r->nblocks = 0;
    r->slot = NULL;
    r->nslots = 0;
    cm_buf_release(&r->unwritten);
    if (r->mapped > 0)
        munmap((void *)(uintptr_t)r->map, r->mapped);
    r->mapped = 0;
}

void cm_records_clear(cm_records *r)
{
    release(r);
    r->nbytes = 0;
}

void cm_records_free(cm_records *r)
{
    if (r == NULL)
        return;
    release(r);
    if (r->fd >= 0)
        close(r->fd);
    free(r);
}

static int write_all(const cm_records *r, uint64_t offset, const void *data, size_t nbytes,
                     cm_error *err)
{
    int errnum = cm_fd_write_at(r->fd, data, nbytes, offset);
    return errnum == 0 ? CM_OK
                       : cm_fail_errno(err, errnum, "the records of the survey cannot be written");
}

static int flush(cm_records *r, cm_error *err)
{
    int rc =
        write_all(r, r->nbytes - r->unwritten.nbytes, r->unwritten.data, r->unwritten.nbytes, err);
    r->unwritten.nbytes = 0;
    return rc;
}

/* To the end of what there is. */
static int append(cm_records *r, const void *data, size_t nbytes, cm_error *err)
{
    int rc = CM_OK;
    if (r->unwritten.nbytes + nbytes > WRITE_NBYTES)
        rc = flush(r, err);
    if (rc == CM_OK && nbytes > WRITE_NBYTES)
        rc = write_all(r, r->nbytes, data, nbytes, err);
    else if (rc == CM_OK)
        rc = cm_buf_append(&r->unwritten, data, nbytes, err);
    r->nbytes += rc == CM_OK ? nbytes : 0;
    return rc;
}

/* ---- what files share ---- */

cm_shared *cm_records_shared(const cm_records *r, size_t i)
{
    return &r->shared[i / BLOCK][i % BLOCK];
}

/* The slot of DIGEST, or the free one that would be its. */
static size_t slot_of(const cm_records *r, cm_digest digest)
{
    const uint32_t half = (uint32_t)(digest.lo >> 32);
    size_t i = (size_t)digest.lo & (r->nslots - 1);
    for (; r->slot[i].number != 0; i = (i + 1) & (r->nslots - 1))
        if (r->slot[i].half == half &&
            cm_wire_same(cm_records_shared(r, r->slot[i].number - 1)->digest, digest))
            break;
    return i;
}

cm_shared *cm_records_find(const cm_records *r, cm_digest digest)
{
    if (r->nslots == 0)
        return NULL;
    uint32_t number = r->slot[slot_of(r, digest)].number;
    return number == 0 ? NULL : cm_records_shared(r, number - 1);
}

/* Three quarters full at most. */
static int reserve_slots(cm_records *r, cm_error *err)
{
    if ((r->nshared + 1) * 4 <= r->nslots * 3)
        return CM_OK;
    size_t n = r->nslots > 0 ? r->nslots * 2 : 256;
    r->nslots = 0;
    if ((r->slot = cm_paged_calloc(r->paged, n, sizeof(r->slot[0]), err)) == NULL)
        return CM_ENOMEM;
    r->nslots = n;
    for (size_t i = 0; i < r->nshared; i++) {
        const cm_shared *shared = cm_records_shared(r, i);
        cm_paged_touch(r->paged, shared, sizeof(*shared));
        const cm_digest d = shared->digest;
        size_t at = (size_t)d.lo & (n - 1);
        while (r->slot[at].number != 0)
            at = (at + 1) & (n - 1);
        r->slot[at].half = (uint32_t)(d.lo >> 32);
        r->slot[at].number = (uint32_t)i + 1;
    }
    return CM_OK;
}

static int add_shared(cm_records *r, cm_digest digest, uint64_t offset, uint64_t nbytes,
                      cm_error *err)
{
    if (r->nshared == r->nblocks * BLOCK) {
        if (r->nshared >= UINT32_MAX - BLOCK)
            return cm_fail(err, CM_ENOMEM, "no memory for the records of a survey");
        cm_shared *block = cm_paged_calloc(r->paged, BLOCK, sizeof(*block), err);
        if (block == NULL || CM_GROW(r->shared, r->nblocks, err) != CM_OK)
            return CM_ENOMEM;
        r->shared[r->nblocks++] = block;
    }
    int rc = reserve_slots(r, err);
    if (rc != CM_OK)
        return rc;
    size_t at = slot_of(r, digest);
    *cm_records_shared(r, r->nshared) =
        (cm_shared){.digest = digest, .offset = offset, .nbytes = nbytes};
    r->slot[at].half = (uint32_t)(digest.lo >> 32);
    r->slot[at].number = (uint32_t)++r->nshared;
    return CM_OK;
}

int cm_records_append(cm_records *r, const cm_frame *frame, const uint8_t *payload,
                      uint64_t *offset, cm_error *err)
{
    cm_digest digest = {0};
    if (frame->kind == CM_FRAME_SHARED) {
        if (frame->nbytes < sizeof(digest))
            return cm_fail(err, CM_EFORMAT, "a record of the survey is damaged");
        memcpy(&digest, payload, sizeof(digest));
        if (cm_records_find(r, digest) != NULL)
            return CM_OK;
    }
    /* Frames begin at multiples of 8, as what they hold is used where it stands. */
    static const uint8_t zero[8];
    int rc = append(r, zero, (8 - r->nbytes % 8) % 8, err);
    if (rc == CM_OK)
        rc = append(r, frame, sizeof(*frame), err);
    *offset = r->nbytes;
    if (rc == CM_OK)
        rc = append(r, payload, (size_t)frame->nbytes, err);
    if (rc == CM_OK && frame->kind == CM_FRAME_SHARED)
        rc = add_shared(r, digest, *offset + sizeof(digest), frame->nbytes - sizeof(digest), err);
    return rc;
}

int cm_records_map(cm_records *r, cm_error *err)
{
    if (r->mapped == r->nbytes)
        return CM_OK;
    cm_records_forget(r);
    if (r->mapped > 0)
        munmap((void *)(uintptr_t)r->map, r->mapped);
    r->mapped = 0;
    if (r->nbytes == 0)
        return CM_OK;
    int rc = flush(r, err);
    cm_buf_release(&r->unwritten);
    if (rc != CM_OK)
        return rc;
    void *map = mmap(NULL, r->nbytes, PROT_READ, MAP_SHARED, r->fd, 0);
    if (map == MAP_FAILED)
        return cm_fail_errno(err, errno, "the records of the survey cannot be read");
    r->map = map;
    r->mapped = r->nbytes;
    return CM_OK;
}

/* The records are clean pages of a file: the system reads them again, from its own memory. */
void cm_records_let_go(cm_records *r)
{
    r->touched = 0;
    cm_paged_let_go(r->paged);
    if (r->mapped > 0)
        (void)madvise((void *)(uintptr_t)r->map, r->mapped, MADV_DONTNEED);
}

void cm_records_touch(cm_records *r, uint64_t nbytes)
{
    r->touched += nbytes < TOUCHED_NBYTES ? TOUCHED_NBYTES : nbytes;
    if (r->touched > RESIDENT_NBYTES)
        cm_records_let_go(r);
}

static cm_wire_in payload_of(cm_records *r, const cm_shared *s)
{
    cm_records_touch(r, s->nbytes);
    const uint8_t *at = r->map + s->offset;
    return (cm_wire_in){at, at + s->nbytes, false};
}

static int damaged(cm_error *err)
{
    return cm_fail(err, CM_EFORMAT, "a record of the survey is damaged");
}

/* ---- a variable ---- */

static int parse_dims(cm_paged *paged, cm_wire_in *w, cm_described *d, cm_error *err)
{
    d->rank = cm_wire_get_u32(w);
    if (d->rank > CM_MAX_RANK)
        return damaged(err);
    d->dim = cm_paged_calloc(paged, d->rank, sizeof(d->dim[0]), err);
    d->unlimited = cm_paged_calloc(paged, d->rank, sizeof(d->unlimited[0]), err);
    d->chunk = cm_paged_calloc(paged, d->rank, sizeof(d->chunk[0]), err);
    if (d->dim == NULL || d->unlimited == NULL || d->chunk == NULL)
        return CM_ENOMEM;
    for (unsigned j = 0; j < d->rank; j++) {
        d->dim[j] = cm_wire_get_text(w);
        d->unlimited[j] = cm_wire_get_u8(w) != 0;
        if (d->dim[j] == NULL)
            return damaged(err);
    }
    return CM_OK;
}

static void parse_fill(cm_wire_in *w, cm_described *d)
{
    const void *p;
    d->has_fill_value = cm_wire_get_u8(w) != 0;
    if ((p = cm_wire_get(w, sizeof(d->fill_value))) != NULL)
        memcpy(d->fill_value, p, sizeof(d->fill_value));
    d->scale_nbytes = cm_wire_get_u8(w);
    d->offset_nbytes = cm_wire_get_u8(w);
    d->has_fill = cm_wire_get_u8(w) != 0;
    if (d->has_fill && d->dtype.nbytes <= sizeof(d->fill) &&
        (p = cm_wire_get(w, d->dtype.nbytes)) != NULL)
        memcpy(d->fill, p, d->dtype.nbytes);
    d->fill_text = cm_wire_get_text(w);
    d->unsupported = cm_wire_get_text(w);
    d->decoded_from = cm_wire_get_text(w);
}

static int parse_described(cm_paged *paged, cm_wire_in *w, cm_described *d, cm_error *err)
{
    d->name = cm_wire_get_text(w);
    bool typed = cm_wire_get_dtype(w, &d->dtype);
    int rc = parse_dims(paged, w, d, err);
    if (rc != CM_OK)
        return rc;
    d->is_char = cm_wire_get_u8(w) != 0;
    d->is_coordinate = cm_wire_get_u8(w) != 0;
    parse_fill(w, d);
    d->has_chunk = cm_wire_get_u8(w) != 0;
    for (unsigned j = 0; d->has_chunk && j < d->rank; j++)
        if ((d->chunk[j] = cm_wire_get_u64(w)) == 0)
            return damaged(err);
    if (w->bad || d->name == NULL || !typed || (d->has_fill && d->dtype.nbytes > sizeof(d->fill)))
        return damaged(err);
    d->text = w->at;
    d->text_nbytes = (size_t)(w->end - w->at);
    return CM_OK;
}

static int find_described(cm_records *r, cm_digest digest, cm_described **out, cm_error *err)
{
    cm_shared *s = cm_records_find(r, digest);
    if (s == NULL || (s->kind != 0 && s->kind != PARSED_VARIABLE))
        return damaged(err);
    if (s->kind == 0) {
        cm_described *d = cm_paged_calloc(r->paged, 1, sizeof(*d), err);
        if (d == NULL)
            return CM_ENOMEM;
        cm_wire_in w = payload_of(r, s);
        d->records = r;
        int rc = parse_described(r->paged, &w, d, err);
        if (rc != CM_OK)
            return rc;
        s->parsed = d;
        s->kind = PARSED_VARIABLE;
    }
    *out = s->parsed;
    return CM_OK;
}

/* ---- a form ---- */

int cm_records_form(cm_records *r, cm_digest digest, const cm_form **out, cm_error *err)
{
    cm_shared *s = cm_records_find(r, digest);
    if (s == NULL || (s->kind != 0 && s->kind != PARSED_FORM))
        return damaged(err);
    if (s->kind == 0) {
        cm_form *f = NULL;
        cm_wire_in w = payload_of(r, s);
        int rc = cm_wire_get_form(&w, &f, err);
        if (rc != CM_OK) {
            cm_wire_free_form(f);
            return rc;
        }
        s->parsed = f;
        s->kind = PARSED_FORM;
    }
    *out = s->parsed;
    return CM_OK;
}

/* ---- a skeleton ---- */

static int parse_skeleton(cm_records *r, cm_wire_in *w, cm_skeleton *k, cm_error *err)
{
    k->format = cm_wire_get_text(w);
    size_t nvars = cm_wire_get_u32(w);
    if (w->bad || k->format == NULL || nvars > (size_t)(w->end - w->at) / sizeof(cm_digest))
        return damaged(err);
    if ((k->var = cm_paged_calloc(r->paged, nvars, sizeof(k->var[0]), err)) == NULL)
        return CM_ENOMEM;
    for (; k->nvars < nvars; k->nvars++) {
        int rc = find_described(r, cm_wire_get_digest(w), &k->var[k->nvars], err);
        if (rc != CM_OK)
            return rc;
        k->nnumbers += k->var[k->nvars]->rank;
    }
    size_t nwarnings = cm_wire_get_u32(w);
    if (w->bad || nwarnings > (size_t)(w->end - w->at))
        return damaged(err);
    k->warning = cm_paged_calloc(r->paged, nwarnings, sizeof(k->warning[0]), err);
    if (k->warning == NULL)
        return CM_ENOMEM;
    for (; k->nwarnings < nwarnings; k->nwarnings++)
        if ((k->warning[k->nwarnings] = cm_wire_get_text(w)) == NULL)
            return damaged(err);
    return CM_OK;
}

int cm_records_skeleton(cm_records *r, cm_digest digest, size_t *nskeletons, cm_skeleton **out,
                        cm_error *err)
{
    cm_shared *s = cm_records_find(r, digest);
    if (s == NULL || (s->kind != 0 && s->kind != PARSED_SKELETON))
        return damaged(err);
    if (s->kind == 0) {
        cm_skeleton *k = cm_paged_calloc(r->paged, 1, sizeof(*k), err);
        if (k == NULL)
            return CM_ENOMEM;
        cm_wire_in w = payload_of(r, s);
        int rc = parse_skeleton(r, &w, k, err);
        if (rc != CM_OK)
            return rc;
        k->index = (*nskeletons)++;
        s->parsed = k;
        s->kind = PARSED_SKELETON;
    }
    *out = s->parsed;
    return CM_OK;
}

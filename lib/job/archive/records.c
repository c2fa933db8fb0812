#include "job/archive/records.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/fd.h"
#include "job/archive/form.h"

enum {
    WRITE_NBYTES = 256 << 10,
    RESIDENT_NBYTES = 1 << 20, /* read between two times that pages are let go */
    PARSED_VARIABLE = 1,
    PARSED_SKELETON = 2,
    PARSED_FORM = 3
};

int cm_records_create(const char *folder, cm_records **out, cm_error *err)
{
    cm_records *r = cm_calloc(1, sizeof(*r), err);
    *out = r;
    if (r == NULL)
        return CM_ENOMEM;
    r->fd = folder == NULL ? -1 : open(folder, O_TMPFILE | O_RDWR | O_CLOEXEC, 0600);
    if (r->fd < 0)
        r->fd = open("/tmp", O_TMPFILE | O_RDWR | O_CLOEXEC, 0600);
    if (r->fd < 0)
        r->fd = memfd_create("survey", MFD_CLOEXEC);
    return r->fd < 0 ? cm_fail_errno(err, errno, "no file for the records of a survey") : CM_OK;
}

static void free_described(cm_described *d)
{
    if (d == NULL)
        return;
    cm_json_free(d->attrs);
    free(d->dim);
    free(d->unlimited);
    free(d->chunk);
    free(d);
}

static void free_skeleton(cm_skeleton *s)
{
    if (s == NULL)
        return;
    free(s->var);
    free(s->warning);
    free(s);
}

void cm_records_forget(cm_records *r)
{
    for (size_t i = 0; i < r->nshared; i++) {
        cm_shared *s = &r->shared[i];
        if (s->kind == PARSED_VARIABLE)
            free_described(s->parsed);
        else if (s->kind == PARSED_SKELETON)
            free_skeleton(s->parsed);
        else if (s->kind == PARSED_FORM)
            cm_wire_free_form(s->parsed);
        s->parsed = NULL;
        s->kind = 0;
    }
}

static void release(cm_records *r)
{
    cm_records_forget(r);
    free(r->shared);
    r->shared = NULL;
    r->nshared = r->capacity = 0;
    cm_known_release(&r->known);
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

static int add_shared(cm_records *r, cm_digest digest, uint64_t offset, uint64_t nbytes,
                      cm_error *err)
{
    if (r->nshared == r->capacity) {
        size_t capacity = r->capacity > 0 ? r->capacity * 2 : 64;
        cm_shared *more = realloc(r->shared, capacity * sizeof(*more));
        if (more == NULL)
            return cm_fail(err, CM_ENOMEM, "no memory for the records of a survey");
        r->shared = more;
        r->capacity = capacity;
    }
    r->shared[r->nshared] = (cm_shared){.offset = offset, .nbytes = nbytes};
    return cm_known_add(&r->known, digest, r->nshared++, err);
}

int cm_records_append(cm_records *r, const cm_frame *frame, const uint8_t *payload,
                      uint64_t *offset, cm_error *err)
{
    uint64_t position;
    cm_digest digest = {0};
    if (frame->kind == CM_FRAME_SHARED) {
        if (frame->nbytes < sizeof(digest))
            return cm_fail(err, CM_EFORMAT, "a record of the survey is damaged");
        memcpy(&digest, payload, sizeof(digest));
        if (cm_known_find(&r->known, digest, &position))
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
    if (r->mapped > 0)
        (void)madvise((void *)(uintptr_t)r->map, r->mapped, MADV_DONTNEED);
}

void cm_records_touch(cm_records *r, uint64_t nbytes)
{
    r->touched += nbytes;
    if (r->touched > RESIDENT_NBYTES)
        cm_records_let_go(r);
}

cm_shared *cm_records_find(const cm_records *r, cm_digest digest)
{
    uint64_t i;
    return cm_known_find(&r->known, digest, &i) ? &r->shared[i] : NULL;
}

static cm_wire_in payload_of(const cm_records *r, const cm_shared *s)
{
    const uint8_t *at = r->map + s->offset;
    return (cm_wire_in){at, at + s->nbytes, false};
}

static int damaged(cm_error *err)
{
    return cm_fail(err, CM_EFORMAT, "a record of the survey is damaged");
}

/* ---- a variable ---- */

static int parse_dims(cm_wire_in *w, cm_described *d, cm_error *err)
{
    d->rank = cm_wire_get_u32(w);
    if (d->rank > CM_MAX_RANK)
        return damaged(err);
    d->dim = cm_calloc(d->rank + 1, sizeof(d->dim[0]), err);
    d->unlimited = cm_calloc(d->rank + 1, sizeof(d->unlimited[0]), err);
    d->chunk = cm_calloc(d->rank + 1, sizeof(d->chunk[0]), err);
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
    d->has_fill = cm_wire_get_u8(w) != 0;
    if (d->has_fill && d->dtype.nbytes <= sizeof(d->fill) &&
        (p = cm_wire_get(w, d->dtype.nbytes)) != NULL)
        memcpy(d->fill, p, d->dtype.nbytes);
    d->fill_text = cm_wire_get_text(w);
    d->unsupported = cm_wire_get_text(w);
}

static int parse_described(cm_wire_in *w, cm_described *d, cm_error *err)
{
    d->name = cm_wire_get_text(w);
    bool typed = cm_wire_get_dtype(w, &d->dtype);
    int rc = parse_dims(w, d, err);
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
    if (cm_json_parse(w->at, (size_t)(w->end - w->at), &d->attrs, err) != CM_OK)
        return damaged(err);
    return cm_json_is(d->attrs, CM_JSON_OBJECT) ? CM_OK : damaged(err);
}

static int find_described(cm_records *r, cm_digest digest, cm_described **out, cm_error *err)
{
    cm_shared *s = cm_records_find(r, digest);
    if (s == NULL || (s->kind != 0 && s->kind != PARSED_VARIABLE))
        return damaged(err);
    if (s->kind == 0) {
        cm_described *d = cm_calloc(1, sizeof(*d), err);
        if (d == NULL)
            return CM_ENOMEM;
        cm_wire_in w = payload_of(r, s);
        int rc = parse_described(&w, d, err);
        if (rc != CM_OK) {
            free_described(d);
            return rc;
        }
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
    if ((k->var = cm_calloc(nvars + 1, sizeof(k->var[0]), err)) == NULL)
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
    if ((k->warning = cm_calloc(nwarnings + 1, sizeof(k->warning[0]), err)) == NULL)
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
        cm_skeleton *k = cm_calloc(1, sizeof(*k), err);
        if (k == NULL)
            return CM_ENOMEM;
        cm_wire_in w = payload_of(r, s);
        int rc = parse_skeleton(r, &w, k, err);
        if (rc != CM_OK) {
            free_skeleton(k);
            return rc;
        }
        k->index = (*nskeletons)++;
        s->parsed = k;
        s->kind = PARSED_SKELETON;
    }
    *out = s->parsed;
    return CM_OK;
}

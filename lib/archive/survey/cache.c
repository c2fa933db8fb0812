#include "archive/survey/cache.h"

#include <chunkmill/version.h>

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "archive/survey/check.h"
#include "archive/survey/records.h"
#include "base/fd.h"
#include "store/open.h"

enum {
    WRITE_NBYTES = 256 << 10
};

/* A record is longer than what a survey reads of a file by little. */
#define MAX_FRAME (UINT64_C(1) << 30)

/* ---- opening ---- */

int cm_survey_cache_open(cm_survey_cache *c, const char *path, const char *made, cm_error *err)
{
    const cm_outfile_guard guard = {.made = made};
    *c = (cm_survey_cache){0};
    int rc = cm_outfile_claim(&c->file, path, &CM_KIND_SURVEY, &guard, false, err);
    if (rc == CM_OK && c->file.in_place)
        rc = cm_fail(err, CM_EINVAL, "%s: a survey cache must be a regular file", path);
    c->file.sync = true;
    return rc;
}

void cm_survey_cache_release(cm_survey_cache *c)
{
    cm_outfile_release(&c->file);
    free(c->other);
    *c = (cm_survey_cache){0};
}

/* ---- paths ---- */

/* PATH from the root on, links as they are. */
static int put_absolute(cm_buf *out, const char *path, cm_error *err)
{
    out->nbytes = 0;
    if (path[0] != '/' && !cm_store_url_is_remote(path)) {
        char *here = getcwd(NULL, 0);
        int rc = here == NULL ? cm_fail_errno(err, errno, "the working directory has no name")
                              : cm_buf_append(out, here, strlen(here), err);
        free(here);
        if (rc == CM_OK)
            rc = cm_buf_append(out, "/", 1, err);
        if (rc != CM_OK)
            return rc;
    }
    return cm_buf_append(out, path, strlen(path) + 1, err);
}

/* ---- loading ---- */

typedef struct loader {
    cm_survey_cache *c;
    cm_survey *s;
    cm_spot *spot;
    cm_known by_path; /* digest of an absolute path -> file */
    int fd;
    uint64_t left; /* bytes that were not read */
    uint64_t nframes;
    cm_buf payload;
    cm_buf path; /* of the next record; empty: none was said */
    bool headed, ended;
    cm_error *err;
} loader;

static int damaged(loader *l)
{
    return cm_fail(l->err, CM_EFORMAT, "it is damaged");
}

static int read_bytes(loader *l, void *out, size_t nbytes)
{
    size_t got;
    if (nbytes > l->left)
        return damaged(l);
    l->left -= nbytes;
    int errnum = cm_fd_read(l->fd, out, nbytes, &got);
    if (errnum != 0)
        return cm_fail_errno(l->err, errnum, "it cannot be read");
    return got == nbytes ? CM_OK : damaged(l);
}

static int number_paths(loader *l)
{
    int rc = CM_OK;
    for (size_t i = 0; rc == CM_OK && i < l->s->nfiles; i++) {
        uint64_t before;
        rc = put_absolute(&l->path, l->s->file[i].path, l->err);
        if (rc != CM_OK)
            break;
        const cm_digest d = cm_wire_digest(l->path.data, l->path.nbytes);
        if (!cm_known_find(&l->by_path, d, &before))
            rc = cm_known_add(&l->by_path, d, i, l->err);
    }
    l->path.nbytes = 0;
    return rc;
}

static int take_head(loader *l)
{
    cm_wire_in w = {l->payload.data, l->payload.data + l->payload.nbytes, false};
    uint32_t format = cm_wire_get_u32(&w);
    const char *version = cm_wire_get_text(&w);
    if (w.bad || version == NULL)
        return damaged(l);
    l->headed = true;
    if (format == CM_SURVEY_CACHE_FORMAT && strcmp(version, cm_version()) == 0)
        return CM_OK;
    return cm_fail(l->err, CM_EFORMAT, "version %.40s of Chunkmill made it, this is %s", version,
                   cm_version());
}

/* The digest of what files share is what it says. */
static int take_shared(loader *l, const cm_frame *f)
{
    uint64_t offset;
    cm_wire_in w = {l->payload.data, l->payload.data + l->payload.nbytes, false};
    const cm_digest said = cm_wire_get_digest(&w);
    if (w.bad || !cm_wire_same(said, cm_wire_digest(w.at, (size_t)(w.end - w.at))))
        return damaged(l);
    return cm_records_append(l->s->records, f, l->payload.data, &offset, l->err);
}

typedef struct identity {
    uint64_t number, dev, ino, nbytes, mtime_ns, ctime_ns;
} identity;

static identity get_identity(cm_wire_in *w)
{
    identity id = {.number = cm_wire_get_u64(w)};
    id.dev = cm_wire_get_u64(w);
    id.ino = cm_wire_get_u64(w);
    id.nbytes = cm_wire_get_u64(w);
    id.mtime_ns = cm_wire_get_u64(w);
    id.ctime_ns = cm_wire_get_u64(w);
    return id;
}

/* One of a file that this survey is not about: it stays while that file is as it was. */
static int keep_other(loader *l, const cm_frame *f, const identity *id)
{
    struct stat st;
    cm_survey_cache *c = l->c;
    uint64_t at;
    /* Its ETag tells an object from another, if it is asked for again. */
    bool remote = cm_store_url_is_remote((const char *)l->path.data);
    if (!remote &&
        (stat((const char *)l->path.data, &st) != 0 || !S_ISREG(st.st_mode) ||
         st.st_ino != id->ino || (uint64_t)st.st_size != id->nbytes ||
         cm_look_ns(&st.st_mtim) != id->mtime_ns || cm_look_ns(&st.st_ctim) != id->ctime_ns)) {
        c->is_old = true;
        return CM_OK;
    }
    if (CM_GROW(c->other, c->nothers, l->err) != CM_OK)
        return CM_ENOMEM;
    const cm_frame name = {CM_FRAME_PATH, 0, l->path.nbytes};
    cm_cached *o = &c->other[c->nothers];
    *o = (cm_cached){.spot = {.nbytes = f->nbytes}};
    int rc = cm_records_append(l->s->records, &name, l->path.data, &o->path, l->err);
    if (rc == CM_OK)
        rc = cm_records_append(l->s->records, f, l->payload.data, &at, l->err);
    o->spot.offset = rc == CM_OK ? at : 0;
    c->nothers += rc == CM_OK;
    return rc;
}

static int take_record(loader *l, const cm_frame *f)
{
    uint64_t i;
    cm_wire_in w = {l->payload.data, l->payload.data + l->payload.nbytes, false};
    const identity id = get_identity(&w);
    if (l->path.nbytes == 0 || cm_wire_get_u32(&w) != CM_OK || w.bad)
        return damaged(l);
    const cm_digest d = cm_wire_digest(l->path.data, l->path.nbytes);
    if (!cm_known_find(&l->by_path, d, &i))
        return keep_other(l, f, &id);
    cm_spot *spot = &l->spot[i];
    const cm_surveyed *file = &l->s->file[i];
    if (spot->offset != 0 || !spot->regular || file->ino != id.ino || file->nbytes != id.nbytes ||
        spot->mtime_ns != id.mtime_ns || spot->ctime_ns != id.ctime_ns) {
        l->c->is_old = true;
        return CM_OK;
    }
    /* A file system may have another number each time that it is mounted. */
    cm_store_le64(l->payload.data, i);
    cm_store_le64(l->payload.data + sizeof(uint64_t), file->dev);
    spot->nbytes = f->nbytes;
    return cm_records_append(l->s->records, f, l->payload.data, &spot->offset, l->err);
}

static int take_frame(loader *l, const cm_frame *f)
{
    const cm_buf *p = &l->payload;
    int rc;
    if ((f->kind == CM_FRAME_HEAD) == l->headed)
        return damaged(l);
    switch (f->kind) {
    case CM_FRAME_HEAD:
        return take_head(l);
    case CM_FRAME_SHARED:
        return take_shared(l, f);
    case CM_FRAME_PATH:
        if (p->nbytes < 2 || memchr(p->data, '\0', p->nbytes) != p->data + p->nbytes - 1 ||
            (p->data[0] != '/' && !cm_store_url_is_remote((const char *)p->data)))
            return damaged(l);
        l->path.nbytes = 0;
        return cm_buf_append(&l->path, p->data, p->nbytes, l->err);
    case CM_FRAME_FILE:
        rc = take_record(l, f);
        l->path.nbytes = 0;
        return rc;
    case CM_FRAME_END:
        l->ended = p->nbytes == sizeof(uint64_t) && cm_load_le64(p->data) == l->nframes;
        return l->ended ? CM_OK : damaged(l);
    default:
        return damaged(l);
    }
}

static int read_frames(loader *l)
{
    char mark[sizeof(CM_MARK_SURVEY) - 1];
    cm_frame f;
    int rc = read_bytes(l, mark, sizeof(mark));
    if (rc == CM_OK && memcmp(mark, CM_MARK_SURVEY, sizeof(mark)) != 0)
        rc = damaged(l);
    for (; rc == CM_OK && !l->ended; l->nframes++) {
        rc = read_bytes(l, &f, sizeof(f));
        if (rc == CM_OK && (f.nbytes > MAX_FRAME || f.nbytes > l->left))
            rc = damaged(l);
        if (rc == CM_OK)
            rc = cm_buf_resize(&l->payload, (size_t)f.nbytes, l->err);
        if (rc == CM_OK)
            rc = read_bytes(l, l->payload.data, (size_t)f.nbytes);
        if (rc == CM_OK && cm_frame_check(l->payload.data, (size_t)f.nbytes) != f.check)
            rc = damaged(l);
        if (rc == CM_OK)
            rc = take_frame(l, &f);
    }
    return rc == CM_OK && l->left > 0 ? damaged(l) : rc;
}

/* Whether the frames that were read can be records of files. */
static int check_all(loader *l)
{
    cm_survey *s = l->s;
    int rc = cm_records_map(s->records, l->err);
    for (size_t i = 0; rc == CM_OK && i < s->nfiles; i++) {
        cm_surveyed f = {.path = s->file[i].path};
        if (l->spot[i].offset == 0)
            continue;
        rc = cm_surveyed_read(s, &f, &l->spot[i], l->err);
        if (rc == CM_OK)
            rc = cm_surveyed_check(s, &f, l->err);
    }
    for (size_t i = 0; rc == CM_OK && i < l->c->nothers; i++) {
        const cm_cached *o = &l->c->other[i];
        cm_surveyed f = {.path = (const char *)s->records->map + o->path};
        rc = cm_surveyed_read(s, &f, &o->spot, l->err);
        if (rc == CM_OK)
            rc = cm_surveyed_check(s, &f, l->err);
    }
    cm_records_forget(s->records);
    s->nskeletons = 0;
    return rc == CM_EFORMAT ? damaged(l) : rc;
}

static int open_and_read(loader *l, bool *there)
{
    struct stat st;
    l->fd = open(l->c->file.real, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOFOLLOW);
    *there = l->fd >= 0 || errno != ENOENT;
    if (!*there)
        return CM_OK;
    if (l->fd < 0 || fstat(l->fd, &st) != 0)
        return cm_fail_errno(l->err, errno, "it cannot be read");
    if (!S_ISREG(st.st_mode))
        return damaged(l);
    l->left = (uint64_t)st.st_size;
    int rc = number_paths(l);
    if (rc == CM_OK)
        rc = read_frames(l);
    if (rc == CM_OK)
        rc = check_all(l);
    close(l->fd);
    return rc;
}

int cm_survey_cache_load(cm_survey_cache *c, cm_survey *s, cm_spot *spot, cm_error *err)
{
    bool there;
    cm_error why = {0};
    loader l = {.c = c, .s = s, .spot = spot, .err = &why};
    int rc = open_and_read(&l, &there);
    cm_known_release(&l.by_path);
    cm_buf_release(&l.payload);
    cm_buf_release(&l.path);
    if (rc == CM_OK)
        return CM_OK;
    if (rc == CM_ENOMEM)
        return cm_fail(err, rc, "%s: %s", c->file.path, why.text);
    cm_records_clear(s->records);
    for (size_t i = 0; i < s->nfiles; i++)
        spot[i].offset = spot[i].nbytes = 0;
    c->nothers = 0;
    c->is_old = true;
    s->cache_refused = cm_asprintf(
        err, "%s: the survey cache was ignored: %s; every file was opened", c->file.path, why.text);
    return s->cache_refused != NULL ? CM_OK : CM_ENOMEM;
}

/* ---- saving ---- */

typedef struct saver {
    cm_survey_cache *c;
    cm_survey *s;
    cm_buf out;
    uint64_t nframes;
    cm_error *err;
} saver;

static int flush(saver *v)
{
    int rc = cm_outfile_write(&v->c->file, v->out.data, v->out.nbytes, v->err);
    v->out.nbytes = 0;
    return rc;
}

static int put(saver *v, const void *data, size_t nbytes)
{
    int rc = CM_OK;
    if (v->out.nbytes + nbytes > WRITE_NBYTES)
        rc = flush(v);
    if (rc == CM_OK && nbytes > WRITE_NBYTES)
        return cm_outfile_write(&v->c->file, data, nbytes, v->err);
    return rc == CM_OK ? cm_buf_append(&v->out, data, nbytes, v->err) : rc;
}

static int put_frame(saver *v, uint32_t kind, const void *payload, size_t nbytes)
{
    const cm_frame f = {kind, cm_frame_check(payload, nbytes), nbytes};
    int rc = put(v, &f, sizeof(f));
    v->nframes++;
    return rc == CM_OK ? put(v, payload, nbytes) : rc;
}

static int use(void *context, cm_digest digest, cm_error *err)
{
    saver *v = context;
    cm_shared *found = cm_records_find(v->s->records, digest);
    if (found == NULL)
        return cm_fail(err, CM_EINTERNAL, "a record of the survey is missing");
    found->used = true;
    return CM_OK;
}

static bool is_kept(const cm_surveyed *f, const cm_spot *spot)
{
    return spot->offset != 0 && spot->regular && !f->offline && f->status == CM_OK;
}

static int find_used(saver *v, const cm_spot *spot)
{
    cm_survey *s = v->s;
    int rc = CM_OK;
    for (size_t i = 0; rc == CM_OK && i < s->nfiles; i++)
        if (is_kept(&s->file[i], &spot[i]))
            rc = cm_surveyed_uses(s, &s->file[i], use, v, v->err);
    for (size_t i = 0; rc == CM_OK && i < v->c->nothers; i++) {
        cm_surveyed f = {.path = (const char *)s->records->map + v->c->other[i].path};
        rc = cm_surveyed_read(s, &f, &v->c->other[i].spot, v->err);
        if (rc == CM_OK)
            rc = cm_surveyed_uses(s, &f, use, v, v->err);
    }
    return rc;
}

static int put_head(saver *v)
{
    cm_buf head = {0};
    cm_wire_out w = {&head, CM_OK, v->err};
    int rc = put(v, CM_MARK_SURVEY, sizeof(CM_MARK_SURVEY) - 1);
    cm_wire_put_u32(&w, CM_SURVEY_CACHE_FORMAT);
    cm_wire_put_text(&w, cm_version());
    if (rc == CM_OK)
        rc = w.status;
    if (rc == CM_OK)
        rc = put_frame(v, CM_FRAME_HEAD, head.data, head.nbytes);
    cm_buf_release(&head);
    return rc;
}

/* Frames that files share begin with their digest. */
static int put_shared(saver *v)
{
    const cm_records *r = v->s->records;
    int rc = CM_OK;
    for (size_t i = 0; rc == CM_OK && i < r->nshared; i++) {
        cm_records_touch(v->s->records, sizeof(cm_shared));
        const cm_shared *h = cm_records_shared(r, i);
        if (h->used)
            rc = put_frame(v, CM_FRAME_SHARED, r->map + h->offset - sizeof(cm_digest),
                           (size_t)h->nbytes + sizeof(cm_digest));
    }
    return rc;
}

static int put_record(saver *v, const char *absolute, const cm_spot *spot)
{
    int rc = put_frame(v, CM_FRAME_PATH, absolute, strlen(absolute) + 1);
    if (rc == CM_OK)
        rc = put_frame(v, CM_FRAME_FILE, v->s->records->map + spot->offset, (size_t)spot->nbytes);
    return rc;
}

static int put_all(saver *v, const cm_spot *spot)
{
    cm_survey *s = v->s;
    cm_buf path = {0};
    uint8_t count[sizeof(uint64_t)];
    int rc = put_head(v);
    if (rc == CM_OK)
        rc = put_shared(v);
    for (size_t i = 0; rc == CM_OK && i < s->nfiles; i++) {
        if (!is_kept(&s->file[i], &spot[i]))
            continue;
        rc = put_absolute(&path, s->file[i].path, v->err);
        if (rc == CM_OK)
            rc = put_record(v, (const char *)path.data, &spot[i]);
    }
    for (size_t i = 0; rc == CM_OK && i < v->c->nothers; i++)
        rc = put_record(v, (const char *)s->records->map + v->c->other[i].path,
                        &v->c->other[i].spot);
    cm_store_le64(count, v->nframes);
    if (rc == CM_OK)
        rc = put_frame(v, CM_FRAME_END, count, sizeof(count));
    cm_buf_release(&path);
    return rc == CM_OK ? flush(v) : rc;
}

int cm_survey_cache_save(cm_survey_cache *c, cm_survey *s, const cm_spot *spot, cm_error *err)
{
    saver v = {.c = c, .s = s, .err = err};
    if (!c->is_old)
        return CM_OK;
    int rc = find_used(&v, spot);
    if (rc == CM_OK)
        rc = cm_outfile_open(&c->file, err);
    if (rc == CM_OK)
        rc = put_all(&v, spot);
    if (rc == CM_OK)
        rc = cm_outfile_commit(&c->file, err);
    cm_buf_release(&v.out);
    return rc;
}

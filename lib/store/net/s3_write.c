/*
 * Writes objects into a bucket piece by piece: short ones by one request, long ones in parts, sent
 * while the next are filled.  An object appears when its last request is answered, or not at all.
 *
 * If the bytes of an object come in order, the first part that is not full (the front) may always
 * be held, so that its writer never waits for memory that others hold; later parts wait until they
 * are the front.  An object written in any order, or without room in memory, goes to a scratch file
 * until it is complete.
 *
 * If an answer is lost, requests are repeated: the same bytes go to the same name.  Only completing
 * an upload cannot be repeated; then the object's ETag is compared with that of the parts.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/scratch.h"
#include "store/net/s3_upload.h"

typedef enum state {
    STATE_OPEN,
    STATE_FULL, /* ready to send */
    STATE_SENDING,
    STATE_SENT
} state;

typedef struct part {
    uint8_t *data; /* NULL: not begun, or sent */
    size_t nbytes; /* written, at any place */
    state state;
    bool again; /* its credentials had expired */
} part;

typedef struct s3_writer {
    cm_object_writer base;
    cm_s3_memory *pool; /* whose lock guards the rest */
    cm_s3_form form;
    uint64_t most_nbytes;
    atomic_bool begun;      /* the form of writing is decided */
    bool entering, entered; /* counted by the pool */
    unsigned nheld;
    part *part;
    cm_s3_part *answer; /* of each part */
    size_t nparts, room;
    /* The first part that may be the front: the head, written last, comes before it. */
    size_t first;
    size_t front;
    size_t nfull, nsending;
    uint64_t end;
    char *id;                    /* of the upload; NULL: not begun */
    bool beginning;              /* a thread is beginning it */
    const cm_http_signer *stale; /* expired */
    int rc;                      /* the first failure */
    cm_error why;
    atomic_bool unwanted;

    /* A file with everything written; -1: written in order, and in memory. */
    int scratch;
    atomic_uint_fast64_t scratch_end;
} s3_writer;

/* A part being sent. */
typedef struct sending {
    s3_writer *writer;
    size_t i;
    cm_http request;
    cm_error why;
} sending;

static s3_writer *writer_of(cm_object_writer *w)
{
    return (s3_writer *)w;
}

static cm_remote *remote_of(const s3_writer *w)
{
    return cm_remote_of(w->base.store);
}

/* Lock held, here and below unless stated otherwise. */
static int set_failed(s3_writer *w, int rc, const cm_error *why)
{
    if (w->rc == CM_OK) {
        w->rc = rc;
        w->why = *why;
        atomic_store(&w->unwanted, true);
    }
    pthread_cond_broadcast(&w->pool->changed);
    return rc;
}

static int tell_failure(const s3_writer *w, cm_error *err)
{
    if (w->rc != CM_OK && err != NULL)
        *err = w->why;
    return w->rc;
}

/* ---- memory ---- */

static bool is_extra(const s3_writer *w)
{
    return w->nheld >= w->form.npieces;
}

static int take_memory(s3_writer *w, part *p, cm_error *err)
{
    p->data = cm_s3_memory_take(w->pool, &w->form, is_extra(w), err);
    w->nheld += p->data != NULL;
    return p->data != NULL ? CM_OK : CM_ENOMEM;
}

static void give_memory(s3_writer *w, part *p)
{
    if (p->data == NULL)
        return;
    w->nheld--;
    cm_s3_memory_give(w->pool, p->data, &w->form, is_extra(w));
    p->data = NULL;
}

static int make_room(s3_writer *w, size_t n, cm_error *err)
{
    if (n > w->room) {
        size_t room = 2 * n + 2;
        part *more = realloc(w->part, room * sizeof(*more));
        w->part = more != NULL ? more : w->part;
        cm_s3_part *answer = realloc(w->answer, room * sizeof(*answer));
        w->answer = answer != NULL ? answer : w->answer;
        if (more == NULL || answer == NULL)
            return cm_fail(err, CM_ENOMEM, "no memory for a part of an object");
        memset(more + w->room, 0, (room - w->room) * sizeof(*more));
        memset(answer + w->room, 0, (room - w->room) * sizeof(*answer));
        w->room = room;
    }
    w->nparts = n > w->nparts ? n : w->nparts;
    return CM_OK;
}

/* ---- sending ---- */

/* Called by the net's thread, without the lock. */
static void on_answer(void *context)
{
    sending *x = context;
    s3_writer *w = x->writer;
    cm_s3_memory *pool = w->pool;
    cm_http *r = &x->request;
    pthread_mutex_lock(&pool->lock);
    part *p = &w->part[x->i];
    if (r->rc == CM_OK && r->etag[0] != '\0') {
        memcpy(w->answer[x->i].etag, r->etag, sizeof(r->etag));
        /* A server that did not check the sum does not accept it in the list of parts either. */
        if (r->checked)
            memcpy(w->answer[x->i].sum, r->sum, sizeof(r->sum));
        p->state = STATE_SENT;
        give_memory(w, p);
    } else if (r->rc != CM_OK && r->expired && !p->again) {
        p->again = true;
        p->state = STATE_FULL;
        w->nfull++;
        w->stale = r->signer;
    } else {
        if (r->rc == CM_OK || r->rc == CM_ENOTFOUND)
            r->rc = cm_fail(&x->why, CM_EIO, "%s: the server does not take part %zu", w->base.key,
                            x->i + 1);
        set_failed(w, r->rc, &x->why);
        give_memory(w, p);
    }
    w->nsending--;
    pthread_cond_broadcast(&pool->changed);
    pthread_mutex_unlock(&pool->lock);
    free((void *)(uintptr_t)r->url);
    cm_http_release(r, 1);
    free(x);
}

/* Without the lock: part I belongs to the caller. */
static int begin_sending(s3_writer *w, size_t i, const part *p, const cm_http_signer *stale,
                         cm_error *err)
{
    sending *x = cm_calloc(1, sizeof(*x), err);
    if (x == NULL)
        return CM_ENOMEM;
    x->writer = w;
    x->i = i;
    x->request = (cm_http){.method = CM_HTTP_PUT,
                           .shown = w->base.key,
                           .body = p->data,
                           .body_nbytes = p->nbytes,
                           .unwanted = &w->unwanted,
                           .url = cm_s3_upload_url(remote_of(w), w->base.key, w->id, i + 1, err)};
    int rc = x->request.url == NULL
                 ? CM_ENOMEM
                 : cm_remote_begin(remote_of(w), &x->request, stale, &x->why, on_answer, x, err);
    if (rc != CM_OK) {
        free((void *)(uintptr_t)x->request.url);
        free(x);
    }
    return rc;
}

/* Unlocks meanwhile. */
static int begin_upload(s3_writer *w)
{
    cm_error why = {0};
    char *id = NULL;
    w->beginning = true;
    pthread_mutex_unlock(&w->pool->lock);
    int rc = cm_s3_upload_begin(remote_of(w), w->base.key, &id, &why);
    pthread_mutex_lock(&w->pool->lock);
    w->id = id;
    w->beginning = false;
    pthread_cond_broadcast(&w->pool->changed);
    return rc == CM_OK ? rc : set_failed(w, rc, &why);
}

/* Sends full parts of a long object; unlocks meanwhile. */
static int send_full(s3_writer *w)
{
    cm_error why = {0};
    if (w->end <= w->form.piece_nbytes || w->nfull == 0 || w->beginning)
        return w->rc;
    if (w->id == NULL && begin_upload(w) != CM_OK)
        return w->rc;
    for (size_t i = 0; w->rc == CM_OK && w->nfull > 0 && i < w->nparts; i++) {
        if (w->part[i].state != STATE_FULL)
            continue;
        w->part[i].state = STATE_SENDING;
        w->nfull--;
        w->nsending++;
        const part p = w->part[i];
        const cm_http_signer *stale = w->stale;
        pthread_mutex_unlock(&w->pool->lock);
        int rc = begin_sending(w, i, &p, stale, &why);
        pthread_mutex_lock(&w->pool->lock);
        if (rc == CM_OK)
            continue;
        w->nsending--;
        w->part[i].state = STATE_FULL;
        set_failed(w, rc, &why);
    }
    return w->rc;
}

static int set_full(s3_writer *w, size_t i)
{
    w->part[i].state = STATE_FULL;
    w->nfull++;
    while (w->front < w->nparts && w->part[w->front].state != STATE_OPEN)
        w->front++;
    pthread_cond_broadcast(&w->pool->changed);
    return send_full(w);
}

/* ---- writing in order ---- */

static bool may_hold(const s3_writer *w)
{
    return !is_extra(w) || cm_s3_memory_has_room(w->pool, &w->form);
}

/* Makes part I ready for writing; waits for memory, and for the parts before it. */
static int make_part(s3_writer *w, size_t i, cm_error *err)
{
    for (;;) {
        int rc = send_full(w);
        if (rc != CM_OK)
            return tell_failure(w, err);
        if ((rc = make_room(w, i + 1, err)) != CM_OK || w->part[i].data != NULL)
            return rc;
        if (w->part[i].state != STATE_OPEN)
            return cm_fail(err, CM_EINTERNAL, "%s: part %zu is written twice", w->base.key, i + 1);
        if ((i < w->first || i <= w->front) && may_hold(w))
            return take_memory(w, &w->part[i], err);
        if (w->nfull == 0 || w->beginning)
            pthread_cond_wait(&w->pool->changed, &w->pool->lock);
    }
}

static int write_in_order(s3_writer *w, uint64_t offset, const uint8_t *from, size_t nbytes,
                          cm_error *err)
{
    const size_t piece = w->form.piece_nbytes;
    int rc = CM_OK;
    pthread_mutex_lock(&w->pool->lock);
    w->end = offset + nbytes > w->end ? offset + nbytes : w->end;
    while (rc == CM_OK && nbytes > 0) {
        size_t i = (size_t)(offset / piece), at = (size_t)(offset % piece);
        size_t n = nbytes < piece - at ? nbytes : piece - at;
        if ((rc = make_part(w, i, err)) != CM_OK)
            break;
        uint8_t *to = w->part[i].data + at;
        pthread_mutex_unlock(&w->pool->lock);
        memcpy(to, from, n);
        pthread_mutex_lock(&w->pool->lock);
        w->part[i].nbytes += n;
        if (w->part[i].nbytes == piece && set_full(w, i) != CM_OK)
            rc = tell_failure(w, err);
        from += n;
        offset += n;
        nbytes -= n;
    }
    pthread_mutex_unlock(&w->pool->lock);
    return rc;
}

/* ---- writing in any order ---- */

static int write_to_scratch(s3_writer *w, uint64_t offset, const void *from, size_t nbytes,
                            cm_error *err)
{
    int errnum = cm_fd_write_at(w->scratch, from, nbytes, offset);
    if (errnum != 0)
        return cm_fail_errno(err, errnum, "%s: cannot write its scratch file in %s", w->base.key,
                             cm_net_scratch(remote_of(w)->net));
    uint64_t end = atomic_load(&w->scratch_end);
    while (offset + nbytes > end &&
           !atomic_compare_exchange_weak(&w->scratch_end, &end, offset + nbytes))
        continue;
    return CM_OK;
}

/* Unlocks meanwhile: writing has ended. */
static int read_scratch(s3_writer *w, size_t i, size_t nbytes, cm_error *err)
{
    size_t got = 0;
    uint8_t *to = w->part[i].data;
    pthread_mutex_unlock(&w->pool->lock);
    int errnum = cm_fd_read_at(w->scratch, to, nbytes, (uint64_t)i * w->form.piece_nbytes, &got);
    pthread_mutex_lock(&w->pool->lock);
    if (errnum == 0 && got == nbytes)
        return CM_OK;
    return cm_fail_errno(err, errnum != 0 ? errnum : EIO, "%s: cannot read its scratch file in %s",
                         w->base.key, cm_net_scratch(remote_of(w)->net));
}

/* ---- the end ---- */

static size_t nbytes_of(const s3_writer *w, size_t i)
{
    uint64_t rest = w->end - (uint64_t)i * w->form.piece_nbytes;
    return rest < w->form.piece_nbytes ? (size_t)rest : w->form.piece_nbytes;
}

static int put_whole(s3_writer *w, cm_error *err)
{
    int rc = CM_OK;
    if (w->end > 0)
        rc = make_part(w, 0, err);
    if (rc == CM_OK && w->end > 0 && w->scratch >= 0)
        rc = read_scratch(w, 0, (size_t)w->end, err);
    const void *data = w->end > 0 && rc == CM_OK ? w->part[0].data : (uint8_t *)"";
    pthread_mutex_unlock(&w->pool->lock);
    if (rc == CM_OK)
        rc = cm_s3_put(w->base.store, w->base.key, data, (size_t)w->end, err);
    pthread_mutex_lock(&w->pool->lock);
    return rc;
}

static void wait_for_answers(s3_writer *w)
{
    while (w->nsending > 0 || w->beginning)
        pthread_cond_wait(&w->pool->changed, &w->pool->lock);
}

static int send_rest(s3_writer *w, cm_error *err)
{
    size_t n = (size_t)((w->end + w->form.piece_nbytes - 1) / w->form.piece_nbytes);
    for (size_t i = 0; i < n; i++) {
        if (i < w->nparts && w->part[i].state != STATE_OPEN)
            continue;
        int rc = make_part(w, i, err);
        if (rc == CM_OK && w->scratch >= 0)
            rc = read_scratch(w, i, nbytes_of(w, i), err);
        if (rc != CM_OK)
            return rc;
        w->part[i].nbytes = nbytes_of(w, i);
        if (set_full(w, i) != CM_OK)
            return tell_failure(w, err);
    }
    do
        wait_for_answers(w);
    while (w->nfull > 0 && send_full(w) == CM_OK);
    return tell_failure(w, err);
}

static int send_all(s3_writer *w, cm_error *err)
{
    if (w->scratch >= 0)
        w->end = atomic_load(&w->scratch_end);
    if (w->end <= w->form.piece_nbytes)
        return put_whole(w, err);
    int rc = send_rest(w, err);
    if (rc != CM_OK)
        return rc;
    pthread_mutex_unlock(&w->pool->lock);
    rc = cm_s3_upload_complete(remote_of(w), w->base.key, w->id, w->answer, w->nparts, w->end, err);
    pthread_mutex_lock(&w->pool->lock);
    return rc;
}

/* Lock held, and released. */
static void end_writer(s3_writer *w, bool ending)
{
    for (size_t i = 0; i < w->nparts; i++)
        give_memory(w, &w->part[i]);
    w->pool->nending -= ending;
    if (w->entered)
        cm_s3_memory_leave(w->pool, &w->form);
    pthread_cond_broadcast(&w->pool->changed);
    pthread_mutex_unlock(&w->pool->lock);
    if (w->scratch >= 0)
        close(w->scratch);
    free(w->part);
    free(w->answer);
    free(w->id);
    free(w->base.key);
    free(w);
}

/* Lock held, and released meanwhile. */
static void abort_upload(s3_writer *w)
{
    set_failed(w, CM_ECANCELED, &(cm_error){.status = CM_ECANCELED});
    wait_for_answers(w);
    if (w->id == NULL)
        return;
    pthread_mutex_unlock(&w->pool->lock);
    (void)cm_s3_upload_abort(remote_of(w), w->base.key, w->id, NULL);
    pthread_mutex_lock(&w->pool->lock);
}

int cm_s3_writer_commit(cm_object_writer *writer, cm_error *err)
{
    s3_writer *w = writer_of(writer);
    pthread_mutex_lock(&w->pool->lock);
    w->pool->nending++;
    int rc = send_all(w, err);
    if (rc != CM_OK)
        abort_upload(w);
    end_writer(w, true);
    return rc;
}

void cm_s3_writer_abort(cm_object_writer *writer)
{
    s3_writer *w = writer_of(writer);
    pthread_mutex_lock(&w->pool->lock);
    abort_upload(w);
    end_writer(w, false);
}

/* ---- the writer ---- */

static int use_scratch(s3_writer *w, uint64_t most_nbytes, cm_error *err)
{
    w->form = cm_s3_form_of_scratch(w->pool, most_nbytes);
    w->first = w->front = 0;
    return cm_scratch_open(cm_net_scratch(remote_of(w)->net), &w->scratch, err);
}

/* A writer gets room with its first bytes, or never. */
static int begin(s3_writer *w, cm_error *err)
{
    int rc = CM_OK;
    pthread_mutex_lock(&w->pool->lock);
    while (w->entering)
        pthread_cond_wait(&w->pool->changed, &w->pool->lock);
    if (!w->begun && w->scratch < 0) {
        w->entering = true;
        w->entered = cm_s3_memory_enter(w->pool, &w->form);
        w->entering = false;
        if (!w->entered)
            rc = use_scratch(w, w->most_nbytes, err);
        pthread_cond_broadcast(&w->pool->changed);
    }
    w->begun = rc == CM_OK;
    pthread_mutex_unlock(&w->pool->lock);
    return rc;
}

int cm_s3_writer_write(cm_object_writer *writer, uint64_t offset, const void *src, size_t nbytes,
                       cm_error *err)
{
    s3_writer *w = writer_of(writer);
    int rc = atomic_load(&w->begun) ? CM_OK : begin(w, err);
    if (rc != CM_OK)
        return rc;
    return w->scratch >= 0 ? write_to_scratch(w, offset, src, nbytes, err)
                           : write_in_order(w, offset, src, nbytes, err);
}

int cm_s3_writer_create(cm_store *store, const char *key, const cm_object_form *form,
                        cm_object_writer **out, cm_error *err)
{
    s3_writer *w = cm_calloc(1, sizeof(*w), err);
    if (w == NULL)
        return CM_ENOMEM;
    w->base.store = store;
    w->pool = &cm_remote_of(store)->pool;
    w->most_nbytes = form->most_nbytes;
    w->form = cm_s3_form_of(w->pool, form);
    w->scratch = -1;
    w->first = w->front = (form->head_nbytes + w->form.piece_nbytes - 1) / w->form.piece_nbytes;
    int rc = (w->base.key = cm_strdup(key, err)) == NULL ? CM_ENOMEM : CM_OK;
    if (rc == CM_OK && !form->in_order)
        rc = use_scratch(w, form->most_nbytes, err);
    if (rc != CM_OK) {
        free(w->base.key);
        free(w);
        return rc;
    }
    *out = &w->base;
    return CM_OK;
}

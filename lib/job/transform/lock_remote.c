#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "job/transform/lock_impl.h"

enum {
    MAX_NBYTES = 4096,
    SETTLE_US = 300000 /* after which a second writer would be seen */
};

/* What the lock is now: *there, and who holds it. */
static int look(const cm_beside *b, const char *name, bool *there, char *tag, size_t size,
                cm_holder_state *state, cm_holder *h, cm_error *err)
{
    cm_buf text = {0};
    int rc = cm_store_get_tagged(b->in, name, MAX_NBYTES, &text, tag, size, err);
    *there = rc == CM_OK;
    if (rc == CM_OK) {
        *state = cm_holder_read((const char *)text.data, text.nbytes, h);
        if (*state != CM_HOLDER_UNCLEAR)
            *state = cm_holder_judge(h, (int64_t)time(NULL));
    } else if (rc != CM_ENOTFOUND) {
        cm_error_place(err, b->path);
    }
    cm_buf_release(&text);
    return rc == CM_ENOTFOUND ? CM_OK : rc;
}

static bool is_takable(cm_holder_state state, const cm_lock_request *r)
{
    return state == CM_HOLDER_ENDED || (r->breaks && state != CM_HELD);
}

int cm_lock_remote_peek(cm_beside *b, const cm_lock_request *r, cm_error *err)
{
    cm_holder h;
    cm_holder_state state;
    char tag[136];
    bool there;
    int rc = look(b, r->name, &there, tag, sizeof(tag), &state, &h, err);
    if (rc == CM_OK && there && !is_takable(state, r))
        rc = cm_lock_refuse(b, r, state, &h, err);
    return rc;
}

/* Whether the lock's text is still TEXT. */
static int check_ours(const cm_beside *b, const cm_lock_request *r, const cm_buf *text,
                      cm_lock *lock, cm_error *err)
{
    cm_buf now = {0};
    int rc =
        cm_store_get_tagged(b->in, r->name, MAX_NBYTES, &now, lock->tag, sizeof(lock->tag), err);
    bool ours =
        rc == CM_OK && now.nbytes == text->nbytes && memcmp(now.data, text->data, now.nbytes) == 0;
    cm_buf_release(&now);
    if (rc == CM_OK && !ours)
        rc = CM_EEXIST;
    if (rc == CM_EEXIST || rc == CM_ENOTFOUND)
        return cm_fail(err, CM_EEXIST, "%s: another run took the lock in the same moment",
                       b->shown);
    return rc;
}

/* A server without conditional writes: whoever writes last holds it, and the others see that. */
static int put_and_see(const cm_beside *b, const cm_lock_request *r, const cm_buf *text,
                       cm_lock *lock, char **note, cm_error *err)
{
    int rc = cm_store_put(b->in, r->name, text->data, text->nbytes, err);
    if (rc == CM_OK) {
        usleep(SETTLE_US);
        rc = check_ours(b, r, text, lock, err);
    }
    if (rc == CM_OK && *note == NULL) {
        *note = cm_asprintf(err, "this server has no conditional writes, so the lock of the output "
                                 "is advisory: two runs that begin in the same moment might not "
                                 "see each other");
        rc = *note == NULL ? CM_ENOMEM : CM_OK;
    }
    return rc;
}

int cm_lock_remote_take(cm_beside *b, const cm_lock_request *r, cm_lock **out, char **note,
                        cm_error *err)
{
    cm_holder h;
    cm_holder_state state;
    cm_buf text = {0};
    char tag[136];
    bool there;
    cm_error why = {0};
    cm_lock *lock = cm_calloc(1, sizeof(*lock), err);
    if (lock == NULL)
        return CM_ENOMEM;
    lock->fd = -1;
    snprintf(lock->name, sizeof(lock->name), "%s", r->name);
    int rc = cm_beside_open(b, true, err);
    if (rc == CM_OK)
        rc = look(b, r->name, &there, tag, sizeof(tag), &state, &h, err);
    if (rc == CM_OK && there && !is_takable(state, r))
        rc = cm_lock_refuse(b, r, state, &h, err);
    if (rc == CM_OK && there) {
        *note = cm_asprintf(err, "took over the lock of process %lld on %s, held since %s",
                            (long long)h.process, h.host, h.time);
        rc = *note == NULL ? CM_ENOMEM : CM_OK;
    }
    if (rc == CM_OK)
        rc = cm_holder_write(r->of_part, false, &text, err);
    if (rc == CM_OK) {
        rc = cm_store_put_if(b->in, r->name, text.data, text.nbytes, there ? tag : NULL, &why);
        if (rc == CM_EUNSUPPORTED)
            rc = put_and_see(b, r, &text, lock, note, err);
        else if (rc == CM_OK || rc == CM_EEXIST) /* refused: or an earlier try was answered so */
            rc = check_ours(b, r, &text, lock, err);
        else
            rc = cm_fail(err, (cm_status)rc, "%s: cannot be locked: %s", b->shown, why.text);
    }
    cm_buf_release(&text);
    if (rc == CM_OK) {
        *out = lock;
        return CM_OK;
    }
    free(lock);
    return rc;
}

void cm_lock_remote_release(cm_lock *lock, cm_beside *b)
{
    cm_buf now = {0};
    char tag[136];
    /* One that was broken meanwhile is not ours to remove. */
    bool ours =
        b->in != NULL &&
        cm_store_get_tagged(b->in, lock->name, MAX_NBYTES, &now, tag, sizeof(tag), NULL) == CM_OK &&
        strcmp(tag, lock->tag) == 0;
    if (ours)
        cm_store_delete(b->in, lock->name, NULL);
    cm_buf_release(&now);
    free(lock);
    cm_beside_leave(b);
}

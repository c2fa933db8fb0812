/*
 * The lock of an output in a bucket: an object that is made only where none is, and put anew three
 * times a minute while it is held.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "convert/beside/lock_impl.h"
#include "store/open.h"

enum {
    MAX_NBYTES = 4096,
    SETTLE_US = 300000, /* after which a second writer would be seen */
    RELEASE_US = 200000 /* between two attempts to remove it */
};

#define RELEASE_NS UINT64_C(10000000000) /* in which it is attempted */

/* ---- what is there ---- */

typedef struct seen {
    bool there;
    cm_holder_state state;
    cm_holder holder;
    cm_object_tag tag;
    cm_buf text;
} seen;

static void seen_release(seen *s)
{
    cm_buf_release(&s->text);
}

static int look(const cm_beside *b, const char *name, seen *s, cm_error *err)
{
    *s = (seen){0};
    int rc = cm_store_get_tagged(b->in, name, MAX_NBYTES, &s->text, &s->tag, err);
    s->there = rc == CM_OK;
    if (rc == CM_OK) {
        s->state = cm_holder_read((const char *)s->text.data, s->text.nbytes, &s->holder);
        /* The age of the object is the time since the last beat. */
        s->holder.beat = s->tag.age_s >= 0 ? -s->tag.age_s : 0;
        s->holder.beat_mark = (uint64_t)s->tag.changed_s;
        if (s->state != CM_HOLDER_UNCLEAR)
            s->state = cm_lock_judge(b, name, &s->holder, -s->holder.beat);
    } else if (rc != CM_ENOTFOUND) {
        cm_error_place(err, b->path);
    }
    return rc == CM_ENOTFOUND ? CM_OK : rc;
}

static bool is_takable(cm_holder_state state, const cm_lock_request *r)
{
    return state == CM_HOLDER_ENDED || (r->breaks && state != CM_HELD);
}

int cm_lock_remote_peek(cm_beside *b, const cm_lock_request *r, cm_error *err)
{
    seen s;
    int rc = look(b, r->name, &s, err);
    if (rc == CM_OK && s.there && !is_takable(s.state, r) && s.state != CM_HOLDER_SILENT)
        rc = cm_lock_refuse(b, r, s.state, &s.holder, err);
    seen_release(&s);
    return rc;
}

int cm_lock_remote_look(const cm_beside *b, const char *name, cm_lock_holder *out, cm_error *err)
{
    seen s;
    int rc = look(b, name, &s, err);
    if (rc == CM_OK && s.there)
        cm_lock_describe(s.state, &s.holder, -s.holder.beat, out);
    seen_release(&s);
    return rc;
}

/* ---- ours ---- */

/* CM_EEXIST, without a sentence, where another holds the lock now, or nobody. */
static int find_ours(cm_store *in, const cm_lock *lock, cm_object_tag *tag, cm_error *err)
{
    cm_buf now = {0};
    int rc = cm_store_get_tagged(in, lock->name, MAX_NBYTES, &now, tag, err);
    if (rc == CM_ENOTFOUND || (rc == CM_OK && !cm_buf_equal(&now, &lock->text)))
        rc = CM_EEXIST;
    cm_buf_release(&now);
    return rc;
}

int cm_lock_remote_check(cm_lock *lock, const cm_beside *b, cm_error *err)
{
    cm_object_tag tag;
    int rc = find_ours(b->in, lock, &tag, err);
    if (rc != CM_OK && rc != CM_EEXIST)
        cm_error_place(err, b->path);
    return rc;
}

/* Whoever was taken for ended, and is not, leaves the lock to the run that took it over. */
bool cm_lock_remote_beat(cm_lock *lock)
{
    cm_object_tag tag;
    int rc = find_ours(lock->in, lock, &tag, NULL);
    if (rc == CM_OK)
        rc = cm_store_put_if(lock->in, lock->name, lock->text.data, lock->text.nbytes, &tag, NULL);
    if (rc == CM_EUNSUPPORTED)
        rc = cm_store_put(lock->in, lock->name, lock->text.data, lock->text.nbytes, NULL);
    /* An answer that was lost makes ours look like another's: the next beat tells. */
    return rc != CM_EEXIST || find_ours(lock->in, lock, &tag, NULL) != CM_EEXIST;
}

/* CM_EEXIST: it is not ours, or gone. */
static int try_to_remove(cm_lock *lock, cm_error *err)
{
    cm_object_tag tag;
    /* One that was broken meanwhile is not ours to remove. */
    int rc = find_ours(lock->in, lock, &tag, err);
    return rc == CM_OK ? cm_store_delete(lock->in, lock->name, err) : rc;
}

/* ---- taking it ---- */

/*
 * Without conditional writes whoever writes last holds the lock, and the others see that.  *note
 * says what that is worth.
 */
static int settle(cm_store *in, const cm_lock *lock, char **note, cm_error *err)
{
    cm_object_tag tag;
    usleep(SETTLE_US);
    int rc = find_ours(in, lock, &tag, err);
    if (rc != CM_OK || *note != NULL)
        return rc;
    *note = cm_asprintf(err, "this server has no conditional writes, so the lock of the output "
                             "is advisory: two runs that begin in the same moment might not "
                             "see each other");
    return *note == NULL ? CM_ENOMEM : CM_OK;
}

/* Puts the lock in place of what has TAG, or of nothing; CM_EEXIST where another was first. */
static int put_lock(cm_store *in, const cm_lock *lock, const cm_object_tag *tag, char **note,
                    cm_error *err)
{
    cm_object_tag now;
    cm_error why = {0};
    const cm_buf *text = &lock->text;
    int rc = cm_store_put_if(in, lock->name, text->data, text->nbytes, tag, &why);
    if (rc == CM_EEXIST) /* or an earlier try was answered so */
        return find_ours(in, lock, &now, err);
    /* Some servers put whatever the condition: where one is now, this must be refused. */
    if (rc == CM_OK)
        rc = cm_store_put_if(in, lock->name, text->data, text->nbytes, NULL, &why);
    if (rc == CM_EEXIST)
        return find_ours(in, lock, &now, err);
    if (rc == CM_EUNSUPPORTED)
        rc = cm_store_put(in, lock->name, text->data, text->nbytes, err);
    else if (rc != CM_OK)
        return cm_fail(err, (cm_status)rc, "%s", why.text);
    return rc == CM_OK ? settle(in, lock, note, err) : rc;
}

/* The lock keeps a store of its own: that of the folder is closed and opened again. */
static int make(const cm_beside *b, const cm_lock_request *r, cm_lock **out, cm_error *err)
{
    const cm_store_options options = {.output = true, .net = b->net};
    cm_lock *lock = *out = cm_calloc(1, sizeof(*lock), err);
    if (lock == NULL)
        return CM_ENOMEM;
    lock->fd = -1;
    lock->of_part = r->of_part;
    snprintf(lock->name, sizeof(lock->name), "%s", r->name);
    int rc = cm_holder_write(r->of_part, true, &lock->text, err);
    return rc == CM_OK ? cm_store_open(b->path, &options, &lock->in, err) : rc;
}

static void free_lock(cm_lock *lock)
{
    cm_store_free(lock->in);
    cm_buf_release(&lock->text);
    free(lock);
}

/* look, and again while a lock that looks silent is watched. */
static int look_long(const cm_beside *b, const cm_lock_request *r, seen *s, cm_error *err)
{
    int rc;
    while ((rc = look(b, r->name, s, err)) == CM_OK && s->there && s->state == CM_HOLDER_SILENT &&
           !is_takable(s->state, r)) {
        seen_release(s);
        *s = (seen){0};
        if ((rc = cm_lock_watch(b, err)) != CM_OK)
            break;
    }
    return rc;
}

static int take(cm_beside *b, const cm_lock_request *r, cm_lock *lock, char **note, cm_error *err)
{
    seen s;
    int rc = look_long(b, r, &s, err);
    bool tries = rc == CM_OK && (!s.there || is_takable(s.state, r));
    if (rc == CM_OK && !tries)
        rc = cm_lock_refuse(b, r, s.state, &s.holder, err);
    else if (rc == CM_OK &&
             (rc = put_lock(b->in, lock, s.there ? &s.tag : NULL, note, err)) == CM_EEXIST)
        rc = cm_fail(err, CM_EEXIST, "%s: another run took the lock in the same moment", b->shown);
    else if (rc != CM_OK)
        cm_error_prefix(err, "%s: cannot be locked", b->shown);
    if (rc == CM_OK && s.there) {
        char *advisory = *note;
        lock->replaced = s.holder.process;
        *note = cm_asprintf(err, "took over the lock of process %lld on %s, held since %s%s%s",
                            (long long)s.holder.process, s.holder.host, s.holder.time,
                            advisory != NULL ? "; " : "", advisory != NULL ? advisory : "");
        free(advisory);
        rc = *note == NULL ? CM_ENOMEM : CM_OK;
    }
    /* The server may have put it, though nobody heard of it. */
    if (tries && rc != CM_OK && rc != CM_EEXIST)
        (void)try_to_remove(lock, NULL);
    seen_release(&s);
    return rc;
}

int cm_lock_remote_take(cm_beside *b, const cm_lock_request *r, cm_lock **out, char **note,
                        cm_error *err)
{
    cm_lock *lock = NULL;
    *out = NULL;
    int rc = cm_beside_open(b, true, err);
    if (rc == CM_OK)
        rc = make(b, r, &lock, err);
    if (rc == CM_OK)
        rc = take(b, r, lock, note, err);
    if (rc == CM_OK)
        *out = lock;
    else if (lock != NULL)
        free_lock(lock);
    return rc;
}

/*
 * A run that is stopped asks a server once, and goes; but a lock that stays stops others.  Of one
 * that does not answer, a single request takes longer than this; a refusal is not asked for twice.
 */
int cm_lock_remote_release(cm_lock *lock, cm_error *why)
{
    const uint64_t end = cm_now_ns() + RELEASE_NS;
    int rc = try_to_remove(lock, why);
    while ((rc == CM_ECANCELED || (rc != CM_OK && rc != CM_EEXIST && why->passes)) &&
           cm_now_ns() < end) {
        usleep(RELEASE_US);
        rc = try_to_remove(lock, why);
    }
    free_lock(lock);
    return rc == CM_EEXIST ? CM_OK : rc;
}

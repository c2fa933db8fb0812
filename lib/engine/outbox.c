#include "engine/outbox.h"

#include <stdlib.h>
#include <string.h>

int cm_outbox_init(cm_outbox *o, unsigned room, cm_error *err)
{
    *o = (cm_outbox){0};
    if (room == 0)
        return CM_OK;
    if ((o->letter = cm_calloc(room, sizeof(o->letter[0]), err)) == NULL ||
        (o->spare = cm_calloc(room, sizeof(o->spare[0]), err)) == NULL)
        return CM_ENOMEM;
    o->room = room;
    return CM_OK;
}

void cm_outbox_release(cm_outbox *o)
{
    for (unsigned i = 0; i < o->nspare; i++)
        cm_buf_release(&o->spare[i]);
    free(o->spare);
    free(o->letter);
}

/* Swaps MINE with the letter's buffer, with the same capacity: no other was counted. */
static int exchange(cm_letter *l, cm_buf *mine, cm_error *err)
{
    int rc = CM_OK;
    if (l->buf.capacity != mine->capacity) {
        cm_buf_release(&l->buf);
        rc = cm_buf_reserve(&l->buf, mine->capacity, err);
    }
    if (rc != CM_OK)
        return rc;
    cm_buf other = l->buf;
    l->buf = *mine;
    *mine = other;
    mine->nbytes = 0;
    return CM_OK;
}

/* Keeps PUT's bytes unchanged until they are sent: takes over their slot or buffer, or copies. */
static int keep_data(cm_letter *l, cm_put *put, cm_buf *mine, cm_slot **slot, cm_error *err)
{
    l->slot = NULL;
    if (put->nbytes == 0)
        return CM_OK;
    if (slot != NULL && *slot != NULL && (*slot)->data == put->data) {
        l->slot = *slot;
        *slot = NULL;
        return CM_OK;
    }
    if (mine != NULL)
        return exchange(l, mine, err);
    l->buf.nbytes = 0;
    int rc = cm_buf_reserve(&l->buf, put->nbytes, err);
    if (rc != CM_OK)
        return rc;
    memcpy(l->buf.data, put->data, put->nbytes);
    put->data = l->buf.data;
    return CM_OK;
}

/* The buffer that came back last is used next, while the CPU's cache still has it. */
static void empty(cm_outbox *o, cm_letter *l)
{
    if (l->buf.data != NULL)
        o->spare[o->nspare++] = l->buf;
    l->buf = (cm_buf){0};
    if (l->slot == NULL)
        return;
    l->slot->next_ready = o->emptied;
    o->emptied = l->slot;
    l->slot = NULL;
}

static bool is_oldest_done(const cm_outbox *o)
{
    const cm_letter *l = &o->letter[o->first];
    return cm_target_is_done(l->transfer->target, &l->sent);
}

int cm_outbox_add(cm_outbox *o, const cm_transfer *t, const cm_put *put, cm_buf *mine,
                  cm_slot **slot, cm_error *err)
{
    cm_put kept = *put;
    int rc = CM_OK;
    while (rc == CM_OK && o->n > 0 && (o->n == o->room || is_oldest_done(o)))
        rc = cm_outbox_end_oldest(o, err);
    if (rc != CM_OK)
        return rc;
    cm_letter *l = &o->letter[(o->first + o->n) % o->room];
    l->transfer = t;
    if (o->nspare > 0)
        l->buf = o->spare[--o->nspare];
    rc = keep_data(l, &kept, mine, slot, err);
    if (rc == CM_OK)
        rc = cm_target_begin(t->target, &kept, &l->sent, err);
    if (rc == CM_OK)
        o->n++;
    else
        empty(o, l);
    return rc;
}

int cm_outbox_end_oldest(cm_outbox *o, cm_error *err)
{
    cm_letter *l = &o->letter[o->first];
    const cm_transfer *t = l->transfer;
    o->first = (o->first + 1) % o->room;
    o->n--;
    int rc = cm_target_end(t->target, &l->sent, err);
    empty(o, l);
    /* Report the omission only after the target dropped the chunk. */
    if (rc == CM_OK && l->sent.omitted && t->on_skip != NULL)
        rc = t->on_skip(t->on_skip_context, l->sent.number, err);
    return rc;
}

int cm_outbox_end_all(cm_outbox *o, cm_error *err)
{
    int rc = CM_OK;
    while (o->n > 0) {
        int failed = cm_outbox_end_oldest(o, rc == CM_OK ? err : NULL);
        rc = rc == CM_OK ? failed : rc;
    }
    return rc;
}

#include "engine/slots.h"

#include <stdlib.h>

enum {
    FIRST_BUCKETS = 256
};

static size_t hash(const cm_slots *s, const cm_transfer *t, uint64_t number)
{
    uint64_t h = (number ^ (uint64_t)(uintptr_t)t) * UINT64_C(0x9e3779b97f4a7c15);
    return (size_t)(h >> 32) & (s->nbuckets - 1);
}

int cm_slots_init(cm_slots *s, cm_error *err)
{
    *s = (cm_slots){.nbuckets = FIRST_BUCKETS};
    s->bucket = cm_calloc(s->nbuckets, sizeof(s->bucket[0]), err);
    return s->bucket == NULL ? CM_ENOMEM : CM_OK;
}

void cm_slots_release(cm_slots *s, cm_buffers *buffers)
{
    for (size_t b = 0; b < s->nbuckets && s->bucket != NULL; b++)
        while (s->bucket[b] != NULL)
            cm_slots_remove(s, buffers, s->bucket[b]);
    while (s->unused != NULL) {
        cm_slot *slot = s->unused;
        s->unused = slot->next;
        free(slot);
    }
    free(s->bucket);
    s->bucket = NULL;
}

cm_slot *cm_slots_find(const cm_slots *s, const cm_transfer *t, uint64_t number)
{
    cm_slot *slot = s->bucket[hash(s, t, number)];
    while (slot != NULL && (slot->number != number || slot->transfer != t))
        slot = slot->next;
    return slot;
}

static int grow(cm_slots *s, cm_error *err)
{
    cm_slots bigger = *s;
    bigger.nbuckets = s->nbuckets * 2;
    bigger.bucket = cm_calloc(bigger.nbuckets, sizeof(bigger.bucket[0]), err);
    if (bigger.bucket == NULL)
        return CM_ENOMEM;
    for (size_t b = 0; b < s->nbuckets; b++) {
        while (s->bucket[b] != NULL) {
            cm_slot *slot = s->bucket[b];
            s->bucket[b] = slot->next;
            size_t h = hash(&bigger, slot->transfer, slot->number);
            slot->next = bigger.bucket[h];
            bigger.bucket[h] = slot;
        }
    }
    free(s->bucket);
    *s = bigger;
    return CM_OK;
}

cm_slot *cm_slots_add(cm_slots *s, cm_buffers *buffers, const cm_transfer *t, uint64_t number,
                      size_t nbytes, uint64_t left, cm_error *err)
{
    if (s->count >= s->nbuckets && grow(s, err) != CM_OK)
        return NULL;
    cm_slot *slot = s->unused;
    if (slot != NULL)
        s->unused = slot->next;
    else if ((slot = cm_calloc(1, sizeof(*slot), err)) == NULL)
        return NULL;
    slot->data = cm_buffers_get(buffers, nbytes, err);
    if (slot->data == NULL) {
        slot->next = s->unused;
        s->unused = slot;
        return NULL;
    }
    slot->transfer = t;
    slot->number = number;
    slot->nbytes = nbytes;
    atomic_store(&slot->left, left);
    size_t h = hash(s, t, number);
    slot->next = s->bucket[h];
    s->bucket[h] = slot;
    s->count++;
    return slot;
}

void cm_slots_remove(cm_slots *s, cm_buffers *buffers, cm_slot *slot)
{
    cm_slot **link = &s->bucket[hash(s, slot->transfer, slot->number)];
    while (*link != slot)
        link = &(*link)->next;
    *link = slot->next;
    s->count--;
    cm_buffers_put(buffers, slot->data, slot->nbytes);
    slot->data = NULL;
    slot->next = s->unused;
    s->unused = slot;
}

#include "archive/survey/known.h"

#include <stdlib.h>

#include "base/mem.h"

static size_t place_of(const cm_known *k, cm_digest digest)
{
    size_t i = (size_t)digest.lo & (k->capacity - 1);
    while (k->entry[i].value != 0 &&
           (k->entry[i].digest.lo != digest.lo || k->entry[i].digest.hi != digest.hi))
        i = (i + 1) & (k->capacity - 1);
    return i;
}

bool cm_known_find(const cm_known *k, cm_digest digest, uint64_t *value)
{
    if (k->n == 0)
        return false;
    const cm_known_entry *e = &k->entry[place_of(k, digest)];
    if (e->value != 0)
        *value = e->value - 1;
    return e->value != 0;
}

/* Three quarters full at most. */
static int make_room(cm_known *k, cm_error *err)
{
    if ((k->n + 1) * 4 <= k->capacity * 3)
        return CM_OK;
    cm_known more = {.capacity = k->capacity > 0 ? k->capacity * 2 : 64, .n = k->n};
    if ((more.entry = cm_calloc(more.capacity, sizeof(more.entry[0]), err)) == NULL)
        return CM_ENOMEM;
    for (size_t i = 0; i < k->capacity; i++)
        if (k->entry[i].value != 0)
            more.entry[place_of(&more, k->entry[i].digest)] = k->entry[i];
    free(k->entry);
    *k = more;
    return CM_OK;
}

int cm_known_add(cm_known *k, cm_digest digest, uint64_t value, cm_error *err)
{
    int rc = make_room(k, err);
    if (rc == CM_OK) {
        k->entry[place_of(k, digest)] = (cm_known_entry){digest, value + 1};
        k->n++;
    }
    return rc;
}

void cm_known_release(cm_known *k)
{
    free(k->entry);
    *k = (cm_known){0};
}

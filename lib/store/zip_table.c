/* The table of a zip file's entries. */
#include <stdlib.h>
#include <string.h>

#include "store/zip_impl.h"

int cm_zip_add(cm_zip_table *t, const char *key, size_t nbytes, cm_zip_entry **out, cm_error *err)
{
    cm_zip_entry *grown = cm_make_room(t->item, t->n, &t->capacity, sizeof(*grown), 256);
    if (grown == NULL)
        return cm_fail(err, CM_ENOMEM, "no memory for %zu entries of a zip file", t->n + 1);
    t->item = grown;
    const size_t at = t->texts.nbytes;
    int rc = cm_buf_extend(&t->texts, (uint64_t)nbytes + 1, err);
    if (rc != CM_OK)
        return rc;
    memcpy(t->texts.data + at, key, nbytes);
    t->texts.data[at + nbytes] = '\0';
    *out = &t->item[t->n];
    memset(*out, 0, sizeof(**out));
    (*out)->key = at;
    (*out)->order = t->n++;
    (*out)->name_nbytes = (uint16_t)nbytes;
    return CM_OK;
}

static int by_key(const void *a, const void *b, void *texts)
{
    const cm_zip_entry *x = a, *y = b;
    int order = strcmp((const char *)texts + x->key, (const char *)texts + y->key);
    return order != 0 ? order : x->order < y->order ? -1 : x->order > y->order;
}

void cm_zip_sort(cm_zip_table *t)
{
    size_t kept = 0;
    for (size_t i = 0; i < t->n; i++)
        if (!t->item[i].dropped)
            memcpy(&t->item[kept++], &t->item[i], sizeof(t->item[0]));
    t->n = kept;
    if (t->n == 0)
        return;
    qsort_r(t->item, t->n, sizeof(t->item[0]), by_key, t->texts.data);
    kept = 0;
    for (size_t i = 0; i < t->n; i++) {
        const bool last = i + 1 == t->n ||
                          strcmp(cm_zip_key(t, &t->item[i]), cm_zip_key(t, &t->item[i + 1])) != 0;
        if (last)
            memcpy(&t->item[kept++], &t->item[i], sizeof(t->item[0]));
    }
    t->n = kept;
}

size_t cm_zip_lower_bound(const cm_zip_table *t, const char *key)
{
    size_t lo = 0, hi = t->n;
    while (lo < hi) {
        size_t mid = lo + (hi - lo) / 2;
        if (strcmp(cm_zip_key(t, &t->item[mid]), key) < 0)
            lo = mid + 1;
        else
            hi = mid;
    }
    return lo;
}

void cm_zip_release(cm_zip_table *t)
{
    free(t->item);
    cm_buf_release(&t->texts);
    *t = (cm_zip_table){0};
}

/* ---- while it is written ---- */

/* The slot of KEY, or the free one for it. */
uint32_t *cm_zip_slot(const cm_zip_store *z, const char *key)
{
    const cm_zip_writing *w = z->writing;
    size_t i = cm_key_hash(key, w->nslots);
    while (w->slot[i] != 0 &&
           strcmp(cm_zip_key(&z->table, &z->table.item[w->slot[i] - 1]), key) != 0)
        i = (i + 1) & (w->nslots - 1);
    return &w->slot[i];
}

cm_zip_entry *cm_zip_find_written(const cm_zip_store *z, const char *key)
{
    const uint32_t number = *cm_zip_slot(z, key);
    cm_zip_entry *e = number > 0 ? &z->table.item[number - 1] : NULL;
    return e != NULL && !e->dropped ? e : NULL;
}

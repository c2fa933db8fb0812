#include "convert/source/listing.h"

#include <stdlib.h>
#include <string.h>

typedef struct reading {
    cm_listing *list;
    const cm_stop *stop;
} reading;

static int see(void *context, const char *below, const cm_object_stat *told, cm_error *err)
{
    const reading *r = context;
    cm_listing *l = r->list;
    cm_listed *more = cm_make_room(l->item, l->n, &l->room, sizeof(*more), 1024);
    if (more == NULL)
        return cm_fail(err, CM_ENOMEM, "no memory for a listing");
    l->item = more;
    l->item[l->n++] = (cm_listed){l->names.nbytes, told->nbytes};
    int rc = cm_stop_check(r->stop, err);
    return rc == CM_OK ? cm_buf_append(&l->names, below, strlen(below) + 1, err) : rc;
}

static int by_name(const void *a, const void *b, void *names)
{
    const cm_listed *x = a, *y = b;
    return strcmp((const char *)names + x->at, (const char *)names + y->at);
}

/* Servers mostly list in the order of bytes; those of directory buckets in none. */
static void sort(cm_listing *l)
{
    bool sorted = true;
    for (size_t i = 1; i < l->n && sorted; i++)
        sorted = by_name(&l->item[i - 1], &l->item[i], l->names.data) <= 0;
    if (!sorted)
        qsort_r(l->item, l->n, sizeof(l->item[0]), by_name, l->names.data);
}

int cm_listing_read(cm_store *store, const char *prefix, const cm_stop *stop, cm_listing *out,
                    cm_error *err)
{
    reading r = {out, stop};
    *out = (cm_listing){0};
    int rc = cm_store_list_below(store, prefix, see, &r, err);
    out->read = rc == CM_OK;
    sort(out);
    return rc;
}

void cm_listing_release(cm_listing *l)
{
    cm_buf_release(&l->names);
    free(l->item);
    *l = (cm_listing){0};
}

int cm_listing_find(const cm_listing *l, const char *name, uint64_t *nbytes)
{
    size_t lo = 0, hi = l->n;
    while (lo < hi) {
        size_t mid = lo + (hi - lo) / 2;
        int order = strcmp((const char *)l->names.data + l->item[mid].at, name);
        *nbytes = l->item[mid].nbytes;
        if (order == 0)
            return CM_OK;
        *(order < 0 ? &lo : &hi) = order < 0 ? mid + 1 : mid;
    }
    return CM_ENOTFOUND;
}

#include "load/reader/lookahead.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/queue.h>

#include "load/reader/reader.h"

typedef struct place {
    TAILQ_ENTRY(place) next; /* of those that are free, or of its list's */
    cm_array *array;
    uint64_t box;
    bool taken; /* a thread waits for it */
    cm_fetch_many many;
    cm_fetch_item *item;
    size_t capacity; /* items */
} place;

TAILQ_HEAD(places, place);

struct cm_lookahead_list {
    cm_lookahead *ahead;
    TAILQ_ENTRY(cm_lookahead_list) next; /* of those that have boxes to ask for */
    bool queued;
    struct places asked; /* in their order */
    cm_lookahead_box *box;
    void *context;
    uint64_t n, at; /* boxes; the one that WALK goes through, or comes next */
    bool walking;
    cm_array *array;
    cm_chunk_walk walk;
};

struct cm_lookahead {
    size_t group_nbytes;
    pthread_mutex_t lock; /* guards all of it, and its lists */
    TAILQ_HEAD(, cm_lookahead_list) lists;
    struct places free;
    uint64_t number[CM_READ_GROUP_CHUNKS];
    unsigned nplaces;
    place place[];
};

int cm_lookahead_create(unsigned nplaces, size_t group_nbytes, cm_lookahead **out, cm_error *err)
{
    cm_lookahead *h = cm_calloc(1, sizeof(*h) + nplaces * sizeof(place), err);
    if (h == NULL)
        return CM_ENOMEM;
    h->group_nbytes = group_nbytes;
    h->nplaces = nplaces;
    pthread_mutex_init(&h->lock, NULL);
    TAILQ_INIT(&h->lists);
    TAILQ_INIT(&h->free);
    for (unsigned i = 0; i < nplaces; i++)
        TAILQ_INSERT_TAIL(&h->free, &h->place[i], next);
    *out = h;
    return CM_OK;
}

void cm_lookahead_free(cm_lookahead *h)
{
    if (h == NULL)
        return;
    for (unsigned i = 0; i < h->nplaces; i++) {
        cm_fetch_many_release(&h->place[i].many);
        free(h->place[i].item);
    }
    pthread_mutex_destroy(&h->lock);
    free(h);
}

size_t cm_lookahead_place_nbytes(void)
{
    return sizeof(place) + CM_READ_GROUP_CHUNKS * sizeof(cm_fetch_item);
}

int cm_lookahead_list_create(cm_lookahead *h, cm_lookahead_list **out, cm_error *err)
{
    cm_lookahead_list *list = cm_calloc(1, sizeof(*list), err);
    if (list == NULL)
        return CM_ENOMEM;
    list->ahead = h;
    TAILQ_INIT(&list->asked);
    *out = list;
    return CM_OK;
}

void cm_lookahead_list_free(cm_lookahead_list *list)
{
    free(list);
}

/* ---- asking; with the lock ---- */

/* The next group of LIST, into ahead->number; 0: there is none. */
static size_t next_group(cm_lookahead_list *list)
{
    cm_lookahead *h = list->ahead;
    for (; list->at < list->n; list->at++, list->walking = false) {
        cm_box box;
        if (!list->walking && list->box(list->context, list->at, &list->array, &box) &&
            list->array->chunked && cm_box_nelem(&box) > 0) {
            cm_chunk_walk_begin(&list->walk, list->array, &box,
                                cm_reader_group(list->array, h->group_nbytes));
            list->walking = true;
        }
        const size_t n = list->walking ? cm_chunk_walk_next(&list->walk, h->number) : 0;
        if (n > 0)
            return n;
    }
    return 0;
}

static bool make_room(place *p, size_t n)
{
    if (n <= p->capacity)
        return true;
    free(p->item);
    p->item = cm_calloc(n, sizeof(p->item[0]), NULL);
    p->capacity = p->item != NULL ? n : 0;
    return p->item != NULL;
}

static bool ask(cm_lookahead_list *list, place *p, size_t n)
{
    const uint64_t *number = list->ahead->number;
    if (!make_room(p, n))
        return false;
    for (size_t i = 0; i < n; i++)
        p->item[i] = (cm_fetch_item){.number = number[i]};
    p->array = list->array;
    p->box = list->at;
    p->taken = false;
    p->many.item = p->item;
    p->many.n = n;
    return cm_array_fetch_begin(p->array, &p->many);
}

static void leave_queue(cm_lookahead_list *list)
{
    if (list->queued)
        TAILQ_REMOVE(&list->ahead->lists, list, next);
    list->queued = false;
}

/* Asks for as much as there are places. */
static void fill(cm_lookahead *h)
{
    cm_lookahead_list *list;
    place *p;
    while ((p = TAILQ_FIRST(&h->free)) != NULL && (list = TAILQ_FIRST(&h->lists)) != NULL) {
        const size_t n = next_group(list);
        if (n == 0) {
            leave_queue(list);
        } else if (ask(list, p, n)) {
            TAILQ_REMOVE(&h->free, p, next);
            TAILQ_INSERT_TAIL(&list->asked, p, next);
        }
        /*
         * Leave a group that cannot be requested to its thread, which fetches it and reports
         * errors.
         */
    }
}

static void give_back(cm_lookahead_list *list, place *p)
{
    TAILQ_REMOVE(&list->asked, p, next);
    TAILQ_INSERT_HEAD(&list->ahead->free, p, next);
}

/* ---- lists ---- */

void cm_lookahead_begin(cm_lookahead_list *list, uint64_t n, cm_lookahead_box *box, void *context)
{
    cm_lookahead *h = list->ahead;
    pthread_mutex_lock(&h->lock);
    list->box = box;
    list->context = context;
    list->n = n;
    list->at = 0;
    list->walking = false;
    list->queued = true;
    TAILQ_INSERT_TAIL(&h->lists, list, next);
    fill(h);
    pthread_mutex_unlock(&h->lock);
}

void cm_lookahead_end(cm_lookahead_list *list)
{
    cm_lookahead *h = list->ahead;
    cm_error ignored;
    place *p;
    pthread_mutex_lock(&h->lock);
    leave_queue(list);
    TAILQ_FOREACH(p, &list->asked, next) cm_array_fetch_unwant(p->array, &p->many);
    while ((p = TAILQ_FIRST(&list->asked)) != NULL) {
        pthread_mutex_unlock(&h->lock);
        (void)cm_array_fetch_end(p->array, &p->many, &ignored);
        pthread_mutex_lock(&h->lock);
        give_back(list, p);
    }
    fill(h);
    pthread_mutex_unlock(&h->lock);
}

static place *find(const cm_lookahead_list *list, uint64_t i, const cm_array *a,
                   const cm_fetch_many *many)
{
    place *p;
    TAILQ_FOREACH(p, &list->asked, next)
    if (!p->taken && p->box == i && p->array == a && p->many.n == many->n &&
        p->item[0].number == many->item[0].number)
        return p;
    return NULL;
}

/* The answer goes to MANY, whose buffer the place keeps for its next one. */
static void hand_over(place *p, cm_fetch_many *many)
{
    const cm_buf own = many->buf;
    memcpy(many->item, p->item, many->n * sizeof(many->item[0]));
    many->buf = p->many.buf;
    p->many.buf = own;
    many->io_ns = p->many.io_ns;
    many->nrequests = p->many.nrequests;
    many->nbytes = p->many.nbytes;
}

int cm_lookahead_fetch(cm_lookahead_list *list, uint64_t i, cm_array *a, cm_fetch_many *many,
                       cm_error *err)
{
    cm_lookahead *h = list->ahead;
    pthread_mutex_lock(&h->lock);
    place *p = find(list, i, a, many);
    if (p != NULL) {
        p->taken = true;
    } else if (list->at <= i) { /* what this thread does itself */
        list->at = i + 1;
        list->walking = false;
    }
    pthread_mutex_unlock(&h->lock);
    if (p == NULL)
        return cm_array_fetch_many(a, many, err);
    int rc = cm_array_fetch_end(a, &p->many, err);
    hand_over(p, many);
    pthread_mutex_lock(&h->lock);
    give_back(list, p);
    fill(h);
    pthread_mutex_unlock(&h->lock);
    return rc;
}

#include "format/icechunk/pack.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "base/crc32c.h"
#include "format/icechunk/key.h"

enum {
    LEAST_NBYTES = 512 /* of a chunk that goes into a file, about */
};

/* A chunk of a file that has no name yet. */
typedef struct waiting {
    uint64_t number;
    cm_ice_record record;
} waiting;

typedef struct pack {
    struct pack *next;
    cm_object_writer *object; /* NULL: none is begun */
    uint8_t id[CM_ICE_ID];
    uint64_t nbytes;
    waiting *item;
    size_t n, capacity;
} pack;

struct cm_ice_packs {
    cm_store *root;
    cm_ice_records *records;
    uint64_t file_nbytes;
    pthread_mutex_t lock;
    pack *idle;
    atomic_uint_fast64_t nfiles;
};

int cm_ice_packs_create(cm_store *root, cm_ice_records *records, uint64_t file_nbytes,
                        cm_ice_packs **out, cm_error *err)
{
    cm_ice_packs *p = *out = cm_calloc(1, sizeof(*p), err);
    if (p == NULL)
        return CM_ENOMEM;
    p->root = root;
    p->records = records;
    p->file_nbytes = file_nbytes;
    pthread_mutex_init(&p->lock, NULL);
    return CM_OK;
}

static cm_object_form form_of(const cm_ice_packs *p, uint64_t nbytes)
{
    return (cm_object_form){.most_nbytes = nbytes > p->file_nbytes ? nbytes : p->file_nbytes,
                            .in_order = true};
}

size_t cm_ice_packs_thread_nbytes(const cm_ice_packs *p, uint64_t nchunks)
{
    const cm_object_form form = form_of(p, 0);
    const uint64_t most = p->file_nbytes / LEAST_NBYTES + 1;
    const uint64_t n = nchunks < most ? nchunks : most;
    /* A list that grows is there twice for a moment. */
    return cm_store_writer_nbytes(p->root, &form) + 2 * (size_t)n * sizeof(waiting);
}

static pack *take(cm_ice_packs *p, cm_error *err)
{
    pthread_mutex_lock(&p->lock);
    pack *one = p->idle;
    if (one != NULL)
        p->idle = one->next;
    pthread_mutex_unlock(&p->lock);
    return one != NULL ? one : cm_calloc(1, sizeof(*one), err);
}

static void give_back(cm_ice_packs *p, pack *one)
{
    pthread_mutex_lock(&p->lock);
    one->next = p->idle;
    p->idle = one;
    pthread_mutex_unlock(&p->lock);
}

/* The id is noted before the file exists: whoever cleans up after a crash knows it. */
static int begin(cm_ice_packs *p, pack *one, uint64_t nbytes, cm_error *err)
{
    const cm_object_form form = form_of(p, nbytes);
    char key[CM_ICE_KEY_SIZE];
    int rc = cm_ice_id_random(one->id, sizeof(one->id), err);
    if (rc == CM_OK)
        rc = cm_ice_records_name(p->records, 'c', one->id, err);
    if (rc != CM_OK)
        return rc;
    one->nbytes = 0;
    one->n = 0;
    cm_ice_key("chunks", one->id, key);
    return cm_object_create(p->root, key, &form, &one->object, err);
}

static int finish(cm_ice_packs *p, pack *one, cm_error *err)
{
    cm_object_writer *object = one->object;
    one->object = NULL;
    int rc = cm_object_commit(object, err);
    for (size_t i = 0; rc == CM_OK && i < one->n; i++)
        rc = cm_ice_records_set(p->records, one->item[i].number, &one->item[i].record, err);
    atomic_fetch_add(&p->nfiles, rc == CM_OK);
    return rc;
}

static int add(pack *one, uint64_t number, const void *data, size_t nbytes, cm_error *err)
{
    waiting *item = cm_make_room(one->item, one->n, &one->capacity, sizeof(one->item[0]), 64);
    if (item == NULL)
        return cm_fail(err, CM_ENOMEM, "no memory for chunks");
    one->item = item;
    int rc = cm_object_write(one->object, one->nbytes, data, nbytes, err);
    if (rc != CM_OK)
        return rc;
    item += one->n++;
    *item = (waiting){number,
                      {.state = CM_ICE_STORED,
                       .summed = true,
                       .sum = cm_crc32c(cm_cpu_simd(), data, nbytes),
                       .offset = one->nbytes,
                       .nbytes = nbytes}};
    memcpy(item->record.id, one->id, CM_ICE_ID);
    one->nbytes += nbytes;
    return CM_OK;
}

int cm_ice_packs_put(cm_ice_packs *p, uint64_t number, const void *data, size_t nbytes,
                     cm_error *err)
{
    pack *one = take(p, err);
    int rc = one == NULL ? CM_ENOMEM : CM_OK;
    if (rc == CM_OK && one->object != NULL &&
        (one->nbytes > p->file_nbytes || nbytes > p->file_nbytes - one->nbytes))
        rc = finish(p, one, err);
    if (rc == CM_OK && one->object == NULL)
        rc = begin(p, one, nbytes, err);
    if (rc == CM_OK)
        rc = add(one, number, data, nbytes, err);
    if (one != NULL)
        give_back(p, one);
    return rc;
}

int cm_ice_packs_finish(cm_ice_packs *p, cm_error *err)
{
    int rc = CM_OK;
    for (pack *one = p->idle; one != NULL && rc == CM_OK; one = one->next)
        if (one->object != NULL)
            rc = finish(p, one, err);
    return rc;
}

uint64_t cm_ice_packs_nfiles(const cm_ice_packs *p)
{
    return atomic_load(&p->nfiles);
}

void cm_ice_packs_free(cm_ice_packs *p)
{
    if (p == NULL)
        return;
    for (pack *next, *one = p->idle; one != NULL; one = next) {
        next = one->next;
        cm_object_abort(one->object);
        free(one->item);
        free(one);
    }
    pthread_mutex_destroy(&p->lock);
    free(p);
}

#include "format/icechunk/session_impl.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "format/icechunk/key.h"

/* A shard on its way: a file of its own. */
typedef struct shard {
    cm_object_writer base;
    cm_object_writer *object;
    uint64_t number;
    uint8_t id[CM_ICE_ID];
    atomic_uint_fast64_t nbytes;
} shard;

/* ---- keys ---- */

/* Takes "c/1/2" apart: the number of that chunk in A's grid. */
static bool parse_chunk(const cm_ice_array_chunks *a, const char *text, uint64_t *number)
{
    *number = 0;
    if (*text++ != 'c')
        return false;
    for (unsigned j = 0; j < a->rank; j++) {
        uint64_t at = 0;
        const char *digit = text + 1;
        if (*text != '/' || *digit < '0' || *digit > '9')
            return false;
        for (; *digit >= '0' && *digit <= '9'; digit++)
            if (at < UINT64_MAX / 10)
                at = 10 * at + (uint64_t)(*digit - '0');
        if (at >= a->shape[j])
            return false;
        *number = *number * a->shape[j] + at;
        text = digit;
    }
    return *text == '\0';
}

/* Compares PATH with the first N bytes of KEY. */
static int compare_path(const char *path, const char *key, size_t n)
{
    const int order = strncmp(path, key, n);
    return order != 0 ? order : path[n] != '\0';
}

static const cm_ice_array_chunks *find_array(const cm_ice_session *s, const char *key, size_t n)
{
    size_t low = 0, high = s->narrays;
    while (low < high) {
        const size_t middle = low + (high - low) / 2;
        const int order = compare_path(s->sorted[middle]->path, key, n);
        if (order == 0)
            return s->sorted[middle];
        if (order < 0)
            low = middle + 1;
        else
            high = middle;
    }
    return NULL;
}

/*
 * The array of the chunk that KEY names, and its record; NULL: it names a document.  "PATH/c/...":
 * any 'c' may be where the path ends, and one in it is a group of that name.
 */
static const cm_ice_array_chunks *find_chunk(const cm_ice_session *s, const char *key,
                                             uint64_t *number)
{
    for (size_t at = 0; key[at] != '\0';) {
        const cm_ice_array_chunks *a =
            key[at] == 'c' ? find_array(s, key, at > 0 ? at - 1 : 0) : NULL;
        if (a != NULL && parse_chunk(a, key + at, number)) {
            *number += a->base;
            return a;
        }
        at += strcspn(key + at, "/");
        at += key[at] == '/';
    }
    return NULL;
}

static bool is_document(const char *key)
{
    const char *last = strrchr(key, '/');
    return strcmp(last != NULL ? last + 1 : key, "zarr.json") == 0;
}

static int no_place(const char *key, cm_error *err)
{
    return cm_fail(err, CM_EINTERNAL, "%s: is neither a chunk nor a document of this repository",
                   key);
}

/* ---- writing ---- */

static int session_put(cm_store *store, const char *key, const void *data, size_t nbytes,
                       cm_error *err)
{
    cm_ice_session *s = cm_ice_session_of(store);
    uint64_t number;
    if (is_document(key))
        return cm_store_put(s->documents, key, data, nbytes, err);
    if (find_chunk(s, key, &number) == NULL)
        return no_place(key, err);
    if (nbytes <= CM_ICE_INLINE_NBYTES)
        return cm_ice_records_keep(s->records, number, data, nbytes, err);
    return cm_ice_packs_put(s->packs, number, data, nbytes, err);
}

static int session_delete(cm_store *store, const char *key, cm_error *err)
{
    cm_ice_session *s = cm_ice_session_of(store);
    uint64_t number;
    const cm_ice_record empty = {.state = CM_ICE_EMPTY};
    if (find_chunk(s, key, &number) != NULL)
        return cm_ice_records_set(s->records, number, &empty, err);
    return cm_store_delete(s->documents, key, err);
}

static int session_sweep(cm_store *store, const char *prefix, cm_store_judge *judge, void *context,
                         cm_error *err)
{
    (void)store, (void)prefix, (void)judge, (void)context, (void)err;
    return CM_OK;
}

static int session_create(cm_store *store, const char *key, const cm_object_form *form,
                          cm_object_writer **out, cm_error *err)
{
    cm_ice_session *s = cm_ice_session_of(store);
    char name[CM_ICE_KEY_SIZE];
    shard *w = cm_calloc(1, sizeof(*w), err);
    if (w == NULL)
        return CM_ENOMEM;
    w->base.store = store;
    w->base.key = cm_strdup(key, err);
    int rc = w->base.key == NULL ? CM_ENOMEM : CM_OK;
    if (rc == CM_OK && find_chunk(s, key, &w->number) == NULL)
        rc = no_place(key, err);
    if (rc == CM_OK)
        rc = cm_ice_id_random(w->id, sizeof(w->id), err);
    if (rc == CM_OK)
        rc = cm_ice_records_name(s->records, 'c', w->id, err);
    if (rc == CM_OK) {
        cm_ice_key("chunks", w->id, name);
        rc = cm_object_create(s->root, name, form, &w->object, err);
    }
    if (rc != CM_OK) {
        free(w->base.key);
        free(w);
        return rc;
    }
    *out = &w->base;
    return CM_OK;
}

static int shard_write(cm_object_writer *writer, uint64_t offset, const void *src, size_t nbytes,
                       cm_error *err)
{
    shard *w = (shard *)writer;
    uint64_t end = offset + nbytes, was = atomic_load(&w->nbytes);
    while (was < end && !atomic_compare_exchange_weak(&w->nbytes, &was, end))
        ;
    return cm_object_write(w->object, offset, src, nbytes, err);
}

static void shard_free(shard *w)
{
    free(w->base.key);
    free(w);
}

static int shard_commit(cm_object_writer *writer, cm_error *err)
{
    shard *w = (shard *)writer;
    cm_ice_session *s = cm_ice_session_of(writer->store);
    cm_ice_record record = {.state = CM_ICE_STORED, .nbytes = atomic_load(&w->nbytes)};
    memcpy(record.id, w->id, CM_ICE_ID);
    int rc = cm_object_commit(w->object, err);
    if (rc == CM_OK)
        rc = cm_ice_records_set(s->records, w->number, &record, err);
    shard_free(w);
    return rc;
}

static void shard_abort(cm_object_writer *writer)
{
    shard *w = (shard *)writer;
    cm_object_abort(w->object);
    shard_free(w);
}

/* ---- looking ---- */

static int session_stat(cm_store *store, const char *key, cm_object_stat *out, cm_error *err)
{
    cm_ice_session *s = cm_ice_session_of(store);
    cm_ice_record record;
    uint64_t number;
    const cm_ice_array_chunks *a = find_chunk(s, key, &number);
    if (a == NULL)
        return cm_store_stat(s->documents, key, out, err);
    int rc = cm_ice_records_get(s->records, number, 1, &record, err);
    if (rc == CM_OK && record.state == CM_ICE_UNKNOWN && a->before != NULL)
        return cm_store_stat(a->before, key, out, err);
    if (rc == CM_OK && record.state != CM_ICE_STORED && record.state != CM_ICE_SMALL)
        return cm_fail(err, CM_ENOTFOUND, "%s: no such chunk", key);
    *out = (cm_object_stat){.nbytes = record.nbytes};
    return rc;
}

static int session_list(cm_store *store, const char *prefix, cm_store_visit *visit, void *context,
                        cm_error *err)
{
    return cm_store_list(cm_ice_session_of(store)->documents, prefix, visit, context, err);
}

/* ---- reading what was written ---- */

/* A range of a file of the repository, a small chunk, or a document. */
typedef struct range {
    cm_object_reader base;
    cm_ice_record record;
    cm_object_reader *file;
} range;

static int open_whole(cm_store *of, const char *key, range *r, cm_error *err)
{
    int rc = cm_object_open(of, key, &r->file, err);
    r->base.nbytes = rc == CM_OK ? cm_object_nbytes(r->file) : 0;
    return rc;
}

static int open_range(cm_ice_session *s, const char *key, range *r, cm_error *err)
{
    char name[CM_ICE_KEY_SIZE];
    uint64_t number;
    const cm_ice_array_chunks *a = find_chunk(s, key, &number);
    if (a == NULL)
        return open_whole(s->documents, key, r, err);
    int rc = cm_ice_records_get(s->records, number, 1, &r->record, err);
    if (rc == CM_OK && r->record.state == CM_ICE_UNKNOWN && a->before != NULL)
        return open_whole(a->before, key, r, err);
    if (rc == CM_OK && r->record.state != CM_ICE_STORED && r->record.state != CM_ICE_SMALL)
        return cm_fail(err, CM_ENOTFOUND, "%s: no such chunk", key);
    r->base.nbytes = r->record.nbytes;
    if (rc != CM_OK || r->record.state == CM_ICE_SMALL)
        return rc;
    cm_ice_key("chunks", r->record.id, name);
    return cm_object_open(s->root, name, &r->file, err);
}

static int session_open_object(cm_store *store, const char *key, cm_object_reader **out,
                               cm_error *err)
{
    range *r = cm_calloc(1, sizeof(*r), err);
    if (r == NULL)
        return CM_ENOMEM;
    r->base.store = store;
    r->base.key = cm_strdup(key, err);
    int rc = r->base.key == NULL ? CM_ENOMEM : open_range(cm_ice_session_of(store), key, r, err);
    if (rc != CM_OK) {
        free(r->base.key);
        free(r);
        return rc;
    }
    *out = &r->base;
    return CM_OK;
}

static int session_read(cm_object_reader *reader, uint64_t offset, void *dst, size_t nbytes,
                        cm_error *err)
{
    range *r = (range *)reader;
    uint8_t small[CM_ICE_INLINE_NBYTES];
    if (r->file != NULL)
        return cm_object_read(r->file, r->record.offset + offset, dst, nbytes, err);
    int rc =
        cm_ice_records_small(cm_ice_session_of(reader->store)->records, &r->record, small, err);
    if (rc == CM_OK)
        memcpy(dst, small + offset, nbytes);
    return rc;
}

static void session_close(cm_object_reader *reader)
{
    range *r = (range *)reader;
    cm_object_close(r->file);
    free(r->base.key);
    free(r);
}

static int session_sync(cm_store *store, cm_error *err)
{
    return cm_store_sync(cm_ice_session_of(store)->root, err);
}

static void session_limit(cm_store *store, const cm_store_limits *limits)
{
    cm_store_limit(cm_ice_session_of(store)->root, limits);
}

static size_t session_writer_nbytes(const cm_store *store, const cm_object_form *form)
{
    return cm_store_writer_nbytes(cm_ice_session_of(store)->root, form);
}

static size_t session_piece_nbytes(const cm_store *store)
{
    return cm_store_piece_nbytes(cm_ice_session_of(store)->root);
}

static void session_free(cm_store *store)
{
    cm_ice_session *s = cm_ice_session_of(store);
    for (size_t i = 0; i < s->narrays; i++) {
        cm_buf_release(&s->array[i]->small);
        free(s->array[i]->record);
        free(s->array[i]->path);
        free(s->array[i]);
    }
    cm_ice_packs_free(s->packs);
    cm_store_free(s->documents);
    free(s->array);
    free(s->sorted);
    free(s->base.name);
    free(s);
}

static const cm_store_write_ops write_ops = {
    .put = session_put,
    .delete = session_delete,
    .sweep = session_sweep,
    .create = session_create,
    .write = shard_write,
    .commit = shard_commit,
    .abort = shard_abort,
};

static size_t session_put_nbytes(const cm_store *store)
{
    const cm_ice_session *s = cm_ice_session_of(store);
    return cm_ice_packs_thread_nbytes(s->packs, s->nchunks);
}

static const cm_store_memory_ops memory_ops = {.limit = session_limit,
                                               .writer_nbytes = session_writer_nbytes,
                                               .piece_nbytes = session_piece_nbytes,
                                               .put_nbytes = session_put_nbytes};

static const cm_store_ops session_ops = {
    .free = session_free,
    .stat = session_stat,
    .list = session_list,
    .open = session_open_object,
    .read = session_read,
    .close = session_close,
    .sync = session_sync,
    .write = &write_ops,
};

int cm_ice_session_open(cm_store *root, cm_ice_records *records, uint64_t file_nbytes,
                        cm_store **out, cm_error *err)
{
    cm_ice_session *s = cm_calloc(1, sizeof(*s), err);
    if (s == NULL)
        return CM_ENOMEM;
    s->ops = session_ops;
    s->ops.remote = root->ops->remote;
    s->ops.request_nbytes = root->ops->request_nbytes;
    s->ops.memory = &memory_ops;
    s->base.ops = &s->ops;
    s->base.name = cm_strdup(cm_store_name(root), err);
    s->root = root;
    s->records = records;
    int rc = s->base.name == NULL ? CM_ENOMEM : cm_store_open_memory(&s->documents, err);
    if (rc == CM_OK)
        rc = cm_ice_packs_create(root, records, file_nbytes, &s->packs, err);
    if (rc != CM_OK) {
        session_free(&s->base);
        return rc;
    }
    *out = &s->base;
    return CM_OK;
}

/* ---- arrays ---- */

int cm_ice_session_add(cm_store *store, const char *path, unsigned rank, const uint64_t *shape,
                       size_t *index, cm_error *err)
{
    cm_ice_session *s = cm_ice_session_of(store);
    cm_ice_array_chunks **room =
        cm_make_room(s->array, s->narrays, &s->capacity, sizeof(s->array[0]), 16);
    if (room != NULL)
        s->array = room;
    cm_ice_array_chunks **sorted =
        cm_make_room(s->sorted, s->narrays, &s->sorted_capacity, sizeof(s->sorted[0]), 16);
    if (sorted != NULL)
        s->sorted = sorted;
    if (room == NULL || sorted == NULL)
        return cm_fail(err, CM_ENOMEM, "no memory for arrays");
    cm_ice_array_chunks *a = cm_calloc(1, sizeof(*a), err);
    if (a == NULL || (a->path = cm_strdup(path, err)) == NULL) {
        free(a);
        return CM_ENOMEM;
    }
    a->of = s;
    a->rank = rank;
    memcpy(a->shape, shape, rank * sizeof(shape[0]));
    a->base = s->nchunks;
    *index = a->index = s->narrays;
    size_t at = s->narrays;
    for (; at > 0 && strcmp(s->sorted[at - 1]->path, path) > 0; at--)
        s->sorted[at] = s->sorted[at - 1];
    s->sorted[at] = a;
    s->array[s->narrays++] = a;
    if (!cm_product_u64(rank, shape, &a->nchunks) ||
        a->nchunks > (uint64_t)INT64_MAX / 64 - s->nchunks)
        return cm_fail(err, CM_EUNSUPPORTED, "array %s: too many chunks", path);
    s->nchunks += a->nchunks;
    return CM_OK;
}

const char *cm_ice_session_path(cm_store *store, size_t index)
{
    return cm_ice_session_of(store)->array[index]->path;
}

bool cm_ice_session_find(cm_store *store, const char *path, size_t *index)
{
    const cm_ice_array_chunks *a = find_array(cm_ice_session_of(store), path, strlen(path));
    if (a != NULL)
        *index = a->index;
    return a != NULL;
}

uint64_t cm_ice_session_first(cm_store *store, size_t index)
{
    return cm_ice_session_of(store)->array[index]->base;
}

void cm_ice_session_keep(cm_store *store, size_t index, cm_store *before)
{
    cm_ice_session_of(store)->array[index]->before = before;
}

int cm_ice_session_finish(cm_store *store, cm_error *err)
{
    return cm_ice_packs_finish(cm_ice_session_of(store)->packs, err);
}

cm_store *cm_ice_session_documents(cm_store *store)
{
    return cm_ice_session_of(store)->documents;
}

uint64_t cm_ice_session_nfiles(const cm_store *store)
{
    return cm_ice_packs_nfiles(cm_ice_session_of(store)->packs);
}

/* ---- places ---- */

static int load_small(cm_ice_array_chunks *a, const cm_ice_record *record, cm_ice_place *out,
                      cm_error *err)
{
    const size_t at = a->small.nbytes;
    int rc = cm_buf_resize(&a->small, at + record->nbytes, err);
    if (rc == CM_OK)
        rc = cm_ice_records_small(a->of->records, record, a->small.data + at, err);
    *out = (cm_ice_place){.where = CM_ICE_INLINE, .offset = at, .nbytes = record->nbytes};
    return rc;
}

/* All at once: a buffer that grows with each chunk is moved as often. */
static int reserve_small(cm_ice_array_chunks *a, size_t n, cm_error *err)
{
    size_t total = 0;
    for (size_t i = 0; i < n; i++)
        total += a->record[i].state == CM_ICE_SMALL ? (size_t)a->record[i].nbytes : 0;
    a->small.nbytes = 0;
    return cm_buf_reserve(&a->small, total, err);
}

static int find_places(void *context, uint64_t first, size_t n, cm_ice_place *out, cm_error *err)
{
    cm_ice_array_chunks *a = context;
    if (n > a->room) {
        free(a->record);
        a->room = 0;
        if ((a->record = cm_calloc(n, sizeof(a->record[0]), err)) == NULL)
            return CM_ENOMEM;
        a->room = n;
    }
    int rc = cm_ice_records_get(a->of->records, a->base + first, n, a->record, err);
    if (rc == CM_OK)
        rc = reserve_small(a, n, err);
    for (size_t i = 0; rc == CM_OK && i < n; i++) {
        const cm_ice_record *r = &a->record[i];
        out[i] = (cm_ice_place){.where = CM_ICE_NOWHERE};
        if (r->state == CM_ICE_UNKNOWN && a->before != NULL)
            out[i].where = CM_ICE_KEPT;
        if (r->state == CM_ICE_SMALL) {
            rc = load_small(a, r, &out[i], err);
        } else if (r->state == CM_ICE_STORED) {
            out[i] =
                (cm_ice_place){.where = CM_ICE_IN_FILE, .offset = r->offset, .nbytes = r->nbytes};
            memcpy(out[i].id, r->id, CM_ICE_ID);
        }
    }
    for (size_t i = 0; rc == CM_OK && i < n; i++) /* the buffer moves no more */
        if (out[i].where == CM_ICE_INLINE) {
            out[i].bytes = a->small.data + out[i].offset;
            out[i].offset = 0;
        }
    return rc;
}

void cm_ice_session_places(cm_store *store, size_t index, cm_ice_places *out)
{
    cm_ice_array_chunks *a = cm_ice_session_of(store)->array[index];
    *out = (cm_ice_places){.rank = a->rank, .find = find_places, .context = a};
    memcpy(out->shape, a->shape, a->rank * sizeof(a->shape[0]));
}

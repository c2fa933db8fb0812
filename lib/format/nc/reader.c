#include "format/nc/reader.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/number.h"
#include "format/nc/file.h"
#include "format/nc/reader_child.h"
#include "format/nc/reader_impl.h"
#include "format/nc/trial.h"
#include "model/copy.h"

enum {
    /*
     * One answer, unless a chunk of the file is longer: a request costs 30 us, a read of 2 MiB
     * takes 0.4 ms without decoding.
     */
    ANSWER_NBYTES = 2 << 20,
    LENGTH_BLOCKS = 16 /* cached; threads use different parts of an array */
};

void cm_nc_reader_release(cm_nc_reader *r)
{
    (void)cm_trial_part(&r->child, true);
    if (r->map != NULL)
        munmap((void *)r->map, r->mapped);
    if (r->memory >= 0)
        close(r->memory);
    pthread_mutex_destroy(&r->lock);
    free(r->lengths);
    free(r->path);
    free(r);
}

/* ---- asking ---- */

/* Ends the child; sets the error of this and all later requests. */
static int lose(cm_nc_reader *r, const char *what, cm_error *err)
{
    char doing[300];
    bool canceled = r->limits.canceled != NULL && r->limits.canceled(r->limits.context);
    cm_trial_fate fate = cm_trial_part(&r->child, canceled);
    if (canceled)
        fate = (cm_trial_fate){.end = CM_TRIAL_CANCELED};
    else if (fate.end == CM_TRIAL_RETURNED)
        fate = (cm_trial_fate){.end = CM_TRIAL_CRASHED};
    snprintf(doing, sizeof doing, "reading %s of it", what);
    (void)cm_nc_trial_failed(r->path, doing, &r->limits, &fate, &r->failure);
    if (err != NULL)
        *err = r->failure;
    return r->failure.status;
}

/* Maps the answer's NBYTES at r->map, checked: a faulty child may claim any size. */
static int map_answer(cm_nc_reader *r, uint64_t nbytes, cm_error *err)
{
    struct stat st;
    if (nbytes <= r->mapped)
        return CM_OK;
    if (fstat(r->memory, &st) != 0 || st.st_size < 0 || (uint64_t)st.st_size < nbytes)
        return cm_fail(err, CM_EINTERNAL, "%s: the process that reads it gave no data", r->path);
    if (r->map != NULL)
        munmap((void *)r->map, r->mapped);
    r->map = NULL;
    r->mapped = 0;
    void *map = mmap(NULL, (size_t)st.st_size, PROT_READ, MAP_SHARED, r->memory, 0);
    if (map == MAP_FAILED)
        return cm_fail(err, CM_ENOMEM, "%s: no memory for %zu bytes of it", r->path,
                       (size_t)nbytes);
    r->map = map;
    r->mapped = (size_t)st.st_size;
    return CM_OK;
}

/* An HDF5 reference to text takes 16 bytes in a chunk. */
static size_t text_itemsize(const cm_nc_node *node)
{
    return node->dataset.text_nbytes > 0 ? node->dataset.text_nbytes : 16;
}

/* Sends a request and waits.  WHAT is for messages.  The caller holds the lock. */
static int ask(cm_nc_reader *r, const cm_nc_request *q, const char *what, cm_nc_reply *out,
               cm_error *err)
{
    cm_error theirs = {0};
    if (r->child.pid == 0) {
        if (err != NULL)
            *err = r->failure;
        return r->failure.status;
    }
    if (!cm_fd_send(r->child.fd, q, sizeof *q) ||
        !cm_trial_receive(&r->child, out, sizeof *out, &r->limits) ||
        (out->status != CM_OK && !cm_trial_receive(&r->child, &theirs, sizeof theirs, &r->limits)))
        return lose(r, what, err);
    if (out->status != CM_OK && err != NULL)
        *err = theirs;
    return out->status == CM_OK ? map_answer(r, out->nbytes, err) : out->status;
}

static int ask_of(cm_nc_node *node, cm_nc_request *q, cm_nc_reply *out, cm_error *err)
{
    cm_error why = {0};
    if (node->unreadable != NULL)
        return cm_fail(err, CM_EFORMAT, "%s", node->unreadable);
    q->node = (size_t)(node - node->file->node);
    int rc = ask(node->file->reader, q, node->var.array.name, out, &why);
    if (rc == CM_EFORMAT)
        node->unreadable = cm_strdup(why.text, NULL);
    if (rc != CM_OK && err != NULL)
        *err = why;
    return rc;
}

/* A library decodes whole chunks: it holds one as stored and as decoded. */
static int check_memory(const cm_nc_node *node, cm_error *err)
{
    const cm_nc_var *v = &node->var;
    uint64_t most = node->file->reader->most, need = v->array.dtype.nbytes;
    char text[2][32];
    if (cm_dtype_is_vlen(&v->array.dtype))
        need = text_itemsize(node);
    for (unsigned j = 0; j < v->array.rank; j++)
        if (!cm_mul_u64(need, v->has_source_chunks ? v->source_chunk[j] : 1, &need))
            need = UINT64_MAX / 2;
    need = need < UINT64_MAX / 2 ? 2 * need : need;
    if (need <= most)
        return CM_OK;
    return cm_fail(err, CM_EBUDGET,
                   "%s: variable %s: is read through a library, which takes %s for one of its "
                   "chunks; at most %s are left for that",
                   node->file->path, v->array.name, cm_format_size(need, text[0], sizeof text[0]),
                   cm_format_size(most, text[1], sizeof text[1]));
}

static int wrong_answer(const cm_nc_node *node, cm_error *err)
{
    return cm_fail(err, CM_EINTERNAL, "%s: variable %s: the process that reads it gave other data",
                   node->file->path, node->var.array.name);
}

bool cm_nc_reader_stop(cm_nc_reader *r)
{
    cm_nc_reply out;
    if (r == NULL)
        return true;
    /* Closing is short, and must be done even when the run was cancelled. */
    r->limits.canceled = NULL;
    bool good = ask(r, &(cm_nc_request){.wish = CM_NC_WISH_CLOSE}, "the end", &out, NULL) == CM_OK;
    cm_nc_reader_release(r);
    return good;
}

/* ---- boxes, in parts that hold whole chunks of the file ---- */

typedef struct parts {
    const cm_box *box;
    uint64_t unit[CM_MAX_RANK];  /* elements of a chunk; 1 without chunks */
    uint64_t first[CM_MAX_RANK]; /* the unit where the box begins */
    uint64_t step[CM_MAX_RANK];  /* units per part */
    uint64_t count[CM_MAX_RANK]; /* number of parts */
    uint64_t at[CM_MAX_RANK];    /* the next part */
    bool done;
} parts;

static void begin_parts(const cm_nc_node *node, const cm_box *box, size_t itemsize, parts *p)
{
    uint64_t nelem = 1,
             most = ANSWER_NBYTES / (itemsize < ANSWER_NBYTES ? itemsize : ANSWER_NBYTES);
    bool whole = true;
    *p = (parts){.box = box};
    for (unsigned j = 0; j < box->rank; j++) {
        uint64_t chunk = node->var.has_source_chunks ? node->var.source_chunk[j] : 1;
        p->unit[j] = chunk > 0 ? chunk : 1;
        nelem *= p->unit[j] < box->shape[j] ? p->unit[j] : box->shape[j];
    }
    /* As many units as fit into an answer, from the innermost dimension on. */
    for (unsigned j = box->rank; j-- > 0;) {
        uint64_t last = (box->start[j] + box->shape[j] - 1) / p->unit[j];
        p->first[j] = box->start[j] / p->unit[j];
        uint64_t nunits = last - p->first[j] + 1, fit = whole ? most / nelem : 1;
        p->step[j] = fit == 0 ? 1 : fit < nunits ? fit : nunits;
        p->count[j] = (nunits + p->step[j] - 1) / p->step[j];
        whole = whole && p->count[j] == 1;
        nelem *= p->step[j];
    }
}

static bool next_part(parts *p, cm_box *out)
{
    const cm_box *box = p->box;
    if (p->done)
        return false;
    out->rank = box->rank;
    for (unsigned j = 0; j < box->rank; j++) {
        uint64_t from = (p->first[j] + p->at[j] * p->step[j]) * p->unit[j];
        uint64_t end = box->start[j] + box->shape[j], left = end - from;
        uint64_t to = p->step[j] < left / p->unit[j] ? from + p->step[j] * p->unit[j] : end;
        out->start[j] = from > box->start[j] ? from : box->start[j];
        out->shape[j] = to - out->start[j];
    }
    p->done = true;
    for (unsigned j = box->rank; j-- > 0 && p->done;) {
        p->at[j] = p->at[j] + 1 < p->count[j] ? p->at[j] + 1 : 0;
        p->done = p->at[j] == 0;
    }
    return true;
}

int cm_nc_reader_box(cm_nc_node *node, const cm_box *box, void *dst, cm_error *err)
{
    cm_nc_reader *r = node->file->reader;
    size_t itemsize = node->var.array.dtype.nbytes;
    int64_t to[CM_MAX_RANK], from[CM_MAX_RANK];
    int rc = check_memory(node, err);
    parts p;
    cm_nc_request q = {.wish = CM_NC_WISH_BOX};
    begin_parts(node, box, itemsize, &p);
    cm_strides_c(box->rank, box->shape, itemsize, to);
    while (rc == CM_OK && next_part(&p, &q.box)) {
        cm_nc_reply out;
        uint8_t *place = dst;
        for (unsigned j = 0; j < box->rank; j++)
            place += (int64_t)(q.box.start[j] - box->start[j]) * to[j];
        cm_strides_c(box->rank, q.box.shape, itemsize, from);
        pthread_mutex_lock(&r->lock);
        rc = ask_of(node, &q, &out, err);
        if (rc == CM_OK && out.nbytes != cm_box_nelem(&q.box) * itemsize)
            rc = wrong_answer(node, err);
        if (rc == CM_OK)
            cm_copy_nd(box->rank, q.box.shape, itemsize, place, to, r->map, from);
        pthread_mutex_unlock(&r->lock);
    }
    return rc;
}

/* ---- strings ---- */

/* Index in BOX of element I of PART. */
static size_t place_of(const cm_box *box, const cm_box *part, uint64_t i)
{
    uint64_t place = 0, stride = 1;
    for (unsigned j = box->rank; j-- > 0;) {
        place += (part->start[j] - box->start[j] + i % part->shape[j]) * stride;
        i /= part->shape[j];
        stride *= box->shape[j];
    }
    return (size_t)place;
}

static int take_text(const cm_nc_node *node, const cm_box *box, const cm_box *part, uint64_t nbytes,
                     cm_strings *out, cm_error *err)
{
    const uint8_t *map = node->file->reader->map;
    uint64_t n = cm_box_nelem(part), at = n * sizeof(uint64_t);
    if (nbytes < at)
        return wrong_answer(node, err);
    for (uint64_t i = 0; i < n; i++) {
        uint64_t length;
        memcpy(&length, map + i * sizeof length, sizeof length);
        if (length > nbytes - at)
            return wrong_answer(node, err);
        int rc = length == 0
                     ? CM_OK
                     : cm_strings_set(out, place_of(box, part, i), map + at, (size_t)length, err);
        if (rc != CM_OK)
            return rc;
        at += length;
    }
    return CM_OK;
}

int cm_nc_reader_strings(cm_nc_node *node, const cm_box *box, cm_strings *out, cm_error *err)
{
    cm_nc_reader *r = node->file->reader;
    int rc = check_memory(node, err);
    parts p;
    cm_nc_request q = {.wish = CM_NC_WISH_TEXT};
    begin_parts(node, box, text_itemsize(node), &p);
    while (rc == CM_OK && next_part(&p, &q.box)) {
        cm_nc_reply reply;
        pthread_mutex_lock(&r->lock);
        rc = ask_of(node, &q, &reply, err);
        if (rc == CM_OK)
            rc = take_text(node, box, &q.box, reply.nbytes, out, err);
        pthread_mutex_unlock(&r->lock);
    }
    return rc;
}

/* ---- chunks as stored ---- */

int cm_nc_reader_chunk(cm_nc_node *node, uint64_t number, cm_buf *buf, cm_fetch *out, cm_error *err)
{
    cm_nc_reader *r = node->file->reader;
    cm_nc_reply reply;
    cm_nc_request q = {.wish = CM_NC_WISH_CHUNK, .number = number};
    pthread_mutex_lock(&r->lock);
    int rc = ask_of(node, &q, &reply, err);
    if (rc == CM_OK && reply.nbytes > node->file->source.nbytes)
        rc = wrong_answer(node, err);
    if (rc == CM_OK && reply.fetch.present)
        rc = cm_buf_resize(buf, (size_t)reply.nbytes, err);
    if (rc == CM_OK && reply.fetch.present)
        memcpy(buf->data, r->map, (size_t)reply.nbytes);
    pthread_mutex_unlock(&r->lock);
    if (rc == CM_OK)
        *out = reply.fetch;
    return rc;
}

static int find_lengths(cm_nc_node *node, uint64_t block, const cm_nc_lengths **out, cm_error *err)
{
    cm_nc_reader *r = node->file->reader;
    if (r->lengths == NULL)
        r->lengths = cm_calloc(LENGTH_BLOCKS, sizeof *r->lengths, err);
    if (r->lengths == NULL)
        return CM_ENOMEM;
    cm_nc_lengths *l = &r->lengths[block % LENGTH_BLOCKS];
    *out = l;
    if (l->node == node && l->block == block)
        return CM_OK;
    uint64_t first = block * CM_NC_MANY_LENGTHS, rest = node->var.array.grid.nchunks - first;
    uint64_t n = rest < CM_NC_MANY_LENGTHS ? rest : CM_NC_MANY_LENGTHS;
    cm_nc_reply reply;
    cm_nc_request q = {.wish = CM_NC_WISH_LENGTHS, .number = first, .count = n};
    int rc = ask_of(node, &q, &reply, err);
    if (rc == CM_OK && reply.nbytes != n * sizeof l->nbytes[0])
        rc = wrong_answer(node, err);
    if (rc != CM_OK)
        return rc;
    memcpy(l->nbytes, r->map, (size_t)reply.nbytes);
    l->node = node;
    l->block = block;
    return CM_OK;
}

int cm_nc_reader_chunk_nbytes(cm_nc_node *node, uint64_t number, uint64_t *nbytes, cm_error *err)
{
    cm_nc_reader *r = node->file->reader;
    const cm_nc_lengths *l;
    pthread_mutex_lock(&r->lock);
    int rc = find_lengths(node, number / CM_NC_MANY_LENGTHS, &l, err);
    *nbytes = rc == CM_OK ? l->nbytes[number % CM_NC_MANY_LENGTHS] : 0;
    pthread_mutex_unlock(&r->lock);
    return rc;
}

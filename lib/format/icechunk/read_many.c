/*
 * Reads many objects at once: neighbours in one file by one request, those behind a network all
 * together.
 */
#include <stdlib.h>
#include <string.h>

#include "format/icechunk/read_impl.h"
#include "format/merge.h"

/* One read of one source, for some pieces. */
typedef struct request {
    size_t source;
    size_t piece; /* the first; it names the request in messages */
    uint64_t offset, nbytes;
    size_t at;
    bool asked; /* behind a network */
} request;

/* Requests to one store behind a network, under way together. */
typedef struct group {
    cm_store *store;
    size_t first, n; /* of `part` */
    cm_net_reading *reading;
} group;

typedef struct many {
    cm_ice_store *store;
    cm_store_read *read;
    size_t n;
    cm_ice_found *found; /* of each read by its key */
    cm_piece *piece;     /* `object`: its source, `local`: its request */
    size_t npieces;
    cm_ice_source *source;
    size_t nsources;
    request *request;
    size_t nrequests;
    bool in_folder;    /* a source is not behind a network */
    cm_net_part *part; /* group after group */
    size_t *number;    /* of the request, for each part */
    group *group;
    size_t ngroups, nparts;
} many;

static int init(many *m, cm_store *store, cm_store_read *read, size_t n, cm_error *err)
{
    *m = (many){.store = cm_ice_store_of(store), .read = read, .n = n};
    const bool room = (m->found = cm_calloc(n + 1, sizeof(m->found[0]), err)) != NULL &&
                      (m->piece = cm_calloc(n + 1, sizeof(m->piece[0]), err)) != NULL &&
                      (m->source = cm_calloc(n + 1, sizeof(m->source[0]), err)) != NULL &&
                      (m->request = cm_calloc(n + 1, sizeof(m->request[0]), err)) != NULL &&
                      (m->part = cm_calloc(n + 1, sizeof(m->part[0]), err)) != NULL &&
                      (m->number = cm_calloc(n + 1, sizeof(m->number[0]), err)) != NULL &&
                      (m->group = cm_calloc(n + 1, sizeof(m->group[0]), err)) != NULL;
    return room ? CM_OK : CM_ENOMEM;
}

static void release(many *m)
{
    for (size_t i = 0; m->found != NULL && i < m->n; i++)
        cm_ice_found_release(m->store, &m->found[i]);
    for (size_t i = 0; i < m->nsources; i++)
        cm_ice_source_release(&m->source[i]);
    free(m->found);
    free(m->piece);
    free(m->source);
    free(m->request);
    free(m->part);
    free(m->number);
    free(m->group);
}

/* ---- where they lie ---- */

static const char *key_of(const cm_store_read *read)
{
    return read->reader != NULL ? read->reader->key : read->key;
}

static const cm_ice_found *found_of(const many *m, size_t i)
{
    const cm_object_reader *reader = m->read[i].reader;
    return reader != NULL ? &((const cm_ice_reader *)reader)->found : &m->found[i];
}

static int append(cm_store_read *read, const uint8_t *bytes, cm_buf *buf, cm_error *err)
{
    read->at = buf->nbytes;
    int rc = cm_buf_extend(buf, read->got_nbytes, err);
    if (rc == CM_OK && read->got_nbytes > 0)
        memcpy(buf->data + read->at, bytes, read->got_nbytes);
    return rc;
}

/* Adds the NBYTES at OFFSET of the chunk of read I; chunks of one object usually come in turn. */
static int add_piece(many *m, size_t i, uint64_t offset, uint64_t nbytes, cm_error *err)
{
    const size_t before = m->npieces > 0 ? m->piece[m->npieces - 1].item : SIZE_MAX;
    const cm_ice_found *found = found_of(m, i);
    int rc = CM_OK;
    if (before == SIZE_MAX || !cm_ice_source_is_same(found_of(m, before), found)) {
        rc = cm_ice_source_find(m->store, key_of(&m->read[i]), found, &m->source[m->nsources], err);
        m->in_folder = m->in_folder || !m->source[m->nsources].spot.is_net;
        m->nsources++;
    }
    m->piece[m->npieces++] = (cm_piece){.object = m->nsources - 1,
                                        .offset = found->chunk.offset + offset,
                                        .nbytes = nbytes,
                                        .item = i};
    return rc;
}

/* Finds read I; what is in a manifest is appended to BUF. */
static int find(many *m, size_t i, bool at_hand, cm_buf *buf, cm_error *err)
{
    cm_store_read *read = &m->read[i];
    int rc =
        read->reader == NULL ? cm_ice_find(m->store, read->key, at_hand, &m->found[i], err) : CM_OK;
    read->absent = rc == CM_ENOTFOUND;
    read->at = buf->nbytes;
    read->got_nbytes = 0;
    read->nrequests = 0;
    if (rc != CM_OK)
        return read->absent ? CM_OK : rc;
    const cm_ice_chunk *chunk = &found_of(m, i)->chunk;
    const uint64_t offset = read->reader != NULL ? read->offset : 0;
    const uint64_t nbytes = read->reader != NULL ? read->nbytes : chunk->nbytes;
    if (read->reader == NULL && nbytes > read->max_nbytes)
        return cm_object_too_long(read->key, nbytes, read->max_nbytes, err);
    read->got_nbytes = (size_t)nbytes;
    return chunk->where == CM_ICE_INLINE || nbytes == 0
               ? append(read, chunk->bytes + offset, buf, err)
               : add_piece(m, i, offset, nbytes, err);
}

/* Finds all, and plans the requests for what is not in manifests. */
static int plan(many *m, bool at_hand, cm_buf *buf, cm_error *err)
{
    for (size_t i = 0; i < m->n; i++) {
        int rc = find(m, i, at_hand, buf, err);
        if (rc != CM_OK)
            return rc;
    }
    cm_pieces_sort(m->piece, m->npieces);
    for (size_t i = 0, count; i < m->npieces; i += count) {
        uint64_t end;
        count = cm_pieces_merge(m->piece + i, m->npieces - i, &end);
        for (size_t k = i; k < i + count; k++)
            m->piece[k].local = m->nrequests;
        m->read[m->piece[i].item].nrequests = 1;
        m->request[m->nrequests++] = (request){.source = m->piece[i].object,
                                               .piece = i,
                                               .offset = m->piece[i].offset,
                                               .nbytes = end - m->piece[i].offset};
    }
    return CM_OK;
}

static const char *name_of(const many *m, const request *r)
{
    return key_of(&m->read[m->piece[r->piece].item]);
}

static void place(const many *m)
{
    for (size_t i = 0; i < m->npieces; i++) {
        const cm_piece *p = &m->piece[i];
        const request *r = &m->request[p->local];
        m->read[p->item].at = r->at + (size_t)(p->offset - r->offset);
    }
}

/* ---- in a folder ---- */

/* How far the requests from FIRST on reach that read the same file; *END is where they end. */
static size_t count_same(const many *m, size_t first, uint64_t *end)
{
    size_t n = 0;
    for (*end = 0; first + n < m->nrequests; n++) {
        const request *r = &m->request[first + n];
        if (r->source != m->request[first].source)
            break;
        *end = r->offset + r->nbytes > *end ? r->offset + r->nbytes : *end;
    }
    return n;
}

/* Reads the N requests from FIRST on, of one file that is open. */
static int read_file(many *m, size_t first, size_t n, cm_object_reader *file, cm_buf *buf,
                     cm_error *err)
{
    uint64_t planned = 0; /* N, which `plan` counted */
    cm_store_read *read = cm_calloc(n, sizeof(read[0]), err);
    int rc = read != NULL ? CM_OK : CM_ENOMEM;
    for (size_t i = 0; rc == CM_OK && i < n; i++)
        read[i] = (cm_store_read){.reader = file,
                                  .offset = m->request[first + i].offset,
                                  .nbytes = m->request[first + i].nbytes};
    if (rc == CM_OK)
        rc = cm_store_read_more(m->source[m->request[first].source].spot.store, read, n, buf,
                                &planned, err);
    for (size_t i = 0; rc == CM_OK && i < n; i++)
        m->request[first + i].at = read[i].at;
    free(read);
    return rc;
}

static int read_folders(many *m, cm_buf *buf, cm_error *err)
{
    for (size_t i = 0, n; i < m->nrequests; i += n) {
        uint64_t end;
        cm_object_reader *file;
        const cm_ice_source *source = &m->source[m->request[i].source];
        n = count_same(m, i, &end);
        if (source->spot.is_net)
            continue;
        int rc = cm_ice_source_open(source, name_of(m, &m->request[i]), end, &file, err);
        if (rc != CM_OK)
            return rc;
        rc = read_file(m, i, n, file, buf, err);
        cm_object_close(file);
        if (rc != CM_OK)
            return rc;
    }
    return CM_OK;
}

/* ---- behind a network ---- */

/* The requests to the store of request FIRST, as the next group. */
static void gather(many *m, size_t first)
{
    group *g = &m->group[m->ngroups++];
    *g = (group){.store = m->source[m->request[first].source].spot.store, .first = m->nparts};
    for (size_t i = first; i < m->nrequests; i++) {
        request *r = &m->request[i];
        const cm_ice_source *source = &m->source[r->source];
        if (!source->spot.is_net || source->spot.store != g->store)
            continue;
        r->asked = true;
        m->number[m->nparts] = i;
        m->part[m->nparts++] = cm_ice_source_part(source, r->offset, r->nbytes);
        g->n++;
    }
}

static void gather_all(many *m)
{
    for (size_t i = 0; i < m->nrequests; i++)
        if (m->source[m->request[i].source].spot.is_net && !m->request[i].asked)
            gather(m, i);
}

/* Takes the answers to a group, which ended with RC. */
static int take(many *m, const group *g, int rc, cm_error *err)
{
    for (size_t i = g->first; i < g->first + g->n; i++) {
        request *r = &m->request[m->number[i]];
        if (rc != CM_OK && m->part[i].rc != rc)
            continue;
        const int own =
            cm_ice_source_take(&m->source[r->source], name_of(m, r), &m->part[i], rc, err);
        if (own != CM_OK)
            return own;
        r->at = m->part[i].at;
    }
    return rc;
}

int cm_ice_read_many(cm_store *store, cm_store_read *read, size_t n, cm_buf *buf, cm_error *err)
{
    many m;
    int rc = init(&m, store, read, n, err);
    if (rc == CM_OK)
        rc = plan(&m, false, buf, err);
    if (rc == CM_OK)
        rc = read_folders(&m, buf, err);
    gather_all(&m);
    for (size_t i = 0; rc == CM_OK && i < m.ngroups; i++) {
        const group *g = &m.group[i];
        rc = take(&m, g, cm_net_read_parts(g->store, m.part + g->first, g->n, buf, err), err);
    }
    if (rc == CM_OK)
        place(&m);
    release(&m);
    return rc;
}

int cm_ice_count_requests(cm_store *store, cm_store_read *read, size_t n, cm_error *err)
{
    many m;
    cm_buf inlined = {0};
    int rc = init(&m, store, read, n, err);
    if (rc == CM_OK)
        rc = plan(&m, false, &inlined, err);
    cm_buf_release(&inlined);
    release(&m);
    return rc;
}

/* ---- in two steps ---- */

typedef struct reading {
    cm_store_reading base;
    many m;
    atomic_bool unwanted;
} reading;

static void cancel(cm_store_reading *base)
{
    atomic_store(&((reading *)base)->unwanted, true);
}

/* Waits for all groups that were begun; RC is an error before. */
static int wait(reading *r, int rc, cm_error *err)
{
    many *m = &r->m;
    for (size_t i = 0; i < m->ngroups && m->group[i].reading != NULL; i++) {
        cm_error why = {0};
        const int ended = take(m, &m->group[i], cm_net_parts_end(m->group[i].reading, &why), &why);
        if (rc == CM_OK && ended != CM_OK && err != NULL)
            *err = why;
        rc = rc == CM_OK ? ended : rc;
    }
    return rc;
}

static int begin_groups(reading *r, cm_buf *buf, cm_error *err)
{
    int rc = CM_OK;
    gather_all(&r->m);
    for (size_t i = 0; rc == CM_OK && i < r->m.ngroups; i++) {
        group *g = &r->m.group[i];
        rc = cm_net_parts_begin(g->store, r->m.part + g->first, g->n, buf, &r->unwanted,
                                &g->reading, err);
    }
    if (rc != CM_OK) {
        cancel(&r->base);
        wait(r, rc, err);
    }
    return rc;
}

static int begin(cm_store *store, cm_store_read *read, size_t n, cm_buf *buf,
                 cm_store_reading **out, cm_error *err)
{
    reading *r = cm_calloc(1, sizeof(*r), err);
    if (r == NULL)
        return CM_ENOMEM;
    int rc = init(&r->m, store, read, n, err);
    if (rc == CM_OK)
        rc = plan(&r->m, true, buf, err);
    if (rc == CM_OK && r->m.in_folder)
        rc = cm_fail(err, CM_EUNSUPPORTED, "files of this machine are read at once");
    if (rc == CM_OK)
        rc = begin_groups(r, buf, err);
    if (rc != CM_OK) {
        release(&r->m);
        free(r);
        return rc;
    }
    *out = &r->base;
    return CM_OK;
}

static int end(cm_store_reading *base, cm_error *err)
{
    reading *r = (reading *)base;
    const int rc = wait(r, CM_OK, err);
    if (rc == CM_OK)
        place(&r->m);
    release(&r->m);
    free(r);
    return rc;
}

const cm_store_reading_ops cm_ice_reading_ops = {.begin = begin, .cancel = cancel, .end = end};

/* Chunks by number: looked up, fetched together, decoded and handed on. */
#include <string.h>

#include "load/reader/reader_impl.h"

static void chunk_failed(cm_read_call *c, int rc)
{
    c->counts->failed_chunks++;
    cm_read_keep_error(c, rc);
}

/* Bytes of chunk NUMBER when it is decoded. */
static size_t decoded_nbytes(const cm_read_call *c, uint64_t number)
{
    uint64_t coord[CM_MAX_RANK], origin[CM_MAX_RANK], shape[CM_MAX_RANK];
    size_t nbytes = c->itemsize;
    if (!cm_array_is_cut(c->array))
        return cm_chain_decoded_nbytes(c->array->chain);
    cm_grid_coord(&c->array->grid, number, coord);
    cm_array_chunk_place(c->array, coord, origin, shape);
    for (unsigned j = 0; j < c->array->rank; j++)
        nbytes *= (size_t)shape[j];
    return nbytes;
}

static int decode(cm_read_call *c, const cm_fetch_item *item, void *dst, bool far)
{
    cm_error *err = cm_read_next_error(c);
    int rc = (far ? cm_chain_decode_far : cm_chain_decode)(cm_array_chain(c->array, item->chain),
                                                           c->reader->ctx, item->data, item->nbytes,
                                                           item->skip, dst, err);
    if (rc != CM_OK)
        cm_grid_explain(&c->array->grid, item->number, "array", c->array->name, err);
    return rc;
}

/* Decodes a fetched chunk into ENTRY (NULL: no cache), its place or scratch; hands it on. */
static void deliver(cm_read_call *c, const cm_fetch_item *item, cm_cached_chunk *entry)
{
    cm_reader *r = c->reader;
    const cm_chain *chain = cm_array_chain(c->array, item->chain);
    const size_t nbytes = cm_chain_decoded_nbytes(chain);
    if (!item->present) {
        if (entry != NULL)
            cm_chunk_cache_abandon(c->cache, entry);
        cm_read_fill(c, item->number);
        return;
    }
    const bool raw = cm_chain_is_raw(chain) && item->nbytes == nbytes;
    uint8_t *place = entry != NULL ? NULL : cm_read_place(c, item->number);
    const uint8_t *data = entry != NULL   ? cm_cached_chunk_data(entry)
                          : place != NULL ? place
                          : raw           ? item->data
                                          : r->decoded.data;
    int rc = CM_OK;
    if (!raw)
        rc = decode(c, item, (uint8_t *)data, place != NULL && r->far);
    else if (data != item->data)
        memcpy((uint8_t *)data, item->data, nbytes);
    if (data != item->data)
        cm_read_stage(c, CM_LOAD_DECODE);
    if (rc != CM_OK) {
        chunk_failed(c, rc);
        if (entry != NULL)
            cm_chunk_cache_abandon(c->cache, entry);
        return;
    }
    c->counts->decoded++;
    c->counts->decoded_nbytes += nbytes;
    if (entry != NULL)
        cm_chunk_cache_publish(c->cache, entry);
    if (place == NULL)
        cm_read_scatter(c, item->number, data);
    if (entry != NULL)
        cm_chunk_cache_unpin(c->cache, entry);
}

/* ---- fetching ---- */

static int fetch(cm_read_call *c, cm_fetch_item *item, size_t n, cm_error *err)
{
    cm_reader *r = c->reader;
    r->many.item = item;
    r->many.n = n;
    int rc = r->ahead != NULL && !c->count_only
                 ? cm_lookahead_fetch(r->ahead, r->box, c->array, &r->many, err)
                 : cm_array_fetch_many(c->array, &r->many, err);
    c->counts->requests += r->many.nrequests;
    c->counts->stored_nbytes += r->many.nbytes;
    if (r->options.delay != NULL)
        cm_delay_wait(r->options.delay, r->many.nrequests, r->many.nbytes, r->many.io_ns);
    cm_read_stage(c, CM_LOAD_STORAGE);
    return rc;
}

/* Fetches and delivers the first N items of the reader and their entries. */
static void fetch_items(cm_read_call *c, size_t n)
{
    cm_reader *r = c->reader;
    if (n == 0)
        return;
    int rc = fetch(c, r->item, n, n == 1 ? cm_read_next_error(c) : NULL);
    if (rc == CM_OK) {
        for (size_t i = 0; i < n; i++)
            deliver(c, &r->item[i], r->entry[i]);
        return;
    }
    /* One of the group cannot be read: fetch each alone, so that the others still are. */
    for (size_t i = 0; i < n; i++) {
        if (n > 1)
            rc = fetch(c, &r->item[i], 1, cm_read_next_error(c));
        if (rc == CM_OK) {
            deliver(c, &r->item[i], r->entry[i]);
            continue;
        }
        chunk_failed(c, rc);
        if (r->entry[i] != NULL)
            cm_chunk_cache_abandon(c->cache, r->entry[i]);
    }
}

/* Looks for chunk NUMBER in the cache, and hands it on when it is there. */
static cm_cache_answer look_up(cm_read_call *c, uint64_t number, bool wait, cm_cached_chunk **entry)
{
    cm_cache_answer answer =
        cm_chunk_cache_lookup(c->cache, c->array, number, decoded_nbytes(c, number), wait, entry,
                              &c->counts->cache_evictions);
    if (answer == CM_CACHE_HIT) {
        if (wait)
            cm_read_stage(c, CM_LOAD_STORAGE);
        c->counts->cache_hits++;
        cm_read_scatter(c, number, cm_cached_chunk_data(*entry));
        cm_chunk_cache_unpin(c->cache, *entry);
    } else if (answer != CM_CACHE_BUSY)
        c->counts->cache_misses++;
    return answer;
}

static void add_item(cm_reader *r, size_t i, uint64_t number, cm_cached_chunk *entry)
{
    r->item[i] = (cm_fetch_item){.number = number};
    r->entry[i] = entry;
}

/* Counts the requests for the first N numbers of the reader, without reading. */
static void count_group(cm_read_call *c, size_t n)
{
    cm_reader *r = c->reader;
    c->counts->chunks += n;
    for (size_t i = 0; i < n; i++)
        add_item(r, i, r->number[i], NULL);
    r->many.count_only = true;
    int rc = fetch(c, r->item, n, cm_read_next_error(c));
    r->many.count_only = false;
    cm_read_keep_error(c, rc);
}

void cm_read_group(cm_read_call *c, size_t n)
{
    if (c->count_only) {
        count_group(c, n);
        return;
    }
    cm_reader *r = c->reader;
    size_t nitems = 0, nbusy = 0;
    cm_cached_chunk *entry = NULL;
    c->counts->chunks += n;
    for (size_t i = 0; i < n; i++) {
        cm_cache_answer answer =
            c->cache == NULL ? CM_CACHE_NO_ROOM : look_up(c, r->number[i], false, &entry);
        if (answer == CM_CACHE_BUSY)
            r->busy[nbusy++] = r->number[i];
        else if (answer != CM_CACHE_HIT)
            add_item(r, nitems++, r->number[i], entry);
    }
    fetch_items(c, nitems);
    /* No empty entry is held here, so two threads never wait for each other. */
    for (size_t i = 0; i < nbusy; i++)
        if (look_up(c, r->busy[i], true, &entry) != CM_CACHE_HIT) {
            add_item(r, 0, r->busy[i], entry);
            fetch_items(c, 1);
        }
}

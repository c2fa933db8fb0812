/* Arrays without stored chunks, and those that a library reads. */
#include "load/reader/reader_impl.h"

/* Runs of bytes of BOX that lie side by side in A's C order. */
static uint64_t count_runs(const cm_array *a, const cm_box *box)
{
    unsigned j = a->rank;
    while (j > 0 && box->shape[j - 1] == a->shape[j - 1])
        j--;
    uint64_t runs = 1;
    for (unsigned k = 0; k + 1 < j; k++)
        runs *= box->shape[k];
    return runs;
}

static uint64_t count_chunks(const cm_array *a, const cm_box *box)
{
    uint64_t first[CM_MAX_RANK], count[CM_MAX_RANK], n = 1;
    cm_grid_cover(&a->grid, box, first, count);
    for (unsigned j = 0; j < a->rank; j++)
        n *= count[j];
    return n;
}

/* BOX into DST through read_box, counted as chunks, requests and bytes. */
static int read_slice(cm_read_call *c, const cm_box *box, void *dst, cm_error *err)
{
    cm_array *a = c->array;
    const uint64_t nbytes = cm_box_nelem(box) * c->itemsize;
    const uint64_t chunks = count_chunks(a, box);
    const bool in_chunks = a->chunked || (a->serial && a->grid.nchunks > 1);
    const uint64_t whole = in_chunks ? chunks * a->grid.chunk_nelem * c->itemsize : nbytes;
    const uint64_t requests = in_chunks ? chunks : count_runs(a, box);
    uint64_t begin = c->reader->last_ns;
    int rc = c->count_only ? CM_OK : a->ops->read_box(a, box, dst, err);
    cm_read_stage(c, CM_LOAD_STORAGE);
    c->counts->chunks += chunks;
    if (rc != CM_OK) {
        c->counts->failed_chunks++;
        return rc;
    }
    c->counts->requests += requests;
    c->counts->stored_nbytes += in_chunks ? 0 : nbytes;
    c->counts->decoded += in_chunks ? chunks : 0;
    c->counts->decoded_nbytes += whole;
    if (c->reader->options.delay != NULL) {
        cm_delay_wait(c->reader->options.delay, requests, whole, c->reader->last_ns - begin);
        cm_read_stage(c, CM_LOAD_STORAGE);
    }
    return CM_OK;
}

int cm_read_through_library(cm_read_call *c)
{
    if (c->feed == NULL)
        return read_slice(c, &c->box, c->dst, c->err);
    int rc = cm_buf_reserve(&c->reader->decoded, cm_box_nelem(&c->box) * c->itemsize, c->err);
    if (rc == CM_OK)
        rc = read_slice(c, &c->box, c->reader->decoded.data, c->err);
    if (rc == CM_OK) {
        cm_feed_run_box(c->feed, &c->box, c->dst, c->reader->decoded.data);
        cm_read_stage(c, CM_LOAD_CONVERT);
    }
    return rc;
}

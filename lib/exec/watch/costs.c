#include "exec/watch/costs.h"

#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "model/copy.h"
#include "plan/meetings.h"
#include "plan/samples.h"

enum {
    MAX_SEEN = 512,         /* observations of a kind that are kept */
    ROW_CHUNKS = 16,        /* neighbours that are asked for together, */
    ROW_NBYTES = 256 << 10, /* and of so many bytes: what a loader asks for */
    SCATTERED = 8,          /* chunks of one call where its requests are under way together */
    LEAST_SEEN = 4,         /* observations of a kind in a round, also where time is over */
    COPIED_NBYTES = 4 << 20,
    COPIED_FROM = 256 << 10, /* a decoded chunk in the second-level cache */
    SHORT_RUN = 32,
    LONG_RUN = 8 << 10
};

/* Fetching of one kind, one chunk or a row. */
typedef struct seen {
    size_t n;
    double wall[MAX_SEEN], cpu[MAX_SEEN];
    double requests, nbytes; /* of all, added up */
} seen;

struct cm_cost_probe {
    cm_array *array;
    cm_codec_ctx *ctx;
    cm_fetch_many many;
    cm_buf decoded;
    uint64_t next; /* of all chunks in a random order */
    uint64_t row;  /* chunks of one */
    bool together;
    seen one, several, scattered;
    cm_seconds decode; /* of all, added up */
    double stored;
    uint64_t ndecoded;
};

static int compare(const void *a, const void *b)
{
    const double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static double median(const double *value, size_t n)
{
    double sorted[MAX_SEEN];
    if (n == 0)
        return 0;
    memcpy(sorted, value, n * sizeof *sorted);
    qsort(sorted, n, sizeof *sorted, compare);
    return (sorted[(n - 1) / 2] + sorted[n / 2]) / 2;
}

uint64_t cm_cost_probe_nbytes(const cm_array *a, bool together)
{
    const uint64_t decoded = cm_chain_decoded_nbytes(a->chain);
    const uint64_t one = a->max_stored_nbytes > decoded ? a->max_stored_nbytes : decoded;
    return cm_add_sat(cm_add_sat(cm_mul_sat(one, together ? 1 + SCATTERED : 2), ROW_NBYTES),
                      cm_add_sat(cm_chain_decode_memory(a->chain), sizeof(cm_cost_probe)));
}

int cm_cost_probe_create(cm_array *a, bool together, cm_cost_probe **out, cm_error *err)
{
    const uint64_t nbytes = cm_chain_decoded_nbytes(a->chain);
    const uint64_t most = a->max_stored_nbytes > 0 ? a->max_stored_nbytes : nbytes;
    cm_cost_probe *p = cm_calloc(1, sizeof *p, err);
    *out = p;
    if (p == NULL)
        return CM_ENOMEM;
    p->array = a;
    p->together = together;
    const uint64_t along = a->rank > 0 ? a->grid.count[a->rank - 1] : 1;
    p->row = ROW_NBYTES / (most < nbytes ? most + 1 : nbytes + 1);
    p->row = p->row > ROW_CHUNKS ? ROW_CHUNKS : p->row;
    p->row = p->row > along ? along : p->row;
    p->ctx = cm_codec_ctx_create(err);
    if (p->ctx == NULL)
        return CM_ENOMEM;
    return cm_buf_resize(&p->decoded, nbytes, err);
}

void cm_cost_probe_free(cm_cost_probe *p)
{
    if (p == NULL)
        return;
    cm_codec_ctx_free(p->ctx);
    cm_fetch_many_release(&p->many);
    cm_buf_release(&p->decoded);
    free(p);
}

static int decode_all(cm_cost_probe *p, const cm_fetch_item *item, size_t n, cm_error *err)
{
    const cm_chain *chain = p->array->chain;
    const size_t nbytes = cm_chain_decoded_nbytes(chain);
    for (size_t i = 0; i < n; i++) {
        if (!item[i].present)
            continue;
        p->stored += (double)item[i].nbytes;
        p->ndecoded++;
        /* What is stored raw is copied from where it was read to. */
        if (cm_chain_is_raw(chain) && item[i].nbytes == nbytes)
            continue;
        const uint64_t wall = cm_now_ns(), cpu = cm_thread_cpu_ns();
        int rc = cm_chain_decode(chain, p->ctx, item[i].data, item[i].nbytes, item[i].skip,
                                 p->decoded.data, err);
        if (rc != CM_OK)
            return rc;
        p->decode.cpu += (double)(cm_thread_cpu_ns() - cpu) * 1e-9;
        p->decode.wall += (double)(cm_now_ns() - wall) * 1e-9;
    }
    return CM_OK;
}

static int look_at(cm_cost_probe *p, seen *s, cm_fetch_item *item, size_t n, cm_error *err)
{
    size_t present = 0;
    p->many.item = item;
    p->many.n = n;
    const uint64_t wall = cm_now_ns(), cpu = cm_thread_cpu_ns();
    int rc = cm_array_fetch_many(p->array, &p->many, err);
    const uint64_t cpu_end = cm_thread_cpu_ns(), wall_end = cm_now_ns();
    for (size_t i = 0; i < n; i++)
        present += item[i].present;
    if (rc != CM_OK || present == 0)
        return rc;
    if (s->n < MAX_SEEN) {
        s->wall[s->n] = (double)(wall_end - wall) * 1e-9;
        s->cpu[s->n++] = (double)(cpu_end - cpu) * 1e-9;
        s->requests += (double)p->many.nrequests;
        s->nbytes += (double)p->many.nbytes;
    }
    return decode_all(p, item, n, err);
}

/* Chunk FIRST and the N - 1 behind it. */
static int look(cm_cost_probe *p, seen *s, uint64_t first, size_t n, cm_error *err)
{
    cm_fetch_item item[ROW_CHUNKS] = {0};
    for (size_t i = 0; i < n; i++)
        item[i].number = first + i;
    return look_at(p, s, item, n, err);
}

static uint64_t next_number(cm_cost_probe *p)
{
    const uint64_t n = p->array->grid.nchunks;
    return cm_permute(n, 0x9e3779b97f4a7c15, p->next++ % n);
}

static int look_around(cm_cost_probe *p, cm_error *err)
{
    const uint64_t n = p->array->grid.nchunks;
    cm_fetch_item item[SCATTERED] = {0};
    size_t used = 0;
    while (used < SCATTERED && used < n)
        item[used++].number = next_number(p);
    return look_at(p, &p->scattered, item, used, err);
}

int cm_cost_probe_round(cm_cost_probe *p, double seconds, cm_error *err)
{
    const uint64_t n = p->array->grid.nchunks, start = cm_now_ns();
    const uint64_t along = p->array->rank > 0 ? p->array->grid.count[p->array->rank - 1] : 1;
    int rc = CM_OK;
    for (uint64_t i = 0; i < MAX_SEEN && i < n && rc == CM_OK; i++) {
        if (i >= 2 * LEAST_SEEN && (double)(cm_now_ns() - start) * 1e-9 > seconds)
            break;
        if (p->together && i % 2 == 0) {
            rc = look_around(p, err);
            if (rc != CM_OK)
                break;
        }
        uint64_t number = next_number(p);
        if (i % 2 == 0 || p->row < 2) {
            rc = look(p, &p->one, number, 1, err);
            continue;
        }
        const uint64_t at = number % along; /* so that the row does not pass the array's end */
        number -= at + p->row > along ? at + p->row - along : 0;
        rc = look(p, &p->several, number, (size_t)p->row, err);
    }
    return rc;
}

/* The time of a request and of a byte that give both medians, T1 and T2. */
static void split(const seen *x, const seen *y, double t1, double t2, double *request, double *byte)
{
    const double r1 = x->requests / (double)x->n, b1 = x->nbytes / (double)x->n;
    const double r2 = y->requests / (double)y->n, b2 = y->nbytes / (double)y->n;
    const double det = r1 * b2 - r2 * b1;
    *request = r2 > 0 ? t2 / r2 : 0;
    *byte = 0;
    if (det <= 0.1 * r1 * b2) /* the same bytes a request in both: they cannot be told apart */
        return;
    const double a = (t1 * b2 - t2 * b1) / det, b = (r1 * t2 - r2 * t1) / det;
    if (a >= 0 && b >= 0) {
        *request = a;
        *byte = b;
    } else if (a < 0) {
        *request = 0;
        *byte = t2 / b2;
    }
}

static double sum(const double *value, size_t n)
{
    double total = 0;
    for (size_t i = 0; i < n; i++)
        total += value[i];
    return total;
}

/*
 * Medians tell request and byte apart.  The level is that of the means: a request that waits for a
 * disk, or for a CPU that others use, is what a batch meets too.
 */
static void solve(const seen *x, const seen *y, const double *wx, const double *wy, double *request,
                  double *byte)
{
    split(x, y, median(wx, x->n), median(wy, y->n), request, byte);
    double all = sum(wx, x->n), requests = x->requests, nbytes = x->nbytes;
    if (y != x) {
        all += sum(wy, y->n);
        requests += y->requests;
        nbytes += y->nbytes;
    }
    const double said = requests * *request + nbytes * *byte;
    *request *= said > 0 ? all / said : 1;
    *byte *= said > 0 ? all / said : 1;
}

/*
 * Where requests are under way together: one chunk and several from all over the array, with as
 * many bytes each, tell the call's time from a request's; a row that comes with fewer requests
 * tells a byte's.
 */
static void solve_together(const cm_cost_probe *p, const double *w1, const double *w2,
                           const double *w3, double *call, double *request, double *byte)
{
    const seen *x = &p->one, *y = &p->several, *z = &p->scattered;
    const double t1 = median(w1, x->n), t3 = median(w3, z->n);
    const double r1 = x->requests / (double)x->n, b1 = x->nbytes / x->requests;
    const double r3 = z->requests / (double)z->n;
    *request = r3 > r1 && t3 > t1 ? (t3 - t1) / (r3 - r1) : 0;
    *call = t1 > r1 * *request ? t1 - r1 * *request : 0;
    *byte = 0;
    double all = sum(w1, x->n) + sum(w3, z->n);
    double requests = x->requests + z->requests, nbytes = x->nbytes + z->nbytes;
    double calls = (double)(x->n + z->n);
    if (y->n > 0 && y->requests > 0) {
        const double r2 = y->requests / (double)y->n, b2 = y->nbytes / (double)y->n;
        const double more = median(w2, y->n) - *call - r2 * *request;
        if (b2 > 1.5 * r2 * b1 && more > 0) {
            *byte = more / (b2 - r2 * b1);
            *byte = *byte * b1 < *call + *request ? *byte : (*call + *request) / b1;
            const double of_bytes = *byte * b1; /* that one chunk has */
            *call -= of_bytes > *request ? of_bytes - *request : 0;
            *request -= of_bytes < *request ? of_bytes : *request;
        }
        all += sum(w2, y->n);
        requests += y->requests;
        nbytes += y->nbytes;
        calls += (double)y->n;
    }
    const double said = calls * *call + requests * *request + nbytes * *byte;
    const double level = said > 0 ? all / said : 1;
    *call *= level;
    *request *= level;
    *byte *= level;
}

cm_chunk_costs cm_cost_probe_result(const cm_cost_probe *p)
{
    const seen *x = &p->one, *y = p->several.n > 0 ? &p->several : &p->one;
    const double n = (double)p->ndecoded;
    cm_chunk_costs c = {.nchunks = p->ndecoded};
    if (p->ndecoded == 0 || x->n == 0)
        return c;
    if (p->together && p->scattered.n > 0) {
        const seen *s = &p->several, *z = &p->scattered;
        solve_together(p, x->wall, s->wall, z->wall, &c.call.wall, &c.request.wall, &c.byte.wall);
        solve_together(p, x->cpu, s->cpu, z->cpu, &c.call.cpu, &c.request.cpu, &c.byte.cpu);
    } else {
        solve(x, y, x->wall, y->wall, &c.request.wall, &c.byte.wall);
        solve(x, y, x->cpu, y->cpu, &c.request.cpu, &c.byte.cpu);
    }
    c.decode = (cm_seconds){p->decode.wall / n, p->decode.cpu / n};
    c.stored_nbytes = p->stored / n;
    return c;
}

/* ---- copying ---- */

/* Seconds of CPU for COPIED_NBYTES in runs of RUN bytes. */
static double copy_in_runs(uint8_t *to, const uint8_t *from, uint64_t run)
{
    const uint64_t shape[2] = {COPIED_FROM / 2 / run, run};
    const int64_t src[2] = {2 * (int64_t)run, 1}, dst[2] = {2 * (int64_t)run, 1};
    const uint64_t start = cm_thread_cpu_ns();
    for (size_t at = 0; at + COPIED_FROM <= COPIED_NBYTES * 2; at += COPIED_FROM)
        cm_copy_nd(2, shape, 1, to + at, dst, from, src);
    return (double)(cm_thread_cpu_ns() - start) * 1e-9;
}

int cm_cost_probe_copy(cm_copy_costs *out, cm_error *err)
{
    uint8_t *from = cm_calloc(COPIED_FROM, 1, err);
    uint8_t *to = from != NULL ? cm_calloc(2 * COPIED_NBYTES, 1, err) : NULL;
    double little = 0, much = 0;
    *out = (cm_copy_costs){0};
    if (to == NULL) {
        free(from);
        return CM_ENOMEM;
    }
    memset(from, 1, COPIED_FROM);
    memset(to, 2, 2 * COPIED_NBYTES);
    for (int i = 0; i < 3; i++) {
        const double a = copy_in_runs(to, from, SHORT_RUN), b = copy_in_runs(to, from, LONG_RUN);
        little = i == 0 || a < little ? a : little;
        much = i == 0 || b < much ? b : much;
    }
    free(from);
    free(to);
    /* As many bytes in both, in many runs and in few. */
    const double few = (double)COPIED_NBYTES / LONG_RUN, many = (double)COPIED_NBYTES / SHORT_RUN;
    out->run = little > much ? (little - much) / (many - few) : 0;
    out->byte = (much - few * out->run) / COPIED_NBYTES;
    out->byte = out->byte > 0 ? out->byte : 0;
    return CM_OK;
}

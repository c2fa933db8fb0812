#include "watch/costs.h"

#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/number.h"
#include "plan/meetings.h"

enum {
    MAX_SEEN = 512,  /* observations of a kind that are kept */
    MAX_ROUNDS = 16, /* those after count into the last */
    SCATTERED = 8,   /* chunks of one call where its requests are under way together */
    LEAST_LOOKS = 8, /* in a round, also where time is over */
    ONE_IN = 4,      /* looks at one chunk alone */
    MET = 1 << 13,   /* places for chunks that a round met; half are used at most */
    CLOCK_TRIES = 31
};

/* Fetching of one kind, one chunk or several. */
typedef struct seen {
    size_t n;
    double wall[MAX_SEEN], cpu[MAX_SEEN];
    double requests, nbytes; /* of all, added up */
} seen;

typedef struct tally { /* of a round */
    cm_seconds fetch;  /* of whole calls */
    double calls, requests, nbytes;
    cm_seconds chunk; /* of all chunks */
    double nchunks, stored;
} tally;

struct cm_cost_probe {
    cm_array *array;
    cm_cost_calls calls;
    cm_cost_kind kind;
    cm_codec_ctx *ctx;
    cm_fetch_many many;
    cm_fetch_item *item;
    uint64_t *number;
    cm_buf decoded;
    cm_seconds clock;      /* what timing nothing takes */
    uint64_t next;         /* call */
    uint64_t from, ndrawn; /* calls of the last round */
    uint64_t met[MET];     /* chunk numbers of the round + 1, hashed; 0: free */
    size_t nmet;
    bool counted; /* what is looked at */
    seen one, several, scattered;
    tally round[MAX_ROUNDS];
    size_t nrounds;
};

static double median(const double *value, size_t n)
{
    double sorted[MAX_SEEN];
    if (n == 0)
        return 0;
    memcpy(sorted, value, n * sizeof *sorted);
    cm_sort_doubles(sorted, n);
    return (sorted[(n - 1) / 2] + sorted[n / 2]) / 2;
}

double cm_cost_middle(double *value, size_t n)
{
    double total = 0;
    if (n == 0)
        return 0;
    cm_sort_doubles(value, n);
    for (size_t i = n / 4; i < n - n / 4; i++)
        total += value[i];
    return total / (double)(n - 2 * (n / 4));
}

/* ---- the clock ---- */

typedef struct moment {
    uint64_t wall, cpu;
} moment;

static moment now(void)
{
    const uint64_t wall = cm_now_ns();
    return (moment){wall, cm_thread_cpu_ns()};
}

static cm_seconds since(const moment *start)
{
    const uint64_t cpu = cm_thread_cpu_ns(), wall = cm_now_ns();
    return (cm_seconds){(double)(wall - start->wall) * 1e-9, (double)(cpu - start->cpu) * 1e-9};
}

/* A chunk of 4 KiB is decoded in few microseconds, of which the clock would be a tenth. */
static cm_seconds time_clock(void)
{
    double wall[CLOCK_TRIES], cpu[CLOCK_TRIES];
    for (int i = 0; i < CLOCK_TRIES; i++) {
        const moment start = now();
        const cm_seconds took = since(&start);
        wall[i] = took.wall;
        cpu[i] = took.cpu;
    }
    return (cm_seconds){median(wall, CLOCK_TRIES), median(cpu, CLOCK_TRIES)};
}

static cm_seconds took_since(const cm_cost_probe *p, const moment *start)
{
    const cm_seconds t = since(start);
    return (cm_seconds){t.wall > p->clock.wall ? t.wall - p->clock.wall : 0,
                        t.cpu > p->clock.cpu ? t.cpu - p->clock.cpu : 0};
}

/* ---- a probe ---- */

static size_t most_items(cm_cost_kind kind, const cm_cost_calls *calls)
{
    return kind == CM_COST_TOGETHER && calls->most < SCATTERED ? SCATTERED : calls->most;
}

uint64_t cm_cost_probe_nbytes(const cm_array *a, cm_cost_kind kind, uint64_t group_nbytes)
{
    const uint64_t decoded = cm_chain_decoded_nbytes(a->chain);
    const uint64_t one = a->max_stored_nbytes > decoded ? a->max_stored_nbytes : decoded;
    return cm_add_sat(
        cm_add_sat(cm_mul_sat(one, kind == CM_COST_TOGETHER ? 1 + SCATTERED : 2), group_nbytes),
        cm_add_sat(cm_chain_decode_memory(a->chain), sizeof(cm_cost_probe)));
}

int cm_cost_probe_create(cm_array *a, cm_cost_kind kind, const cm_cost_calls *calls,
                         cm_cost_probe **out, cm_error *err)
{
    cm_cost_probe *p = cm_calloc(1, sizeof *p, err);
    *out = p;
    if (p == NULL)
        return CM_ENOMEM;
    p->array = a;
    p->kind = kind;
    p->calls = *calls;
    p->clock = time_clock();
    p->ctx = cm_codec_ctx_create(err);
    p->item = p->ctx != NULL ? cm_calloc(most_items(kind, calls), sizeof *p->item, err) : NULL;
    p->number = p->item != NULL ? cm_calloc(calls->most, sizeof *p->number, err) : NULL;
    if (p->number == NULL)
        return CM_ENOMEM;
    int rc = cm_buf_resize(&p->decoded, cm_chain_decoded_nbytes(a->chain), err);
    if (rc == CM_OK && p->decoded.nbytes > 0) /* so that pages are there when time counts */
        memset(p->decoded.data, 0, p->decoded.nbytes);
    return rc;
}

void cm_cost_probe_free(cm_cost_probe *p)
{
    if (p == NULL)
        return;
    cm_codec_ctx_free(p->ctx);
    cm_fetch_many_release(&p->many);
    cm_buf_release(&p->decoded);
    free(p->item);
    free(p->number);
    free(p);
}

/* ---- looking ---- */

/* Handles a fetched chunk as a reader does. */
static int take(cm_cost_probe *p, const cm_fetch_item *item, cm_error *err)
{
    const cm_chain *chain = cm_array_chain(p->array, item->chain);
    const size_t nbytes = cm_chain_decoded_nbytes(chain);
    const cm_cost_calls *c = &p->calls;
    int rc = CM_OK;
    if (!item->present) {
        c->deliver(c->context, item->number, NULL);
        return CM_OK;
    }
    uint8_t *place = c->place(c->context, item->number);
    const bool raw = cm_chain_is_raw(chain) && item->nbytes == nbytes;
    const uint8_t *data = place != NULL ? place : raw ? item->data : p->decoded.data;
    if (!raw)
        rc = cm_chain_decode(chain, p->ctx, item->data, item->nbytes, item->skip, (uint8_t *)data,
                             err);
    else if (place != NULL)
        memcpy(place, item->data, nbytes);
    if (rc == CM_OK && place == NULL)
        c->deliver(c->context, item->number, data);
    return rc;
}

static int take_all(cm_cost_probe *p, size_t n, cm_error *err)
{
    tally *t = &p->round[p->nrounds - 1];
    const moment start = now();
    int rc = CM_OK;
    for (size_t i = 0; i < n && rc == CM_OK; i++)
        rc = take(p, &p->item[i], err);
    const cm_seconds took = took_since(p, &start);
    if (rc != CM_OK || !p->counted)
        return rc;
    t->chunk.wall += took.wall;
    t->chunk.cpu += took.cpu;
    t->nchunks += (double)n;
    for (size_t i = 0; i < n; i++)
        t->stored += (double)p->item[i].nbytes;
    return CM_OK;
}

static void note(seen *s, const cm_seconds *took, const cm_fetch_many *many)
{
    if (s->n == MAX_SEEN)
        return;
    s->wall[s->n] = took->wall;
    s->cpu[s->n++] = took->cpu;
    s->requests += (double)many->nrequests;
    s->nbytes += (double)many->nbytes;
}

/* The first N items; WHOLE: they are all of a call. */
static int look(cm_cost_probe *p, seen *s, size_t n, bool whole, cm_error *err)
{
    tally *t = &p->round[p->nrounds - 1];
    p->many.item = p->item;
    p->many.n = n;
    const moment start = now();
    int rc = cm_array_fetch_many(p->array, &p->many, err);
    const cm_seconds took = took_since(p, &start);
    if (rc != CM_OK)
        return rc;
    if (p->counted)
        note(s, &took, &p->many);
    if (p->counted && whole) {
        t->fetch.wall += took.wall;
        t->fetch.cpu += took.cpu;
        t->calls++;
        t->requests += (double)p->many.nrequests;
        t->nbytes += (double)p->many.nbytes;
    }
    return s == &p->scattered ? CM_OK : take_all(p, n, err);
}

/* Marks NUMBER as met in this round; false: it was. */
static bool is_new(cm_cost_probe *p, uint64_t number)
{
    size_t at = (size_t)(number * UINT64_C(0x9e3779b97f4a7c15) >> 32) % MET;
    for (; p->met[at] != 0; at = (at + 1) % MET)
        if (p->met[at] == number + 1)
            return false;
    p->met[at] = number + 1;
    p->nmet++;
    return true;
}

/* False: a chunk of the first N items is in memory already, and says nothing about a disk. */
static bool are_cold(cm_cost_probe *p, size_t n)
{
    bool cold = true;
    if (p->kind != CM_COST_COLD)
        return true;
    for (size_t i = 0; i < n; i++)
        cold = is_new(p, p->item[i].number) && cold;
    return cold;
}

/* The next call; its chunks are items. */
static size_t draw(cm_cost_probe *p)
{
    const size_t n = p->calls.begin(p->calls.context, p->next, p->number);
    p->next = (p->next + 1) % p->calls.ncalls;
    p->ndrawn++;
    for (size_t i = 0; i < n; i++)
        p->item[i] = (cm_fetch_item){.number = p->number[i]};
    return n;
}

/* Look number I of a round; *LOOKED: it was one. */
static int look_at_next(cm_cost_probe *p, uint64_t i, bool *looked, cm_error *err)
{
    size_t n = draw(p);
    const bool alone = n > 1 && i % ONE_IN == 0;
    if (alone) {
        p->item[0].number = p->number[i / ONE_IN % n];
        n = 1;
    }
    *looked = n > 0 && are_cold(p, n);
    return *looked ? look(p, n > 1 ? &p->several : &p->one, n, !alone, err) : CM_OK;
}

/* A chunk of each of several calls. */
static int look_around(cm_cost_probe *p, cm_error *err)
{
    uint64_t number[SCATTERED];
    size_t n = 0;
    for (size_t i = 0; i < SCATTERED && i < p->calls.ncalls; i++)
        if (draw(p) > 0)
            number[n++] = p->number[0];
    for (size_t i = 0; i < n; i++)
        p->item[i] = (cm_fetch_item){.number = number[i]};
    return n > 0 ? look(p, &p->scattered, n, false, err) : CM_OK;
}

static void begin_round(cm_cost_probe *p, uint64_t from)
{
    memset(p->met, 0, sizeof p->met);
    p->nmet = 0;
    p->from = p->next = from;
    p->ndrawn = 0;
    p->counted = true;
    p->nrounds += p->nrounds < MAX_ROUNDS;
}

/* Reloads data that the measurement in between evicted from the CPU's caches. */
static int warm_up(cm_cost_probe *p, cm_error *err)
{
    const uint64_t from = p->next;
    bool looked;
    p->counted = false;
    int rc = look_at_next(p, 1, &looked, err);
    p->counted = true;
    p->next = from;
    p->ndrawn = 0;
    return rc;
}

int cm_cost_probe_round(cm_cost_probe *p, double seconds, cm_error *err)
{
    const uint64_t start = cm_now_ns();
    int rc = CM_OK;
    begin_round(p, p->next);
    if (p->kind == CM_COST_WARM)
        rc = warm_up(p, err);
    for (uint64_t looks = 0; looks < MAX_SEEN && rc == CM_OK;) {
        const bool over = (double)(cm_now_ns() - start) * 1e-9 > seconds;
        if ((over && looks >= LEAST_LOOKS) || p->nmet > MET / 2 - p->calls.most)
            break;
        if (p->kind == CM_COST_COLD && p->ndrawn >= p->calls.ncalls)
            break;
        if (p->kind == CM_COST_TOGETHER && looks % 2 == 0)
            rc = look_around(p, err);
        bool looked = false;
        if (rc == CM_OK)
            rc = look_at_next(p, looks, &looked, err);
        looks += looked;
    }
    return rc;
}

int cm_cost_probe_again(cm_cost_probe *p, const cm_cost_probe *first, cm_error *err)
{
    int rc = CM_OK;
    uint64_t looks = 0;
    begin_round(p, first->from);
    while (p->ndrawn < first->ndrawn && rc == CM_OK) {
        bool looked = false;
        rc = look_at_next(p, looks, &looked, err);
        looks += looked;
    }
    return rc;
}

/* ---- what it costs ---- */

/* The time of a request and of a byte that give both medians, T1 and T2. */
static void split(const seen *x, const seen *y, double t1, double t2, double *request, double *byte)
{
    const double r1 = x->requests / (double)x->n, b1 = x->nbytes / (double)x->n;
    const double r2 = y->requests / (double)y->n, b2 = y->nbytes / (double)y->n;
    const double det = r1 * b2 - r2 * b1;
    *request = r2 > 0 ? t2 / r2 : 0;
    *byte = r2 > 0 || b2 == 0 ? 0 : t2 / b2; /* no requests: chunks in a manifest */
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

/*
 * Where requests are under way together: one chunk and several from all over the array, with as
 * many bytes each, tell the call's time from a request's; a call that comes with fewer requests
 * tells a byte's.
 */
static void split_together(const cm_cost_probe *p, const double *w1, const double *w2,
                           const double *w3, double *call, double *request, double *byte)
{
    const seen *x = &p->one, *y = &p->several, *z = &p->scattered;
    const double t1 = median(w1, x->n), t3 = median(w3, z->n);
    const double r1 = x->requests / (double)x->n, b1 = x->nbytes / x->requests;
    const double r3 = z->requests / (double)z->n;
    *request = r3 > r1 && t3 > t1 ? (t3 - t1) / (r3 - r1) : 0;
    *call = t1 > r1 * *request ? t1 - r1 * *request : 0;
    *byte = 0;
    if (y->n == 0 || y->requests == 0)
        return;
    const double r2 = y->requests / (double)y->n, b2 = y->nbytes / (double)y->n;
    const double more = median(w2, y->n) - *call - r2 * *request;
    if (b2 > 1.5 * r2 * b1 && more > 0) {
        *byte = more / (b2 - r2 * b1);
        *byte = *byte * b1 < *call + *request ? *byte : (*call + *request) / b1;
        const double of_bytes = *byte * b1; /* that one chunk has */
        *call -= of_bytes > *request ? of_bytes - *request : 0;
        *request -= of_bytes < *request ? of_bytes : *request;
    }
}

/*
 * Medians tell request and byte apart.  The level is that of whole calls, a mean of each round: a
 * request that waits for a disk, or for a CPU that others use, is what a batch meets too.
 */
static void level(const cm_cost_probe *p, bool cpu, double *call, double *request, double *byte)
{
    double ratio[MAX_ROUNDS];
    size_t n = 0;
    for (size_t i = 0; i < p->nrounds; i++) {
        const tally *t = &p->round[i];
        const double said = t->calls * *call + t->requests * *request + t->nbytes * *byte;
        if (said > 0)
            ratio[n++] = (cpu ? t->fetch.cpu : t->fetch.wall) / said;
    }
    const double by = n > 0 ? cm_cost_middle(ratio, n) : 1;
    *call *= by;
    *request *= by;
    *byte *= by;
}

static void solve(const cm_cost_probe *p, bool cpu, double *call, double *request, double *byte)
{
    const seen *z = &p->scattered;
    const seen *y = p->several.n > 0 ? &p->several : &p->one;
    const seen *x = p->one.n > 0 ? &p->one : y;
    const double *wx = cpu ? x->cpu : x->wall, *wy = cpu ? y->cpu : y->wall;
    *call = 0;
    if (z->n > 0 && p->one.n > 0 && p->one.requests > 0)
        split_together(p, wx, wy, cpu ? z->cpu : z->wall, call, request, byte);
    else
        split(x, y, median(wx, x->n), median(wy, y->n), request, byte);
    level(p, cpu, call, request, byte);
}

cm_chunk_costs cm_cost_probe_result(const cm_cost_probe *p)
{
    cm_chunk_costs c = {.nchunks = 0};
    double wall[MAX_ROUNDS], cpu[MAX_ROUNDS], stored = 0, all = 0;
    size_t n = 0;
    for (size_t i = 0; i < p->nrounds; i++) {
        const tally *t = &p->round[i];
        if (t->nchunks == 0)
            continue;
        wall[n] = t->chunk.wall / t->nchunks;
        cpu[n++] = t->chunk.cpu / t->nchunks;
        stored += t->stored;
        all += t->nchunks;
    }
    if (n == 0)
        return c;
    solve(p, false, &c.call.wall, &c.request.wall, &c.byte.wall);
    solve(p, true, &c.call.cpu, &c.request.cpu, &c.byte.cpu);
    c.chunk = (cm_seconds){cm_cost_middle(wall, n), cm_cost_middle(cpu, n)};
    c.stored_nbytes = stored / all;
    c.nchunks = (uint64_t)all;
    return c;
}

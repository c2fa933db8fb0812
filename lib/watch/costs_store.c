/* Latency and bandwidth of a store whose objects come by requests, at two sizes. */
#include <stdlib.h>

#include "base/clock.h"
#include "base/number.h"
#include "watch/costs.h"

enum {
    TRIES = 24,
    SMALL_NBYTES = 4 << 10,
    LARGE_NBYTES = 1 << 20
};

typedef struct times {
    double small[TRIES], large[TRIES];
    double small_nbytes, large_nbytes; /* of all tries */
    size_t n;
} times;

/* The object's beginning, and then more of it: a request each. */
static int try_object(cm_store *store, const char *key, cm_buf *small, uint8_t *large, times *t,
                      cm_error *err)
{
    cm_object_reader *reader = NULL;
    const uint64_t start = cm_now_ns();
    int rc = cm_object_open_part(store, key, false, SMALL_NBYTES, small, &reader, err);
    const uint64_t opened = cm_now_ns();
    if (rc != CM_OK)
        return rc;
    const uint64_t whole = cm_object_nbytes(reader);
    const size_t n = whole < LARGE_NBYTES ? (size_t)whole : LARGE_NBYTES;
    if (n > 0)
        rc = cm_object_read(reader, 0, large, n, err);
    const uint64_t end = cm_now_ns();
    cm_object_close(reader);
    if (rc != CM_OK || n == 0)
        return rc;
    t->small[t->n] = (double)(opened - start) * 1e-9;
    t->large[t->n++] = (double)(end - opened) * 1e-9;
    t->small_nbytes += (double)small->nbytes;
    t->large_nbytes += (double)n;
    return CM_OK;
}

static double median(double *value, size_t n)
{
    cm_sort_doubles(value, n);
    return (value[(n - 1) / 2] + value[n / 2]) / 2;
}

static void sum_up(times *t, cm_storage_costs *out)
{
    const double small = median(t->small, t->n), large = median(t->large, t->n);
    const double b1 = t->small_nbytes / (double)t->n, b2 = t->large_nbytes / (double)t->n;
    /* Objects that are all small do not tell what a byte costs: it is the request's then. */
    out->byte = b2 >= 8 * b1 && large > small ? (large - small) / (b2 - b1) : 0;
    out->request = small - out->byte * b1 > 0 ? small - out->byte * b1 : 0;
    out->ntries = t->n;
}

int cm_cost_probe_store(cm_store *store, cm_cost_key *next, void *context, double seconds,
                        cm_storage_costs *out, cm_error *err)
{
    times t = {.n = 0};
    cm_buf small = {0};
    char key[CM_COST_KEY_SIZE];
    *out = (cm_storage_costs){0};
    uint8_t *large = cm_calloc(LARGE_NBYTES, 1, err);
    if (large == NULL)
        return CM_ENOMEM;
    const uint64_t start = cm_now_ns();
    int rc = CM_OK;
    for (unsigned i = 0; i < TRIES && rc != CM_ENOMEM && next(context, i, key); i++) {
        cm_error why = {0};
        if ((double)(cm_now_ns() - start) * 1e-9 > seconds)
            break;
        rc = try_object(store, key, &small, large, &t, &why);
        if (rc != CM_OK && rc != CM_ENOTFOUND) /* a store that fails is nothing to measure */
            break;
    }
    if (t.n > 0)
        sum_up(&t, out);
    cm_buf_release(&small);
    free(large);
    return rc == CM_ENOMEM ? cm_fail(err, rc, "no memory to measure what requests cost") : CM_OK;
}

/* The suite of all stores over an imitated slow one, alone and under a cache on disk. */
#include "../store/conformance.h"

#include "load/reader/delayed_store.h"

enum {
    CACHE_NBYTES = 100000 /* less than some tests read */
};

/* The stores in between: freed with the delay. */
typedef struct slow {
    cm_delay *delay;
    cm_store *delayed; /* under a cache; NULL where it is what is tested */
} slow;

static int open_slow(fixture *f, cm_store **out, cm_error *err)
{
    const cm_delay_model model = {.latency = 1e-6, .bandwidth = 1e10, .concurrency = 4};
    slow *s = calloc(1, sizeof *s);
    f->more = s;
    int rc = cm_store_open_dir(f->folder, true, &f->writer, err);
    rc = rc ? rc : cm_delay_create(&model, &s->delay, err);
    return rc ? rc : cm_store_open_delayed(f->writer, s->delay, out, err);
}

static int open_delayed(fixture *f, const kind *k, cm_error *err)
{
    (void)k;
    return open_slow(f, &f->store, err);
}

static int open_cached(fixture *f, const kind *k, cm_error *err)
{
    char path[80];
    (void)k;
    cm_store *delayed;
    int rc = open_slow(f, &delayed, err);
    if (rc)
        return rc;
    ((slow *)f->more)->delayed = delayed;
    snprintf(path, sizeof path, "%s.cache", f->folder);
    return cm_store_open_disk_cache(delayed, path, CACHE_NBYTES, &f->store, err);
}

static void close_slow(fixture *f)
{
    slow *s = f->more;
    cm_store_free(s->delayed);
    cm_delay_free(s->delay);
    free(s);
}

int main(void)
{
    static const kind kinds[] = {
        {.name = "delayed", .open = open_delayed, .close = close_slow},
        {.name = "cache over delayed", .open = open_cached, .close = close_slow},
    };
    return run_conformance("delayed stores", kinds, sizeof kinds / sizeof *kinds);
}

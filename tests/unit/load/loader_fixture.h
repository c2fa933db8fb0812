/* A store of two variables for tests of the loader, and batches of it against arithmetic. */
#ifndef LOADER_FIXTURE_H
#define LOADER_FIXTURE_H

#include "../fixtures/readbench_fixture.h"

#include <chunkmill/loader.h>

static const field fields[] = {
    {"v", "tyx", {15, 16, 18}, {4, 5, 7}, {0}, FIELD_INT16, 0, 0, 0, 0},
    {"u", "tyx", {15, 16, 18}, {2, 16, 9}, {0}, FIELD_FLOAT32, 3, 0, 0, 0}};
static const char *const variables[] = {"v", "u"};
static char *path;

static int make_stores(void **state)
{
    if (make_folder(state) != 0)
        return -1;
    path = make_store("a.zarr", ZARR_V3, fields, 2);
    return 0;
}

static int remove_stores(void **state)
{
    free(path);
    return remove_folder(state);
}

/* 12 batches of 4 samples. */
static cm_loader_options basic_options(void)
{
    cm_loader_options o;
    cm_loader_options_init(&o, sizeof o);
    o.variable = variables;
    o.nvariables = 2;
    o.sample = "t=2,y=6,x=8";
    o.batch = 4;
    o.batches = 12;
    o.workers = 3;
    o.worker_threads = 1;
    return o;
}

/* Larger elements come first. */
static bool is_right(cm_batch *batch)
{
    cm_batch_info info = {.size = sizeof info};
    if (cm_batch_describe(batch, &info, NULL) != CM_OK)
        return false;
    for (size_t p = 0; p < 2; p++) {
        const cm_tensor *t = cm_batch_tensor(batch, p);
        const field *f = &fields[1 - p];
        const uint64_t shape[] = {2, 6, 8};
        const size_t nbytes = 2 * 6 * 8 * field_size(f);
        if (strcmp(t->variable->name, f->name) != 0 || t->nbytes != info.nsamples * nbytes)
            return false;
        for (uint64_t k = 0; k < info.nsamples; k++) {
            uint64_t start[3];
            for (unsigned d = 0; d < 3; d++)
                start[d] = (uint64_t)info.index[3 * k + d];
            uint8_t *want = field_box(f, start, shape);
            const bool same = memcmp(want, (const uint8_t *)t->data + k * nbytes, nbytes) == 0;
            free(want);
            if (!same)
                return false;
        }
    }
    return true;
}

static cm_batch *take(cm_loader *l)
{
    cm_batch *batch;
    OK(cm_loader_next(l, CM_LOADER_FOR_EVER, &batch, err));
    return batch;
}

#endif

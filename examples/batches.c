/*
 * Takes the batches of two epochs in C, and prints the mean of each variable.
 *
 *     cc $(pkg-config --cflags chunkmill-loader) batches.c $(pkg-config --libs chunkmill-loader)
 *     ./a.out weather.zarr time=4,lat=32,lon=32 z t2m
 */
#include <stdio.h>
#include <string.h>

#include <chunkmill/loader.h>

enum {
    MOST = 64 /* variables whose means are printed */
};

typedef struct mean {
    const char *name;
    double sum;
    size_t n;
} mean;

static void add(const cm_tensor *t, mean *m)
{
    const size_t n = t->nbytes / sizeof(float);
    const float *x = t->data;
    for (size_t i = 0; i < n; i++)
        m->sum += x[i];
    m->n += n;
    m->name = t->variable->name;
}

static int run_epoch(cm_loader *loader, uint64_t epoch, cm_error *err)
{
    mean of[MOST] = {{0}};
    uint64_t nbatches = 0;
    cm_batch *batch;
    int rc = cm_loader_begin(loader, epoch, err);
    while (rc == CM_OK) {
        rc = cm_loader_next(loader, CM_LOADER_FOR_EVER, &batch, err);
        if (rc != CM_OK || batch == NULL) /* an error, or the end of the epoch */
            break;
        for (size_t i = 0; i < MOST && cm_batch_tensor(batch, i) != NULL; i++)
            add(cm_batch_tensor(batch, i), &of[i]);
        nbatches++;
        cm_batch_release(batch);
    }
    if (rc != CM_OK)
        return rc;
    printf("epoch %llu: %llu batches, mean", (unsigned long long)epoch,
           (unsigned long long)nbatches);
    for (size_t i = 0; i < MOST && of[i].n > 0; i++)
        printf(" %s=%.6g", of[i].name, of[i].sum / (double)of[i].n);
    printf("\n");
    return CM_OK;
}

int main(int argc, char **argv)
{
    cm_loader_options options;
    cm_loader *loader;
    cm_error err = {0};
    if (argc < 3) {
        fprintf(stderr, "usage: batches STORE SAMPLE [VARIABLE ...]\n");
        return 2;
    }
    cm_loader_options_init(&options, sizeof options);
    options.sample = argv[2];
    options.variable = (const char *const *)argv + 3;
    options.nvariables = (size_t)(argc - 3);
    options.batches = 20;
    options.loader = "planned";
    options.cast = "float32";
    options.unpack = true;
    int rc = cm_loader_open(argv[1], &options, &loader, &err);
    for (uint64_t epoch = 0; epoch < 2 && rc == CM_OK; epoch++)
        rc = run_epoch(loader, epoch, &err);
    if (rc != CM_OK)
        fprintf(stderr, "batches: %s\n", err.text);
    cm_loader_close(loader);
    return rc == CM_OK ? 0 : 1;
}

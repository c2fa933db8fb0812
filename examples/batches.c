/*
 * Takes the batches of two epochs in C, and prints the mean of each variable.
 *
 *     cc $(pkg-config --cflags chunkmill-loader) batches.c $(pkg-config --libs chunkmill-loader)
 *     ./a.out weather.zarr time=4,lat=32,lon=32 z
 */
#include <stdio.h>
#include <string.h>

#include <chunkmill/loader.h>

static double sum_of(const cm_tensor *t)
{
    const size_t n = t->nbytes / sizeof(float);
    const float *x = t->data;
    double sum = 0;
    for (size_t i = 0; i < n; i++)
        sum += x[i];
    return sum;
}

static int run_epoch(cm_loader *loader, uint64_t epoch, cm_error *err)
{
    uint64_t nelem = 0, nbatches = 0;
    double sum = 0;
    cm_batch *batch;
    int rc = cm_loader_begin(loader, epoch, err);
    while (rc == CM_OK) {
        rc = cm_loader_next(loader, CM_LOADER_FOR_EVER, &batch, err);
        if (rc != CM_OK || batch == NULL) /* an error, or the end of the epoch */
            break;
        for (size_t i = 0; cm_batch_tensor(batch, i) != NULL; i++) {
            const cm_tensor *t = cm_batch_tensor(batch, i);
            sum += sum_of(t);
            nelem += t->nbytes / sizeof(float);
        }
        nbatches++;
        cm_batch_release(batch);
    }
    if (rc == CM_OK)
        printf("epoch %llu: %llu batches, mean %.6g\n", (unsigned long long)epoch,
               (unsigned long long)nbatches, nelem > 0 ? sum / (double)nelem : 0);
    return rc;
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

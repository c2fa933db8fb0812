/*
 * A fake of NVIDIA's management library for tests, which load it by its path before
 * the library that they test asks for it by its name.  It knows three GPUs:
 *
 *     0   0000:07:00.0   busy 10 %   80 of 100 bytes in use
 *     1   0000:3b:00.0   busy 40 %   50 of 100
 *     2   0000:3b:01.0   divided, so that nobody knows how busy it is; 25 of 100
 */
#include <stdio.h>
#include <string.h>

enum {
    NGPUS = 3,
    NOT_SUPPORTED = 3,
    NOT_FOUND = 6
};

typedef struct gpu {
    const char *pci;
    unsigned busy; /* percent */
    unsigned long long used;
} gpu;

static gpu gpus[NGPUS] = {
    {"0000:07:00.0", 10, 80}, {"0000:3b:00.0", 40, 50}, {"0000:3b:01.0", 0, 25}};

typedef struct utilization {
    unsigned gpu, memory;
} utilization;
typedef struct memory {
    unsigned long long total, free, used;
} memory;

int nvmlInit_v2(void);
int nvmlShutdown(void);
int nvmlDeviceGetCount_v2(unsigned *n);
int nvmlDeviceGetHandleByIndex_v2(unsigned i, void **out);
int nvmlDeviceGetHandleByPciBusId_v2(const char *pci, void **out);
int nvmlDeviceGetName(void *d, char *out, unsigned size);
int nvmlDeviceGetMemoryInfo(void *d, memory *out);
int nvmlDeviceGetUtilizationRates(void *d, utilization *out);

int nvmlInit_v2(void)
{
    return 0;
}

int nvmlShutdown(void)
{
    return 0;
}

int nvmlDeviceGetCount_v2(unsigned *n)
{
    *n = NGPUS;
    return 0;
}

int nvmlDeviceGetHandleByIndex_v2(unsigned i, void **out)
{
    *out = &gpus[i];
    return 0;
}

int nvmlDeviceGetHandleByPciBusId_v2(const char *pci, void **out)
{
    for (unsigned i = 0; i < NGPUS; i++)
        if (strcmp(gpus[i].pci, pci) == 0) {
            *out = &gpus[i];
            return 0;
        }
    return NOT_FOUND;
}

int nvmlDeviceGetName(void *d, char *out, unsigned size)
{
    snprintf(out, size, "GPU at %s", ((const gpu *)d)->pci);
    return 0;
}

int nvmlDeviceGetMemoryInfo(void *d, memory *out)
{
    const unsigned long long used = ((const gpu *)d)->used;
    *out = (memory){.total = 100, .free = 100 - used, .used = used};
    return 0;
}

int nvmlDeviceGetUtilizationRates(void *d, utilization *out)
{
    *out = (utilization){.gpu = ((const gpu *)d)->busy};
    return d == &gpus[2] ? NOT_SUPPORTED : 0;
}

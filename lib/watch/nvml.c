#include "watch/nvml.h"

#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* As NVML's reference manual declares them; all return 0 for success. */
typedef void *device;
typedef struct utilization {
    unsigned gpu, memory; /* percent */
} utilization;
typedef struct memory {
    unsigned long long total, free, used;
} memory;

typedef struct entries {
    int (*init)(void);
    int (*shutdown)(void);
    int (*count)(unsigned *n);
    int (*handle)(unsigned i, device *out);
    int (*handle_at)(const char *pci, device *out);
    int (*name)(device d, char *out, unsigned size);
    int (*memory)(device d, memory *out);
    int (*utilization)(device d, utilization *out);
} entries;

enum {
    MAX_DEVICES = 64
};

struct cm_nvml {
    void *library;
    entries call;
    unsigned n;
    device device[MAX_DEVICES];
};

static bool find_entries(void *library, entries *out)
{
    static const char *const names[] = {"nvmlInit_v2",
                                        "nvmlShutdown",
                                        "nvmlDeviceGetCount_v2",
                                        "nvmlDeviceGetHandleByIndex_v2",
                                        "nvmlDeviceGetHandleByPciBusId_v2",
                                        "nvmlDeviceGetName",
                                        "nvmlDeviceGetMemoryInfo",
                                        "nvmlDeviceGetUtilizationRates"};
    void *found[sizeof(names) / sizeof(names[0])];
    _Static_assert(sizeof(found) == sizeof(entries), "a name for each entry");
    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
        if ((found[i] = dlsym(library, names[i])) == NULL)
            return false;
    memcpy(out, found, sizeof(found));
    return true;
}

cm_nvml *cm_nvml_open(void)
{
    void *library = dlopen("libnvidia-ml.so.1", RTLD_NOW | RTLD_LOCAL);
    cm_nvml *nvml = library != NULL ? calloc(1, sizeof(*nvml)) : NULL;
    if (nvml == NULL || !find_entries(library, &nvml->call) || nvml->call.init() != 0) {
        free(nvml);
        if (library != NULL)
            dlclose(library);
        return NULL;
    }
    nvml->library = library;
    unsigned n = 0;
    if (nvml->call.count(&n) != 0)
        n = 0;
    for (unsigned i = 0; i < n && nvml->n < MAX_DEVICES; i++)
        if (nvml->call.handle(i, &nvml->device[nvml->n]) == 0)
            nvml->n++;
    if (nvml->n > 0)
        return nvml;
    cm_nvml_close(nvml);
    return NULL;
}

void cm_nvml_close(cm_nvml *nvml)
{
    if (nvml == NULL)
        return;
    nvml->call.shutdown();
    dlclose(nvml->library);
    free(nvml);
}

unsigned cm_nvml_count(const cm_nvml *nvml)
{
    return nvml != NULL ? nvml->n : 0;
}

void cm_nvml_describe(const cm_nvml *nvml, unsigned i, char name[CM_NVML_NAME_SIZE],
                      uint64_t *memory_nbytes)
{
    memory m = {0};
    if (nvml->call.name(nvml->device[i], name, CM_NVML_NAME_SIZE) != 0)
        snprintf(name, CM_NVML_NAME_SIZE, "GPU %u", i);
    *memory_nbytes = nvml->call.memory(nvml->device[i], &m) == 0 ? m.total : 0;
}

unsigned cm_nvml_find(const cm_nvml *nvml, const char *pci)
{
    device at;
    unsigned i = 0;
    if (nvml == NULL || nvml->call.handle_at(pci, &at) != 0)
        return cm_nvml_count(nvml);
    while (i < nvml->n && nvml->device[i] != at)
        i++;
    return i;
}

void cm_nvml_read(const cm_nvml *nvml, unsigned i, float *busy, uint64_t *used_nbytes)
{
    utilization u = {0};
    memory m = {0};
    *busy = nvml->call.utilization(nvml->device[i], &u) == 0 ? (float)u.gpu / 100 : -1;
    *used_nbytes = nvml->call.memory(nvml->device[i], &m) == 0 ? m.used : 0;
}

/*
 * GPUs of this machine through NVIDIA's management library, loaded at run time
 * where it is installed; declared here, no header of NVIDIA's is needed.
 */
#ifndef CM_WATCH_NVML_H
#define CM_WATCH_NVML_H

#include "base/mem.h"

enum {
    CM_NVML_NAME_SIZE = 96
};

typedef struct cm_nvml cm_nvml;

/* NULL where the library, its driver or any GPU is missing.  Takes up to half a second. */
cm_nvml *cm_nvml_open(void);
void cm_nvml_close(cm_nvml *nvml); /* NULL accepted */

unsigned cm_nvml_count(const cm_nvml *nvml); /* 0 for NULL */
/* Name and memory of GPU I; "GPU 0" and 0 where they are not told. */
void cm_nvml_describe(const cm_nvml *nvml, unsigned i, char name[CM_NVML_NAME_SIZE],
                      uint64_t *memory_nbytes);
/* The GPU at PCI ("0000:3b:00.0"), whose number is another than CUDA's; cm_nvml_count: none. */
unsigned cm_nvml_find(const cm_nvml *nvml, const char *pci);
/*
 * Share of the time that a kernel ran, over the driver's last period, negative where
 * it is not told (a device that is divided has none); memory in use, 0 where not.
 */
void cm_nvml_read(const cm_nvml *nvml, unsigned i, float *busy, uint64_t *used_nbytes);

#endif

#include "gpu/cufile.h"

#include <dlfcn.h>
#include <stdio.h>
#include <string.h>

typedef struct cufile_api {
    cufile_error (*open)(void);
    cufile_error (*close)(void);
    cufile_error (*properties)(cufile_properties *out);
} cufile_api;

static bool find(void *library, const char *symbol, void *function)
{
    void *const found = dlsym(library, symbol);
    memcpy(function, &found, sizeof found);
    return found != NULL;
}

static bool load(const char *path, cufile_api *api, char *text, size_t size)
{
    const char *name = path != NULL ? path : "libcufile.so.0";
    /* It keeps threads of its own: once loaded it stays. */
    void *library = dlopen(name, RTLD_NOW | RTLD_LOCAL | RTLD_NODELETE);
    if (library == NULL) {
        snprintf(text, size, "no: NVIDIA's cuFile (%s) is not installed", name);
        return false;
    }
    if (find(library, "cuFileDriverOpen", &api->open) &&
        find(library, "cuFileDriverClose", &api->close) &&
        find(library, "cuFileDriverGetProperties", &api->properties))
        return true;
    snprintf(text, size, "no: %s lacks functions of cuFile", name);
    dlclose(library);
    return false;
}

/* "why" for an error of CUfileOpError. */
static const char *meaning(int error)
{
    static const char *const texts[] = {
        "its driver is not initialised",
        "its driver has odd properties",
        "its driver has odd limits",
        "the kernel's nvidia-fs driver is of another version",
        "the kernel's nvidia-fs driver does not tell its version",
        "its driver is closing",
        "this platform is not supported",
        "this file system is not supported",
        "this device is not supported",
        "the kernel's nvidia-fs driver reports an error",
        "NVIDIA's driver reports an error",
    };
    const size_t n = sizeof texts / sizeof *texts;
    const int i = error - CUFILE_FIRST_ERROR;
    return i >= 0 && (size_t)i < n ? texts[i] : "an error of its own";
}

/* "NVMe, NFS"; "" for none. */
static void name_kinds(unsigned flags, char *out, size_t size)
{
    static const char *const names[] = {"Lustre", "WekaFS",  "NFS",        "GPFS",
                                        "NVMe",   "NVMe-oF", "SCSI",       "ScaleFlux CSD",
                                        "NVMesh", "BeeGFS",  "YRCloudFile"};
    size_t at = 0;
    out[0] = '\0';
    for (unsigned i = 0; i < sizeof names / sizeof *names && at < size; i++)
        if (flags >> i & 1)
            at += (size_t)snprintf(out + at, size - at, "%s%s", at > 0 ? ", " : "", names[i]);
}

static bool judge(const cufile_properties *p, char *text, size_t size)
{
    char kinds[128];
    name_kinds(p->kernel.status_flags, kinds, sizeof kinds);
    const bool loaded = p->kernel.major > 0 || p->kernel.minor > 0;
    const char *else_where = p->kernel.control_flags >> CUFILE_COMPAT_MODE & 1
                                 ? ": cuFile itself would read by the host"
                                 : "";
    if (!loaded)
        snprintf(text, size, "no: the kernel's nvidia-fs driver is not loaded%s", else_where);
    else if (kinds[0] == '\0')
        snprintf(text, size, "no: nvidia-fs %u.%u supports no file system here%s", p->kernel.major,
                 p->kernel.minor, else_where);
    else
        snprintf(text, size,
                 "possible for %s (nvidia-fs %u.%u), and not used: the host proves stored bytes",
                 kinds, p->kernel.major, p->kernel.minor);
    return loaded && kinds[0] != '\0';
}

bool cm_cufile_describe(const char *library, char *text, size_t size)
{
    cufile_api api;
    cufile_properties properties = {0};
    if (!load(library, &api, text, size))
        return false;
    cufile_error e = api.open();
    if (e.error != CUFILE_SUCCESS) {
        snprintf(text, size, "no: cuFile does not open: %s (error %d)", meaning(e.error), e.error);
        return false;
    }
    e = api.properties(&properties);
    bool possible = false;
    if (e.error != CUFILE_SUCCESS)
        snprintf(text, size, "no: cuFile tells no properties: %s (error %d)", meaning(e.error),
                 e.error);
    else
        possible = judge(&properties, text, size);
    (void)api.close(); /* what it says changes nothing */
    return possible;
}

#include <ctype.h>
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/number.h"
#include "gpu/cuda_impl.h"

enum {
    PAGE = 4096
};

/* ---- errors --------------------------------------------------------------------------------- */

static cm_status status_of(cuda_result result)
{
    switch (result) {
    case CUDA_OUT_OF_MEMORY:
        return CM_ENOMEM;
    case CUDA_NO_DEVICE:
        return CM_ENOTFOUND;
    case CUDA_STUB_LIBRARY:
    case CUDA_NO_BINARY_FOR_GPU:
    case CUDA_UNSUPPORTED_PTX_VERSION:
    case CUDA_SYSTEM_DRIVER_MISMATCH:
    case CUDA_COMPAT_NOT_SUPPORTED:
        return CM_EUNSUPPORTED;
    default:
        return CM_EIO;
    }
}

int cm_cuda_fail(const cuda_device *c, cuda_result result, const char *doing, cm_error *err)
{
    const char *name = NULL, *text = NULL;
    if (c->api.cuGetErrorName(result, &name) != CUDA_OK || name == NULL)
        name = "unknown error";
    if (c->api.cuGetErrorString(result, &text) != CUDA_OK || text == NULL)
        text = "the driver has no words for it";
    return cm_fail(err, status_of(result), "%s: %s: %s (%s, CUDA error %d)", c->base.info.text,
                   doing, text, name, result);
}

int cm_cuda_enter(const cuda_device *c, cm_error *err)
{
    const cuda_result rc = c->api.cuCtxSetCurrent(c->context);
    return rc == CUDA_OK ? CM_OK : cm_cuda_fail(c, rc, "entering the context", err);
}

/* No context: there is none, or it cannot be told. */
static cuda_context current_context(const cuda_device *c)
{
    cuda_context now = NULL;
    return c->api.cuCtxGetCurrent(&now) == CUDA_OK ? now : NULL;
}

static void *cuda_enter(cm_device *d)
{
    cuda_device *c = (cuda_device *)d;
    c->is_guest = true;
    return current_context(c);
}

static void cuda_leave(cm_device *d, void *before)
{
    /* Ignore errors: the thread had them before. */
    (void)((cuda_device *)d)->api.cuCtxSetCurrent(before);
}

/* ---- page-locking and memory ---------------------------------------------------------------- */

static int cuda_lock(cm_device *d, void *memory, size_t nbytes, cm_lock_report *report,
                     cm_error *err)
{
    cuda_device *c = (cuda_device *)d;
    const int entered = cm_cuda_enter(c, err);
    if (entered != CM_OK)
        return entered;
    const cuda_result rc = c->api.cuMemHostRegister(memory, nbytes, CUDA_HOST_REGISTER_PORTABLE);
    report->locked = rc == CUDA_OK;
    if (rc == CUDA_OK)
        return CM_OK;
    char size[32], doing[96];
    snprintf(doing, sizeof doing, "page-locking %s of memory",
             cm_format_size(nbytes, size, sizeof size));
    return cm_cuda_fail(c, rc, doing, err);
}

static int cuda_unlock(cm_device *d, void *memory, size_t nbytes, cm_error *err)
{
    (void)nbytes;
    cuda_device *c = (cuda_device *)d;
    const int entered = cm_cuda_enter(c, err);
    if (entered != CM_OK)
        return entered;
    const cuda_result rc = c->api.cuMemHostUnregister(memory);
    return rc == CUDA_OK ? CM_OK : cm_cuda_fail(c, rc, "unlocking memory", err);
}

static int fail_alloc(const cuda_device *c, cuda_result rc, size_t nbytes, cm_error *err)
{
    size_t left = 0, total = 0;
    if (rc != CUDA_OUT_OF_MEMORY || c->api.cuMemGetInfo(&left, &total) != CUDA_OK)
        return cm_cuda_fail(c, rc, "allocating memory of the device", err);
    char asked[32], free_text[32], total_text[32];
    return cm_fail(err, CM_ENOMEM,
                   "%s: the device has no room: %s were asked for, %s of %s are free",
                   c->base.info.text, cm_format_size(nbytes, asked, sizeof asked),
                   cm_format_size(left, free_text, sizeof free_text),
                   cm_format_size(total, total_text, sizeof total_text));
}

static int cuda_alloc(cm_device *d, size_t nbytes, cm_device_memory **out, cm_error *err)
{
    cuda_device *c = (cuda_device *)d;
    const int entered = cm_cuda_enter(c, err);
    if (entered != CM_OK)
        return entered;
    cuda_memory *m = cm_calloc(1, sizeof *m, err);
    if (m == NULL)
        return CM_ENOMEM;
    m->base = (cm_device_memory){.device = d, .nbytes = nbytes};
    const cuda_result rc = c->api.cuMemAlloc(&m->address, nbytes);
    if (rc != CUDA_OK) {
        free(m);
        return fail_alloc(c, rc, nbytes, err);
    }
    *out = &m->base;
    return CM_OK;
}

static void cuda_free(cm_device_memory *m)
{
    cuda_device *c = (cuda_device *)m->device;
    /* A device that failed gives its memory back with its context. */
    if (cm_cuda_enter(c, NULL) == CM_OK)
        (void)c->api.cuMemFree(((cuda_memory *)m)->address);
    free(m);
}

static void *cuda_memory_address(const cm_device_memory *m)
{
    return (void *)(uintptr_t)((const cuda_memory *)m)->address;
}

/* ---- opening -------------------------------------------------------------------------------- */

static int find_device(cuda_device *c, unsigned number, cm_error *err)
{
    int count = 0;
    cuda_result rc = c->api.cuInit(0);
    if (rc == CUDA_OK)
        rc = c->api.cuDeviceGetCount(&count);
    if (rc == CUDA_NO_DEVICE || (rc == CUDA_OK && count == 0))
        return cm_fail(err, CM_ENOTFOUND, "%s: the NVIDIA driver sees no device",
                       c->base.info.text);
    if (rc == CUDA_SYSTEM_DRIVER_MISMATCH)
        return cm_fail(err, CM_EUNSUPPORTED,
                       "%s: libcuda.so.1 and the kernel's NVIDIA driver are of different versions: "
                       "load the new driver, or start the machine again",
                       c->base.info.text);
    if (rc != CUDA_OK)
        return cm_cuda_fail(c, rc, "starting the driver", err);
    if (number >= (unsigned)count)
        return cm_fail(err, CM_ENOTFOUND, "%s: no such device: the driver sees %d, from 0",
                       c->base.info.text, count);
    rc = c->api.cuDeviceGet(&c->id, (int)number);
    return rc == CUDA_OK ? CM_OK : cm_cuda_fail(c, rc, "finding the device", err);
}

static int read_attributes(cuda_device *c, cm_error *err)
{
    const struct {
        int attribute;
        unsigned *value;
    } rows[] = {
        {CUDA_ATTRIBUTE_CAPABILITY_MAJOR, &c->base.info.capability_major},
        {CUDA_ATTRIBUTE_CAPABILITY_MINOR, &c->base.info.capability_minor},
        {CUDA_ATTRIBUTE_MULTIPROCESSORS, &c->base.info.multiprocessors},
        {CUDA_ATTRIBUTE_COPY_ENGINES, &c->base.info.copy_engines},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        int value = 0;
        const cuda_result rc = c->api.cuDeviceGetAttribute(&value, rows[i].attribute, c->id);
        if (rc != CUDA_OK)
            return cm_cuda_fail(c, rc, "asking for the device's attributes", err);
        *rows[i].value = (unsigned)value;
    }
    return CM_OK;
}

static int read_info(cuda_device *c, const char *sysfs, cm_error *err)
{
    cm_device_info *i = &c->base.info;
    size_t total = 0;
    cuda_result rc = c->api.cuDeviceGetName(i->name, sizeof i->name, c->id);
    if (rc == CUDA_OK)
        rc = c->api.cuDeviceTotalMem(&total, c->id);
    if (rc != CUDA_OK)
        return cm_cuda_fail(c, rc, "asking for the device's name", err);
    i->name[sizeof i->name - 1] = '\0';
    i->total_nbytes = total;
    /* The rest is optional. */
    char pci[CUDA_PCI_TEXT] = "", path[256];
    if (c->api.cuDeviceGetPCIBusId(pci, sizeof pci, c->id) == CUDA_OK)
        for (size_t k = 0; k + 1 < sizeof pci && pci[k]; k++)
            i->pci[k] = (char)tolower((unsigned char)pci[k]);
    snprintf(path, sizeof path, "%.200s/module/nvidia/version", sysfs);
    cm_pci_read_line(path, i->driver, sizeof i->driver);
    return read_attributes(c, err);
}

static int check_capability(const cuda_device *c, cm_error *err)
{
    const cm_device_info *i = &c->base.info;
    if (i->capability_major >= CUDA_NEEDED_CAPABILITY)
        return CM_OK;
    return cm_fail(
        err, CM_EUNSUPPORTED,
        "%s: %s is too old: it has compute capability %u.%u, and %d.0 or newer is needed", i->text,
        i->name, i->capability_major, i->capability_minor, CUDA_NEEDED_CAPABILITY);
}

/* The compiler writes lines; an error is one sentence. */
static void make_one_line(char *text)
{
    size_t n = 0;
    for (const char *p = text; *p != '\0'; p++) {
        const bool is_space = isspace((unsigned char)*p) || iscntrl((unsigned char)*p);
        if (!is_space)
            text[n++] = *p;
        else if (n > 0 && text[n - 1] != ' ')
            text[n++] = ' ';
    }
    while (n > 0 && text[n - 1] == ' ')
        n--;
    text[n] = '\0';
}

static int load_kernels(cuda_device *c, cm_error *err)
{
    char log[512] = "", doing[640];
    int options[] = {CUDA_JIT_ERROR_LOG, CUDA_JIT_ERROR_LOG_NBYTES};
    void *values[] = {log, (void *)(uintptr_t)(sizeof log - 1)};
    cuda_result rc = c->api.cuModuleLoadDataEx(&c->module, cm_cuda_ptx, 2, options, values);
    if (rc != CUDA_OK) {
        c->module = NULL;
        make_one_line(log);
        snprintf(doing, sizeof doing, "compiling the kernels%s%s", log[0] ? ": " : "", log);
        return cm_cuda_fail(c, rc, doing, err);
    }
    const struct {
        const char *name;
        cuda_function *function;
    } rows[] = {{"cm_checksum", &c->checksum}, {"cm_busy", &c->busy}};
    for (size_t i = 0; i < sizeof rows / sizeof *rows && rc == CUDA_OK; i++)
        rc = c->api.cuModuleGetFunction(rows[i].function, c->module, rows[i].name);
    return rc == CUDA_OK ? CM_OK : cm_cuda_fail(c, rc, "finding the kernels", err);
}

static int prepare(cuda_device *c, unsigned number, const cm_device_hooks *hooks, cm_error *err)
{
    int rc = cm_cuda_load(hooks->cuda_driver != NULL ? hooks->cuda_driver : "libcuda.so.1", c, err);
    if (rc == CM_OK)
        rc = find_device(c, number, err);
    if (rc == CM_OK)
        rc = read_info(c, hooks->sysfs != NULL ? hooks->sysfs : "/sys", err);
    if (rc == CM_OK)
        rc = check_capability(c, err);
    if (rc != CM_OK)
        return rc;
    cuda_result result = c->api.cuCtxGetCurrent(&c->before);
    if (result != CUDA_OK)
        return cm_cuda_fail(c, result, "asking for this thread's context", err);
    result = c->api.cuDevicePrimaryCtxRetain(&c->context, c->id);
    if (result != CUDA_OK) {
        c->context = NULL;
        return cm_cuda_fail(c, result, "making a context", err);
    }
    rc = cm_cuda_enter(c, err);
    if (rc == CM_OK)
        rc = load_kernels(c, err);
    if (rc != CM_OK)
        return rc;
    result = c->api.cuMemAlloc(&c->result, sizeof *c->landed);
    if (result != CUDA_OK) {
        c->result = 0;
        return fail_alloc(c, result, sizeof *c->landed, err);
    }
    void *landed;
    rc = cm_device_alloc_locked(&c->base, PAGE, &landed, NULL, err);
    if (rc != CM_OK)
        return rc;
    c->landed = landed;
    return cm_cuda_keep_time(c, err);
}

static void cuda_close(cm_device *d)
{
    cuda_device *c = (cuda_device *)d;
    /* Ignore errors: they occurred before, and there is no caller to tell. */
    if (c->context != NULL) {
        if (c->is_guest)
            c->before = current_context(c);
        (void)cm_cuda_enter(c, NULL);
        for (size_t i = 0; i < 2; i++)
            if (c->instants[i].event != NULL)
                (void)c->api.cuEventDestroy(c->instants[i].event);
        if (c->clock != NULL)
            (void)c->api.cuStreamDestroy(c->clock);
        cm_device_free_locked(d, c->landed, PAGE);
        if (c->result)
            (void)c->api.cuMemFree(c->result);
        if (c->module != NULL)
            (void)c->api.cuModuleUnload(c->module);
        if (c->api.cuCtxSetCurrent(c->before) != CUDA_OK)
            (void)c->api.cuCtxSetCurrent(NULL);
        (void)c->api.cuDevicePrimaryCtxRelease(c->id);
    }
    if (c->library != NULL)
        dlclose(c->library);
    free(c);
}

int cm_cuda_open(unsigned number, const cm_device_hooks *hooks, cm_device **out, cm_error *err)
{
    static const cm_device_ops ops = {
        .close = cuda_close,
        .enter = cuda_enter,
        .leave = cuda_leave,
        .lock = cuda_lock,
        .unlock = cuda_unlock,
        .alloc = cuda_alloc,
        .free = cuda_free,
        .address = cuda_memory_address,
        .stream_open = cm_cuda_stream_open,
        .adopt = cm_cuda_adopt,
        .sync_all = cm_cuda_sync_all,
        .stream_close = cm_cuda_stream_close,
        .sync = cm_cuda_sync,
        .copy_in = cm_cuda_copy_in,
        .copy_out = cm_cuda_copy_out,
        .poison = cm_cuda_poison,
        .checksum = cm_cuda_checksum,
        .busy = cm_cuda_busy,
        .after = cm_cuda_after,
        .event_open = cm_cuda_event_open,
        .event_close = cm_cuda_event_close,
        .record = cm_cuda_record,
        .wait = cm_cuda_wait,
        .time = cm_cuda_time,
        .span = cm_cuda_span,
    };
    cuda_device *c = cm_calloc(1, sizeof *c, err);
    if (c == NULL)
        return CM_ENOMEM;
    c->base.ops = &ops;
    c->base.info.kind = CM_DEVICE_CUDA;
    c->base.info.number = number;
    snprintf(c->base.info.text, sizeof c->base.info.text, "cuda:%u", number);
    const int rc = prepare(c, number, hooks, err);
    if (rc != CM_OK) {
        cuda_close(&c->base);
        return rc;
    }
    (void)c->api.cuCtxSetCurrent(c->before); /* every call enters */
    *out = &c->base;
    return CM_OK;
}

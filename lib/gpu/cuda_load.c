#include <dlfcn.h>
#include <stdio.h>
#include <string.h>

#include "gpu/cuda_impl.h"

typedef struct resolver {
    void *library;
    cuda_get_proc_address *get; /* one of the two, or neither before CUDA 11.3 */
    cuda_get_proc_address_v2 *get_v2;
} resolver;

/* C has no cast between pointers to data and to functions; POSIX says that they are alike. */
static bool find_exact(void *library, const char *symbol, void *function)
{
    void *const found = dlsym(library, symbol);
    memcpy(function, &found, sizeof found);
    return found != NULL;
}

/*
 * The driver is asked for each function as CUDA_NEEDED had it, so that one that
 * changed its parameters later is still the one that is declared here.
 */
static bool find_function(const resolver *r, const char *name, const char *symbol, void *function)
{
    void *found = NULL;
    cuda_result rc = CUDA_NO_DEVICE;
    if (r->get_v2 != NULL)
        rc = r->get_v2(name, &found, CUDA_NEEDED, CUDA_PROC_ADDRESS_LEGACY_STREAM, NULL);
    else if (r->get != NULL)
        rc = r->get(name, &found, CUDA_NEEDED, CUDA_PROC_ADDRESS_LEGACY_STREAM);
    if (rc != CUDA_OK || found == NULL)
        return find_exact(r->library, symbol, function);
    memcpy(function, &found, sizeof found);
    return true;
}

static int check_version(const cuda_api *api, const char *path, cm_device_info *info, cm_error *err)
{
    int version = 0;
    const cuda_result rc = api->cuDriverGetVersion(&version);
    if (rc == CUDA_STUB_LIBRARY)
        return cm_fail(err, CM_ENOTFOUND,
                       "%s is the toolkit's stub, for linking: the NVIDIA driver is not installed",
                       path);
    if (rc != CUDA_OK || version <= 0)
        return cm_fail(err, CM_EIO, "%s does not tell its version (CUDA error %d)", path, rc);
    if (version < CUDA_NEEDED)
        return cm_fail(err, CM_EUNSUPPORTED,
                       "the NVIDIA driver is too old: it speaks CUDA %d.%d, and " CUDA_NEEDED_TEXT
                       " or newer is needed",
                       version / 1000, version % 1000 / 10);
    snprintf(info->api, sizeof info->api, "%d.%d", version / 1000, version % 1000 / 10);
    return CM_OK;
}

int cm_cuda_load(const char *path, cuda_device *c, cm_error *err)
{
    static const struct {
        const char *name, *symbol;
        size_t offset;
    } functions[] = {
#define CUDA_ROW(name, symbol, parameters) {#name, symbol, offsetof(cuda_api, name)},
        CUDA_FUNCTIONS(CUDA_ROW)
#undef CUDA_ROW
    };
    /* The driver keeps threads and handlers of its own: once loaded it stays. */
    c->library = dlopen(path, RTLD_NOW | RTLD_LOCAL | RTLD_NODELETE);
    if (c->library == NULL)
        return cm_fail(err, CM_ENOTFOUND, "no NVIDIA driver on this machine: %s", dlerror());
    /* The version comes first: an old driver lacks functions too. */
    if (!find_exact(c->library, "cuDriverGetVersion", &c->api.cuDriverGetVersion))
        return cm_fail(err, CM_EUNSUPPORTED,
                       "%s is not a CUDA driver: it has no cuDriverGetVersion", path);
    const int rc = check_version(&c->api, path, &c->base.info, err);
    if (rc != CM_OK)
        return rc;
    resolver r = {.library = c->library};
    if (!find_exact(c->library, "cuGetProcAddress_v2", &r.get_v2))
        find_exact(c->library, "cuGetProcAddress", &r.get);
    for (size_t i = 0; i < sizeof functions / sizeof *functions; i++)
        if (!find_function(&r, functions[i].name, functions[i].symbol,
                           (char *)&c->api + functions[i].offset))
            return cm_fail(err, CM_EUNSUPPORTED,
                           "%s has no function %s: CUDA " CUDA_NEEDED_TEXT " or newer is needed",
                           path, functions[i].symbol);
    return CM_OK;
}

/* Devices by the names that users type. */
#include <stdlib.h>
#include <string.h>

#include "gpu/device.h"
#include "gpu/device_impl.h"

enum {
    MAX_FAULTS = 1024,
    MAX_NUMBER = 1023
};

/* "cuda" or "cuda:N". */
static bool parse_cuda(const char *text, unsigned *number)
{
    *number = 0;
    if (strncmp(text, "cuda", 4) != 0)
        return false;
    text += 4;
    if (*text == '\0')
        return true;
    if (*text++ != ':' || *text < '0' || *text > '9')
        return false;
    char *end;
    const unsigned long n = strtoul(text, &end, 10);
    *number = (unsigned)n;
    return *end == '\0' && end - text <= 4 && n <= MAX_NUMBER;
}

static int set_hooks(cm_device *d, const cm_device_hooks *hooks, cm_error *err)
{
    d->free_copies = hooks->free_copies;
    d->sysfs = cm_strdup(hooks->sysfs != NULL ? hooks->sysfs : "/sys", err);
    if (d->sysfs == NULL)
        return CM_ENOMEM;
    if (hooks->nfaults == 0)
        return CM_OK;
    if (hooks->nfaults > MAX_FAULTS)
        return cm_fail(err, CM_EINVAL, "%zu faults, %d at most", hooks->nfaults, MAX_FAULTS);
    d->faults = cm_calloc(hooks->nfaults, sizeof *d->faults, err);
    if (d->faults == NULL)
        return CM_ENOMEM;
    memcpy(d->faults, hooks->faults, hooks->nfaults * sizeof *d->faults);
    void *bytes;
    const int rc = cm_device_alloc_locked(d, hooks->nfaults, &bytes, NULL, err);
    if (rc != CM_OK)
        return rc;
    d->fault_bytes = bytes;
    d->nfaults = hooks->nfaults;
    return CM_OK;
}

int cm_device_open(const char *text, const cm_device_hooks *hooks, cm_device **out, cm_error *err)
{
    static const cm_device_hooks none;
    unsigned number;
    int rc;
    *out = NULL;
    if (hooks == NULL)
        hooks = &none;
    if (strcmp(text, "host") == 0)
        rc = cm_host_open(hooks, out, err);
    else if (parse_cuda(text, &number))
        rc = cm_cuda_open(number, hooks, out, err);
    else
        return cm_fail(err, CM_EINVAL, "'%s' is not a device: host, cuda or cuda:N", text);
    if (rc == CM_OK)
        rc = set_hooks(*out, hooks, err);
    if (rc != CM_OK) {
        cm_device_close(*out);
        *out = NULL;
    }
    return rc;
}

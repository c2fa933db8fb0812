/* Helpers for reading and writing metadata. */
#include <stdlib.h>
#include <string.h>

#include "format/zarr/internal.h"

int cm_zarr_read_lengths(const cm_json *list, const char *what, uint64_t at_least, unsigned *rank,
                         uint64_t *out, cm_error *err)
{
    if (!cm_json_is(list, CM_JSON_ARRAY))
        return cm_fail(err, CM_EFORMAT, "%s is not a list", what);
    size_t n = cm_json_length(list);
    if (n > CM_MAX_RANK)
        return cm_fail(err, CM_EFORMAT, "%s has %zu dimensions, more than %d", what, n,
                       CM_MAX_RANK);
    for (size_t i = 0; i < n; i++) {
        /* Lengths above int64 are invalid and would overflow signed offsets. */
        if (!cm_json_get_u64(cm_json_at(list, i), &out[i]) || out[i] > INT64_MAX)
            return cm_fail(err, CM_EFORMAT, "%s holds something that is not a length", what);
        if (out[i] < at_least)
            return cm_fail(err, CM_EFORMAT, "%s has a zero", what);
    }
    *rank = (unsigned)n;
    return CM_OK;
}

cm_json *cm_zarr_lengths(unsigned rank, const uint64_t *length)
{
    cm_json *list = cm_json_array();
    for (unsigned i = 0; i < rank; i++) {
        if (cm_json_append(list, cm_json_u64(length[i]), NULL) != CM_OK) {
            cm_json_free(list);
            return NULL;
        }
    }
    return list;
}

void cm_zarr_set(int *rc, cm_json *object, const char *name, cm_json *value, cm_error *err)
{
    int failed = cm_json_set(object, name, value, *rc != CM_OK ? NULL : err);
    if (*rc == CM_OK)
        *rc = failed;
}

cm_json *cm_zarr_named_json(const char *name, cm_json *config)
{
    int rc = CM_OK;
    cm_json *j = cm_json_object();
    cm_zarr_set(&rc, j, "name", cm_json_string(name), NULL);
    if (config != NULL)
        cm_zarr_set(&rc, j, "configuration", config, NULL);
    if (rc != CM_OK) {
        cm_json_free(j);
        return NULL;
    }
    return j;
}

int cm_zarr_named(const cm_json *j, const char *what, const char **name, const cm_json **config,
                  cm_error *err)
{
    *config = NULL;
    *name = cm_json_text(j, NULL);
    if (*name != NULL)
        return CM_OK;
    *name = cm_json_text(cm_json_member(j, "name"), NULL);
    if (*name == NULL)
        return cm_fail(err, CM_EFORMAT, "%s is missing or has no name", what);
    *config = cm_json_member(j, "configuration");
    if (*config != NULL && !cm_json_is(*config, CM_JSON_OBJECT))
        return cm_fail(err, CM_EFORMAT, "%s '%s': its configuration is not an object", what, *name);
    return CM_OK;
}

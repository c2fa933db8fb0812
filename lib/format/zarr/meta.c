/* Array and group metadata: lifetime, copies, names and chunk keys. */
#include <stdlib.h>
#include <string.h>

#include "base/utf8.h"
#include "format/zarr/internal.h"

static int copy_text(char **text, cm_error *err)
{
    if (*text != NULL && (*text = cm_strdup(*text, err)) == NULL)
        return CM_ENOMEM;
    return CM_OK;
}

static int copy_cuts(cm_cuts **cuts, cm_error *err)
{
    const cm_cuts *from = *cuts;
    if (from == NULL)
        return CM_OK;
    *cuts = cm_calloc(1, sizeof(**cuts), err);
    return *cuts != NULL ? cm_cuts_copy(from, *cuts, err) : CM_ENOMEM;
}

int cm_zarr_meta_copy(const cm_zarr_meta *meta, cm_zarr_meta *out, cm_error *err)
{
    cm_zarr_meta copy = *meta;
    /* Cleared first, so that a copy that fails half-way owns nothing of the original. */
    copy.attrs = NULL;
    copy.raw = NULL;
    memset(copy.dim_name, 0, sizeof copy.dim_name);
    memset(copy.cuts, 0, sizeof copy.cuts);
    copy.fill = NULL;
    copy.fill_text = NULL;
    copy.codecs = NULL;
    copy.ncodecs = 0;
    int rc = CM_OK;
    if (meta->attrs != NULL && (copy.attrs = cm_json_copy(meta->attrs)) == NULL)
        rc = cm_fail(err, CM_ENOMEM, "no memory for a copy of metadata");
    else if (meta->raw != NULL)
        copy.raw = cm_json_share(meta->raw);
    for (unsigned i = 0; i < CM_MAX_RANK && rc == CM_OK; i++) {
        char *name = meta->dim_name[i];
        rc = copy_text(&name, err);
        copy.dim_name[i] = rc != CM_OK ? NULL : name;
        copy.cuts[i] = rc != CM_OK ? NULL : meta->cuts[i];
        if (rc == CM_OK)
            rc = copy_cuts(&copy.cuts[i], err);
    }
    if (rc == CM_OK && meta->fill != NULL) {
        copy.fill = cm_calloc(meta->dtype.nbytes, 1, err);
        rc = copy.fill != NULL ? CM_OK : CM_ENOMEM;
        if (rc == CM_OK)
            memcpy(copy.fill, meta->fill, meta->dtype.nbytes);
    }
    if (rc == CM_OK) {
        char *text = meta->fill_text;
        rc = copy_text(&text, err);
        copy.fill_text = rc != CM_OK ? NULL : text;
    }
    if (rc == CM_OK && meta->ncodecs) {
        rc = cm_codec_specs_copy(meta->codecs, meta->ncodecs, &copy.codecs, err);
        copy.ncodecs = rc != CM_OK ? 0 : meta->ncodecs;
    }
    if (rc != CM_OK) {
        cm_zarr_meta_release(&copy);
        return rc;
    }
    *out = copy;
    return CM_OK;
}

int cm_zarr_meta_set_format(cm_zarr_meta *meta, int zarr_format, cm_error *err)
{
    if (meta->zarr_format == zarr_format)
        return CM_OK;
    if (zarr_format != 2 && zarr_format != 3)
        return cm_fail(err, CM_EINVAL, "Zarr format %d does not exist; it must be 2 or 3",
                       zarr_format);
    if (meta->verbatim)
        return cm_fail(err, CM_EUNSUPPORTED,
                       "metadata that is not understood cannot become Zarr v%d", zarr_format);
    if (cm_zarr_meta_is_cut(meta))
        return cm_fail(err, CM_EUNSUPPORTED, "Zarr v%d has no rectilinear chunk grid", zarr_format);
    cm_zarr_meta old = *meta;
    meta->zarr_format = zarr_format;
    meta->separator = zarr_format == 3 ? '/' : '.';
    meta->key_v2 = false;
    /* Writing shows whether the format can express it. */
    cm_json *j = NULL, *attrs = NULL;
    int rc = zarr_format == 3
                 ? cm_zarr_codecs_check_v3(meta->codecs, meta->ncodecs, &meta->dtype, err)
                 : cm_zarr_meta_to_v2(meta, &j, &attrs, err);
    if (rc == CM_OK && zarr_format == 3)
        rc = cm_zarr_meta_to_v3(meta, &j, err);
    if (rc != CM_OK) {
        *meta = old;
        return rc;
    }
    cm_json_free(j);
    cm_json_free(attrs);
    cm_json_free(meta->raw);
    meta->raw = NULL;
    return CM_OK;
}

/* Writes V in decimal at P; returns the end. */
static char *put_number(char *p, uint64_t v)
{
    char digits[20];
    unsigned n = 0;
    do
        digits[n++] = (char)('0' + v % 10);
    while (v /= 10);
    while (n > 0)
        *p++ = digits[--n];
    return p;
}

char *cm_zarr_chunk_key(const cm_zarr_meta *meta, const uint64_t *coord, char *buf, size_t size)
{
    if (size < CM_CHUNK_KEY_SIZE) {
        if (size)
            buf[0] = '\0';
        return buf;
    }
    bool is_default = meta->zarr_format == 3 && !meta->key_v2;
    char *p = buf;
    if (is_default)
        *p++ = 'c';
    else if (meta->rank == 0)
        *p++ = '0';
    for (unsigned i = 0; i < meta->rank; i++) {
        if (is_default || i > 0)
            *p++ = meta->separator;
        p = put_number(p, coord[i]);
    }
    *p = '\0';
    return buf;
}

int cm_zarr_name_check(const char *name, bool *warn, cm_error *err)
{
    if (warn != NULL)
        *warn = false;
    if (name[0] == '\0')
        return cm_fail(err, CM_EINVAL, "an empty name cannot be written to Zarr");
    if (strchr(name, '/') != NULL)
        return cm_fail(err, CM_EINVAL, "name '%s' holds a '/'", name);
    /* zarr-python treats it as a '/'. */
    if (strchr(name, '\\') != NULL)
        return cm_fail(err, CM_EINVAL, "name '%s' holds a path separator, '\\'", name);
    if (strspn(name, ".") == strlen(name))
        return cm_fail(err, CM_EINVAL, "name '%s' is only dots", name);
    if (strcmp(name, "zarr.json") == 0 || strncmp(name, ".z", 2) == 0)
        return cm_fail(err, CM_EINVAL, "name '%s' is one of Zarr's own", name);
    if (strlen(name) > 255)
        return cm_fail(err, CM_EINVAL, "name '%.40s...' is longer than 255 bytes", name);
    if (!cm_utf8_is_valid(name, strlen(name)))
        return cm_fail(err, CM_EINVAL, "name '%s' is not UTF-8", name);
    if (warn != NULL)
        *warn = strncmp(name, "__", 2) == 0;
    return CM_OK;
}

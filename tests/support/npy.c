#include "npy.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

int cm_read_file(const char *path, uint8_t **data, size_t *nbytes, cm_error *err)
{
    *data = NULL;
    *nbytes = 0;
    FILE *f = fopen(path, "rb");
    if (!f)
        return cm_fail_errno(err, errno, "%s", path);
    size_t capacity = 4096;
    uint8_t *bytes = malloc(capacity + 1);
    while (bytes) {
        size_t n = fread(bytes + *nbytes, 1, capacity - *nbytes, f);
        *nbytes += n;
        if (n == 0)
            break;
        if (*nbytes == capacity) {
            capacity *= 2;
            uint8_t *more = realloc(bytes, capacity + 1);
            if (!more)
                free(bytes);
            bytes = more;
        }
    }
    int failed = ferror(f);
    fclose(f);
    if (!bytes)
        return cm_fail(err, CM_ENOMEM, "%s: no memory", path);
    if (failed) {
        free(bytes);
        return cm_fail(err, CM_EIO, "%s: reading failed", path);
    }
    bytes[*nbytes] = 0;
    *data = bytes;
    return CM_OK;
}

/* The text after 'KEY': in the header, which is a Python dictionary; NULL when it is not there. */
static const char *member(const char *header, const char *key)
{
    char quoted[32];
    snprintf(quoted, sizeof quoted, "'%s': ", key);
    const char *at = strstr(header, quoted);
    return at ? at + strlen(quoted) : NULL;
}

/* "<f8" has 8 bytes, "<U3" 12, "<M8[ns]" 8. */
static size_t itemsize_of(const char *descr)
{
    size_t n = strlen(descr) > 2 ? strtoul(descr + 2, NULL, 10) : 0;
    return strlen(descr) > 1 && descr[1] == 'U' ? 4 * n : n;
}

static int parse_header(const char *header, cm_npy *out, const char *path, cm_error *err)
{
    const char *descr = member(header, "descr");
    const char *order = member(header, "fortran_order");
    const char *shape = member(header, "shape");
    if (!descr || !order || !shape || sscanf(descr, "'%31[^']'", out->descr) != 1 || *shape != '(')
        return cm_fail(err, CM_EFORMAT, "%s: the header is not understood", path);
    out->fortran_order = strncmp(order, "True", 4) == 0;
    out->itemsize = itemsize_of(out->descr);
    out->nelem = 1;
    for (const char *p = shape + 1; *p && *p != ')';) {
        char *end;
        uint64_t n = strtoull(p, &end, 10);
        if (end == p || out->rank == CM_NPY_MAX_RANK)
            return cm_fail(err, CM_EFORMAT, "%s: the shape is not understood", path);
        out->shape[out->rank++] = n;
        out->nelem *= n;
        for (p = end; *p == ',' || *p == ' '; p++)
            ;
    }
    return CM_OK;
}

int cm_npy_read(const char *path, cm_npy *out, cm_error *err)
{
    *out = (cm_npy){0};
    uint8_t *file;
    size_t nbytes;
    int rc = cm_read_file(path, &file, &nbytes, err);
    if (rc)
        return rc;
    size_t at = 0, header = 0;
    if (nbytes >= 12 && memcmp(file, "\x93NUMPY", 6) == 0) {
        at = file[6] == 1 ? 10 : 12;
        header = file[8] + 256u * file[9] + (file[6] == 1 ? 0 : 65536u * file[10]);
    }
    if (at == 0 || header > nbytes - at) {
        rc = cm_fail(err, CM_EFORMAT, "%s: not a .npy file", path);
        goto out;
    }
    uint8_t *data = file + at + header;
    uint8_t first = *data;
    *data = 0; /* ends the header, which is text */
    rc = parse_header((const char *)file + at, out, path, err);
    *data = first;
    if (rc)
        goto out;
    if (nbytes - at - header != out->nelem * out->itemsize) {
        rc = cm_fail(err, CM_EFORMAT, "%s: the data are not as long as the shape says", path);
        goto out;
    }
    memmove(file, data, nbytes - at - header);
    out->data = file;
    file = NULL;
out:
    free(file);
    return rc;
}

void cm_npy_release(cm_npy *npy)
{
    if (npy) {
        free(npy->data);
        npy->data = NULL;
    }
}

#include "format/zarr/chunk_name.h"

#include <stdlib.h>
#include <string.h>

void cm_chunk_names_init(const cm_zarr_meta *meta, cm_chunk_names *out)
{
    *out = (cm_chunk_names){.meta = meta};
    for (unsigned i = 0; i < meta->rank; i++)
        if (meta->chunk[i] == 0)
            return;
    out->has_grid = cm_zarr_meta_outer_grid(meta, &out->grid, NULL) == CM_OK;
}

/* Whether P begins with a number as keys have it; *end points after it. */
static bool read_number(const char *p, const char **end, uint64_t *out)
{
    size_t n = strspn(p, "0123456789");
    *end = p + n;
    if (n == 0 || n > 19 || (n > 1 && p[0] == '0'))
        return false;
    *out = strtoull(p, NULL, 10);
    return true;
}

/* "1/2/3" from P on, after what stands in front of the numbers. */
static cm_chunk_name read_numbers(const cm_chunk_names *names, const char *p, uint64_t *coord)
{
    const cm_zarr_meta *m = names->meta;
    bool inside = true;
    for (unsigned i = 0; i < m->rank; i++) {
        uint64_t number;
        if (!read_number(p, &p, &number))
            return CM_CHUNK_NAME_OTHER;
        inside = inside && (!names->has_grid || number < names->grid.count[i]);
        if (coord != NULL)
            coord[i] = number;
        if (*p == '\0' && i + 1 == m->rank)
            return inside ? CM_CHUNK_NAME_CHUNK : CM_CHUNK_NAME_OUTSIDE;
        if (*p == '\0')
            return m->separator != '/' ? CM_CHUNK_NAME_OTHER
                   : inside            ? CM_CHUNK_NAME_ABOVE
                                       : CM_CHUNK_NAME_OUTSIDE;
        if (*p++ != m->separator)
            return CM_CHUNK_NAME_OTHER;
    }
    return CM_CHUNK_NAME_OTHER;
}

cm_chunk_name cm_chunk_name_parse(const cm_chunk_names *names, const char *below, uint64_t *coord)
{
    const cm_zarr_meta *m = names->meta;
    const bool is_default = m->zarr_format == 3 && !m->key_v2;
    const char *p = below;
    if (is_default) {
        if (*p++ != 'c')
            return CM_CHUNK_NAME_OTHER;
        if (*p == '\0')
            return m->rank == 0          ? CM_CHUNK_NAME_CHUNK
                   : m->separator == '/' ? CM_CHUNK_NAME_ABOVE
                                         : CM_CHUNK_NAME_OTHER;
        if (*p++ != m->separator)
            return CM_CHUNK_NAME_OTHER;
    }
    if (m->rank == 0)
        return !is_default && strcmp(p, "0") == 0 ? CM_CHUNK_NAME_CHUNK : CM_CHUNK_NAME_OTHER;
    return read_numbers(names, p, coord);
}

bool cm_zarr_is_document(const char *name)
{
    static const char *const DOCUMENTS[] = {"zarr.json", ".zarray", ".zgroup", ".zattrs",
                                            ".zmetadata"};
    for (size_t i = 0; i < sizeof(DOCUMENTS) / sizeof(*DOCUMENTS); i++)
        if (strcmp(name, DOCUMENTS[i]) == 0)
            return true;
    return false;
}

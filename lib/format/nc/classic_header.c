#include "format/nc/classic_header.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/utf8.h"

enum {
    TAG_DIMENSION = 0x0A,
    TAG_VARIABLE = 0x0B,
    TAG_ATTRIBUTE = 0x0C,
    /* netCDF-C copies names into buffers of NC_MAX_NAME and dimension ids into
       arrays of NC_MAX_VAR_DIMS. */
    MAX_NAME = 256,
    MAX_VAR_DIMS = 1024,
    WINDOW = 8192
};

typedef struct parser {
    const cm_source *source;
    uint64_t at; /* next byte */
    /* Bytes [window_start, window_start + window_nbytes) of the file are in `window`. */
    uint64_t window_start;
    size_t window_nbytes;
    bool wide; /* CDF-5: counts, ids and lengths of 64 bits */
    size_t ndims;
    uint64_t *dim; /* lengths; 0 for the record dimension */
    cm_error *err;
    uint8_t window[WINDOW];
} parser;

static uint64_t remaining(const parser *p)
{
    return p->source->nbytes - p->at;
}

static int truncated(parser *p, const char *what)
{
    return cm_fail(p->err, CM_EFORMAT,
                   "the header is cut off: %s would reach past the end of the file, %" PRIu64
                   " bytes",
                   what, p->source->nbytes);
}

static int get(parser *p, void *dst, size_t nbytes, const char *what)
{
    if (nbytes > remaining(p))
        return truncated(p, what);
    if (p->at < p->window_start || p->at + nbytes > p->window_start + p->window_nbytes) {
        size_t n = remaining(p) < WINDOW ? (size_t)remaining(p) : WINDOW;
        int rc = cm_source_read(p->source, p->at, p->window, n, p->err);
        if (rc != CM_OK)
            return rc;
        p->window_start = p->at;
        p->window_nbytes = n;
    }
    memcpy(dst, p->window + (p->at - p->window_start), nbytes);
    p->at += nbytes;
    return CM_OK;
}

static int get_u32(parser *p, uint32_t *out, const char *what)
{
    uint8_t b[4];
    int rc = get(p, b, sizeof b, what);
    if (rc == CM_OK)
        *out = cm_load_be32(b);
    return rc;
}

static int get_u64(parser *p, uint64_t *out, const char *what)
{
    uint8_t b[8];
    int rc = get(p, b, sizeof b, what);
    if (rc == CM_OK)
        *out = cm_load_be64(b);
    return rc;
}

/* Reads a NON_NEG of the format: 32 bits in CDF-1 and CDF-2, 64 in CDF-5. */
static int get_size(parser *p, uint64_t *out, const char *what)
{
    if (p->wide)
        return get_u64(p, out, what);
    uint32_t v = 0;
    int rc = get_u32(p, &v, what);
    *out = v;
    return rc;
}

/* Skips NBYTES and the padding to four bytes. */
static int skip_padded(parser *p, uint64_t nbytes, const char *what)
{
    if (nbytes > remaining(p))
        return truncated(p, what);
    uint64_t padded = (nbytes + 3) & ~UINT64_C(3);
    if (padded > remaining(p))
        return truncated(p, what);
    p->at += padded;
    return CM_OK;
}

/* NAME has MAX_NAME + 1 bytes. */
static int get_name(parser *p, char *name)
{
    uint64_t nbytes = 0;
    int rc = get_size(p, &nbytes, "a name");
    if (rc != CM_OK)
        return rc;
    if (nbytes > MAX_NAME)
        return cm_fail(p->err, CM_EFORMAT,
                       "a name of %" PRIu64 " bytes at %" PRIu64
                       " is longer than NetCDF allows, %d",
                       nbytes, p->at, MAX_NAME);
    size_t padded = ((size_t)nbytes + 3) & ~(size_t)3;
    uint8_t text[MAX_NAME + 4];
    rc = get(p, text, padded, "a name");
    if (rc != CM_OK)
        return rc;
    memcpy(name, text, (size_t)nbytes);
    name[nbytes] = '\0';
    return CM_OK;
}

/* The tag and the count of a list; each element takes at least MIN_NBYTES. */
static int get_list(parser *p, uint32_t tag, size_t min_nbytes, const char *what, size_t *count)
{
    uint32_t found = 0;
    uint64_t n = 0;
    uint64_t start = p->at;
    int rc = get_u32(p, &found, what);
    if (rc == CM_OK)
        rc = get_size(p, &n, what);
    if (rc != CM_OK)
        return rc;
    if (found == 0 && n == 0) { /* ABSENT */
        *count = 0;
        return CM_OK;
    }
    if (found != tag)
        return cm_fail(p->err, CM_EFORMAT,
                       "the header is corrupt: tag %" PRIu32 " at %" PRIu64 " begins no list of %s",
                       found, start, what);
    if (n > remaining(p) / min_nbytes)
        return cm_fail(p->err, CM_EFORMAT,
                       "the header is corrupt: it counts %" PRIu64 " %s in a file of %" PRIu64
                       " bytes",
                       n, what, p->source->nbytes);
    *count = (size_t)n;
    return CM_OK;
}

static uint32_t type_nbytes(const parser *p, uint32_t type)
{
    static const uint8_t size[] = {0, 1, 1, 2, 4, 4, 8, 1, 2, 4, 8, 8};
    uint32_t last = p->wide ? 11 : 6;
    return type <= last ? size[type] : 0;
}

static int get_type(parser *p, const char *owner, uint32_t *type, uint32_t *nbytes)
{
    int rc = get_u32(p, type, "a type");
    if (rc != CM_OK)
        return rc;
    *nbytes = type_nbytes(p, *type);
    if (*nbytes == 0)
        return cm_fail(p->err, CM_EFORMAT, "the header is corrupt: %s has type %" PRIu32, owner,
                       *type);
    return CM_OK;
}

/* Reads an attribute without its values. */
static int get_attribute(parser *p, char *name, cm_classic_attribute *a, uint64_t *nbytes)
{
    uint32_t type = 0, itemsize = 0;
    int rc = get_name(p, name);
    if (rc == CM_OK)
        rc = get_type(p, "an attribute", &type, &itemsize);
    if (rc == CM_OK)
        rc = get_size(p, &a->nelem, "an attribute");
    if (rc == CM_OK && !cm_mul_u64(a->nelem, itemsize, nbytes))
        rc = truncated(p, "an attribute's value");
    a->type = (int)type;
    a->begin = p->at;
    return rc;
}

static int skip_attributes(parser *p, cm_classic_header *h, int var)
{
    size_t n = 0;
    int rc = get_list(p, TAG_ATTRIBUTE, p->wide ? 20 : 12, "attributes", &n);
    for (size_t i = 0; rc == CM_OK && i < n; i++) {
        char name[MAX_NAME + 1];
        cm_classic_attribute a = {.var = var, .number = (int)i};
        uint64_t nbytes = 0;
        rc = get_attribute(p, name, &a, &nbytes);
        if (rc == CM_OK)
            rc = skip_padded(p, nbytes, "an attribute's value");
        if (rc != CM_OK || cm_utf8_is_valid(name, strlen(name)))
            continue;
        rc = CM_GROW(h->odd, h->nodd, p->err);
        if (rc == CM_OK)
            h->odd[h->nodd++] = a;
    }
    return rc;
}

static int read_dimensions(parser *p, cm_classic_header *h)
{
    int rc = get_list(p, TAG_DIMENSION, p->wide ? 16 : 8, "dimensions", &p->ndims);
    if (rc != CM_OK || p->ndims == 0)
        return rc;
    p->dim = cm_calloc(p->ndims, sizeof *p->dim, p->err);
    if (p->dim == NULL)
        return CM_ENOMEM;
    for (size_t i = 0; i < p->ndims; i++) {
        char name[MAX_NAME + 1];
        if ((rc = get_name(p, name)) || (rc = get_size(p, &p->dim[i], "a dimension")))
            return rc;
        if (p->dim[i] != 0)
            continue;
        if (h->has_record_dim)
            return cm_fail(p->err, CM_EFORMAT,
                           "the header is corrupt: %s is a second unlimited dimension", name);
        h->has_record_dim = true;
    }
    return CM_OK;
}

/* Reads the dimension ids of V: its rank, whether it has records, and its size. */
static int read_var_shape(parser *p, cm_classic_var *v, uint64_t *nelem)
{
    uint64_t rank = 0;
    int rc = get_size(p, &rank, "a variable");
    if (rc != CM_OK)
        return rc;
    if (rank > MAX_VAR_DIMS)
        return cm_fail(p->err, CM_EFORMAT,
                       "the header is corrupt: variable %s has %" PRIu64 " dimensions", v->name,
                       rank);
    v->rank = (unsigned)rank;
    *nelem = 1;
    for (unsigned i = 0; i < v->rank; i++) {
        uint64_t id = 0;
        if ((rc = get_size(p, &id, "a variable")))
            return rc;
        if (id >= p->ndims)
            return cm_fail(p->err, CM_EFORMAT,
                           "the header is corrupt: variable %s has dimension %" PRIu64 " of %zu",
                           v->name, id, p->ndims);
        if (p->dim[id] == 0) {
            if (i != 0)
                return cm_fail(p->err, CM_EFORMAT,
                               "the header is corrupt: the unlimited dimension of variable %s is "
                               "not its first",
                               v->name);
            v->is_record = true;
        } else if (!cm_mul_u64(*nelem, p->dim[id], nelem)) {
            return cm_fail(p->err, CM_EFORMAT,
                           "the header is corrupt: the size of variable %s does not fit 64 bits",
                           v->name);
        }
    }
    return CM_OK;
}

static int read_variable(parser *p, cm_classic_header *h, cm_classic_var *v)
{
    char name[MAX_NAME + 1];
    uint32_t type = 0;
    int rc = get_name(p, name);
    if (rc != CM_OK)
        return rc;
    v->name = cm_strdup(name, p->err);
    if (v->name == NULL)
        return CM_ENOMEM;
    uint64_t nelem = 0, vsize = 0;
    if ((rc = read_var_shape(p, v, &nelem)) || (rc = skip_attributes(p, h, (int)(v - h->var))) ||
        (rc = get_type(p, v->name, &type, &v->itemsize)) ||
        (rc = get_size(p, &vsize, "a variable")))
        return rc;
    /* vsize is redundant, and wrong by design where it does not fit 32 bits. */
    if (h->version == 1) {
        uint32_t begin = 0;
        rc = get_u32(p, &begin, "a variable");
        v->begin = begin;
    } else {
        rc = get_u64(p, &v->begin, "a variable");
    }
    if (rc != CM_OK)
        return rc;
    if (!cm_mul_u64(nelem, v->itemsize, &v->nbytes) || v->nbytes > INT64_MAX ||
        v->begin > INT64_MAX - v->nbytes)
        return cm_fail(p->err, CM_EFORMAT,
                       "the header is corrupt: the end of variable %s does not fit 64 bits",
                       v->name);
    return CM_OK;
}

static uint64_t padded(uint64_t nbytes)
{
    return (nbytes + 3) & ~UINT64_C(3);
}

/*
 * A record holds one part of each record variable, padded to four bytes; a single record variable
 * is not padded.
 */
static int find_record_size(parser *p, cm_classic_header *h)
{
    size_t nrecord_vars = 0;
    uint64_t only = 0, sum = 0;
    for (size_t i = 0; i < h->nvars; i++) {
        const cm_classic_var *v = &h->var[i];
        if (!v->is_record)
            continue;
        nrecord_vars++;
        only = v->nbytes;
        if (padded(v->nbytes) > INT64_MAX - sum)
            return cm_fail(p->err, CM_EFORMAT,
                           "the header is corrupt: the size of a record does not fit 64 bits");
        sum += padded(v->nbytes);
    }
    h->record_nbytes = nrecord_vars == 1 ? only : sum;
    return CM_OK;
}

/*
 * Checks the order that netCDF-C demands: variables in the order of their definition, fixed ones
 * first, without overlaps among them or with the header.
 */
static int check_order(parser *p, const cm_classic_header *h, bool records, uint64_t *end)
{
    const char *before = "the header";
    for (size_t i = 0; i < h->nvars; i++) {
        const cm_classic_var *v = &h->var[i];
        if (v->is_record != records)
            continue;
        if (v->begin < *end)
            return cm_fail(p->err, CM_EFORMAT,
                           "the header is corrupt: variable %s begins at %" PRIu64
                           ", before the end of %s at %" PRIu64,
                           v->name, v->begin, before, *end);
        *end = v->begin + v->nbytes;
        before = v->name;
    }
    return CM_OK;
}

/*
 * Finds the end of the data: the last byte of every variable and, with records, of every part of
 * the last record.
 */
static int find_end(parser *p, cm_classic_header *h)
{
    uint64_t end = h->header_nbytes;
    int rc = check_order(p, h, false, &end);
    if (rc != CM_OK)
        return rc;
    h->data_end = end;
    rc = check_order(p, h, true, &end);
    if (rc != CM_OK)
        return rc;
    if (h->streaming) {
        uint64_t first = UINT64_MAX;
        for (size_t i = 0; i < h->nvars; i++)
            if (h->var[i].is_record && h->var[i].begin < first)
                first = h->var[i].begin;
        h->nrecords = h->record_nbytes && first < p->source->nbytes
                          ? (p->source->nbytes - first) / h->record_nbytes
                          : 0;
    }
    for (size_t i = 0; i < h->nvars && h->nrecords; i++) {
        const cm_classic_var *v = &h->var[i];
        if (!v->is_record)
            continue;
        uint64_t before = 0;
        if (!cm_mul_u64(h->nrecords - 1, h->record_nbytes, &before) ||
            before > INT64_MAX - (v->begin + v->nbytes))
            return cm_fail(p->err, CM_EFORMAT,
                           "the header is corrupt: %" PRIu64 " records of %" PRIu64
                           " bytes do not fit 64 bits",
                           h->nrecords, h->record_nbytes);
        if (v->begin + before + v->nbytes > h->data_end)
            h->data_end = v->begin + before + v->nbytes;
    }
    return CM_OK;
}

static int read_header(parser *p, cm_classic_header *h)
{
    uint8_t magic[4];
    if (p->source->nbytes < sizeof magic)
        return cm_fail(p->err, CM_ENOTFOUND, "not a NetCDF classic file");
    int rc = get(p, magic, sizeof magic, "the magic number");
    if (rc != CM_OK)
        return rc;
    if (memcmp(magic, "CDF", 3) != 0 || (magic[3] != 1 && magic[3] != 2 && magic[3] != 5))
        return cm_fail(p->err, CM_ENOTFOUND, "not a NetCDF classic file");
    h->version = magic[3];
    p->wide = h->version == 5;
    if ((rc = get_size(p, &h->nrecords, "the number of records")))
        return rc;
    h->streaming = h->nrecords == (p->wide ? UINT64_MAX : UINT32_MAX);
    if ((rc = read_dimensions(p, h)) || (rc = skip_attributes(p, h, -1)))
        return rc;
    size_t nvars = 0;
    if ((rc = get_list(p, TAG_VARIABLE, p->wide ? 48 : 28, "variables", &nvars)) || nvars == 0) {
        h->header_nbytes = h->data_end = p->at;
        h->nrecords = h->streaming ? 0 : h->nrecords;
        return rc;
    }
    h->var = cm_calloc(nvars, sizeof *h->var, p->err);
    if (h->var == NULL)
        return CM_ENOMEM;
    for (; h->nvars < nvars; h->nvars++)
        if ((rc = read_variable(p, h, &h->var[h->nvars]))) {
            h->nvars++; /* counted first: its name may be allocated already, and is to be freed */
            return rc;
        }
    h->header_nbytes = p->at;
    rc = find_record_size(p, h);
    return rc != CM_OK ? rc : find_end(p, h);
}

int cm_classic_header_read(const cm_source *source, cm_classic_header *out, cm_error *err)
{
    memset(out, 0, sizeof *out);
    parser *p = cm_calloc(1, sizeof *p, err);
    if (p == NULL)
        return CM_ENOMEM;
    p->source = source;
    p->err = err;
    int rc = read_header(p, out);
    free(p->dim);
    free(p);
    if (rc != CM_OK)
        cm_classic_header_release(out);
    return rc;
}

void cm_classic_header_release(cm_classic_header *h)
{
    if (h == NULL)
        return;
    for (size_t i = 0; i < h->nvars; i++)
        free(h->var[i].name);
    free(h->var);
    free(h->odd);
    memset(h, 0, sizeof *h);
}

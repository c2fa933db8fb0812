#include "format/nc/h5_super.h"

#include <inttypes.h>
#include <string.h>

static const uint8_t signature[8] = {0x89, 'H', 'D', 'F', '\r', '\n', 0x1a, '\n'};

uint64_t cm_h5_load(const uint8_t *p, unsigned nbytes)
{
    uint64_t v = 0, ones = 0;
    for (unsigned i = 0; i < nbytes; i++) {
        v |= (uint64_t)p[i] << (8 * i);
        ones |= UINT64_C(0xff) << (8 * i);
    }
    return v == ones ? CM_H5_UNDEFINED : v;
}

/* Searches for the signature at 0, 512, 1024, 2048, ... */
static bool find(const cm_source *source, uint64_t *at)
{
    uint8_t found[8];
    cm_error ignored;
    for (uint64_t where = 0;; where = where ? where * 2 : 512) {
        if (where > source->nbytes || source->nbytes - where < sizeof found)
            return false;
        if (cm_source_read(source, where, found, sizeof found, &ignored))
            return false;
        if (memcmp(found, signature, sizeof found) == 0) {
            *at = where;
            return true;
        }
    }
}

static bool good_width(unsigned nbytes)
{
    return nbytes == 2 || nbytes == 4 || nbytes == 8;
}

static int cut_off(const cm_source *source, cm_error *err)
{
    return cm_fail(err, CM_EFORMAT, "the HDF5 superblock is cut off: the file ends at %" PRIu64,
                   source->nbytes);
}

int cm_h5_super_read(const cm_source *source, cm_h5_super *out, cm_error *err)
{
    *out = (cm_h5_super){0};
    if (!find(source, &out->base))
        return cm_fail(err, CM_ENOTFOUND, "not an HDF5 file");

    /* The longest superblock up to the addresses, and four addresses. */
    uint8_t b[28 + 4 * 8] = {0};
    uint64_t left = source->nbytes - out->base;
    size_t n = left < sizeof b ? (size_t)left : sizeof b;
    int rc = cm_source_read(source, out->base, b, n, err);
    if (rc != CM_OK)
        return rc;

    if (n < 16)
        return cut_off(source, err);
    size_t addresses; /* base, another, end of the file, another */
    out->version = b[8];
    switch (out->version) {
    case 0:
    case 1:
        out->offset_nbytes = b[13];
        out->length_nbytes = b[14];
        addresses = out->version == 0 ? 24 : 28;
        break;
    case 2:
    case 3:
        out->offset_nbytes = b[9];
        out->length_nbytes = b[10];
        out->writing = out->version == 3 && (b[11] & 1);
        addresses = 12;
        break;
    default:
        return cm_fail(err, CM_EFORMAT, "HDF5 superblock version %u is not known", out->version);
    }
    if (!good_width(out->offset_nbytes) || !good_width(out->length_nbytes))
        return cm_fail(err, CM_EFORMAT,
                       "the HDF5 superblock is corrupt: addresses of %u and lengths of %u bytes",
                       out->offset_nbytes, out->length_nbytes);
    size_t nbytes = addresses + 4 * out->offset_nbytes;
    if (n < nbytes)
        return cut_off(source, err);
    uint64_t base = cm_h5_load(b + addresses, out->offset_nbytes);
    uint64_t end = cm_h5_load(b + addresses + 2 * (size_t)out->offset_nbytes, out->offset_nbytes);
    if (base == CM_H5_UNDEFINED || end == CM_H5_UNDEFINED || end < base ||
        end - base > INT64_MAX - out->base)
        return cm_fail(err, CM_EFORMAT,
                       "the HDF5 superblock is corrupt: base address %" PRIu64
                       ", end of file %" PRIu64,
                       base, end);
    /*
     * A user block inserted later moves the whole file: HDF5 counts from the place of the
     * signature, not from the address in the superblock.
     */
    out->end = end - base + out->base;
    return CM_OK;
}

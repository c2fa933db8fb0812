#include "codec/rewrap.h"

#include <libdeflate.h>
#include <string.h>

enum {
    ZLIB_HEADER = 2,
    ZLIB_TRAILER = 4, /* Adler-32 */
    ZLIB_FDICT = 0x20,
    GZIP_HEADER = 10
};

/* Length of the stream at ZLIB, behind which other bytes may lie, by inflating it once more. */
static int measure(const cm_buf *zlib, size_t decoded_nbytes, size_t *nbytes, cm_error *err)
{
    size_t got;
    cm_buf again = {0};
    struct libdeflate_decompressor *d = libdeflate_alloc_decompressor();
    int rc = d == NULL ? cm_fail(err, CM_ENOMEM, "no memory for a decompressor")
                       : cm_buf_resize(&again, decoded_nbytes, err);
    if (rc == CM_OK && libdeflate_zlib_decompress_ex(d, zlib->data, zlib->nbytes, again.data,
                                                     decoded_nbytes, nbytes, &got) != 0)
        rc = cm_fail(err, CM_EFORMAT, "zlib: no stream that gzip can hold");
    if (d != NULL)
        libdeflate_free_decompressor(d);
    cm_buf_release(&again);
    return rc;
}

int cm_zlib_to_gzip(const cm_buf *zlib, const void *decoded, size_t decoded_nbytes, cm_buf *out,
                    cm_error *err)
{
    /* ID1 ID2, deflate, no flags, no time, no hint of the level, unknown system. */
    static const uint8_t header[GZIP_HEADER] = {0x1f, 0x8b, 8, 0, 0, 0, 0, 0, 0, 255};
    if (zlib->nbytes < ZLIB_HEADER + ZLIB_TRAILER || (zlib->data[1] & ZLIB_FDICT) != 0)
        return cm_fail(err, CM_EFORMAT, "zlib: no stream that gzip can hold");
    size_t nbytes = zlib->nbytes;
    int rc = CM_OK;
    if (cm_load_be32(zlib->data + nbytes - ZLIB_TRAILER) !=
        libdeflate_adler32(1, decoded, decoded_nbytes))
        rc = measure(zlib, decoded_nbytes, &nbytes, err);
    const size_t body = nbytes - ZLIB_HEADER - ZLIB_TRAILER;
    if (rc == CM_OK)
        rc = cm_buf_resize(out, GZIP_HEADER + body + 8, err);
    if (rc != CM_OK)
        return rc;
    memcpy(out->data, header, GZIP_HEADER);
    memcpy(out->data + GZIP_HEADER, zlib->data + ZLIB_HEADER, body);
    cm_store_le32(out->data + GZIP_HEADER + body, libdeflate_crc32(0, decoded, decoded_nbytes));
    cm_store_le32(out->data + GZIP_HEADER + body + 4, (uint32_t)decoded_nbytes);
    return CM_OK;
}

/*
 * Checksums of the content of objects: sent with those that are written, compared with those that
 * are read.
 */
#ifndef CM_STORE_NET_SUM_H
#define CM_STORE_NET_SUM_H

#include <chunkmill/net.h>

#include "base/mem.h"

enum {
    CM_SUM_SIZE = 28 /* of a text: 16 bytes in base64 */
};

/* What a checksum of KIND is at the bucket of ADDRESS: never CM_CHECKSUM_AUTO. */
cm_net_checksum cm_sum_at(cm_net_checksum kind, const char *address);

/* The checksum of DATA as its header holds it; "" for CM_CHECKSUM_NONE.  CM_ENOMEM. */
int cm_sum_text(cm_net_checksum kind, const void *data, size_t nbytes, char out[CM_SUM_SIZE],
                cm_error *err);

/* The header that carries one. */
const char *cm_sum_header(cm_net_checksum kind);

/*
 * What an answer says of an object: SAID as the header of CRC-32C has it, ETAG with its quotes,
 * which is an MD5 unless the server has encrypted the object, or put it together of parts.
 */
typedef struct cm_sum_said {
    char crc32c[64]; /* "": nothing */
    const char *etag;
    bool encrypted;
} cm_sum_said;

typedef enum cm_sum_verdict {
    CM_SUM_UNKNOWN, /* nothing was said that could be compared */
    CM_SUM_SAME,
    CM_SUM_OTHER
} cm_sum_verdict;

/* Whether SUM, of KIND, is what was said. */
cm_sum_verdict cm_sum_compare(cm_net_checksum kind, const char *sum, const cm_sum_said *said);

#endif

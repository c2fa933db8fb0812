/* Checksums of objects: sent with objects that are written, compared for objects that are read. */
#ifndef CM_STORE_NET_SUM_H
#define CM_STORE_NET_SUM_H

#include <chunkmill/net.h>

#include "base/md5.h"
#include "base/mem.h"

enum {
    CM_SUM_SIZE = 28 /* of a text: 16 bytes in base64 */
};

/* Resolves KIND for the bucket at ADDRESS: never CM_CHECKSUM_AUTO. */
cm_net_checksum cm_sum_at(cm_net_checksum kind, const char *address);

/* The checksum of DATA as header text; "" for CM_CHECKSUM_NONE.  CM_ENOMEM. */
int cm_sum_text(cm_net_checksum kind, const void *data, size_t nbytes, char out[CM_SUM_SIZE],
                cm_error *err);

/* Name of its header. */
const char *cm_sum_header(cm_net_checksum kind);

/* The 16 bytes of a quoted ETag of 32 digits; false for any other. */
bool cm_sum_of_etag(const char *etag, uint8_t out[CM_MD5_NBYTES]);

/*
 * Checksums in an answer: CRC32C from its header, and ETAG with its quotes, which is an MD5 unless
 * the server encrypted the object or assembled it from parts.
 */
typedef struct cm_sum_said {
    char crc32c[64]; /* "": none */
    const char *etag;
    bool encrypted;
} cm_sum_said;

typedef enum cm_sum_verdict {
    CM_SUM_UNKNOWN, /* the answer has no checksum that could be compared */
    CM_SUM_SAME,
    CM_SUM_OTHER
} cm_sum_verdict;

/* Compares SUM, of KIND, with the answer's. */
cm_sum_verdict cm_sum_compare(cm_net_checksum kind, const char *sum, const cm_sum_said *said);

#endif

/* Checksums of objects, by the names that S3 uses. */
#include "store/net/sum.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>

#include "base/base64.h"
#include "base/crc32c.h"
#include "base/md5.h"

/* Whether ADDRESS has a host of AWS, in any region. */
static bool is_aws(const char *address)
{
    static const char *const ENDS[] = {".amazonaws.com", ".amazonaws.com.cn"};
    const char *host = strstr(address, "://");
    host = host != NULL ? host + 3 : address;
    size_t n = strcspn(host, "/:");
    for (size_t i = 0; i < sizeof(ENDS) / sizeof(ENDS[0]); i++) {
        size_t end = strlen(ENDS[i]);
        if (n > end && strncmp(host + n - end, ENDS[i], end) == 0)
            return true;
    }
    return false;
}

cm_net_checksum cm_sum_at(cm_net_checksum kind, const char *address)
{
    if (kind != CM_CHECKSUM_AUTO)
        return kind;
    return is_aws(address) ? CM_CHECKSUM_CRC32C : CM_CHECKSUM_NONE;
}

const char *cm_sum_header(cm_net_checksum kind)
{
    return kind == CM_CHECKSUM_MD5 ? "Content-MD5" : "x-amz-checksum-crc32c";
}

int cm_sum_text(cm_net_checksum kind, const void *data, size_t nbytes, char out[CM_SUM_SIZE],
                cm_error *err)
{
    uint8_t raw[CM_MD5_NBYTES];
    size_t n = 4;
    out[0] = '\0';
    if (kind == CM_CHECKSUM_MD5) {
        cm_md5(data, nbytes, raw);
        n = CM_MD5_NBYTES;
    } else if (kind == CM_CHECKSUM_CRC32C) {
        uint32_t crc = cm_crc32c(cm_cpu_simd(), data, nbytes);
        for (int i = 0; i < 4; i++)
            raw[i] = (uint8_t)(crc >> (24 - 8 * i));
    } else {
        return CM_OK;
    }
    char *text = cm_base64_encode(raw, n, err);
    if (text == NULL)
        return CM_ENOMEM;
    memcpy(out, text, strlen(text) + 1);
    free(text);
    return CM_OK;
}

bool cm_sum_of_etag(const char *etag, uint8_t out[CM_MD5_NBYTES])
{
    if (strlen(etag) != 2 + 2 * CM_MD5_NBYTES || etag[0] != '"')
        return false;
    for (int i = 0; i < CM_MD5_NBYTES; i++) {
        char digits[3] = {etag[1 + 2 * i], etag[2 + 2 * i], '\0'};
        if (!isxdigit((unsigned char)digits[0]) || !isxdigit((unsigned char)digits[1]))
            return false;
        out[i] = (uint8_t)strtoul(digits, NULL, 16);
    }
    return true;
}

cm_sum_verdict cm_sum_compare(cm_net_checksum kind, const char *sum, const cm_sum_said *said)
{
    uint8_t theirs[CM_MD5_NBYTES];
    if (kind == CM_CHECKSUM_CRC32C) {
        /* An object made of parts has a checksum of their checksums: "...-3". */
        if (said->crc32c[0] == '\0' || strchr(said->crc32c, '-') != NULL)
            return CM_SUM_UNKNOWN;
        return strcmp(said->crc32c, sum) == 0 ? CM_SUM_SAME : CM_SUM_OTHER;
    }
    if (kind != CM_CHECKSUM_MD5 || said->encrypted || !cm_sum_of_etag(said->etag, theirs))
        return CM_SUM_UNKNOWN;
    uint8_t *ours = NULL;
    size_t n = 0;
    bool same = cm_base64_decode(sum, strlen(sum), &ours, &n) && n == CM_MD5_NBYTES &&
                memcmp(ours, theirs, n) == 0;
    free(ours);
    return same ? CM_SUM_SAME : CM_SUM_OTHER;
}

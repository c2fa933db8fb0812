#include "convert/beside/journal_line.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "codec/checksum.h"

enum {
    NDIGITS = 8
};

static uint32_t checksum(const char *payload, size_t nbytes)
{
    return cm_crc32c(cm_cpu_simd(), payload, nbytes);
}

int cm_journal_line_append(cm_buf *text, const char *payload, size_t nbytes, cm_error *err)
{
    int rc = cm_buf_printf(text, err, "%08" PRIx32 " ", checksum(payload, nbytes));
    if (rc == CM_OK)
        rc = cm_buf_append(text, payload, nbytes, err);
    return rc == CM_OK ? cm_buf_append(text, "\n", 1, err) : rc;
}

size_t cm_journal_line_of_skip(char *line, uint64_t item, uint64_t chunk)
{
    char *payload = line + NDIGITS + 1;
    int n =
        snprintf(payload, CM_JOURNAL_SKIP_SIZE - NDIGITS - 1, "%" PRIu64 " %" PRIu64, item, chunk);
    snprintf(line, NDIGITS + 1, "%08" PRIx32, checksum(payload, (size_t)n));
    line[NDIGITS] = ' ';
    payload[n] = '\n';
    return NDIGITS + 1 + (size_t)n + 1;
}

char *cm_journal_line_next(char *text, size_t nbytes, size_t *at)
{
    char digits[NDIGITS + 1];
    char *line = text + *at;
    char *end = *at < nbytes ? memchr(line, '\n', nbytes - *at) : NULL;
    if (end == NULL || end - line < NDIGITS + 1 || line[NDIGITS] != ' ' ||
        memchr(line, '\0', (size_t)(end - line)) != NULL)
        return NULL;
    char *payload = line + NDIGITS + 1;
    snprintf(digits, sizeof(digits), "%08" PRIx32, checksum(payload, (size_t)(end - payload)));
    if (memcmp(line, digits, NDIGITS) != 0)
        return NULL;
    *end = '\0';
    *at = (size_t)(end + 1 - text);
    return payload;
}

/* A number without sign, blank or leading zero; *end is behind it. */
static bool read_number(const char *p, uint64_t *out, const char **end)
{
    char *after;
    if (*p < '0' || *p > '9' || (p[0] == '0' && p[1] >= '0' && p[1] <= '9'))
        return false;
    errno = 0;
    *out = strtoull(p, &after, 10);
    *end = after;
    return errno == 0;
}

bool cm_journal_line_skip(const char *payload, uint64_t *item, uint64_t *chunk)
{
    const char *p;
    return read_number(payload, item, &p) && *p == ' ' && read_number(p + 1, chunk, &p) &&
           *p == '\0';
}

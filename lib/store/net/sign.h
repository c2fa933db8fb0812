/*
 * Signs requests to buckets (AWS Signature Version 4) if libcurl would do it wrongly: from 8.14 to
 * 8.18 it signs a '+' in a query as a space (its issue 20543), which affects prefixes of keys and
 * continuation tokens.
 */
#ifndef CM_STORE_NET_SIGN_H
#define CM_STORE_NET_SIGN_H

#include <time.h>

#include "store/net/http.h"

struct curl_slist;

/* True if libcurl may sign URL wrongly. */
bool cm_sign_is_needed(const char *url);
/*
 * The values of the headers x-amz-date and Authorization, to be freed, at NOW.  R's URL is encoded
 * and its query sorted; of HEADERS, which are NAME: VALUE in lower case, those of AWS are signed.
 */
int cm_sign(const cm_http *r, const struct curl_slist *headers, time_t now, char **date,
            char **authorization, cm_error *err);

#endif

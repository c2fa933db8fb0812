/* A server's refusal, or libcurl's, as a sentence. */
#ifndef CM_STORE_NET_ERROR_TEXT_H
#define CM_STORE_NET_ERROR_TEXT_H

#include "store/net/loop.h"

enum {
    CM_HTTP_MAX_WORDS = 240 /* of a server's message */
};

/* The answer to R is an error of S3, whose code R gets. */
bool cm_http_has_error(cm_http *r);
/* The message in T's answer, on one line and without secrets; T gets the code and the region. */
void cm_http_error_words(cm_transfer_state *t, char words[CM_HTTP_MAX_WORDS + 1]);
/* Makes the error for the status, code and WORDS of T's answer; returns its status. */
int cm_http_fail_answer(cm_transfer_state *t, int rc, const char *words, cm_error *err);

/*
 * Bytes came without a valid answer, also those after an answer that was longer than it said, on
 * the same connection.
 */
bool cm_http_is_babble(const cm_http *r, CURLcode result);
/* Makes the error for T, which ended with RESULT; returns its status. */
int cm_http_fail_curl(cm_transfer_state *t, CURLcode result, cm_error *err);

#endif

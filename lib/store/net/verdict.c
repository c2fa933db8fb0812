/* Interprets an answer: done, retry, or an error, whose sentence is error_text.c's. */
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "store/impl.h"
#include "store/net/error_text.h"
#include "store/net/loop.h"
#include "store/net/url.h"

static bool is_expired(const char *code)
{
    return strcmp(code, "ExpiredToken") == 0 || strcmp(code, "ExpiredTokenException") == 0 ||
           strcmp(code, "TokenRefreshRequired") == 0;
}

static bool is_slow_down(const char *code)
{
    static const char *const codes[] = {
        "SlowDown",         "Throttling",      "ThrottlingException", "RequestLimitExceeded",
        "RequestThrottled", "TooManyRequests", "ServiceUnavailable",  "Busy"};
    for (size_t i = 0; i < sizeof(codes) / sizeof(codes[0]); i++)
        if (strcmp(code, codes[i]) == 0)
            return true;
    return false;
}

static bool passes(const char *code)
{
    return strcmp(code, "InternalError") == 0 || strcmp(code, "RequestTimeout") == 0 ||
           strcmp(code, "OperationAborted") == 0 || is_slow_down(code);
}

/* True for codes that say the received bytes have another checksum than was sent. */
static bool is_bad_digest(const char *code)
{
    return strcmp(code, "BadDigest") == 0 || strcmp(code, "InvalidDigest") == 0 ||
           strcmp(code, "XAmzContentChecksumMismatch") == 0;
}

/* ---- answers of success ---- */

/* An invalid answer: retry, but not for minutes. */
static int lies(cm_transfer_state *t, cm_error *err, const char *what)
{
    t->doubtful = true;
    return cm_fail(err, CM_EIO, "%s: %s", t->request->shown, what);
}

/* Compares without "W/" and quotes, which some servers leave out, and references of others too. */
static bool is_same_etag(const char *a, const char *b)
{
    a += strncmp(a, "W/", 2) == 0 ? 2 : 0;
    b += strncmp(b, "W/", 2) == 0 ? 2 : 0;
    a += *a == '"';
    b += *b == '"';
    const size_t n = strcspn(a, "\"");
    return n == strcspn(b, "\"") && strncmp(a, b, n) == 0;
}

/* True if the answer is of another object than was seen before.  Many servers ignore If-Match. */
static bool is_other(const cm_http *r)
{
    if (r->if_match[0] != '\0' && r->etag[0] != '\0' && !is_same_etag(r->if_match, r->etag))
        return true;
    if (!r->seen)
        return false;
    return (r->status == 206 && r->total_nbytes != r->seen_nbytes) ||
           (r->if_match[0] == '\0' && r->seen_modified > 0 && r->modified > 0 &&
            r->modified != r->seen_modified);
}

static int fail_changed(cm_http *r, cm_error *err)
{
    r->changed = true;
    return cm_fail(err, CM_EIO, "%s: changed while it was read", r->shown);
}

/* Checks that an object's bytes are those requested. */
static int check_object(cm_transfer_state *t, cm_error *err)
{
    cm_http *r = t->request;
    uint64_t want = r->range.nbytes;
    bool ranged = r->range.kind != CM_HTTP_WHOLE;
    if (r->status != 200 && !(ranged && r->status == 206))
        return lies(t, err,
                    r->status == 206
                        ? "the server sends a part of the object, which was asked for whole"
                        : "the answer of the server says nothing of the object");
    if (t->has_length && t->length != t->ngot)
        return lies(t, err, "the answer of the server is not as long as it says");
    if (ranged && r->status == 206 && !t->has_range)
        return lies(t, err, "the server does not say which bytes it sends");
    if (is_other(r))
        return t->broken = fail_changed(r, err);
    if (r->status == 200) {
        r->total_nbytes = t->ngot;
        /* An object no longer than what was asked of its beginning or end is sent whole. */
        if (r->range.kind == CM_HTTP_RANGE ? r->range.offset != 0 || t->ngot != want
            : ranged                       ? t->ngot > want
                                           : false)
            return t->doubtful = true,
                   cm_fail(err, CM_EUNSUPPORTED,
                           "%s: the server does not send parts of objects (ranges)", r->shown);
        return CM_OK;
    }
    if (r->range.kind == CM_HTTP_RANGE && r->range.offset + want > r->total_nbytes)
        return t->broken =
                   cm_fail(err, CM_EFORMAT, "%s: ends before the range to be read", r->shown);
    if (t->range_last - t->range_first + 1 != t->ngot)
        return lies(t, err, "the answer of the server is not as long as it says");
    if (r->range.kind != CM_HTTP_RANGE)
        want = want < r->total_nbytes ? want : r->total_nbytes;
    uint64_t first = r->range.kind == CM_HTTP_SUFFIX ? r->total_nbytes - want : r->range.offset;
    if (t->range_first != first || t->ngot != want)
        return lies(t, err, "the server sends other bytes than were asked for");
    return CM_OK;
}

/* Moves the body of unknown length to its destination. */
static int move_own(cm_transfer_state *t, cm_error *err)
{
    cm_http *r = t->request;
    if (t->to_text || r->buf == NULL)
        return CM_OK;
    if (!t->has_length || t->ngot == 0) {
        r->at = r->buf->nbytes;
        int rc = cm_buf_extend(r->buf, t->own.nbytes, err);
        if (rc != CM_OK)
            return rc;
        if (t->own.nbytes > 0)
            memcpy(r->buf->data + r->at, t->own.data, t->own.nbytes);
    }
    return CM_OK;
}

/* Compares the content with the server's checksum, if any. */
static int check_sum(cm_transfer_state *t, cm_error *err)
{
    cm_http *r = t->request;
    char own[CM_SUM_SIZE];
    const char *sum = r->sum;
    if (r->method == CM_HTTP_GET) {
        const uint8_t *data = r->got_nbytes == 0 ? (const uint8_t *)""
                              : r->dst != NULL   ? r->dst
                                                 : r->buf->data + r->at;
        int rc = cm_sum_text(r->checksum, data, r->got_nbytes, own, err);
        if (rc != CM_OK)
            return rc;
        sum = own;
    }
    cm_sum_verdict verdict = cm_sum_compare(r->checksum, sum, &t->said);
    t->summed = true;
    t->checked = verdict != CM_SUM_UNKNOWN;
    r->checked = verdict == CM_SUM_SAME;
    if (verdict != CM_SUM_OTHER)
        return CM_OK;
    return lies(t, err,
                r->method == CM_HTTP_GET
                    ? "the bytes that came have another checksum than the server says"
                    : "the server has other bytes than were sent, by its checksum");
}

/* Whether the checksum can be compared: all bytes were received or sent. */
static bool is_summed(const cm_http *r)
{
    if (r->checksum <= CM_CHECKSUM_NONE)
        return false;
    return r->method == CM_HTTP_PUT
               ? r->sum[0] != '\0'
               : r->method == CM_HTTP_GET && r->status == 200 && (r->dst != NULL || r->buf != NULL);
}

static cm_verdict_http judge_success(cm_transfer_state *t, cm_error *err)
{
    cm_http *r = t->request;
    char words[CM_HTTP_MAX_WORDS + 1];
    bool object = r->dst != NULL || r->buf != NULL;
    if (cm_http_has_error(r)) {
        cm_http_error_words(t, words);
        r->rc = cm_http_fail_answer(t, CM_EIO, words, err);
        return is_slow_down(r->code) ? CM_HTTP_SLOWER
               : passes(r->code)     ? CM_HTTP_AGAIN
                                     : CM_HTTP_DONE;
    }
    if (object && t->to_text) {
        r->rc = lies(t, err, "the server sends an error in place of the object");
        return CM_HTTP_AGAIN;
    }
    /* An error inside a 200 has a length, too, but no ETag, which S3 gives for every object. */
    if (r->method == CM_HTTP_HEAD && r->s3 && t->is_xml && r->etag[0] == '\0') {
        r->rc = lies(t, err, "the server sends an error in place of the object");
        return CM_HTTP_AGAIN;
    }
    r->rc = CM_OK;
    if (r->method == CM_HTTP_HEAD) {
        r->sized = t->has_length;
        r->total_nbytes = t->has_length ? t->length : 0;
    } else if (object)
        r->rc = check_object(t, err);
    if (r->rc != CM_OK)
        return t->broken ? CM_HTTP_DONE : CM_HTTP_AGAIN;
    r->got_nbytes = object ? (size_t)t->ngot : 0;
    r->rc = move_own(t, err);
    if (r->rc == CM_OK && is_summed(r))
        r->rc = check_sum(t, err);
    return t->doubtful ? CM_HTTP_AGAIN : CM_HTTP_DONE;
}

/* ---- redirects ---- */

static bool is_sent_on(const cm_http *r)
{
    bool moved = (r->status >= 301 && r->status <= 303) || r->status == 307 || r->status == 308;
    return moved && r->method <= CM_HTTP_HEAD && !r->s3;
}

/* Why a request for URL must not be redirected to NEXT, an untrusted text; NULL: it may. */
static const char *refuse_to_go(const cm_transfer_state *t, const char *url, const char *next)
{
    if (t->request->credentials)
        return "the server sends a request for credentials elsewhere, which is not done";
    if (cm_url_scheme(next) != CM_URL_HTTP)
        return "the server redirects to an address that is not http:// or https://";
    if (strncasecmp(url, "https:", 6) == 0 && strncasecmp(next, "https:", 6) != 0)
        return "the server sends this request from https:// to http://, which is not done";
    if (t->nsent_on == CM_NET_MAX_SENT_ON)
        return "the server sends this request elsewhere again and again";
    return NULL;
}

static cm_verdict_http judge_address(cm_transfer_state *t, const char *next, cm_error *err)
{
    cm_http *r = t->request;
    const char *why = refuse_to_go(t, t->elsewhere != NULL ? t->elsewhere : r->url, next);
    char *copy = why == NULL ? cm_strdup(next, err) : NULL;
    if (why != NULL)
        r->rc = cm_fail(err, CM_EIO, "%s: %s (HTTP %ld)", r->shown, why, r->status);
    else if (copy == NULL)
        r->rc = CM_ENOMEM;
    if (copy == NULL)
        return CM_HTTP_DONE;
    free(t->elsewhere);
    t->elsewhere = copy;
    t->nsent_on++;
    t->ntries--; /* all redirects count as one try */
    t->due_ns = 0;
    return CM_HTTP_ELSEWHERE;
}

/* ---- failures, and missing answers ---- */

static cm_verdict_http judge_status(cm_transfer_state *t, cm_error *err)
{
    cm_http *r = t->request;
    char words[CM_HTTP_MAX_WORDS + 1];
    cm_http_error_words(t, words);
    r->rc = CM_EIO;
    if (r->status == 404 && strcmp(r->code, "NoSuchBucket") != 0) {
        r->rc = CM_ENOTFOUND;
        return CM_HTTP_DONE;
    }
    if (r->status == 410 && !r->s3) {
        r->rc = CM_ENOTFOUND;
        return CM_HTTP_DONE;
    }
    bool reads = r->method <= CM_HTTP_HEAD && !r->listing;
    bool denied = r->code[0] == '\0' || strcmp(r->code, "AccessDenied") == 0;
    if (r->status == 403 && reads && denied && t->net->settings.absent_403) {
        r->rc = CM_ENOTFOUND;
        return CM_HTTP_DONE;
    }
    if (r->status == 412) {
        r->rc = r->if_none_match ? cm_fail(err, CM_EEXIST, "%s: exists already", r->shown)
                                 : fail_changed(r, err);
        return CM_HTTP_DONE;
    }
    if (r->status == 416) {
        r->rc = r->seen
                    ? fail_changed(r, err)
                    : cm_fail(err, CM_EFORMAT, "%s: ends before the range to be read", r->shown);
        return CM_HTTP_DONE;
    }
    r->expired = is_expired(r->code);
    /* Many let anybody read and nobody list: then objects are asked for one by one. */
    const bool unable = r->status == 501 || (r->listing && r->status == 403 && denied);
    r->rc = cm_http_fail_answer(t, unable ? CM_EUNSUPPORTED : CM_EIO, words, err);
    if (unable && r->listing && err != NULL)
        cm_error_suffix(err, "; it cannot be listed");
    if (r->status == 403 && reads && r->s3 && denied && err != NULL)
        cm_error_suffix(err, "; where listing is not allowed, a server says so of absent objects "
                             "too");
    if (r->sum[0] != '\0' && is_bad_digest(r->code)) {
        t->doubtful = true;
        return CM_HTTP_AGAIN;
    }
    if (r->sum[0] != '\0' && !r->if_none_match && r->if_match[0] == '\0' &&
        (r->status == 501 || strcmp(r->code, "InvalidRequest") == 0 ||
         strcmp(r->code, "InvalidArgument") == 0))
        cm_error_suffix(err, "; it may not know such checksums: `checksum` none sends none");
    if (r->status == 429 || r->status == 503 || is_slow_down(r->code))
        return CM_HTTP_SLOWER;
    bool again = r->status == 408 ||
                 (r->status / 100 == 5 && r->status != 501 && r->status != 505) ||
                 (r->status != 403 && passes(r->code));
    return again ? CM_HTTP_AGAIN : CM_HTTP_DONE;
}

/* True unless the failure would recur. */
static bool may_pass(CURLcode result)
{
    switch (result) {
    case CURLE_COULDNT_RESOLVE_PROXY:
    case CURLE_COULDNT_RESOLVE_HOST:
    case CURLE_COULDNT_CONNECT:
    case CURLE_PROXY:
    case CURLE_SSL_CONNECT_ERROR:
    case CURLE_SSL_SHUTDOWN_FAILED:
    case CURLE_SEND_ERROR:
    case CURLE_SEND_FAIL_REWIND:
    case CURLE_RECV_ERROR:
    case CURLE_GOT_NOTHING:
    case CURLE_PARTIAL_FILE:
    case CURLE_OPERATION_TIMEDOUT:
    case CURLE_HTTP2:
    case CURLE_HTTP2_STREAM:
    case CURLE_AGAIN:
    case CURLE_NO_CONNECTION_AVAILABLE:
        return true;
    default:
        return false;
    }
}

static cm_verdict_http judge_failure(cm_transfer_state *t, CURLcode result, cm_error *err)
{
    cm_http *r = t->request;
    if (t->broken != CM_OK) {
        r->rc = t->broken; /* the message is set already */
        return t->doubtful ? CM_HTTP_AGAIN : CM_HTTP_DONE;
    }
    if (t->too_much) {
        /* A server without ranges sends the whole object. */
        if (r->range.kind != CM_HTTP_WHOLE && r->status == 200) {
            r->rc = cm_fail(err, CM_EUNSUPPORTED,
                            "%s: the server does not send parts of objects (ranges)", r->shown);
            t->doubtful = true;
            return CM_HTTP_AGAIN;
        }
        r->rc = lies(t, err, "the server sends more bytes than were asked for");
        return CM_HTTP_AGAIN;
    }
    r->rc = cm_http_fail_curl(t, result, err);
    t->doubtful = cm_http_is_babble(r, result);
    return t->doubtful || may_pass(result) ? CM_HTTP_AGAIN : CM_HTTP_DONE;
}

cm_verdict_http cm_http_judge(cm_transfer_state *t, CURLcode result, cm_error *err)
{
    cm_http *r = t->request;
    curl_easy_getinfo(t->easy, CURLINFO_RESPONSE_CODE, &r->status);
    /* Without CURLOPT_FAILONERROR curl reports an error status as success. */
    if (result != CURLE_OK && !t->enough)
        return judge_failure(t, result, err);
    char *next = NULL;
    if (is_sent_on(r))
        curl_easy_getinfo(t->easy, CURLINFO_REDIRECT_URL, &next);
    if (next != NULL)
        return judge_address(t, next, err);
    return r->status / 100 == 2 ? judge_success(t, err) : judge_status(t, err);
}

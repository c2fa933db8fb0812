/* Translates a request to libcurl's options and callbacks. */
#include <ctype.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "base/clock.h"
#include "store/impl.h"
#include "store/net/loop.h"
#include "store/net/sign.h"
#include "store/net/url.h"

enum {
    MAX_ERROR_TEXT = 64 << 10,
    MAX_HEADERS = 64 << 10, /* libcurl's own limits are higher, and look like a lost connection */
    PEEK = 512,             /* of a body that may be an error */
    LEAST_A_SECOND = 1000   /* bytes of a body */
};

/* ---- the answer ---- */

static uint64_t number_after(const char *text)
{
    return strtoull(text + strspn(text, " \t"), NULL, 10);
}

static void copy_value(char *out, size_t size, const char *value, size_t nbytes)
{
    while (nbytes > 0 && (*value == ' ' || *value == '\t'))
        value++, nbytes--;
    while (nbytes > 0 && strchr("\r\n \t", value[nbytes - 1]) != NULL)
        nbytes--;
    /* A truncated value would be wrong. */
    if (nbytes >= size)
        nbytes = 0;
    memcpy(out, value, nbytes);
    out[nbytes] = '\0';
}

/* Of a date; 0 for anything else. */
static int64_t seconds_of(const char *text)
{
    const time_t seconds = curl_getdate(text, NULL);
    return seconds > 0 ? (int64_t)seconds : 0;
}

/* The value of LINE where it is the header NAME; NULL otherwise. */
static const char *value_of(const char *line, size_t nbytes, const char *name)
{
    size_t n = strlen(name);
    return nbytes > n && line[n] == ':' && strncasecmp(line, name, n) == 0 ? line + n + 1 : NULL;
}

/* "bytes 0-99/1000" */
static void read_range(cm_transfer_state *t, const char *value)
{
    unsigned long long first, last, total;
    if (sscanf(value, " bytes %llu-%llu/%llu", &first, &last, &total) != 3)
        return;
    t->has_range = first <= last && last < total;
    t->range_first = first;
    t->range_last = last;
    t->request->total_nbytes = total;
}

static size_t on_header(char *line, size_t size, size_t n, void *user)
{
    cm_transfer_state *t = user;
    size_t nbytes = size * n;
    char text[256];
    const char *value;
    if ((t->header_nbytes += nbytes) > MAX_HEADERS) {
        t->broken = cm_fail(&t->broken_why, CM_EIO,
                            "%s: the server's answer begins with more than %d KiB of headers",
                            t->request->shown, MAX_HEADERS >> 10);
        return 0;
    }
    if (nbytes > 5 && strncmp(line, "HTTP/", 5) == 0) {
        /* A new answer begins, for example after 100 Continue. */
        t->has_length = t->has_range = t->is_xml = false;
        t->request->etag[0] = '\0';
        t->request->modified = t->request->date = 0;
        t->said = (cm_sum_said){.etag = t->request->etag};
    } else if ((value = value_of(line, nbytes, "content-length")) != NULL) {
        copy_value(text, sizeof(text), value, (size_t)(line + nbytes - value));
        t->length = number_after(text);
        t->has_length = isdigit((unsigned char)text[0]);
    } else if ((value = value_of(line, nbytes, "content-range")) != NULL) {
        copy_value(text, sizeof(text), value, (size_t)(line + nbytes - value));
        read_range(t, text);
    } else if ((value = value_of(line, nbytes, "content-type")) != NULL) {
        copy_value(text, sizeof(text), value, (size_t)(line + nbytes - value));
        t->is_xml = strstr(text, "xml") != NULL;
    } else if ((value = value_of(line, nbytes, "etag")) != NULL) {
        copy_value(t->request->etag, sizeof(t->request->etag), value,
                   (size_t)(line + nbytes - value));
    } else if ((value = value_of(line, nbytes, "last-modified")) != NULL) {
        copy_value(text, sizeof(text), value, (size_t)(line + nbytes - value));
        t->request->modified = seconds_of(text);
    } else if ((value = value_of(line, nbytes, "date")) != NULL) {
        copy_value(text, sizeof(text), value, (size_t)(line + nbytes - value));
        t->request->date = seconds_of(text);
    } else if ((value = value_of(line, nbytes, "retry-after")) != NULL) {
        copy_value(text, sizeof(text), value, (size_t)(line + nbytes - value));
        uint64_t seconds = number_after(text);
        t->retry_after_ns = (seconds < 60 ? seconds : 60) * UINT64_C(1000000000);
    } else if ((value = value_of(line, nbytes, "x-amz-checksum-crc32c")) != NULL) {
        copy_value(t->said.crc32c, sizeof(t->said.crc32c), value, (size_t)(line + nbytes - value));
    } else if ((value = value_of(line, nbytes, "x-amz-server-side-encryption")) != NULL) {
        copy_value(text, sizeof(text), value, (size_t)(line + nbytes - value));
        t->said.encrypted = t->said.encrypted || strcmp(text, "AES256") != 0;
    } else if (value_of(line, nbytes, "x-amz-server-side-encryption-customer-algorithm") != NULL) {
        t->said.encrypted = true;
    } else if ((value = value_of(line, nbytes, "x-amz-bucket-region")) != NULL) {
        copy_value(t->region, sizeof(t->region), value, (size_t)(line + nbytes - value));
    }
    return nbytes;
}

/* The destination of an object's bytes: room in the buffer, allocated when the first arrive. */
static int make_room(cm_transfer_state *t)
{
    cm_http *r = t->request;
    if (!t->has_length)
        return CM_OK;
    bool whole = r->range.kind != CM_HTTP_WHOLE && r->status == 200;
    t->doubtful = whole && (r->range.kind == CM_HTTP_RANGE ? t->length != r->range.nbytes
                                                           : t->length > r->range.nbytes);
    if (t->doubtful)
        return cm_fail(&t->broken_why, CM_EUNSUPPORTED,
                       "%s: the server does not send parts of objects (ranges)", r->shown);
    t->doubtful = t->length > r->max_nbytes;
    if (t->doubtful)
        return cm_object_too_long(r->shown, t->length, r->max_nbytes, &t->broken_why);
    if (t->placed && t->room == t->length)
        return CM_OK;
    r->at = r->buf->nbytes;
    int rc = cm_buf_extend(r->buf, t->length, &t->broken_why);
    t->placed = rc == CM_OK;
    t->room = (size_t)t->length;
    return rc;
}

/* Detects an error inside an answer with status 200. */
static bool looks_like_error(const char *data, size_t nbytes)
{
    char head[PEEK + 1];
    size_t n = nbytes < PEEK ? nbytes : PEEK;
    memcpy(head, data, n);
    head[n] = '\0';
    return strlen(head) == n && strstr(head, "<Error>") != NULL;
}

/* Decides from the first bytes what the body is. */
static int begin_body(cm_transfer_state *t, const char *data, size_t nbytes)
{
    cm_http *r = t->request;
    curl_easy_getinfo(t->easy, CURLINFO_RESPONSE_CODE, &r->status);
    r->text.nbytes = 0;
    t->own.nbytes = 0;
    t->to_text = r->status / 100 != 2 || (r->dst == NULL && r->buf == NULL) ||
                 (r->s3 && t->is_xml && looks_like_error(data, nbytes));
    return t->to_text || r->buf == NULL ? CM_OK : make_room(t);
}

static int take_text(cm_transfer_state *t, const char *data, size_t nbytes)
{
    cm_http *r = t->request;
    size_t most = r->status / 100 == 2 ? CM_HTTP_MAX_TEXT : MAX_ERROR_TEXT;
    if (r->text.nbytes + nbytes > most && r->status / 100 == 2)
        return cm_fail(&t->broken_why, CM_EFORMAT, "%s: the answer of the server is too long",
                       r->shown);
    /* The status is enough for an error; a server may send its text for ever. */
    t->enough = r->status / 100 != 2 && (r->text.nbytes + nbytes > most ||
                                         t->progress_ns - t->begun_ns > t->net->timeout_ns);
    if (t->enough)
        return CM_EIO;
    return cm_buf_append(&r->text, data, nbytes, &t->broken_why);
}

static int take_object(cm_transfer_state *t, const char *data, size_t nbytes)
{
    cm_http *r = t->request;
    uint64_t room = r->dst != NULL ? r->range.nbytes : t->room;
    if (r->dst == NULL && !t->has_length) {
        if (t->own.nbytes + nbytes > r->max_nbytes)
            return cm_fail(&t->broken_why, CM_EFORMAT,
                           "%s: has more than the %llu bytes that it "
                           "may have",
                           r->shown, (unsigned long long)r->max_nbytes);
        return cm_buf_append(&t->own, data, nbytes, &t->broken_why);
    }
    if (nbytes > room - t->ngot) {
        t->too_much = true;
        return CM_EIO;
    }
    memcpy((r->dst != NULL ? r->dst : r->buf->data + r->at) + t->ngot, data, nbytes);
    return CM_OK;
}

/*
 * A body that comes drop by drop may never end, and no gap between two drops tells.  One that takes
 * longer than a request may fail must come at the speed of the slowest modems.
 */
static int check_speed(cm_transfer_state *t)
{
    const uint64_t ns = t->progress_ns - t->body_ns;
    if (ns <= t->net->timeout_ns || t->ngot >= ns / 1000000000 * LEAST_A_SECOND)
        return CM_OK;
    return cm_fail(&t->broken_why, CM_EIO,
                   "%s: the server sends less than %d bytes a second, %llu in %llu s",
                   t->request->shown, LEAST_A_SECOND, (unsigned long long)t->ngot,
                   (unsigned long long)(ns / 1000000000));
}

static size_t on_body(char *data, size_t size, size_t n, void *user)
{
    cm_transfer_state *t = user;
    size_t nbytes = size * n;
    if (nbytes == 0)
        return 0;
    t->progress_ns = cm_now_ns();
    if (t->ngot == 0)
        t->body_ns = t->progress_ns;
    int rc = t->ngot == 0 ? begin_body(t, data, nbytes) : CM_OK;
    if (rc == CM_OK && t->request->status / 100 == 2)
        rc = check_speed(t);
    if (rc == CM_OK)
        rc = t->to_text ? take_text(t, data, nbytes) : take_object(t, data, nbytes);
    if (rc != CM_OK && !t->too_much && !t->enough)
        t->broken = rc;
    t->ngot += nbytes;
    return rc == CM_OK ? nbytes : CURL_WRITEFUNC_ERROR;
}

/* ---- the request ---- */

static size_t on_read(char *out, size_t size, size_t n, void *user)
{
    cm_transfer_state *t = user;
    size_t most = size * n, left = t->request->body_nbytes - t->nsent;
    if (most > left)
        most = left;
    memcpy(out, (const char *)t->request->body + t->nsent, most);
    t->nsent += most;
    t->progress_ns = cm_now_ns();
    return most;
}

/* Rewinds the body to send it again after a lost connection. */
static int on_seek(void *user, curl_off_t offset, int origin)
{
    cm_transfer_state *t = user;
    if (origin != SEEK_SET || offset < 0 || (uint64_t)offset > t->request->body_nbytes)
        return CURL_SEEKFUNC_CANTSEEK;
    t->nsent = (size_t)offset;
    return CURL_SEEKFUNC_OK;
}

/* Called before a request is sent, again if a kept connection turns out to be dead. */
static int on_request(void *user, char *ip, char *own_ip, int port, int own_port)
{
    cm_transfer_state *t = user;
    (void)ip, (void)own_ip, (void)port, (void)own_port;
    t->request->nasked++;
    return CURL_PREREQFUNC_OK;
}

static int add_header(cm_transfer_state *t, const char *line, cm_error *err)
{
    struct curl_slist *longer = curl_slist_append(t->headers, line);
    if (longer == NULL)
        return cm_fail(err, CM_ENOMEM, "no memory for a request");
    t->headers = longer;
    return CM_OK;
}

static int add_value(cm_transfer_state *t, const char *name, const char *value, cm_error *err)
{
    char *line = cm_asprintf(err, "%s: %s", name, value);
    int rc = line == NULL ? CM_ENOMEM : add_header(t, line, err);
    free(line);
    return rc;
}

static int add_signature(cm_transfer_state *t, cm_error *err)
{
    char *date = NULL, *authorization = NULL;
    int rc = cm_sign(t->request, t->headers, time(NULL), &date, &authorization, err);
    if (rc == CM_OK)
        rc = add_value(t, "x-amz-date", date, err);
    if (rc == CM_OK)
        rc = add_value(t, "Authorization", authorization, err);
    free(date);
    free(authorization);
    return rc;
}

static int set_headers(cm_transfer_state *t, cm_error *err)
{
    const cm_http *r = t->request;
    int rc = CM_OK;
    if (r->signer != NULL)
        rc = add_header(t, "x-amz-content-sha256: UNSIGNED-PAYLOAD", err);
    if (rc == CM_OK && r->signer != NULL && r->signer->token != NULL)
        rc = add_value(t, "x-amz-security-token", r->signer->token, err);
    if (rc == CM_OK && r->if_match[0] != '\0')
        rc = add_value(t, "If-Match", r->if_match, err);
    if (rc == CM_OK && r->if_none_match)
        rc = add_header(t, "If-None-Match: *", err);
    if (rc == CM_OK && r->method == CM_HTTP_PUT && r->sum[0] != '\0')
        rc = add_value(t, cm_sum_header(r->checksum), r->sum, err);
    if (rc == CM_OK && r->method == CM_HTTP_GET && r->checksum == CM_CHECKSUM_CRC32C)
        rc = add_header(t, "x-amz-checksum-mode: ENABLED", err);
    if (rc == CM_OK && r->method == CM_HTTP_PUT)
        rc = add_header(t, "Content-Type: application/octet-stream", err);
    for (size_t i = 0; rc == CM_OK && i < 4 && r->header[i] != NULL; i++)
        rc = add_header(t, r->header[i], err);
    if (rc == CM_OK && r->signer != NULL && cm_sign_is_needed(r->url))
        rc = add_signature(t, err);
    return rc;
}

static void set_range(CURL *e, const cm_http_range *range)
{
    char text[64];
    if (range->kind == CM_HTTP_WHOLE)
        return;
    if (range->kind == CM_HTTP_SUFFIX)
        snprintf(text, sizeof(text), "-%llu", (unsigned long long)range->nbytes);
    else
        snprintf(text, sizeof(text), "%llu-%llu", (unsigned long long)range->offset,
                 (unsigned long long)(range->offset + range->nbytes - 1));
    curl_easy_setopt(e, CURLOPT_RANGE, text);
}

/* Size of libcurl's send buffer for a body; at least 16 KiB by libcurl's rule. */
static long send_nbytes(const cm_http *r)
{
    return r->body_nbytes < CM_HTTP_SEND_NBYTES ? (long)r->body_nbytes : (long)CM_HTTP_SEND_NBYTES;
}

static long receive_nbytes(const cm_http *r)
{
    return r->method == CM_HTTP_GET ? CM_HTTP_RECEIVE_NBYTES : CM_HTTP_ANSWER_NBYTES;
}

static void set_small_body(CURL *e, const cm_http *r)
{
    curl_easy_setopt(e, CURLOPT_POST, 1L);
    curl_easy_setopt(e, CURLOPT_POSTFIELDSIZE_LARGE, (curl_off_t)r->body_nbytes);
    curl_easy_setopt(e, CURLOPT_POSTFIELDS, r->body != NULL ? r->body : "");
    curl_easy_setopt(e, CURLOPT_EXPECT_100_TIMEOUT_MS, 1L);
}

/*
 * A small body leaves in one call with its headers, as libcurl does for a POST.  A run may be
 * killed between two calls, and some servers then take an object of no bytes for the whole one:
 * SeaweedFS 4.48 did for 80 of 160 requests that ended behind their headers, for none of 320 that
 * ended elsewhere.
 */
static bool goes_with_headers(const cm_http *r)
{
    return r->body_nbytes <= CM_HTTP_TOGETHER_NBYTES;
}

static void set_method(cm_transfer_state *t)
{
    const cm_http *r = t->request;
    CURL *e = t->easy;
    switch (r->method) {
    case CM_HTTP_GET:
        curl_easy_setopt(e, CURLOPT_HTTPGET, 1L);
        break;
    case CM_HTTP_HEAD:
        curl_easy_setopt(e, CURLOPT_NOBODY, 1L);
        break;
    case CM_HTTP_PUT:
        if (goes_with_headers(r)) {
            set_small_body(e, r);
            curl_easy_setopt(e, CURLOPT_CUSTOMREQUEST, "PUT");
            break;
        }
        curl_easy_setopt(e, CURLOPT_UPLOAD, 1L);
        curl_easy_setopt(e, CURLOPT_INFILESIZE_LARGE, (curl_off_t)r->body_nbytes);
        curl_easy_setopt(e, CURLOPT_READFUNCTION, on_read);
        curl_easy_setopt(e, CURLOPT_READDATA, t);
        curl_easy_setopt(e, CURLOPT_SEEKFUNCTION, on_seek);
        curl_easy_setopt(e, CURLOPT_SEEKDATA, t);
        curl_easy_setopt(e, CURLOPT_UPLOAD_BUFFERSIZE, send_nbytes(r));
        /* Without the header curl 7.88 would sign its absence; do not wait for its answer. */
        curl_easy_setopt(e, CURLOPT_EXPECT_100_TIMEOUT_MS, 1L);
        break;
    case CM_HTTP_POST:
        set_small_body(e, r);
        break;
    case CM_HTTP_DELETE:
        curl_easy_setopt(e, CURLOPT_HTTPGET, 1L);
        curl_easy_setopt(e, CURLOPT_CUSTOMREQUEST, "DELETE");
        break;
    }
}

static void set_security(cm_transfer_state *t)
{
    const cm_http *r = t->request;
    CURL *e = t->easy;
    curl_easy_setopt(e, CURLOPT_PROTOCOLS_STR, "http,https");
    curl_easy_setopt(e, CURLOPT_DISALLOW_USERNAME_IN_URL, 1L);
    curl_easy_setopt(e, CURLOPT_FOLLOWLOCATION, 0L); /* verdict.c decides on redirects */
    if (t->net->trust != NULL)
        curl_easy_setopt(e, CURLOPT_CAINFO, t->net->trust);
    if (r->signer != NULL && !cm_sign_is_needed(r->url)) {
        /* Set separately: a key may contain a colon. */
        curl_easy_setopt(e, CURLOPT_AWS_SIGV4, r->signer->scope);
        curl_easy_setopt(e, CURLOPT_USERNAME, r->signer->key);
        curl_easy_setopt(e, CURLOPT_PASSWORD, r->signer->secret);
    } else if (!r->s3 && !r->credentials &&
               (t->elsewhere == NULL || cm_url_same_origin(t->elsewhere, r->url))) {
        /* libcurl looks there only by host name. */
        curl_easy_setopt(e, CURLOPT_NETRC, (long)CURL_NETRC_OPTIONAL);
    }
}

static void forget_try(cm_transfer_state *t)
{
    cm_http *r = t->request;
    t->nsent = 0;
    t->header_nbytes = 0;
    t->ngot = 0;
    t->has_length = t->has_range = t->is_xml = t->to_text = t->too_much = t->enough = false;
    t->retry_after_ns = 0;
    t->doubtful = t->summed = t->checked = false;
    t->said = (cm_sum_said){.etag = r->etag};
    t->broken = CM_OK;
    t->region[0] = t->message[0] = '\0';
    t->own.nbytes = 0;
    r->text.nbytes = 0;
    r->status = 0;
    r->got_nbytes = 0;
    r->code[0] = r->etag[0] = '\0';
    r->modified = r->date = 0;
    r->sized = r->changed = false;
}

/* How long a try may wait for bytes: until the request must have failed. */
static long patience_s(const cm_transfer_state *t)
{
    const uint64_t second = 1000000000, since = cm_now_ns() - t->failing_ns;
    uint64_t left = t->net->timeout_ns;
    if (t->failing_ns > 0)
        left = since < left ? left - since : 0;
    left = (left + second - 1) / second;
    return left < 1 ? 1 : left > 30 ? 30 : (long)left;
}

int cm_transfer_prepare(cm_transfer_state *t, cm_error *err)
{
    CURL *e = t->easy;
    const long seconds = patience_s(t);
    forget_try(t);
    curl_easy_reset(e);
    curl_easy_setopt(e, CURLOPT_PRIVATE, t);
    curl_easy_setopt(e, CURLOPT_NOSIGNAL, 1L);
    curl_easy_setopt(e, CURLOPT_ERRORBUFFER, t->message);
    curl_easy_setopt(e, CURLOPT_BUFFERSIZE, receive_nbytes(t->request));
    curl_easy_setopt(e, CURLOPT_WRITEFUNCTION, on_body);
    curl_easy_setopt(e, CURLOPT_WRITEDATA, t);
    curl_easy_setopt(e, CURLOPT_HEADERFUNCTION, on_header);
    curl_easy_setopt(e, CURLOPT_HEADERDATA, t);
    curl_easy_setopt(e, CURLOPT_PREREQFUNCTION, on_request);
    curl_easy_setopt(e, CURLOPT_PREREQDATA, t);
    curl_easy_setopt(e, CURLOPT_CONNECTTIMEOUT, seconds);
    curl_easy_setopt(e, CURLOPT_LOW_SPEED_LIMIT, 1L);
    curl_easy_setopt(e, CURLOPT_LOW_SPEED_TIME, seconds);
    curl_easy_setopt(e, CURLOPT_USERAGENT, "chunkmill/" CM_VERSION);
    /* A bucket takes ".." of a key as it is, which libcurl would resolve into another bucket. */
    curl_easy_setopt(e, CURLOPT_PATH_AS_IS, (long)t->request->s3);
    curl_easy_setopt(e, CURLOPT_URL, t->elsewhere != NULL ? t->elsewhere : t->request->url);
    if (t->request->max_ns > 0)
        curl_easy_setopt(e, CURLOPT_TIMEOUT_MS, (long)(t->request->max_ns / 1000000));
    set_method(t);
    set_range(e, &t->request->range);
    set_security(t);
    curl_slist_free_all(t->headers);
    t->headers = NULL;
    int rc = set_headers(t, err);
    curl_easy_setopt(e, CURLOPT_HTTPHEADER, t->headers);
    t->begun_ns = t->progress_ns = cm_now_ns();
    return rc;
}

void cm_transfer_come_back(cm_transfer_state *t)
{
    free(t->elsewhere);
    t->elsewhere = NULL;
    t->nsent_on = 0;
}

void cm_transfer_release(cm_transfer_state *t)
{
    cm_transfer_come_back(t);
    curl_slist_free_all(t->headers);
    t->headers = NULL;
    cm_buf_release(&t->own);
}

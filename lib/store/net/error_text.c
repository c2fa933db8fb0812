#include "store/net/error_text.h"

#include <string.h>

#include "store/net/secret.h"
#include "store/net/url.h"
#include "store/net/xml.h"

enum {
    MAX_LOOKED_AT = 4096 /* searched for secrets */
};

/* Explanations of S3's codes; others are shown as they are. */
static const struct {
    const char *code, *text;
} MEANINGS[] = {
    {"BadDigest", "the server got other bytes than were sent"},
    {"InvalidAccessKeyId", "the server does not know this access key"},
    {"SignatureDoesNotMatch", "the server refuses the signature: the secret key is wrong, or a "
                              "proxy changed the request"},
    {"RequestTimeTooSkewed", "this machine's clock and the server's are too far apart; set the "
                             "clock"},
    {"ExpiredToken", "the session token has expired; get new credentials"},
    {"InvalidToken", "the session token is not valid; get new credentials"},
    {"NoSuchBucket", "there is no such bucket"},
    {"AccessDenied", "access denied"},
    {"AllAccessDisabled", "access denied"},
    {"EntityTooLarge", "the object is too large for this server"},
    {"QuotaExceeded", "the quota of the server is used up"},
};

/* Prepares TEXT, from the answer to R, for display: on one line, cut, without secrets. */
static void tidy(char *text, const cm_http *r)
{
    size_t n = 0;
    for (const char *p = text; *p != '\0'; p++) {
        bool space = (unsigned char)*p <= ' ' || *p == 0x7f;
        if (!space)
            text[n++] = *p;
        else if (n > 0 && text[n - 1] != ' ')
            text[n++] = ' ';
    }
    while (n > 0 && (text[n - 1] == ' ' || text[n - 1] == '.'))
        n--;
    text[n] = '\0';
    cm_secret_hide(text, r);
    text[strnlen(text, CM_HTTP_MAX_WORDS)] = '\0';
}

/* Reads element PATH of the error in R's answer; false: no such element. */
static bool find_words(const cm_http *r, const char *path, char *out, size_t size)
{
    char text[MAX_LOOKED_AT];
    bool found = r->s3 && r->text.nbytes > 0 &&
                 cm_xml_find(r->text.data, r->text.nbytes, path, text, sizeof(text));
    if (found)
        tidy(text, r);
    snprintf(out, size, "%.*s", (int)size - 1, found ? text : "");
    return found;
}

bool cm_http_has_error(cm_http *r)
{
    return find_words(r, "Error/Code", r->code, sizeof(r->code));
}

void cm_http_error_words(cm_transfer_state *t, char words[CM_HTTP_MAX_WORDS + 1])
{
    cm_http *r = t->request;
    cm_http_has_error(r);
    find_words(r, "Error/Message", words, CM_HTTP_MAX_WORDS + 1);
    if (t->region[0] == '\0')
        find_words(r, "Error/Region", t->region, sizeof(t->region));
    tidy(t->region, r);
}

static const char *meaning(const char *code)
{
    for (size_t i = 0; i < sizeof(MEANINGS) / sizeof(MEANINGS[0]); i++)
        if (strcmp(code, MEANINGS[i].code) == 0)
            return MEANINGS[i].text;
    return NULL;
}

/* "us-east-1" of "aws:amz:us-east-1:s3" */
static void region_of(const char *scope, char *out, size_t size)
{
    const char *p = strchr(scope, ':');
    p = p != NULL ? strchr(p + 1, ':') : NULL;
    snprintf(out, size, "%.*s", p != NULL ? (int)strcspn(p + 1, ":") : 0, p != NULL ? p + 1 : "");
}

/* Scheme, host and port of where the server sends T, ", " before them; "": it does not say. */
static void next_of(const cm_transfer_state *t, char *out, size_t size)
{
    char *next = NULL;
    curl_easy_getinfo(t->easy, CURLINFO_REDIRECT_URL, &next);
    const bool web = next != NULL && cm_url_scheme(next) == CM_URL_HTTP;
    const char *host = web ? strstr(next, "://") + 3 : NULL;
    snprintf(out, size, "%s%.*s", web ? ", " : "",
             web ? (int)(host + strcspn(host, "/?#") - next) : 0, web ? next : "");
    if (strchr(out, '@') != NULL) /* a name and a password */
        out[0] = '\0';
    tidy(out, t->request);
}

int cm_http_fail_answer(cm_transfer_state *t, int rc, const char *words, cm_error *err)
{
    const cm_http *r = t->request;
    char region[40] = "", next[256];
    if (r->signer != NULL)
        region_of(r->signer->scope, region, sizeof(region));
    if (r->s3 && t->region[0] != '\0' && strcmp(t->region, region) != 0)
        return cm_fail(
            err, CM_EIO, "%s: the bucket lies in the region %s, not in %s; set AWS_REGION=%s",
            r->shown, t->region, region[0] != '\0' ? region : "the one asked", t->region);
    const char *text = meaning(r->code);
    const char *mark = r->code[0] != '\0' ? " " : "";
    if (text == NULL && words[0] != '\0')
        return cm_fail(err, rc, "%s: %s (HTTP %ld%s%s)", r->shown, words, r->status, mark, r->code);
    if (text == NULL && r->status / 100 == 3) {
        next_of(t, next, sizeof next);
        return cm_fail(err, rc,
                       "%s: the server sends this request elsewhere; name the address that it "
                       "gives%s (HTTP %ld%s%s)",
                       r->shown, next, r->status, mark, r->code);
    }
    if (text == NULL && (r->status == 401 || r->status == 403))
        text = "access denied";
    if (text == NULL)
        text = "the server refuses this request";
    return cm_fail(err, rc, "%s: %s (HTTP %ld%s%s)", r->shown, text, r->status, mark, r->code);
}

/* ---- no answer ---- */

bool cm_http_is_babble(const cm_http *r, CURLcode result)
{
    bool strange = result == CURLE_UNSUPPORTED_PROTOCOL || result == CURLE_WEIRD_SERVER_REPLY;
    return strange && r->status == 0;
}

/* libcurl's results for a line of headers that is too long: CURLE_TOO_LARGE is of 8.6. */
static bool is_long_header(const cm_transfer_state *t, CURLcode result)
{
    enum {
        TOO_LARGE = 100
    };
    return ((int)result == TOO_LARGE || result == CURLE_OUT_OF_MEMORY) && t->header_nbytes > 0 &&
           t->ngot == 0;
}

int cm_http_fail_curl(cm_transfer_state *t, CURLcode result, cm_error *err)
{
    const cm_http *r = t->request;
    char why[CURL_ERROR_SIZE + 64];
    /* A redirect target's address would be repeated in its words. */
    bool told = t->message[0] != '\0' && t->elsewhere == NULL;
    snprintf(why, sizeof(why), "%s%s", t->elsewhere != NULL ? "where the server sends this: " : "",
             told ? t->message : curl_easy_strerror(result));
    tidy(why, r);
    if (result == CURLE_PEER_FAILED_VERIFICATION)
        return cm_fail(err, CM_EIO, "%s: the server's certificate is not trusted (%s)", r->shown,
                       why);
    if (is_long_header(t, result))
        return cm_fail(err, CM_EIO,
                       "%s: the server's answer begins with more headers than there is memory for",
                       r->shown);
    if (result == CURLE_OUT_OF_MEMORY)
        return cm_fail(err, CM_ENOMEM, "%s: no memory for a request", r->shown);
    if (cm_http_is_babble(r, result))
        return cm_fail(err, CM_EIO, "%s: the server does not answer in HTTP (%s)", r->shown, why);
    return cm_fail(err, CM_EIO, "%s: %s", r->shown, why);
}

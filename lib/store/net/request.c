/* Requests to one server: addresses, signatures, and many at once. */
#include <stdlib.h>

#include "store/net/remote.h"

/* ---- addresses ---- */

char *cm_remote_url(const cm_remote *s, const char *key, const char *query, cm_error *err)
{
    cm_buf url = {0};
    int rc = cm_buf_printf(&url, err, "%s/", s->address);
    if (rc == CM_OK)
        rc = cm_url_encode(&url, s->prefix, true, err);
    if (rc == CM_OK)
        rc = cm_url_encode(&url, key, true, err);
    if (rc == CM_OK && query != NULL)
        rc = cm_buf_printf(&url, err, "?%s", query);
    if (rc == CM_OK && (rc = cm_buf_append(&url, "", 1, err)) == CM_OK)
        return (char *)url.data;
    cm_buf_release(&url);
    return NULL;
}

/* ---- asking ---- */

static int run_again(cm_remote *s, cm_http *request, size_t n, const cm_http_signer *stale,
                     cm_error *err)
{
    const cm_http_signer *signer;
    int rc = cm_aws_signer(s->aws, stale, &signer, err);
    for (size_t i = 0; rc == CM_OK && i < n; i++) {
        if (request[i].rc == CM_OK || request[i].rc == CM_ENOTFOUND)
            continue;
        request[i].signer = signer;
        rc = cm_http_run(s->net, &request[i], 1, err);
    }
    return rc;
}

/* Computes the body's checksum in the calling thread: the thread of the net is busy enough. */
static int add_sum(const cm_remote *s, cm_http *r, cm_error *err)
{
    if (s->checksum <= CM_CHECKSUM_NONE || (r->method != CM_HTTP_PUT && r->method != CM_HTTP_GET))
        return CM_OK;
    r->checksum = s->checksum;
    return r->method == CM_HTTP_PUT ? cm_sum_text(s->checksum, r->body, r->body_nbytes, r->sum, err)
                                    : CM_OK;
}

/* Signs all requests by *SIGNER. */
static int sign(cm_remote *s, cm_http *request, size_t n, const cm_http_signer **signer,
                cm_error *err)
{
    *signer = NULL;
    int rc = s->aws != NULL ? cm_aws_signer(s->aws, NULL, signer, err) : CM_OK;
    for (size_t i = 0; rc == CM_OK && i < n; i++) {
        request[i].signer = *signer;
        request[i].s3 = s->aws != NULL;
        rc = add_sum(s, &request[i], err);
    }
    return rc;
}

/* RC is the result of requests signed by SIGNER. */
static int renew(cm_remote *s, cm_http *request, size_t n, const cm_http_signer *signer, int rc,
                 cm_error *err)
{
    bool expired = false;
    for (size_t i = 0; rc != CM_OK && signer != NULL && i < n; i++)
        expired = expired || request[i].expired;
    return expired ? run_again(s, request, n, signer, err) : rc;
}

int cm_remote_run(cm_remote *s, cm_http *request, size_t n, cm_error *err)
{
    const cm_http_signer *signer;
    int rc = sign(s, request, n, &signer, err);
    if (rc != CM_OK)
        return rc;
    return renew(s, request, n, signer, cm_http_run(s->net, request, n, err), err);
}

int cm_remote_begin(cm_remote *s, cm_http *r, const cm_http_signer *stale, cm_error *why,
                    cm_http_done *done, void *context, cm_error *err)
{
    int rc = s->aws != NULL ? cm_aws_signer(s->aws, stale, &r->signer, err) : CM_OK;
    r->s3 = s->aws != NULL;
    if (rc == CM_OK)
        rc = add_sum(s, r, err);
    return rc == CM_OK ? cm_http_begin(s->net, r, why, done, context, err) : rc;
}

int cm_remote_run_key(cm_remote *s, const char *key, const char *query, cm_http *r, cm_error *err)
{
    char *url = cm_remote_url(s, key, query, err);
    r->url = url;
    r->shown = key;
    int rc = url == NULL ? CM_ENOMEM : cm_remote_run(s, r, 1, err);
    r->url = NULL;
    free(url);
    return rc;
}

int cm_remote_batch_init(cm_remote_batch *b, cm_remote *s, size_t room, cm_error *err)
{
    *b = (cm_remote_batch){.store = s, .request = cm_calloc(room + 1, sizeof(cm_http), err)};
    return b->request == NULL ? CM_ENOMEM : CM_OK;
}

int cm_remote_batch_add(cm_remote_batch *b, const char *key, const cm_http *r, cm_error *err)
{
    cm_http *mine = &b->request[b->n];
    *mine = *r;
    if (mine->shown == NULL)
        mine->shown = key;
    if ((mine->url = cm_remote_url(b->store, key, NULL, err)) == NULL)
        return CM_ENOMEM;
    b->n++;
    return CM_OK;
}

int cm_remote_batch_run(cm_remote_batch *b, cm_error *err)
{
    return cm_remote_run(b->store, b->request, b->n, err);
}

int cm_remote_batch_start(cm_remote_batch *b, cm_error *err)
{
    int rc = sign(b->store, b->request, b->n, &b->signer, err);
    return rc == CM_OK ? cm_http_start(b->store->net, b->request, b->n, &b->call, err) : rc;
}

int cm_remote_batch_wait(cm_remote_batch *b, cm_error *err)
{
    int rc = cm_http_wait(b->call, err);
    b->call = NULL;
    return renew(b->store, b->request, b->n, b->signer, rc, err);
}

void cm_remote_batch_release(cm_remote_batch *b)
{
    for (size_t i = 0; i < b->n; i++)
        free((void *)(uintptr_t)b->request[i].url);
    cm_http_release(b->request, b->n);
    free(b->request);
}

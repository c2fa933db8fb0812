#include "store/net/parts.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "store/net/remote.h"

static int ask_for(cm_remote_batch *b, const cm_net_part *p, cm_buf *buf, cm_error *err)
{
    cm_http r = {.method = CM_HTTP_GET, .shown = p->shown, .max_nbytes = p->nbytes};
    if (!p->whole)
        r.range = (cm_http_range){CM_HTTP_RANGE, p->offset, p->nbytes};
    if (p->dst != NULL)
        r.dst = p->dst;
    else
        r.buf = buf;
    if (p->etag != NULL)
        snprintf(r.if_match, sizeof(r.if_match), "%s", p->etag);
    return cm_remote_batch_add(b, p->key, &r, err);
}

static void take(const cm_http *r, cm_net_part *p)
{
    p->rc = r->rc;
    p->at = r->at;
    p->got_nbytes = r->rc == CM_OK ? r->got_nbytes : 0;
    p->seen[0] = '\0';
    /* A weak ETag never matches. */
    if (r->rc == CM_OK && strncmp(r->etag, "W/", 2) != 0)
        memcpy(p->seen, r->etag, sizeof(p->seen));
}

static bool is_asked_for(const cm_net_part *p)
{
    return p->whole || p->nbytes > 0;
}

int cm_net_read_parts(cm_store *store, cm_net_part *part, size_t n, cm_buf *buf, cm_error *err)
{
    cm_remote_batch b;
    int rc = cm_remote_batch_init(&b, cm_remote_of(store), n, err);
    for (size_t i = 0; rc == CM_OK && i < n; i++) {
        cm_net_part *p = &part[i];
        p->rc = CM_OK;
        p->got_nbytes = 0;
        p->at = buf != NULL ? buf->nbytes : 0;
        p->seen[0] = '\0';
        if (is_asked_for(p))
            rc = ask_for(&b, p, buf, err);
    }
    if (rc == CM_OK) {
        rc = cm_remote_batch_run(&b, err);
        for (size_t i = 0, k = 0; i < n; i++)
            if (is_asked_for(&part[i]))
                take(&b.request[k++], &part[i]);
    }
    cm_remote_batch_release(&b);
    return rc;
}

#include "store/net/parts.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "store/net/remote.h"

static int ask_for(cm_remote_batch *b, const cm_net_part *p, const atomic_bool *unwanted,
                   cm_buf *buf, cm_error *err)
{
    cm_http r = {
        .method = CM_HTTP_GET, .shown = p->shown, .max_nbytes = p->nbytes, .unwanted = unwanted};
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
    p->changed = r->changed;
    p->at = r->at;
    p->got_nbytes = r->rc == CM_OK ? r->got_nbytes : 0;
    p->seen[0] = '\0';
    p->modified_s = r->rc == CM_OK ? r->modified : 0;
    /* A weak ETag never matches. */
    if (r->rc == CM_OK && strncmp(r->etag, "W/", 2) != 0)
        memcpy(p->seen, r->etag, sizeof(p->seen));
}

static bool is_asked_for(const cm_net_part *p)
{
    return p->whole || p->nbytes > 0;
}

struct cm_net_reading {
    cm_remote_batch batch;
    cm_net_part *part;
    size_t n;
};

static int ask(cm_net_reading *g, cm_store *store, const atomic_bool *unwanted, cm_buf *buf,
               cm_error *err)
{
    int rc = cm_remote_batch_init(&g->batch, cm_remote_of(store), g->n, err);
    for (size_t i = 0; rc == CM_OK && i < g->n; i++) {
        cm_net_part *p = &g->part[i];
        p->rc = CM_OK;
        p->got_nbytes = 0;
        p->at = buf != NULL ? buf->nbytes : 0;
        p->seen[0] = '\0';
        p->modified_s = 0;
        p->changed = false;
        if (is_asked_for(p))
            rc = ask_for(&g->batch, p, unwanted, buf, err);
    }
    return rc;
}

static void take_all(cm_net_reading *g)
{
    for (size_t i = 0, k = 0; i < g->n; i++)
        if (is_asked_for(&g->part[i]))
            take(&g->batch.request[k++], &g->part[i]);
}

int cm_net_read_parts(cm_store *store, cm_net_part *part, size_t n, cm_buf *buf, cm_error *err)
{
    cm_net_reading g = {.part = part, .n = n};
    int rc = ask(&g, store, NULL, buf, err);
    if (rc == CM_OK) {
        rc = cm_remote_batch_run(&g.batch, err);
        take_all(&g);
    }
    cm_remote_batch_release(&g.batch);
    return rc;
}

int cm_net_parts_begin(cm_store *store, cm_net_part *part, size_t n, cm_buf *buf,
                       const atomic_bool *unwanted, cm_net_reading **out, cm_error *err)
{
    cm_net_reading *g = *out = cm_calloc(1, sizeof(*g), err);
    if (g == NULL)
        return CM_ENOMEM;
    *g = (cm_net_reading){.part = part, .n = n};
    int rc = ask(g, store, unwanted, buf, err);
    if (rc == CM_OK)
        rc = cm_remote_batch_start(&g->batch, err);
    if (rc != CM_OK) {
        cm_remote_batch_release(&g->batch);
        free(g);
        *out = NULL;
    }
    return rc;
}

int cm_net_parts_end(cm_net_reading *g, cm_error *err)
{
    int rc = cm_remote_batch_wait(&g->batch, err);
    take_all(g);
    cm_remote_batch_release(&g->batch);
    free(g);
    return rc;
}

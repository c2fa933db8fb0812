/*
 * Running a chain over a chunk of variable-length elements.
 *
 * No size is known beforehand.  A decoder that runs out of room is started
 * again with twice as much, up to what the caller's arena could hold, so that
 * memory follows what data really decode to and never what they claim.
 */
#include <string.h>

#include "codec/impl.h"

enum {
    FIRST_CAPACITY = 64 << 10
};

/* The most that the vlen codec's input can have for elements that OUT's arena holds. */
static size_t limit_of(const cm_chain *chain, const cm_strings *out)
{
    size_t lengths = 4 + 4 * (size_t)chain->step[0].in.nelem;
    size_t limit;
    if (out->arena.max_nbytes == 0 || !cm_add_size(lengths, out->arena.max_nbytes, &limit) ||
        limit > CM_CODEC_MAX_NBYTES)
        return CM_CODEC_MAX_NBYTES;
    return limit;
}

static int decode_growing(const cm_codec_step *step, cm_codec_ctx *ctx, cm_span src, cm_buf *buf,
                          size_t limit, cm_span *out, cm_error *err)
{
    /* Allow for the growth by later codecs: a checksum, or a few percent. */
    size_t most = limit + limit / 8 + FIRST_CAPACITY;
    size_t capacity = src.nbytes < most / 4 ? 4 * src.nbytes : most;
    capacity = capacity < FIRST_CAPACITY ? FIRST_CAPACITY : capacity;
    for (;;) {
        int rc = cm_buf_reserve(buf, capacity, err);
        if (rc != CM_OK)
            return rc;
        cm_room room = {.data = buf->data, .capacity = capacity};
        rc = step->ops->decode(step, ctx, src, &room, err);
        if (rc == CM_EBUDGET && capacity < most) {
            capacity = capacity < most / 2 ? 2 * capacity : most;
            continue;
        }
        *out = (cm_span){room.data, room.nbytes};
        return rc;
    }
}

/* Refs of the encoded array, whose dimensions are transposed, in the order of the decoded one. */
static int transpose_refs(const cm_codec_step *step, cm_codec_ctx *ctx, cm_strings *s,
                          cm_error *err)
{
    cm_codec_step refs = *step;
    refs.in.type.nbytes = sizeof *s->ref;
    size_t nbytes = s->nelem * sizeof *s->ref;
    int rc = cm_buf_resize(&ctx->work, nbytes, err);
    if (rc != CM_OK || nbytes == 0 || step->decode_is_view)
        return rc;
    memcpy(ctx->work.data, s->ref, nbytes);
    cm_room room = {.data = (uint8_t *)s->ref, .capacity = nbytes};
    return step->ops->decode(&refs, ctx, (cm_span){ctx->work.data, nbytes}, &room, err);
}

int cm_chain_decode_strings(const cm_chain *chain, cm_codec_ctx *ctx, const void *src,
                            size_t src_nbytes, cm_strings *out, cm_error *err)
{
    cm_span data = {src_nbytes > 0 ? src : "", src_nbytes};
    size_t limit = limit_of(chain, out);
    unsigned turn = 0;
    for (size_t i = chain->nsteps; i-- > 0;) {
        const cm_codec_step *step = &chain->step[i];
        int rc;
        if (step->ops->kind == CM_CODEC_ARRAY_ARRAY) {
            rc = transpose_refs(step, ctx, out, err);
        } else if (step->ops->kind == CM_CODEC_ARRAY_BYTES) {
            rc = cm_vlen_decode(step, data, out, err);
        } else if (step->decode_is_view) {
            rc = step->ops->decode_view(step, &data, err);
        } else {
            rc = decode_growing(step, ctx, data, &ctx->scratch[turn], limit, &data, err);
            turn ^= 1;
        }
        if (rc != CM_OK) {
            cm_error_prefix(err, "%s", step->ops->name);
            return rc;
        }
    }
    return CM_OK;
}

/* SRC with its refs as `transpose` encodes them; they stay in ctx->index. */
static int encode_refs(const cm_codec_step *step, cm_codec_ctx *ctx, cm_strings *s, cm_error *err)
{
    cm_codec_step refs = *step;
    refs.in.type.nbytes = sizeof *s->ref;
    size_t nbytes = s->nelem * sizeof *s->ref;
    if (step->encode_is_view || nbytes == 0)
        return CM_OK;
    /* One of the two buffers may hold the refs from the transpose before. */
    cm_buf *buf = (uint8_t *)s->ref == ctx->index.data ? &ctx->work : &ctx->index;
    int rc = cm_buf_resize(buf, nbytes, err);
    if (rc != CM_OK)
        return rc;
    cm_room room = {.data = buf->data, .capacity = nbytes};
    rc = step->ops->encode(&refs, ctx, (cm_span){(const uint8_t *)s->ref, nbytes}, &room, err);
    s->ref = (cm_string_ref *)(void *)buf->data;
    return rc;
}

/* One bytes->bytes codec, from SRC to BUF. */
static int encode_bytes(const cm_codec_step *step, cm_codec_ctx *ctx, const cm_buf *src,
                        cm_buf *buf, cm_error *err)
{
    size_t bound;
    if (!step->ops->bound(step, src->nbytes, &bound)) {
        return cm_fail(err, CM_EUNSUPPORTED, "a chunk of %zu bytes is too large for it",
                       src->nbytes);
    }
    int rc = cm_buf_reserve(buf, bound, err);
    if (rc != CM_OK)
        return rc;
    cm_room room = {.data = buf->data, .capacity = bound};
    cm_span data = {src->data, src->nbytes};
    if (step->encode_appends) {
        memcpy(room.data, data.data, data.nbytes);
        room.nbytes = data.nbytes;
        rc = step->ops->append(step, &room, err);
    } else {
        rc = step->ops->encode(step, ctx, data, &room, err);
    }
    buf->nbytes = room.nbytes;
    return rc;
}

int cm_chain_encode_strings(const cm_chain *chain, cm_codec_ctx *ctx, const cm_strings *src,
                            cm_buf *out, cm_error *err)
{
    int rc = cm_chain_can_encode(chain, err);
    if (rc != CM_OK)
        return rc;
    cm_strings view = *src; /* borrows everything; a transpose gives it other refs */
    const cm_buf *data = NULL;
    unsigned turn = 0;
    for (size_t i = 0; i < chain->nsteps; i++) {
        const cm_codec_step *step = &chain->step[i];
        cm_buf *to = i + 1 == chain->nsteps ? out : &ctx->scratch[turn];
        if (step->ops->kind == CM_CODEC_ARRAY_ARRAY) {
            rc = encode_refs(step, ctx, &view, err);
        } else if (step->ops->kind == CM_CODEC_ARRAY_BYTES) {
            rc = cm_vlen_encode(step, &view, to, err);
        } else if (step->encode_is_view) {
            rc = cm_buf_resize(to, data->nbytes, err);
            if (rc == CM_OK)
                memcpy(to->data, data->data, data->nbytes);
        } else {
            rc = encode_bytes(step, ctx, data, to, err);
        }
        if (rc != CM_OK) {
            cm_error_prefix(err, "%s", step->ops->name);
            return rc;
        }
        if (step->ops->kind != CM_CODEC_ARRAY_ARRAY) {
            data = to;
            turn ^= 1;
        }
    }
    return CM_OK;
}

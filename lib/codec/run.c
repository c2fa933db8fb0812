/*
 * Running a chain over one chunk.
 *
 * Data go from step to step through two scratch buffers in turn; the first step
 * reads the caller's source where it lies and the last one that writes does so
 * into the caller's destination.
 */
#include <string.h>

#include "codec/impl.h"

static bool skips(const cm_chain *chain, size_t i, uint32_t skip)
{
    size_t bit = i - chain->nfirst;
    return i >= chain->nfirst && bit < 32 && (skip >> bit & 1);
}

size_t cm_chain_decode_target(const cm_chain *chain, uint32_t skip)
{
    for (size_t i = 0; i < chain->nsteps; i++) {
        const cm_codec_step *step = &chain->step[i];
        if (skips(chain, i, skip))
            continue;
        if (!step->decode_is_view)
            return i;
        if (step->decode_trims)
            break; /* the data carry a checksum still and do not fit the caller's buffer */
    }
    return chain->nsteps;
}

int cm_chain_can_encode(const cm_chain *chain, cm_error *err)
{
    for (size_t i = 0; i < chain->nsteps; i++) {
        const cm_codec_step *step = &chain->step[i];
        const cm_codec_ops *ops = step->ops;
        if (ops->encode == NULL && ops->append == NULL && !step->encode_is_view &&
            ops != &cm_vlen_utf8_ops && ops != &cm_vlen_bytes_ops)
            return cm_fail(err, CM_EUNSUPPORTED, "codec %s can be read but not written", ops->name);
        int rc = ops->can_encode != NULL ? ops->can_encode(step, err) : CM_OK;
        if (rc != CM_OK) {
            cm_error_prefix(err, "codec %s", ops->name);
            return rc;
        }
    }
    return CM_OK;
}

/* The room for one step's result: the caller's, or (NULL) the scratch that is not being read. */
static int find_room(cm_codec_ctx *ctx, const cm_room *caller, size_t scratch_nbytes,
                     unsigned *turn, cm_room *room, cm_error *err)
{
    if (caller != NULL) {
        *room = *caller;
        return CM_OK;
    }
    cm_buf *buf = &ctx->scratch[*turn];
    *turn ^= 1;
    int rc = cm_buf_reserve(buf, scratch_nbytes, err);
    if (rc == CM_OK)
        *room = (cm_room){.data = buf->data, .capacity = scratch_nbytes};
    return rc;
}

static int blame(const cm_codec_step *step, int rc, cm_error *err)
{
    if (rc == CM_EBUDGET) {
        rc = CM_EFORMAT; /* the size is known, so it is the data that are wrong */
        if (err != NULL)
            err->status = CM_EFORMAT;
    }
    cm_error_prefix(err, "%s", step->ops->name);
    return rc;
}

static int decode(const cm_chain *chain, cm_codec_ctx *ctx, const void *src, size_t src_nbytes,
                  uint32_t skip, void *dst, bool far, cm_error *err)
{
    const cm_room caller = {.data = dst, .capacity = chain->decoded_nbytes, .far = far};
    if (cm_dtype_is_vlen(&chain->step[0].in.type))
        return cm_fail(err, CM_EINTERNAL, "elements of variable length in a fixed buffer");
    size_t target = cm_chain_decode_target(chain, skip);
    /* Nothing may lie nowhere; codecs step through it. */
    cm_span data = {src_nbytes > 0 ? src : "", src_nbytes};
    unsigned turn = 0;
    for (size_t i = chain->nsteps; i-- > 0;) {
        const cm_codec_step *step = &chain->step[i];
        if (skips(chain, i, skip))
            continue;
        int rc;
        if (step->decode_is_view) {
            rc = step->ops->decode_view(step, &data, err);
        } else {
            cm_room room;
            rc = find_room(ctx, i == target ? &caller : NULL, chain->decode_scratch, &turn, &room,
                           err);
            if (rc != CM_OK)
                return rc;
            rc = step->ops->decode(step, ctx, data, &room, err);
            data = (cm_span){room.data, room.nbytes};
        }
        if (rc != CM_OK)
            return blame(step, rc, err);
    }
    if (data.nbytes != chain->decoded_nbytes) {
        return cm_fail(err, CM_EINTERNAL, "a chunk of %zu bytes became %zu", chain->decoded_nbytes,
                       data.nbytes);
    }
    if (target == chain->nsteps && data.nbytes > 0)
        memcpy(dst, data.data, data.nbytes);
    return CM_OK;
}

int cm_chain_decode(const cm_chain *chain, cm_codec_ctx *ctx, const void *src, size_t src_nbytes,
                    uint32_t skip, void *dst, cm_error *err)
{
    return decode(chain, ctx, src, src_nbytes, skip, dst, false, err);
}

int cm_chain_decode_far(const cm_chain *chain, cm_codec_ctx *ctx, const void *src,
                        size_t src_nbytes, uint32_t skip, void *dst, cm_error *err)
{
    return decode(chain, ctx, src, src_nbytes, skip, dst, true, err);
}

bool cm_chain_ends_in_checksum(const cm_chain *chain)
{
    return chain->step[chain->nsteps - 1].decode_trims;
}

int cm_chain_check_stored(const cm_chain *chain, const void *src, size_t src_nbytes, cm_error *err)
{
    cm_span data = {src_nbytes > 0 ? src : "", src_nbytes};
    for (size_t i = chain->nsteps; i > 0 && chain->step[i - 1].decode_trims; i--) {
        const cm_codec_step *step = &chain->step[i - 1];
        int rc = step->ops->decode_view(step, &data, err);
        if (rc != CM_OK)
            return blame(step, rc, err);
    }
    return CM_OK;
}

int cm_chain_encode(const cm_chain *chain, cm_codec_ctx *ctx, const void *src, void *dst,
                    size_t *dst_nbytes, cm_error *err)
{
    const cm_room caller = {.data = dst, .capacity = chain->encoded_bound};
    if (cm_dtype_is_vlen(&chain->step[0].in.type))
        return cm_fail(err, CM_EINTERNAL, "elements of variable length in a fixed buffer");
    int rc = cm_chain_can_encode(chain, err);
    if (rc != CM_OK)
        return rc;
    cm_span data = {src, chain->decoded_nbytes};
    cm_room room = {0};
    unsigned turn = 0;
    for (size_t i = 0; i < chain->nsteps; i++) {
        const cm_codec_step *step = &chain->step[i];
        if (step->encode_is_view)
            continue;
        if (step->encode_writes) {
            rc = find_room(ctx, i == chain->encode_target ? &caller : NULL, chain->encode_scratch,
                           &turn, &room, err);
            if (rc != CM_OK)
                return rc;
        }
        if (!step->encode_appends) {
            rc = step->ops->encode(step, ctx, data, &room, err);
        } else {
            if (step->encode_writes && data.nbytes > 0)
                memcpy(room.data, data.data, data.nbytes);
            room.nbytes = data.nbytes;
            rc = step->ops->append(step, &room, err);
        }
        if (rc != CM_OK) {
            cm_error_prefix(err, "%s", step->ops->name);
            return rc;
        }
        data = (cm_span){room.data, room.nbytes};
    }
    if (chain->encode_target == chain->nsteps && data.nbytes > 0)
        memcpy(dst, data.data, data.nbytes);
    *dst_nbytes = data.nbytes;
    return CM_OK;
}

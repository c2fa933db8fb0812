/*
 * Damage that every decoder must survive: chunks cut short, with bits flipped, with
 * lengths that are lies.  Buffers are allocated exactly, so that a sanitizer
 * sees every byte too far.
 */
#ifndef CM_TEST_DAMAGE_H
#define CM_TEST_DAMAGE_H

#include "../unit.h"
#include "codec/codec.h"

/* A copy of exactly NBYTES (one at least, for malloc's sake). */
static inline uint8_t *exact_copy(const void *data, size_t nbytes)
{
    uint8_t *copy = malloc(nbytes ? nbytes : 1);
    assert_non_null(copy);
    if (nbytes)
        memcpy(copy, data, nbytes);
    return copy;
}

/* Decodes a copy of the chunk; returns the status.  A failure must say why. */
static inline int decode_copy(const cm_chain *chain, cm_codec_ctx *ctx, const void *data,
                              size_t nbytes)
{
    cm_error err = {0};
    uint8_t *src = exact_copy(data, nbytes);
    uint8_t *dst = malloc(cm_chain_decoded_nbytes(chain));
    assert_non_null(dst);
    int rc = cm_chain_decode(chain, ctx, src, nbytes, 0, dst, &err);
    if (rc) {
        assert_int_equal(rc, err.status);
        assert_true(rc == CM_EFORMAT);
        assert_true(strlen(err.text) > 0);
    }
    free(src);
    free(dst);
    return rc;
}

static inline void check_damage(const cm_chain *chain, cm_codec_ctx *ctx, const uint8_t *encoded,
                                size_t nbytes)
{
    size_t stride = nbytes > 400 ? nbytes / 199 : 1;
    for (size_t n = 0; n < nbytes; n += n < 64 || n + 64 > nbytes ? 1 : stride)
        if (decode_copy(chain, ctx, encoded, n) == CM_OK)
            fail_msg("%zu of %zu bytes were decoded", n, nbytes);
    uint8_t *bad = exact_copy(encoded, nbytes);
    for (size_t bit = 0; bit < 8 * nbytes && bit < 8 * 64; bit++) {
        bad[bit / 8] ^= (uint8_t)(1 << bit % 8);
        (void)decode_copy(chain, ctx, bad, nbytes);
        bad[bit / 8] ^= (uint8_t)(1 << bit % 8);
    }
    /* Numbers of 4 and 8 bytes at the extremes, of either sign and byte order. */
    static const uint8_t lies[][8] = {{255, 255, 255, 255, 255, 255, 255, 255},
                                      {255, 255, 255, 127, 0, 0, 0, 0},
                                      {127, 255, 255, 255, 255, 255, 255, 255},
                                      {0, 0, 0, 0, 0, 0, 0, 0},
                                      {0, 0, 0, 0, 0, 0, 0, 16},
                                      {16, 0, 0, 0, 0, 0, 0, 0}};
    for (size_t at = 0; at + 8 <= nbytes; at += at < 32 ? 1 : 1 + nbytes / 16) {
        for (size_t i = 0; i < sizeof lies / sizeof lies[0]; i++) {
            for (size_t n = 4; n <= 8; n += 4) {
                memcpy(bad, encoded, nbytes);
                memcpy(bad + at, lies[i], n);
                (void)decode_copy(chain, ctx, bad, nbytes);
            }
        }
    }
    free(bad);
}

#endif

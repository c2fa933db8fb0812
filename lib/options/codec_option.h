/*
 * Codecs as people type them: "blosc:zstd:2:shuffle", "gzip:5", "none".
 */
#ifndef CM_OPTIONS_CODEC_OPTION_H
#define CM_OPTIONS_CODEC_OPTION_H

#include "codec/codec.h"

extern const char *const cm_codec_keywords[]; /* "none", "zstd", ...: never a variable's name */

typedef struct cm_codec_choice {
    bool keep;                /* "keep": the input's compressed bytes */
    bool keep_gzip;           /* "keep:gzip" */
    cm_codec_spec compressor; /* id CM_CODEC_NONE: none */
} cm_codec_choice;

/* CM_EINVAL with a sentence that says what is allowed. */
int cm_codec_choice_parse(const char *text, cm_codec_choice *out, cm_error *err);

/* The default that nc2zarr(1) documents for elements of TYPE. */
cm_codec_choice cm_codec_choice_default(const cm_dtype *type);

/*
 * The chain for elements of TYPE: bytes, vlen-utf8 or vlen-bytes, then the compressor, with
 * blosc's shuffle and type size fitted to the type.  *out has *n specs, to be
 * freed with cm_codec_specs_free.
 */
int cm_codec_choice_specs(const cm_codec_choice *choice, const cm_dtype *type, cm_codec_spec **out,
                          size_t *n, cm_error *err);

/* "blosc:zstd:2:shuffle"; BUF of 64 bytes suffices. */
char *cm_codec_choice_text(const cm_codec_choice *choice, char *buf, size_t size);

#endif

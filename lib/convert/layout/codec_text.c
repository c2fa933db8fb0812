#include "convert/layout/codec_text.h"

#include <stdio.h>
#include <stdlib.h>

static void spec_text(const cm_codec_spec *c, char *buf, size_t size)
{
    static const char *const shuffles[] = {"noshuffle", "shuffle", "bitshuffle"};
    switch (c->id) {
    case CM_CODEC_BLOSC:
        snprintf(buf, size, "blosc:%s:%d:%s", c->blosc.cname, c->level,
                 shuffles[c->blosc.shuffle % 3]);
        break;
    case CM_CODEC_ZSTD:
    case CM_CODEC_GZIP:
    case CM_CODEC_ZLIB:
    case CM_CODEC_BZ2:
        snprintf(buf, size, "%s:%d", cm_codec_name(c->id), c->level);
        break;
    default:
        snprintf(buf, size, "%s", cm_codec_name(c->id));
    }
}

char *cm_codec_text(const cm_zarr_meta *m, cm_error *err)
{
    const cm_shard_spec *shard = cm_zarr_sharding(m);
    const cm_codec_spec *spec = shard != NULL ? shard->codecs : m->codecs;
    size_t n = shard != NULL ? shard->ncodecs : m->ncodecs;
    char one[64];
    char *text = cm_strdup("", err);
    for (size_t i = 0; text != NULL && i < n; i++) {
        bool plain = spec[i].id == CM_CODEC_VLEN_UTF8 || spec[i].id == CM_CODEC_VLEN_BYTES ||
                     (spec[i].id == CM_CODEC_BYTES && !spec[i].big_endian);
        if (plain)
            continue;
        spec_text(&spec[i], one, sizeof(one));
        if (spec[i].id == CM_CODEC_BYTES)
            snprintf(one, sizeof(one), "bytes:big");
        char *longer = cm_asprintf(err, "%s%s%s", text, *text ? "+" : "", one);
        free(text);
        text = longer;
    }
    if (text != NULL && *text == '\0') {
        free(text);
        text = cm_strdup(m->verbatim ? "not known" : "none", err);
    }
    return text;
}

#include "options/codec_option.h"

#include <stdio.h>
#include <string.h>

#include "base/number.h"

const char *const cm_codec_keywords[] = {"none", "zstd", "gzip", "blosc", "keep", NULL};

enum {
    MAX_FIELDS = 4,
    DEFAULT_ZSTD = 3,
    DEFAULT_GZIP = 5,
    DEFAULT_BLOSC = 2
};

static const char *const blosc_names[] = {"zstd", "lz4", "lz4hc", "zlib", "blosclz", NULL};
static const char *const shuffle_names[] = {"noshuffle", "shuffle", "bitshuffle", NULL};

static int find(const char *const *names, const char *text)
{
    for (int i = 0; names[i] != NULL; i++)
        if (strcmp(names[i], text) == 0)
            return i;
    return -1;
}

static int parse_level(const char *text, const char *field, int lo, int hi, int *out, cm_error *err)
{
    int64_t level;
    if (cm_parse_i64(field, &level, NULL) != CM_OK || level < lo || level > hi)
        return cm_fail(err, CM_EINVAL,
                       "`codec` %s: the level is %s; it must be an integer from %d to %d", text,
                       field, lo, hi);
    *out = (int)level;
    return CM_OK;
}

static int parse_blosc(const char *text, char **field, size_t n, cm_codec_spec *out, cm_error *err)
{
    out->id = CM_CODEC_BLOSC;
    out->level = DEFAULT_BLOSC;
    out->blosc.shuffle = CM_BLOSC_SHUFFLE;
    out->blosc.blocksize = CM_BLOSC_ONE_BLOCK;
    const char *cname = n > 1 ? field[1] : "zstd";
    if (find(blosc_names, cname) < 0)
        return cm_fail(err, CM_EINVAL,
                       "`codec` %s: blosc has no %s; use zstd, lz4, lz4hc, zlib or blosclz", text,
                       cname);
    snprintf(out->blosc.cname, sizeof(out->blosc.cname), "%s", cname);
    if (n > 2 && parse_level(text, field[2], 0, 9, &out->level, err) != CM_OK)
        return CM_EINVAL;
    if (n > 3) {
        int shuffle = find(shuffle_names, field[3]);
        if (shuffle < 0)
            return cm_fail(err, CM_EINVAL, "`codec` %s: %s is not shuffle, bitshuffle or noshuffle",
                           text, field[3]);
        out->blosc.shuffle = (cm_blosc_shuffle)shuffle;
    }
    return CM_OK;
}

static int parse_fields(const char *text, char **field, size_t n, cm_codec_choice *out,
                        cm_error *err)
{
    static const size_t most[] = {1, 2, 2, 4, 2};
    int which = find(cm_codec_keywords, field[0]);
    cm_codec_spec *c = &out->compressor;
    if (which < 0)
        return cm_fail(err, CM_EINVAL,
                       "`codec` %s: there is no codec %s; use none, zstd, gzip, blosc or keep",
                       text, field[0]);
    if (n > most[which])
        return cm_fail(err, CM_EINVAL, "`codec` %s: %s takes nothing after \"%s\"", text, field[0],
                       field[most[which] - 1]);
    switch (which) {
    case 1:
        c->id = CM_CODEC_ZSTD;
        c->level = DEFAULT_ZSTD;
        return n > 1 ? parse_level(text, field[1], -7, 22, &c->level, err) : CM_OK;
    case 2:
        c->id = CM_CODEC_GZIP;
        c->level = DEFAULT_GZIP;
        return n > 1 ? parse_level(text, field[1], 0, 9, &c->level, err) : CM_OK;
    case 3:
        return parse_blosc(text, field, n, c, err);
    case 4:
        out->keep = true;
        out->keep_gzip = n > 1;
        if (n > 1 && strcmp(field[1], "gzip") != 0)
            return cm_fail(err, CM_EINVAL, "`codec` %s: use keep or keep:gzip", text);
    }
    return CM_OK;
}

int cm_codec_choice_parse(const char *text, cm_codec_choice *out, cm_error *err)
{
    char copy[64], *field[MAX_FIELDS + 1];
    size_t n = 0;
    *out = (cm_codec_choice){0};
    if (strlen(text) >= sizeof(copy))
        return cm_fail(err, CM_EINVAL, "`codec` %.40s...: too long to be one", text);
    memcpy(copy, text, strlen(text) + 1);
    for (char *p = copy; p != NULL && n <= MAX_FIELDS; n++) {
        field[n] = p;
        if ((p = strchr(p, ':')) != NULL)
            *p++ = '\0';
    }
    if (n > MAX_FIELDS)
        return cm_fail(err, CM_EINVAL, "`codec` %s: too many parts", text);
    return parse_fields(text, field, n, out, err);
}

cm_codec_choice cm_codec_choice_default(const cm_dtype *type)
{
    cm_codec_choice choice = {0};
    choice.compressor.id = CM_CODEC_ZSTD;
    choice.compressor.level = DEFAULT_ZSTD;
    if (cm_dtype_is_vlen(type))
        return choice;
    choice.compressor.id = CM_CODEC_BLOSC;
    choice.compressor.level = DEFAULT_BLOSC;
    choice.compressor.blosc.shuffle = CM_BLOSC_SHUFFLE;
    choice.compressor.blosc.blocksize = CM_BLOSC_ONE_BLOCK;
    memcpy(choice.compressor.blosc.cname, "zstd", 5);
    return choice;
}

int cm_codec_choice_specs(const cm_codec_choice *choice, const cm_dtype *type, cm_codec_spec **out,
                          size_t *n, cm_error *err)
{
    cm_codec_spec spec[2] = {{.id = CM_CODEC_BYTES}, choice->compressor};
    if (cm_dtype_is_vlen(type))
        spec[0].id = type->kind == CM_KIND_STRING ? CM_CODEC_VLEN_UTF8 : CM_CODEC_VLEN_BYTES;
    if (spec[1].id == CM_CODEC_BLOSC) {
        spec[1].elementsize = cm_dtype_is_vlen(type) ? 1 : type->nbytes;
        /* Byte shuffle has nothing to do with single bytes. */
        if (spec[1].elementsize == 1 && spec[1].blosc.shuffle == CM_BLOSC_SHUFFLE)
            spec[1].blosc.shuffle = CM_BLOSC_NOSHUFFLE;
        if (cm_dtype_is_vlen(type))
            spec[1].blosc.blocksize = 0;
    }
    *n = spec[1].id == CM_CODEC_NONE ? 1 : 2;
    return cm_codec_specs_copy(spec, *n, out, err);
}

char *cm_codec_choice_text(const cm_codec_choice *choice, char *buf, size_t size)
{
    const cm_codec_spec *c = &choice->compressor;
    if (choice->keep)
        snprintf(buf, size, "%s", choice->keep_gzip ? "keep:gzip" : "keep");
    else if (c->id == CM_CODEC_NONE)
        snprintf(buf, size, "none");
    else if (c->id == CM_CODEC_BLOSC)
        snprintf(buf, size, "blosc:%s:%d:%s", c->blosc.cname, c->level,
                 shuffle_names[c->blosc.shuffle]);
    else
        snprintf(buf, size, "%s:%d", cm_codec_name(c->id), c->level);
    return buf;
}

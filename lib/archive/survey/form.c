#include "archive/survey/form.h"

#include <stdlib.h>
#include <string.h>

enum {
    /* HDF5 has at most 32 filters in a pipeline. */
    MAX_CODECS = 33
};

/* ---- types ---- */

void cm_wire_put_dtype(cm_wire_out *w, const cm_dtype *t)
{
    cm_wire_put_u32(w, (uint32_t)t->kind);
    cm_wire_put_u32(w, t->nbytes);
}

static bool is_one_of(uint32_t nbytes, uint32_t sizes)
{
    return nbytes <= 16 && (sizes >> nbytes & 1) != 0;
}

bool cm_wire_get_dtype(cm_wire_in *w, cm_dtype *out)
{
    enum {
        ONE = 1 << 1,
        TWO = 1 << 2,
        FOUR = 1 << 4,
        EIGHT = 1 << 8,
        SIXTEEN = 1 << 16
    };
    uint32_t kind = cm_wire_get_u32(w), nbytes = cm_wire_get_u32(w);
    *out = cm_dtype_make((cm_kind)kind, nbytes);
    if (w->bad)
        return false;
    switch (kind) {
    case CM_KIND_BOOL:
        return nbytes == 1;
    case CM_KIND_INT:
    case CM_KIND_UINT:
        return is_one_of(nbytes, ONE | TWO | FOUR | EIGHT);
    case CM_KIND_FLOAT:
        return is_one_of(nbytes, TWO | FOUR | EIGHT);
    case CM_KIND_COMPLEX:
        return is_one_of(nbytes, EIGHT | SIXTEEN);
    case CM_KIND_DATETIME:
    case CM_KIND_TIMEDELTA:
        return nbytes == 8;
    case CM_KIND_UTF32:
        return nbytes > 0 && nbytes % 4 == 0;
    case CM_KIND_BYTES:
    case CM_KIND_RAW:
        return nbytes > 0;
    case CM_KIND_STRING:
    case CM_KIND_VLEN_BYTES:
        return nbytes == 0;
    default:
        return false;
    }
}

/* ---- codecs ---- */

static bool is_of_files(cm_codec_id id)
{
    switch (id) {
    case CM_CODEC_BYTES:
    case CM_CODEC_ZLIB:
    case CM_CODEC_ZSTD:
    case CM_CODEC_BLOSC:
    case CM_CODEC_BZ2:
    case CM_CODEC_SHUFFLE:
    case CM_CODEC_FLETCHER32:
    case CM_CODEC_SZIP:
    case CM_CODEC_HDF5_LZ4:
    case CM_CODEC_LZF:
    case CM_CODEC_BITSHUFFLE:
        return true;
    default:
        return false;
    }
}

static void put_codec(cm_wire_out *w, const cm_codec_spec *c)
{
    cm_wire_put_u32(w, (uint32_t)c->id);
    cm_wire_put_u32(w, (uint32_t)c->level);
    cm_wire_put_u8(w, c->checksum);
    cm_wire_put_u8(w, c->big_endian);
    cm_wire_put_u32(w, c->elementsize);
    cm_wire_put(w, c->blosc.cname, sizeof(c->blosc.cname));
    cm_wire_put_u32(w, (uint32_t)c->blosc.shuffle);
    cm_wire_put_u32(w, c->blosc.blocksize);
    for (size_t i = 0; i < sizeof(c->szip) / sizeof(c->szip[0]); i++)
        cm_wire_put_u32(w, c->szip[i]);
    for (size_t i = 0; i < sizeof(c->bitshuffle) / sizeof(c->bitshuffle[0]); i++)
        cm_wire_put_u32(w, c->bitshuffle[i]);
}

static bool get_codec(cm_wire_in *w, cm_codec_spec *c)
{
    uint32_t id = cm_wire_get_u32(w);
    c->id = (cm_codec_id)id;
    c->level = (int)cm_wire_get_u32(w);
    c->checksum = cm_wire_get_u8(w) != 0;
    c->big_endian = cm_wire_get_u8(w) != 0;
    c->elementsize = cm_wire_get_u32(w);
    const void *cname = cm_wire_get(w, sizeof(c->blosc.cname));
    if (cname != NULL)
        memcpy(c->blosc.cname, cname, sizeof(c->blosc.cname));
    uint32_t shuffle = cm_wire_get_u32(w);
    c->blosc.shuffle = (cm_blosc_shuffle)shuffle;
    c->blosc.blocksize = cm_wire_get_u32(w);
    for (size_t i = 0; i < sizeof(c->szip) / sizeof(c->szip[0]); i++)
        c->szip[i] = cm_wire_get_u32(w);
    for (size_t i = 0; i < sizeof(c->bitshuffle) / sizeof(c->bitshuffle[0]); i++)
        c->bitshuffle[i] = cm_wire_get_u32(w);
    return !w->bad && id <= CM_CODEC_BITSHUFFLE && is_of_files(c->id) &&
           shuffle <= CM_BLOSC_BITSHUFFLE &&
           memchr(c->blosc.cname, '\0', sizeof(c->blosc.cname)) != NULL;
}

/* ---- forms ---- */

bool cm_wire_can_put_form(const cm_form *f)
{
    for (size_t i = 0; i < f->ncodecs; i++)
        if (!is_of_files(f->codecs[i].id))
            return false;
    return f->ncodecs <= MAX_CODECS;
}

void cm_wire_put_form(cm_wire_out *w, const cm_form *f)
{
    cm_wire_put_u32(w, (uint32_t)f->kind);
    cm_wire_put_dtype(w, &f->dtype);
    cm_wire_put_u32(w, f->rank);
    for (unsigned j = 0; j < f->rank; j++)
        cm_wire_put_u64(w, f->chunk[j]);
    cm_wire_put_u32(w, f->swap);
    cm_wire_put_u8(w, f->has_fill);
    cm_wire_put(w, f->fill, sizeof(f->fill));
    cm_wire_put_u32(w, (uint32_t)f->ncodecs);
    for (size_t i = 0; i < f->ncodecs; i++)
        put_codec(w, &f->codecs[i]);
}

static bool get_form(cm_wire_in *w, cm_form *f, cm_codec_spec *codecs)
{
    uint32_t kind = cm_wire_get_u32(w);
    f->kind = (cm_located_kind)kind;
    bool good = cm_wire_get_dtype(w, &f->dtype) && kind <= CM_LOCATED_UNWRITTEN;
    f->rank = cm_wire_get_u32(w);
    if (w->bad || !good || f->rank > CM_MAX_RANK)
        return false;
    for (unsigned j = 0; j < f->rank; j++) {
        f->chunk[j] = cm_wire_get_u64(w);
        good = good && (f->chunk[j] > 0 || kind != CM_LOCATED_CHUNKS);
    }
    f->swap = cm_wire_get_u32(w);
    good = good &&
           (kind != CM_LOCATED_SLAB || f->swap == 1 || f->swap == cm_dtype_swap_nbytes(&f->dtype));
    f->has_fill = cm_wire_get_u8(w) != 0;
    const void *fill = cm_wire_get(w, sizeof(f->fill));
    if (fill != NULL)
        memcpy(f->fill, fill, sizeof(f->fill));
    good = good && (!f->has_fill || f->dtype.nbytes <= sizeof(f->fill));
    f->ncodecs = cm_wire_get_u32(w);
    good = good && !w->bad && f->ncodecs <= MAX_CODECS;
    for (size_t i = 0; good && i < f->ncodecs; i++)
        good = get_codec(w, &codecs[i]);
    f->codecs = codecs;
    return good && w->at == w->end;
}

int cm_wire_get_form(cm_wire_in *w, cm_form **out, cm_error *err)
{
    cm_form *f = *out = cm_calloc(1, sizeof(*f), err);
    cm_codec_spec *codecs = cm_calloc(MAX_CODECS, sizeof(*codecs), err);
    if (f == NULL || codecs == NULL) {
        free(codecs);
        return CM_ENOMEM;
    }
    f->codecs = codecs;
    return get_form(w, f, codecs) ? CM_OK
                                  : cm_fail(err, CM_EFORMAT, "a record of the survey is damaged");
}

void cm_wire_free_form(cm_form *f)
{
    if (f == NULL)
        return;
    free((void *)(uintptr_t)f->codecs);
    free(f);
}

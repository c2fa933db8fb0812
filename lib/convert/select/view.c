/*
 * Which elements of which type each variable gives: the file's own, unless the
 * user asked for a cast, unpacking, rounding, another way with characters, or a
 * part of the array.
 */
#include <ctype.h>
#include <stdlib.h>
#include <string.h>

#include "base/number.h"
#include "base/path.h"
#include "convert/job.h"
#include "format/missing.h"
#include "format/packing.h"
#include "options/varopt.h"

typedef struct changes {
    cm_varopts dtype, keepbits;
    const cm_texts *unpack;
    bool *unpack_used;
} changes;

static bool means_all(const char *word)
{
    return strcmp(word, "all") == 0;
}

/* True when --unpack names V; "all" means those with scale_factor or add_offset. */
static bool wants_unpack(const changes *c, const cm_job_var *v, bool packed)
{
    bool wanted = false;
    for (size_t i = 0; i < c->unpack->n; i++) {
        const bool all = means_all(c->unpack->text[i]);
        bool match = all ? packed : cm_name_matches(c->unpack->text[i], v->name);
        c->unpack_used[i] |= match;
        wanted |= match;
    }
    return wanted && (packed || !v->source->is_stack); /* the source may be unpacked already */
}

static int set_unpack(const cm_job_var *v, cm_conversion *k, const cm_packing *p, cm_error *err)
{
    if (!p->packed || !cm_dtype_is_number(&k->src))
        return cm_fail(err, CM_EINVAL,
                       "`unpack` %s: the variable has neither scale_factor nor add_offset",
                       v->name);
    k->unpack = true;
    k->scale = p->scale;
    k->offset = p->offset;
    k->src = p->type;
    /* As xarray shows them, bit for bit; a type that is asked for is made of doubles. */
    k->dst = p->shown;
    k->single = k->dst.nbytes == 4;
    return CM_OK;
}

/* The values that readers mask: _FillValue first, and those of missing_value. */
static int read_nodata(const cm_job_var *v, cm_conversion *k, cm_error *err)
{
    const cm_variable *s = v->source;
    cm_missing m;
    if (!cm_missing_list(&s->dtype, s->attrs, s->has_fill_value ? s->fill_value : NULL, &m))
        return cm_fail(err, CM_EUNSUPPORTED,
                       "variable %s: more than %d values stand for missing ones, and its numbers "
                       "cannot be changed",
                       v->name, CM_MISSING_MOST);
    _Static_assert((int)CM_MISSING_MOST <= (int)CM_NODATA_MAX, "all have room");
    for (k->nnodata = 0; k->nnodata < m.n; k->nnodata++)
        memcpy(k->nodata[k->nnodata].src, m.element[k->nnodata], k->src.nbytes);
    return CM_OK;
}

/* Whether the result's type has the missing value N to the last digit; N's DST is that. */
static bool stays(const cm_conversion *k, cm_nodata *n)
{
    const cm_conversion cast = {.src = k->src, .dst = k->dst, .exact = true};
    uint64_t bad;
    return !k->unpack && cm_conversion_run(&cast, n->dst, n->src, 1, &bad, NULL) == CM_OK;
}

/*
 * Missing values stay missing: each becomes the same number, or, where one does not fit or means
 * nothing, all become the fill value or NaN.  Integers have no NaN, and any number instead would
 * make real values missing; so would one that is rounded to a missing value's number.
 */
static int set_nodata(const cm_job_var *v, cm_view *out, cm_error *err)
{
    cm_conversion *k = &out->conversion;
    char type[32], number[32];
    uint8_t one[16];
    int rc = read_nodata(v, k, err);
    if (rc != CM_OK || k->nnodata == 0)
        return rc;
    k->apart = true;
    const cm_nodata *lost = NULL; /* the first that does not stay */
    for (unsigned i = k->nnodata; i-- > 0;)
        if (!stays(k, &k->nodata[i]))
            lost = &k->nodata[i];
    if (lost == NULL)
        return CM_OK;
    if (v->source->has_fill_value && lost != k->nodata)
        memcpy(one, k->nodata[0].dst, sizeof(one));
    else if (!cm_element_from_double(&k->dst, (double)__builtin_nanf(""), one))
        return cm_fail(
            err, CM_EINVAL,
            "variable %s: %s has nothing to stand for its missing value %s; a floating "
            "point `dtype` has",
            v->name, cm_dtype_name(&k->dst, type, sizeof(type)),
            cm_format_double(cm_element_to_double(&k->src, lost->src), number, sizeof(number)));
    for (unsigned i = 0; i < k->nnodata; i++)
        memcpy(k->nodata[i].dst, one, sizeof(one));
    out->one_nodata = true;
    return CM_OK;
}

/*
 * True when another chosen variable says that V holds its bounds: coordinates, which stay as
 * they are.
 */
static bool is_bounds(const cm_job *job, const cm_job_var *v)
{
    static const char *const attribute[] = {"bounds", "climatology"};
    const char *last = cm_path_last(v->source->name);
    for (size_t i = 0; i < job->nvars; i++) {
        const cm_json *attrs = job->var[i].source->attrs;
        for (size_t k = 0; k < sizeof(attribute) / sizeof(attribute[0]); k++) {
            const char *text = cm_json_text(cm_json_member(attrs, attribute[k]), NULL);
            if (text != NULL && strcmp(text, last) == 0)
                return true;
        }
    }
    return false;
}

static int set_conversion(const cm_job *job, changes *c, const cm_job_var *v, cm_view *out,
                          cm_error *err)
{
    cm_conversion *k = &out->conversion;
    bool general = out->rank >= 2 && !is_bounds(job, v);
    bool named;
    cm_packing packing = cm_packing_of(v->source);
    k->src = k->dst = v->source->dtype;
    int rc = wants_unpack(c, v, packing.packed) ? set_unpack(v, k, &packing, err) : CM_OK;
    const char *type = cm_varopts_get(&c->dtype, v->name, general, &named);
    if (rc == CM_OK && type != NULL && (named || cm_dtype_is_number(&k->src))) {
        if (cm_dtype_parse(type, &k->dst, err) != CM_OK) {
            cm_error_prefix(err, "`dtype` %s", type);
            return CM_EINVAL;
        }
        k->single = false;
        out->typed = true;
        out->heeds_sign = !k->unpack && cm_packing_other_sign(v->source->attrs, &k->src);
        if (out->heeds_sign)
            k->src = cm_packing_type_read(v->source->attrs, &k->src);
    }
    const char *bits = cm_varopts_get(&c->keepbits, v->name, general, &named);
    if (rc == CM_OK && bits != NULL && (named || k->dst.kind == CM_KIND_FLOAT)) {
        uint64_t keep;
        if (cm_parse_u64(bits, &keep, err) != CM_OK || keep == 0 || keep > 52)
            return cm_fail(err, CM_EINVAL, "`keepbits` %s: must be from 1 to 52", bits);
        k->keepbits = (unsigned)keep;
    }
    if (rc != CM_OK)
        return rc;
    if (cm_conversion_is_identity(k) && type == NULL && bits == NULL)
        return CM_OK;
    if (cm_conversion_check(k, err) != CM_OK) {
        cm_error_prefix(err, "variable %s", v->name);
        return CM_EINVAL;
    }
    k->saturate = job->options->overflow == CM_OVERFLOW_SATURATE;
    if (k->saturate && k->keepbits > 0)
        return cm_fail(err, CM_EINVAL,
                       "variable %s: `overflow` saturate and `keepbits`: the largest number would "
                       "be rounded to infinity",
                       v->name);
    out->converts = !cm_conversion_is_identity(k) || out->heeds_sign;
    out->type = k->dst;
    return out->converts ? set_nodata(v, out, err) : CM_OK;
}

/* How V's characters are to be read; names as Python has them. */
static int set_encoding(const cm_job_var *v, cm_view *out, cm_error *err)
{
    static const char *const UTF8[] = {"utf8", "ascii", "usascii"};
    static const char *const LATIN1[] = {"latin1", "l1", "iso88591", "8859"};
    const char *encoding = cm_json_text(cm_json_member(v->source->attrs, "_Encoding"), NULL);
    char name[16] = "";
    size_t n = 0;
    if (encoding == NULL)
        return CM_OK;
    for (const char *p = encoding; *p != '\0' && n + 1 < sizeof(name); p++)
        if (isalnum((unsigned char)*p))
            name[n++] = (char)tolower((unsigned char)*p);
    for (size_t i = 0; i < sizeof(UTF8) / sizeof(UTF8[0]); i++)
        if (strcmp(name, UTF8[i]) == 0)
            return CM_OK;
    for (size_t i = 0; i < sizeof(LATIN1) / sizeof(LATIN1[0]); i++)
        out->latin1 = out->latin1 || strcmp(name, LATIN1[i]) == 0;
    return out->latin1 ? CM_OK
                       : cm_fail(err, CM_EUNSUPPORTED,
                                 "variable %s: its _Encoding is %s, and only utf-8, ascii and "
                                 "iso-8859-1 are made strings of; use `char_mode` keep",
                                 v->name, encoding);
}

/*
 * A coordinate of characters labels each element of its dimension: joined it would be a scalar
 * named like a dimension, which xarray refuses to open.
 */
static bool joins_characters(const cm_job *job, const cm_job_var *v)
{
    return job->options->char_mode == CM_CHAR_JOIN && v->source->rank > 0 &&
           !v->source->is_coordinate;
}

static int set_characters(cm_job *job, const cm_job_var *v, cm_view *out, cm_error *err)
{
    if (!v->source->is_char)
        return CM_OK;
    if (job->options->char_mode == CM_CHAR_UINT8)
        out->type = cm_dtype_make(CM_KIND_UINT, 1);
    if (joins_characters(job, v)) {
        out->join = out->as_strings = true;
        out->type = cm_dtype_make(CM_KIND_STRING, 0);
        out->rank--;
        return set_encoding(v, out, err);
    }
    if (job->options->char_mode == CM_CHAR_JOIN && v->source->is_coordinate)
        return cm_job_note(job, err,
                           "variable %s: its characters label its dimension and are not joined",
                           v->name);
    if (job->options->char_mode == CM_CHAR_KEEP && job->zarr_format == 3 &&
        v->source->words == NULL)
        return cm_job_note(
            job, err,
            "variable %s: characters become null_terminated_bytes, which tensorstore and zarrs "
            "cannot open; use `char_mode` join or uint8 for these readers",
            v->name);
    return CM_OK;
}

/* Refuses to change elements of an array that is not understood, which is copied as it is. */
static int keep_elements(cm_job *job, changes *c, const cm_job_var *v, cm_error *err)
{
    const char *why = v->source->unsupported;
    bool general = v->source->rank != 1, named = false, by_name = false, asked = false;
    cm_varopts *opts[] = {&c->dtype, &c->keepbits};
    for (size_t i = 0; i < sizeof(opts) / sizeof(opts[0]); i++) {
        asked |= cm_varopts_get(opts[i], v->name, general, &by_name) != NULL;
        named |= by_name;
    }
    for (size_t i = 0; i < c->unpack->n; i++)
        named |= !means_all(c->unpack->text[i]) && cm_name_matches(c->unpack->text[i], v->name);
    asked |= wants_unpack(c, v, cm_packing_of(v->source).packed);
    if (named)
        return cm_fail(err, CM_EUNSUPPORTED, "array %s can only be carried over as it is: %s",
                       cm_job_name(v), why);
    return asked ? cm_job_warn(job, err, "array %s keeps its elements as they are: %s",
                               cm_job_name(v), why)
                 : CM_OK;
}

static int view_one(cm_job *job, changes *c, const cm_job_var *v, cm_view *out, cm_error *err)
{
    const cm_variable *s = v->source;
    out->type = s->dtype;
    out->rank = s->rank;
    for (unsigned j = 0; j < s->rank; j++) {
        out->shape[j] = s->shape[j];
        out->step[j] = 1;
    }
    if (v->stored.as_objects)
        return keep_elements(job, c, v, err);
    out->as_strings = cm_dtype_is_vlen(&s->dtype);
    int rc = set_characters(job, v, out, err);
    if (rc == CM_OK && !out->as_strings && !v->source->is_char)
        rc = set_conversion(job, c, v, out, err);
    return rc;
}

/* Whether PATTERN means a variable that a stack was made of. */
static bool is_of_stack(const cm_job *job, const char *pattern)
{
    for (size_t i = 0; i < job->source->nvars; i++)
        if (job->source->var[i].is_taken && cm_name_matches(pattern, job->source->var[i].name))
            return true;
    return false;
}

/*
 * OPTION, which changes numbers, was given for PATTERN, and no variable of numbers has that
 * name.
 */
static int refuse_unused(const cm_job *job, const char *option, const char *pattern, cm_error *err)
{
    for (size_t i = 0; i < job->nvars; i++)
        if (cm_name_matches(pattern, job->var[i].name))
            return cm_fail(err, CM_EINVAL, "%s %s: variable %s holds text, not numbers", option,
                           pattern, job->var[i].name);
    return cm_fail(err, CM_EINVAL, "%s %s: no chosen variable is named %s", option, pattern,
                   pattern);
}

static int check_used(cm_job *job, cm_varopts *opts, cm_error *err)
{
    int rc = CM_OK;
    cm_job_look_elsewhere(job, opts);
    for (size_t i = 0; rc == CM_OK && i < opts->n; i++) {
        const cm_varopt *one = &opts->item[i];
        if (one->pattern != NULL && !one->used)
            rc = refuse_unused(job, opts->option, one->pattern, err);
        else if (!one->used)
            rc = cm_job_warn(job, err,
                             "%s %s changes nothing: it means variables of two dimensions or "
                             "more; others are named, as in VAR:%s",
                             opts->option, one->value, one->value);
    }
    return rc;
}

static bool is_whole(const cm_view *view, const cm_variable *source)
{
    bool whole = true;
    for (unsigned j = 0; j < view->rank; j++)
        whole = whole && view->start[j] == 0 && view->step[j] == 1 &&
                view->shape[j] == source->shape[j];
    return whole;
}

int cm_job_view(cm_job *job, cm_error *err)
{
    const cm_transform_options *o = job->options;
    changes c = {.unpack = &o->unpack};
    int rc = cm_varopts_parse("`dtype`", &o->dtype, NULL, &c.dtype, err);
    if (rc == CM_OK)
        rc = cm_varopts_parse("`keepbits`", &o->keepbits, NULL, &c.keepbits, err);
    c.unpack_used = cm_calloc(o->unpack.n > 0 ? o->unpack.n : 1, sizeof(bool), err);
    if (rc == CM_OK && c.unpack_used == NULL)
        rc = CM_ENOMEM;
    for (size_t i = 0; rc == CM_OK && i < job->nvars; i++)
        rc = view_one(job, &c, &job->var[i], &job->var[i].view, err);
    for (size_t i = 0; rc == CM_OK && i < o->unpack.n; i++) {
        const char *name = o->unpack.text[i];
        if (!c.unpack_used[i] && !means_all(name) && !is_of_stack(job, name) &&
            !cm_job_elsewhere(job, name))
            rc = refuse_unused(job, "`unpack`", name, err);
    }
    if (rc == CM_OK)
        rc = check_used(job, &c.dtype, err);
    if (rc == CM_OK)
        rc = check_used(job, &c.keepbits, err);
    free(c.unpack_used);
    cm_varopts_release(&c.dtype);
    cm_varopts_release(&c.keepbits);
    if (rc == CM_OK)
        rc = cm_job_subset(job, err);
    if (rc == CM_OK)
        rc = cm_job_check_indices(job, err);
    for (size_t i = 0; rc == CM_OK && i < job->nvars; i++)
        job->var[i].view.whole = is_whole(&job->var[i].view, job->var[i].source);
    return rc;
}

/* Resolves the shapes on the command line: dimensions, their lengths, the reads. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/number.h"
#include "chunkcalc/chunkcalc.h"
#include "model/dtype.h"
#include "options/varopt.h"

typedef struct parse_state {
    const char *option;
    bool strides;
    cm_calc_shape *out;
} parse_state;

static int parse_number(const parse_state *s, const char *text, uint64_t *out, cm_error *err)
{
    cm_error inner;

    if (cm_parse_u64(text, out, &inner) != CM_OK)
        return cm_fail(err, CM_EINVAL, "%s %s: %s", s->option, s->out->text, inner.text);
    if (*out == 0)
        return cm_fail(err, CM_EINVAL, "%s %s: a length of 0 reads nothing; it must be at least 1",
                       s->option, s->out->text);
    if (*out > UINT64_C(1) << 62)
        return cm_fail(err, CM_EINVAL, "%s %s: %s exceeds 2^62", s->option, s->out->text, text);
    return CM_OK;
}

static int parse_length(const parse_state *s, char *text, unsigned i, cm_error *err)
{
    char *colon = strchr(text, ':');

    s->out->step[i] = 1;
    if (colon != NULL) {
        if (!s->strides)
            return cm_fail(err, CM_EINVAL, "%s %s: a stride (LENGTH:STEP) has no meaning here",
                           s->option, s->out->text);
        *colon = '\0';
        int rc = parse_number(s, colon + 1, &s->out->step[i], err);
        if (rc != CM_OK)
            return rc;
    }
    const bool full = strcmp(text, "full") == 0 || strcmp(text, "-1") == 0;
    const bool same = strcmp(text, "same") == 0 || strcmp(text, "source") == 0;
    if ((full || same) && colon == NULL) {
        s->out->length[i] = full ? 0 : CM_CALC_SAME;
        return CM_OK;
    }
    return parse_number(s, text, &s->out->length[i], err);
}

static int parse_part(void *context, char *part, cm_error *err)
{
    parse_state *s = context;
    cm_calc_shape *shape = s->out;

    if (shape->n == CM_MAX_RANK)
        return cm_fail(err, CM_EINVAL, "%s %s: more than %d dimensions", s->option, shape->text,
                       CM_MAX_RANK);
    unsigned i = shape->n;
    if (shape->by_name) {
        char *equals = cm_find_unescaped(part, '=');
        if (equals == NULL || equals == part)
            return cm_fail(err, CM_EINVAL, "%s %s: '%s' is not of the form NAME=LENGTH", s->option,
                           shape->text, part);
        *equals = '\0';
        cm_unescape(part);
        for (unsigned j = 0; j < i; j++)
            if (strcmp(shape->name[j], part) == 0)
                return cm_fail(err, CM_EINVAL, "%s %s: dimension %s is given twice", s->option,
                               shape->text, part);
        shape->name[i] = cm_strdup(part, err);
        if (shape->name[i] == NULL)
            return CM_ENOMEM;
        part = equals + 1;
    }
    shape->n++;
    return parse_length(s, part, i, err);
}

/* OPTION stands in front of error sentences.  On error nothing is to be released. */
static int parse_shape(const char *option, const char *text, bool strides, cm_calc_shape *out,
                       cm_error *err)
{
    parse_state s = {option, strides, out};

    memset(out, 0, sizeof(*out));
    out->by_name = cm_find_unescaped(text, '=') != NULL;
    out->text = cm_strdup(text, err);
    if (out->text == NULL)
        return CM_ENOMEM;
    int rc = cm_split(text, out->by_name ? ',' : 'x', parse_part, &s, err);
    if (rc != CM_OK)
        cm_calc_shape_release(out);
    return rc;
}

void cm_calc_shape_release(cm_calc_shape *shape)
{
    for (unsigned i = 0; i < CM_MAX_RANK; i++)
        free(shape->name[i]);
    free(shape->text);
    memset(shape, 0, sizeof(*shape));
}

/* ---- dimensions ---------------------------------------------------------------------------- */

static int add_name(cm_chunkcalc_report *r, const char *name, cm_error *err)
{
    for (unsigned j = 0; j < r->rank; j++)
        if (strcmp(r->dim_name[j], name) == 0)
            return CM_OK;
    if (r->rank == CM_MAX_RANK)
        return cm_fail(err, CM_EINVAL, "more than %d dimensions are named", CM_MAX_RANK);
    r->dim_name[r->rank] = cm_strdup(name, err);
    if (r->dim_name[r->rank] == NULL)
        return CM_ENOMEM;
    r->rank++;
    return CM_OK;
}

static int add_names(cm_chunkcalc_report *r, const cm_calc_shape *shape, cm_error *err)
{
    int rc = CM_OK;

    for (unsigned i = 0; shape->by_name && i < shape->n && rc == CM_OK; i++)
        rc = add_name(r, shape->name[i], err);
    return rc;
}

/*
 * Without a store and without --shape the dimensions are those that the other shapes name or
 * count.
 */
static int find_dimensions(cm_calc *c, cm_error *err)
{
    cm_chunkcalc_report *r = c->report;
    unsigned positional = 0;
    int rc = add_names(r, &c->sample, err);

    for (size_t i = 0; i < c->nread && rc == CM_OK; i++)
        rc = add_names(r, &c->read[i], err);
    /* Reads by order take the names that the candidates give. */
    for (size_t i = 0; r->rank == 0 && i < c->nchunks && rc == CM_OK; i++)
        rc = add_names(r, &c->chunks[i], err);
    if (rc != CM_OK)
        return rc;
    if (c->sample.text != NULL && !c->sample.by_name)
        positional = c->sample.n;
    else if (c->nread > 0 && !c->read[0].by_name)
        positional = c->read[0].n;
    if (r->rank == 0)
        r->rank = positional;
    return CM_OK;
}

/* --shape without a store: names, or only lengths. */
static int set_shape(cm_calc *c, cm_error *err)
{
    cm_chunkcalc_report *r = c->report;

    for (unsigned i = 0; i < c->array.n; i++) {
        if (c->array.length[i] == 0 || c->array.length[i] == CM_CALC_SAME)
            return cm_fail(err, CM_EINVAL, "`shape` %s: '%s' has no meaning here; give a number",
                           c->array.text, c->array.length[i] == 0 ? "full" : "same");
        r->shape[i] = c->array.length[i];
        if (c->array.by_name) {
            r->dim_name[i] = cm_strdup(c->array.name[i], err);
            if (r->dim_name[i] == NULL)
                return CM_ENOMEM;
        }
    }
    r->rank = c->array.n;
    r->bounded = true;
    return CM_OK;
}

static int unknown_name(const cm_calc *c, const char *option, const cm_calc_shape *shape,
                        const char *name, cm_error *err)
{
    char known[512] = "";
    size_t n = 0;

    for (unsigned j = 0; j < c->report->rank && n < sizeof(known); j++)
        if (c->report->dim_name[j] != NULL)
            n += (size_t)snprintf(known + n, sizeof(known) - n, "%s%s", n > 0 ? ", " : "",
                                  c->report->dim_name[j]);
    if (n == 0)
        return cm_fail(err, CM_EINVAL, "%s %s: the dimensions have no names, only an order", option,
                       shape->text);
    return cm_fail(err, CM_EINVAL, "%s %s: no dimension %s; the dimensions are %s", option,
                   shape->text, name, known);
}

int cm_calc_shape_apply(const cm_calc *c, const char *option, const cm_calc_shape *shape,
                        uint64_t *length, uint64_t *step, cm_error *err)
{
    const cm_chunkcalc_report *r = c->report;

    if (!shape->by_name && shape->n != r->rank)
        return cm_fail(err, CM_EINVAL, "%s %s: %u length%s for %u dimension%s", option, shape->text,
                       shape->n, cm_of_count(shape->n, "", "s"), r->rank,
                       cm_of_count(r->rank, "", "s"));
    for (unsigned j = 0; j < r->rank; j++) {
        length[j] = 0;
        if (step != NULL)
            step[j] = 1;
    }
    for (unsigned i = 0; i < shape->n; i++) {
        unsigned j = i;
        if (shape->by_name)
            for (j = 0; j < r->rank; j++)
                if (r->dim_name[j] != NULL && strcmp(r->dim_name[j], shape->name[i]) == 0)
                    break;
        if (j == r->rank)
            return unknown_name(c, option, shape, shape->name[i], err);
        length[j] = shape->length[i] != 0 ? shape->length[i] : r->shape[j];
        if (length[j] == CM_CALC_SAME) {
            const bool shards = shape == &c->shards;
            if (shards ? !c->present_sharded : !c->has_present)
                return cm_fail(err, CM_EINVAL, "%s %s: 'same' needs a STORE with %s", option,
                               shape->text, shards ? "shards" : "chunks");
            const uint64_t there = shards ? c->present_shard[j] : c->present_chunk[j];
            length[j] = !shards && there > r->shape[j] ? r->shape[j] : there;
        }
        if (length[j] == 0)
            return cm_fail(err, CM_EINVAL,
                           "%s %s: the length of the whole dimension is not known; give `shape`",
                           option, shape->text);
        if (step != NULL)
            step[j] = shape->step[i];
    }
    return CM_OK;
}

/* ---- reads --------------------------------------------------------------------------------- */

/* Fills read I from SHAPE.  A dimension that it does not name is read whole. */
static int add_read(cm_calc *c, const char *option, const cm_calc_shape *shape, double weight,
                    cm_error *err)
{
    cm_chunkcalc_report *r = c->report;
    cm_chunkcalc_read *read = &r->read[r->nreads];
    int rc = cm_calc_shape_apply(c, option, shape, read->sample, read->step, err);

    if (rc != CM_OK)
        return rc;
    read->weight = weight;
    read->nbytes = (double)r->itemsize;
    for (unsigned j = 0; j < r->rank; j++) {
        uint64_t span;
        if (read->sample[j] == 0)
            read->sample[j] = r->shape[j];
        if (read->sample[j] == 0)
            return cm_fail(err, CM_EINVAL,
                           "%s %s: the length along %s is missing; name it, or give `shape`",
                           option, shape->text, r->dim_name[j]);
        if (!cm_mul_u64(read->sample[j] - 1, read->step[j], &span) || span >= UINT64_C(1) << 62)
            return cm_fail(err, CM_EINVAL, "%s %s: spans more than 2^62 elements", option,
                           shape->text);
        if (r->bounded && span >= r->shape[j]) {
            char label[32];
            snprintf(label, sizeof(label), "dimension %u", j);
            return cm_fail(err, CM_EINVAL,
                           "%s %s: spans %" PRIu64
                           " elements along %s, the array has only %" PRIu64,
                           option, shape->text, span + 1,
                           r->dim_name[j] != NULL ? r->dim_name[j] : label, r->shape[j]);
        }
        read->nbytes *= (double)read->sample[j];
        c->reads[r->nreads].sample[j] = read->sample[j];
        c->reads[r->nreads].step[j] = read->step[j];
    }
    c->reads[r->nreads].weight = weight;
    read->text = cm_strdup(shape->text, err);
    if (read->text == NULL)
        return CM_ENOMEM;
    r->nreads++;
    return CM_OK;
}

static int read_weight(const char *text, const char **shape, double *weight, cm_error *err)
{
    const char *at = strchr(text, '@');
    char number[64];

    *weight = 1;
    *shape = text;
    if (at == NULL)
        return CM_OK;
    *shape = at + 1;
    snprintf(number, sizeof(number), "%.*s", (int)(at - text), text);
    if ((size_t)(at - text) >= sizeof(number) || cm_parse_double(number, weight, NULL) != CM_OK ||
        *weight <= 0)
        return cm_fail(err, CM_EINVAL, "`read` %s: '%.*s' is not a weight above 0", text,
                       (int)(at - text), text);
    return CM_OK;
}

int cm_calc_reads(cm_calc *c, cm_error *err)
{
    cm_chunkcalc_report *r = c->report;
    size_t n = c->nread + (c->sample.text != NULL);
    int rc = CM_OK;

    if (n > CM_MAX_READS)
        return cm_fail(err, CM_EINVAL, "%zu ways of reading are too many (the limit is %d)", n,
                       CM_MAX_READS);
    r->read = cm_calloc(n + 1, sizeof(*r->read), err);
    if (r->read == NULL)
        return CM_ENOMEM;
    if (c->sample.text != NULL)
        rc = add_read(c, "`sample`", &c->sample, 1, err);
    for (size_t i = 0; i < c->nread && rc == CM_OK; i++) {
        const char *shape;
        double weight;
        rc = read_weight(c->options->read.text[i], &shape, &weight, err);
        if (rc == CM_OK)
            rc = add_read(c, "`read`", &c->read[i], weight, err);
    }
    return rc;
}

/* ---- everything that is text --------------------------------------------------------------- */

static int parse_align(cm_calc *c, cm_error *err)
{
    const char *text = c->options->align;

    c->align = CM_ALIGN_RANDOM;
    c->every = 1;
    if (text == NULL || strcmp(text, "random") == 0)
        return CM_OK;
    if (strcmp(text, "chunk") == 0) {
        c->align = CM_ALIGN_CHUNK;
        return CM_OK;
    }
    c->align = CM_ALIGN_EVERY;
    if (cm_parse_u64(text, &c->every, NULL) != CM_OK || c->every == 0 ||
        c->every > UINT64_C(1) << 62)
        return cm_fail(err, CM_EINVAL, "`align` %s: give random, chunk or a number of elements",
                       text);
    return CM_OK;
}

static int parse_list(const char *option, const cm_texts *texts, bool reads, cm_calc_shape **out,
                      size_t *nout, cm_error *err)
{
    *out = cm_calloc(texts->n + 1, sizeof(**out), err);
    if (*out == NULL)
        return CM_ENOMEM;
    for (size_t i = 0; i < texts->n; i++) {
        const char *at = reads ? strchr(texts->text[i], '@') : NULL;
        int rc = parse_shape(option, at != NULL ? at + 1 : texts->text[i], reads, &(*out)[i], err);
        if (rc != CM_OK)
            return rc;
        *nout = i + 1;
    }
    return CM_OK;
}

static int set_itemsize(cm_calc *c, cm_error *err)
{
    const cm_chunkcalc_options *o = c->options;
    cm_chunkcalc_report *r = c->report;
    cm_dtype type;
    char name[32];

    if (o->dtype != NULL) {
        int rc = cm_dtype_parse(o->dtype, &type, err);
        if (rc != CM_OK) {
            cm_error_prefix(err, "`dtype`");
            return rc;
        }
        if (cm_dtype_is_vlen(&type) && o->itemsize == 0)
            return cm_fail(err, CM_EINVAL,
                           "`dtype` %s: its elements have no fixed size; add `itemsize`", o->dtype);
        if (o->itemsize != 0 && !cm_dtype_is_vlen(&type) && o->itemsize != type.nbytes)
            return cm_fail(err, CM_EINVAL, "`itemsize` %" PRIu64 ": an element of %s has %u",
                           o->itemsize, o->dtype, type.nbytes);
        free(r->type);
        r->type = cm_strdup(cm_dtype_name(&type, name, sizeof(name)), err);
        if (r->type == NULL)
            return CM_ENOMEM;
        r->itemsize = type.nbytes;
    }
    if (o->itemsize != 0)
        r->itemsize = o->itemsize;
    if (r->itemsize == 0) {
        r->itemsize = 1;
        r->assumed_itemsize = true;
    }
    return CM_OK;
}

int cm_calc_parse(cm_calc *c, cm_error *err)
{
    const cm_chunkcalc_options *o = c->options;
    cm_chunkcalc_report *r = c->report;
    bool shards =
        o->shards != NULL && strcmp(o->shards, "auto") != 0 && strcmp(o->shards, "none") != 0;
    int rc = parse_align(c, err);

    if (rc == CM_OK)
        rc = set_itemsize(c, err);
    if (rc == CM_OK && o->sample != NULL)
        rc = parse_shape("`sample`", o->sample, true, &c->sample, err);
    if (rc == CM_OK)
        rc = parse_list("`read`", &o->read, true, &c->read, &c->nread, err);
    if (rc == CM_OK)
        rc = parse_list("`chunks`", &o->chunks, false, &c->chunks, &c->nchunks, err);
    if (rc == CM_OK)
        rc = parse_list("`against`", &o->against, false, &c->against, &c->nagainst, err);
    if (rc == CM_OK && shards)
        rc = parse_shape("`shards`", o->shards, false, &c->shards, err);
    if (rc == CM_OK && o->shape != NULL)
        rc = parse_shape("`shape`", o->shape, false, &c->array, err);
    if (rc != CM_OK)
        return rc;
    r->align = cm_strdup(o->align != NULL ? o->align : "random", err);
    if (r->align == NULL)
        return CM_ENOMEM;
    if (o->store != NULL && o->shape != NULL)
        return cm_fail(err, CM_EINVAL, "`shape` %s: the array's shape comes from %s", o->shape,
                       o->store);
    if (o->store != NULL)
        return CM_OK;
    return o->shape != NULL ? set_shape(c, err) : find_dimensions(c, err);
}

/* Whether an option can name dimension J: not one without a name of its own. */
static bool has_plain_name(const cm_chunkcalc_report *r, unsigned j)
{
    const char *name = r->dim_name[j];
    bool plain = name != NULL && name[0] != '\0' && strpbrk(name, ":,=*\\") == NULL;
    for (unsigned i = 0; i < j && plain; i++)
        plain = r->dim_name[i] == NULL || strcmp(r->dim_name[i], name) != 0;
    return plain;
}

char *cm_calc_shape_text(const cm_calc *c, const uint64_t *shape, cm_error *err)
{
    const cm_chunkcalc_report *r = c->report;
    bool names = r->rank > 0;
    cm_buf buf;
    char *text = NULL;
    int rc = CM_OK;

    cm_buf_init(&buf, 0);
    for (unsigned j = 0; j < r->rank; j++)
        names = names && has_plain_name(r, j);
    for (unsigned j = 0; j < r->rank && rc == CM_OK; j++)
        rc = names ? cm_buf_printf(&buf, err, "%s%s=%" PRIu64, j > 0 ? "," : "", r->dim_name[j],
                                   shape[j])
                   : cm_buf_printf(&buf, err, "%s%" PRIu64, j > 0 ? "x" : "", shape[j]);
    if (rc == CM_OK)
        text = cm_asprintf(err, "%.*s", (int)buf.nbytes, buf.data != NULL ? (char *)buf.data : "");
    cm_buf_release(&buf);
    return text;
}

#include "format/prefer.h"

#include <math.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "format/dataset_impl.h"
#include "format/missing.h"
#include "format/packing.h"
#include "model/convert.h"

enum {
    PIECE_NBYTES = 4 << 20 /* read at once where the variable is not chunked */
};

/* Values that mark an element of a variable as missing. */
typedef struct marks {
    cm_dtype dtype;
    unsigned n;
    uint64_t bits[CM_MISSING_MOST]; /* of integers */
    double number[CM_MISSING_MOST]; /* of floats; NaN is always missing */
} marks;

typedef struct scratch {
    struct scratch *next;
    cm_codec_ctx *ctx;
    cm_buf raw; /* elements of the less preferred indices */
} scratch;

typedef struct preferred {
    cm_dataset base; /* first */
    const cm_preference *what;
    struct chosen *array; /* one for each variable; OWNER NULL: BELOW's own array */
    pthread_mutex_t lock; /* guards: */
    scratch *scratch;     /* list of free scratches */
} preferred;

typedef struct chosen {
    cm_array base; /* first: a cm_array leads here */
    preferred *owner;
    cm_variable *of; /* variable of BELOW */
    unsigned dim;    /* dimension of OF that is removed */
    bool prepared;
    marks missing;
} chosen;

static preferred *of(const cm_dataset *ds)
{
    return (preferred *)(uintptr_t)ds;
}

/* ---- missing elements ---- */

static int find_marks(const cm_variable *v, marks *m, cm_error *err)
{
    cm_missing list;
    if (!cm_missing_list(&v->dtype, v->attrs, v->has_fill_value ? v->fill_value : NULL, &list))
        return cm_fail(err, CM_EUNSUPPORTED,
                       "variable %s: more than %d values stand for missing ones", v->name,
                       CM_MISSING_MOST);
    *m = (marks){.dtype = v->dtype, .n = list.n};
    for (unsigned i = 0; i < list.n; i++) {
        memcpy(&m->bits[i], list.element[i], v->dtype.nbytes);
        m->number[i] = cm_element_to_double(&v->dtype, list.element[i]);
    }
    return CM_OK;
}

static inline bool is_missing(const marks *m, const uint8_t *p)
{
    uint64_t bits = 0;
    float single;
    double x;
    if (m->dtype.kind != CM_KIND_FLOAT) {
        memcpy(&bits, p, m->dtype.nbytes);
        for (unsigned k = 0; k < m->n; k++)
            if (bits == m->bits[k])
                return true;
        return false;
    }
    if (m->dtype.nbytes == 4) {
        memcpy(&single, p, sizeof(single));
        x = (double)single;
    } else {
        x = cm_element_to_double(&m->dtype, p);
    }
    for (unsigned k = 0; k < m->n; k++)
        if (x == m->number[k])
            return true;
    return isnan(x);
}

/* Fills missing elements of DST from FROM; returns how many are still missing. */
static uint64_t take_missing(const marks *m, const uint8_t *from, uint8_t *dst, uint64_t n)
{
    const size_t size = m->dtype.nbytes;
    uint64_t left = 0;
    for (uint64_t i = 0; i < n; i++, dst += size, from += size) {
        if (!is_missing(m, dst))
            continue;
        if (is_missing(m, from))
            left++;
        else
            memcpy(dst, from, size);
    }
    return left;
}

static bool any_missing(const marks *m, const uint8_t *p, uint64_t n)
{
    uint64_t i = 0;
    while (i < n && !is_missing(m, p + i * m->dtype.nbytes))
        i++;
    return i < n;
}

/* ---- elements ---- */

/*
 * BOX of C as a box of the variable below, at index AT of the removed dimension; elements keep
 * their order.
 */
static cm_box box_below(const chosen *c, const cm_box *box, uint64_t at)
{
    cm_box out = {.rank = box->rank + 1};
    for (unsigned j = 0, i = 0; j < out.rank; j++) {
        const bool taken = j == c->dim;
        out.start[j] = taken ? at : box->start[i];
        out.shape[j] = taken ? 1 : box->shape[i];
        i += !taken;
    }
    return out;
}

static scratch *take_scratch(preferred *p, cm_error *err)
{
    pthread_mutex_lock(&p->lock);
    scratch *s = p->scratch;
    if (s != NULL)
        p->scratch = s->next;
    pthread_mutex_unlock(&p->lock);
    if (s != NULL || (s = cm_calloc(1, sizeof(*s), err)) == NULL)
        return s;
    if ((s->ctx = cm_codec_ctx_create(err)) != NULL)
        return s;
    free(s);
    return NULL;
}

static void give_scratch(preferred *p, scratch *s)
{
    pthread_mutex_lock(&p->lock);
    s->next = p->scratch;
    p->scratch = s;
    pthread_mutex_unlock(&p->lock);
}

static int read_preferred(chosen *c, scratch *s, const cm_box *box, uint8_t *dst, cm_error *err)
{
    const cm_preference *what = c->owner->what;
    const uint64_t n = cm_box_nelem(box);
    cm_box below = box_below(c, box, what->index[0]);
    int rc = cm_array_read(c->of->array, s->ctx, &below, dst, err);
    bool left = rc == CM_OK && any_missing(&c->missing, dst, n);
    for (size_t k = 1; rc == CM_OK && left && k < what->nindices; k++) {
        below = box_below(c, box, what->index[k]);
        rc = cm_buf_resize(&s->raw, (size_t)n * c->base.dtype.nbytes, err);
        if (rc == CM_OK)
            rc = cm_array_read(c->of->array, s->ctx, &below, s->raw.data, err);
        if (rc == CM_OK)
            left = take_missing(&c->missing, s->raw.data, dst, n) > 0;
    }
    return rc;
}

static int read_box(cm_array *a, const cm_box *box, void *dst, cm_error *err)
{
    chosen *c = (chosen *)a;
    if (cm_box_nelem(box) == 0)
        return CM_OK;
    scratch *s = take_scratch(c->owner, err);
    if (s == NULL)
        return CM_ENOMEM;
    int rc = read_preferred(c, s, box, dst, err);
    give_scratch(c->owner, s);
    return rc;
}

/* ---- verification ---- */

/* Values of V that readers mask, computed from its attributes independently of the conversion. */
typedef struct masks {
    const cm_variable *var;
    cm_dtype read;        /* by _Unsigned of another sign than stored */
    const cm_json *value; /* of missing_value: one number, or a list */
    size_t nvalues;
    double first; /* of them */
} masks;

static masks find_masks(const cm_variable *v)
{
    masks m = {.var = v,
               .read = cm_packing_type_read(v->attrs, &v->dtype),
               .value = cm_json_member(v->attrs, "missing_value")};
    const bool list = cm_json_is(m.value, CM_JSON_ARRAY);
    m.nvalues = list ? cm_json_length(m.value) : 1;
    if (!cm_json_get_double(list ? cm_json_at(m.value, 0) : m.value, &m.first))
        m.first = (double)NAN; /* equal to nothing */
    return m;
}

static bool reads_as_missing(const masks *m, const uint8_t *p)
{
    const cm_variable *v = m->var;
    const bool is_float = v->dtype.kind == CM_KIND_FLOAT;
    const double x = cm_element_to_double(&m->read, p);
    double y;
    if ((is_float && isnan(x)) || x == m->first)
        return true;
    for (size_t i = 1; i < m->nvalues; i++)
        if (cm_json_get_double(cm_json_at(m->value, i), &y) && x == y)
            return true;
    return v->has_fill_value && (is_float ? x == cm_element_to_double(&v->dtype, v->fill_value)
                                          : memcmp(p, v->fill_value, v->dtype.nbytes) == 0);
}

/* From the least to the most preferred: each present element replaces the one before. */
static int expect_box(const chosen *c, const cm_box *box, uint8_t *dst, cm_error *err)
{
    const cm_preference *what = c->owner->what;
    const size_t size = c->base.dtype.nbytes;
    const uint64_t n = cm_box_nelem(box);
    const masks m = find_masks(c->of);
    cm_dataset *below = c->owner->base.below;
    cm_box first = box_below(c, box, what->index[0]);
    cm_buf raw = {0};
    int rc = cm_dataset_read(below, c->of, &first, dst, err);
    if (rc == CM_OK && what->nindices > 1)
        rc = cm_buf_resize(&raw, (size_t)n * size, err);
    uint8_t *present = rc == CM_OK ? cm_calloc((size_t)n + 1, 1, err) : NULL;
    if (rc == CM_OK && present == NULL)
        rc = CM_ENOMEM;
    for (uint64_t i = 0; rc == CM_OK && i < n; i++)
        present[i] = !reads_as_missing(&m, dst + i * size);
    for (size_t k = what->nindices; rc == CM_OK && k-- > 1;) {
        const cm_box other = box_below(c, box, what->index[k]);
        rc = cm_dataset_read(below, c->of, &other, raw.data, err);
        for (uint64_t i = 0; rc == CM_OK && i < n; i++)
            if (!present[i] && !reads_as_missing(&m, raw.data + i * size))
                memcpy(dst + i * size, raw.data + i * size, size);
    }
    cm_buf_release(&raw);
    free(present);
    return rc;
}

/* ---- operations of a dataset ---- */

static cm_variable *below_of(const cm_dataset *ds, const cm_variable *var)
{
    return &ds->below->var[var->index];
}

static bool is_chosen(const cm_dataset *ds, const cm_variable *var)
{
    return of(ds)->array[var->index].owner != NULL;
}

/* Copies the description of the variable below, without the removed dimension. */
static void describe(const cm_dataset *ds, cm_variable *var)
{
    const cm_variable was = *var;
    chosen *c = &of(ds)->array[was.index];
    const cm_variable *from = below_of(ds, var);
    *var = *from;
    var->index = was.index;
    var->wanted = was.wanted;
    var->is_taken = was.is_taken || from->is_taken;
    if (c->owner == NULL)
        return;
    var->rank = c->base.rank;
    var->dim_name = c->base.dim_name;
    for (unsigned j = 0, i = 0; j < from->rank; j++) {
        if (j == c->dim)
            continue;
        var->shape[i] = from->shape[j];
        var->unlimited[i] = from->unlimited[j];
        var->source_chunk[i] = from->source_chunk[j];
        i++;
    }
    var->is_coordinate = false;
    var->is_sharded = var->located = false;
    var->words = NULL;
    var->codecs = NULL;
    var->ncodecs = 0;
    var->array = &c->base;
    var->access = of(ds)->what->access;
    var->access_reason = NULL;
}

/* The chunks below, or pieces small enough for memory. */
static void choose_pieces(const chosen *c, uint64_t *piece)
{
    const cm_variable *v = c->of;
    uint64_t room = PIECE_NBYTES / v->dtype.nbytes;
    for (unsigned j = v->rank, i = c->base.rank; j-- > 0;) {
        if (j == c->dim)
            continue;
        i--;
        piece[i] = v->has_source_chunks ? v->source_chunk[j]
                   : v->shape[j] < room ? v->shape[j]
                                        : room;
        piece[i] = piece[i] > 0 ? piece[i] : 1;
        room = room / piece[i] > 0 ? room / piece[i] : 1;
    }
}

/* Memory for reading a piece: reading below, and the elements of less preferred indices. */
static size_t piece_nbytes(const chosen *c)
{
    const cm_array *a = c->of->array;
    size_t below = a->box_nbytes;
    if (a->chunked)
        below =
            cm_array_decoded_nbytes(a) + cm_array_decode_memory(a) +
            (a->max_stored_nbytes > 0 ? a->max_stored_nbytes : cm_chain_encoded_bound(a->chain));
    return below + (size_t)c->base.grid.chunk_nelem * c->base.dtype.nbytes;
}

static int make_array(chosen *c, cm_error *err)
{
    uint64_t piece[CM_MAX_RANK];
    cm_array *a = &c->base;
    if (c->prepared)
        return CM_OK;
    int rc = find_marks(c->of, &c->missing, err);
    if (rc != CM_OK)
        return rc;
    if (c->missing.n == 0 && c->of->dtype.kind != CM_KIND_FLOAT)
        return cm_fail(err, CM_EUNSUPPORTED,
                       "variable %s: it has no _FillValue and no missing_value, so nothing tells "
                       "along %s what is missing",
                       a->name, c->owner->what->dim);
    a->fill = (uint8_t *)(uintptr_t)c->of->fill;
    a->serial = c->of->array->serial;
    choose_pieces(c, piece);
    rc = cm_grid_init(&a->grid, a->rank, a->shape, piece, err);
    a->box_nbytes = rc == CM_OK ? piece_nbytes(c) : 0;
    c->prepared = rc == CM_OK;
    return rc;
}

static int prepare(cm_dataset *ds, cm_variable *var, cm_error *err)
{
    for (size_t i = 0; i < ds->nvars; i++)
        ds->below->var[i].wanted = ds->below->var[i].wanted || ds->var[i].wanted;
    int rc = cm_dataset_prepare(ds->below, below_of(ds, var), err);
    if (rc == CM_OK && is_chosen(ds, var))
        rc = make_array(&of(ds)->array[var->index], err);
    if (rc == CM_OK)
        describe(ds, var);
    return rc;
}

static void unprepare(cm_dataset *ds, cm_variable *var)
{
    cm_dataset_unprepare(ds->below, below_of(ds, var));
    of(ds)->array[var->index].prepared = false;
    describe(ds, var);
}

static int read_library(cm_dataset *ds, cm_variable *var, const cm_box *box, void *dst,
                        cm_error *err)
{
    return is_chosen(ds, var) ? expect_box(&of(ds)->array[var->index], box, dst, err)
                              : cm_dataset_read(ds->below, below_of(ds, var), box, dst, err);
}

static int read_strings(cm_dataset *ds, cm_variable *var, const cm_box *box, cm_strings *out,
                        cm_error *err)
{
    return cm_dataset_read_strings(ds->below, below_of(ds, var), box, out, err);
}

static int locate(cm_dataset *ds, cm_variable *var, cm_located *out, cm_error *err)
{
    return cm_dataset_locate(ds->below, below_of(ds, var), out, err);
}

static void close_preferred(cm_dataset *ds)
{
    preferred *p = of(ds);
    while (p->scratch != NULL) {
        scratch *s = p->scratch;
        p->scratch = s->next;
        cm_codec_ctx_free(s->ctx);
        cm_buf_release(&s->raw);
        free(s);
    }
    pthread_mutex_destroy(&p->lock);
    free(p->array);
    cm_dataset_release(ds);
    free(p);
}

static const cm_dataset_ops ops = {
    .prepare = prepare,
    .unprepare = unprepare,
    .read = read_library,
    .read_strings = read_strings,
    .locate = locate,
    .close = close_preferred,
};

/* ---- opening ---- */

static void choose(preferred *p, cm_variable *v, unsigned dim)
{
    static const cm_array_ops boxes = {.read_box = read_box};
    chosen *c = &p->array[v->index];
    *c = (chosen){.owner = p, .of = v, .dim = dim};
    c->base = (cm_array){.ops = &boxes,
                         .name = (char *)(uintptr_t)v->name,
                         .place = p->base.path,
                         .dtype = v->dtype,
                         .attrs = (cm_json *)(uintptr_t)v->attrs};
    for (unsigned j = 0; j < v->rank; j++) {
        if (j == dim)
            continue;
        c->base.shape[c->base.rank] = v->shape[j];
        c->base.dim_name[c->base.rank++] = v->dim_name[j];
    }
}

static int describe_all(preferred *p, cm_error *err)
{
    cm_dataset *ds = &p->base, *below = ds->below;
    int rc = cm_dataset_init(ds, below->path, below->nvars, below->ngroups, err);
    if (rc == CM_OK && (p->array = cm_calloc(below->nvars + 1, sizeof(p->array[0]), err)) == NULL)
        rc = CM_ENOMEM;
    if (rc != CM_OK)
        return rc;
    ds->kind = below->kind;
    ds->format_name = below->format_name;
    ds->nbytes = below->nbytes;
    ds->zarr_format = below->zarr_format;
    ds->consolidated = below->consolidated;
    for (; ds->nvars < below->nvars; ds->nvars++) {
        cm_variable *v = &below->var[ds->nvars], *var = &ds->var[ds->nvars];
        const unsigned dim = cm_variable_dim(v, p->what->dim);
        const bool numbers = cm_dtype_is_number(&v->dtype) && !v->is_char && v->dtype.nbytes <= 8;
        var->index = ds->nvars;
        var->is_taken = v->is_coordinate && dim == 0;
        if (dim < v->rank && !var->is_taken && numbers)
            choose(p, v, dim);
        describe(ds, var);
        if (dim < v->rank && !var->is_taken && !numbers && var->unsupported == NULL)
            var->unsupported = "text along a dimension that is merged";
    }
    for (; ds->ngroups < below->ngroups; ds->ngroups++)
        ds->group[ds->ngroups] = below->group[ds->ngroups];
    return CM_OK;
}

int cm_prefer_open(cm_dataset *below, const cm_preference *what, cm_dataset **out, cm_error *err)
{
    *out = NULL;
    preferred *p = cm_calloc(1, sizeof(*p), err);
    if (p == NULL)
        return CM_ENOMEM;
    p->base.ops = &ops;
    p->base.below = below;
    p->what = what;
    pthread_mutex_init(&p->lock, NULL);
    int rc = describe_all(p, err);
    if (rc != CM_OK) {
        close_preferred(&p->base);
        return rc;
    }
    *out = &p->base;
    return CM_OK;
}

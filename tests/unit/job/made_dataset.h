/*
 * A dataset in memory, made of a table: what a file has, without a file.
 *
 *     {"v", "float32", "t*=2 y=2", .fill = "-999", .attrs = "{'units': 'K'}", .values = "1 2 3 4"}
 *
 * A dimension with a star may grow.  Attributes are JSON with ' for ".  Values count up from 0
 * where none are said, and of characters they are the text itself.
 */
#ifndef TESTS_JOB_MADE_DATASET_H
#define TESTS_JOB_MADE_DATASET_H

#include <stdio.h>

#include "base/number.h"
#include "format/dataset_impl.h"
#include "job/common/fill_option.h"
#include "model/convert.h"
#include "ok.h"

/* An option that is repeated. */
#define TEXTS(...)                                                                                 \
    {                                                                                              \
        .text = (const char *const[]){__VA_ARGS__},                                                \
        .n = sizeof((const char *const[]){__VA_ARGS__}) / sizeof(const char *)                     \
    }

typedef struct made_var {
    const char *name, *type, *dims; /* TYPE "char": single characters, "string": of any length */
    const char *fill, *attrs, *values;
    const char *chunk; /* "2 3": it is stored in such chunks; NULL: in one piece */
} made_var;

enum {
    MADE_VARS = 8
};

typedef struct made_file {
    const char *path;
    const char *attrs; /* of the root */
    bool located;      /* its bytes have addresses */
    made_var var[MADE_VARS];
} made_file;

typedef struct made_array {
    cm_array base; /* first */
    uint8_t *values;
} made_array;

typedef struct made_dataset {
    cm_dataset base; /* first */
    made_array *array;
    char *dim_name[MADE_VARS][CM_MAX_RANK];
    unsigned nreads;
} made_dataset;

static inline cm_json *made_json(const char *text)
{
    cm_json *json;
    char *copy = strdup(text == NULL ? "{}" : text);
    for (char *p = copy; *p != '\0'; p++)
        if (*p == '\'')
            *p = '"';
    OK(cm_json_parse(copy, strlen(copy), &json, err));
    free(copy);
    return json;
}

/* ---- elements ---- */

static inline int made_read_box(cm_array *a, const cm_box *box, void *dst, cm_error *err)
{
    const uint64_t n = cm_box_nelem(box);
    (void)err;
    for (uint64_t i = 0; i < n; i++) {
        uint64_t at = 0, left = i, stride = 1;
        for (unsigned k = a->rank; k-- > 0; stride *= a->shape[k]) {
            at += (box->start[k] + left % box->shape[k]) * stride;
            left /= box->shape[k];
        }
        memcpy((uint8_t *)dst + i * a->dtype.nbytes,
               ((made_array *)a)->values + at * a->dtype.nbytes, a->dtype.nbytes);
    }
    return CM_OK;
}

/* TEXT has NELEM elements of TYPE; NULL: they count up. */
static inline void made_elements(const cm_dtype *type, const char *text, uint64_t nelem, void *dst)
{
    char word[64];
    int used;
    for (uint64_t i = 0; i < nelem; i++, dst = (uint8_t *)dst + type->nbytes) {
        if (text == NULL) {
            assert_true(cm_element_from_double(type, (double)i, dst));
            continue;
        }
        if (sscanf(text, " %63s%n", word, &used) != 1)
            fail_msg("there are only %u values in \"%s\"", (unsigned)i, text);
        if (!cm_fill_parse(type, word, dst))
            fail_msg("%s is no value of its type", word);
        text += used;
    }
}

static inline const char *made_text(const cm_dtype *type, const void *element, char *buf,
                                    size_t size)
{
    cm_element_text(type, element, buf, size);
    return buf;
}

/* ---- a dataset's operations ---- */

static inline int made_prepare(cm_dataset *ds, cm_variable *v, cm_error *err)
{
    (void)err;
    v->array = &((made_dataset *)ds)->array[v->index].base;
    v->access = "memory";
    return CM_OK;
}

static inline int made_read(cm_dataset *ds, cm_variable *v, const cm_box *box, void *dst,
                            cm_error *err)
{
    ((made_dataset *)ds)->nreads++;
    return made_read_box(&((made_dataset *)ds)->array[v->index].base, box, dst, err);
}

/* As if the chunks of VAR, or else its rows, lay one behind the other from byte 1000 on. */
static inline int made_locate(cm_dataset *ds, cm_variable *v, cm_located *out, cm_error *error)
{
    const cm_grid *grid = &((made_dataset *)ds)->array[v->index].base.grid;
    cm_form *form = calloc(1, sizeof *form);
    (void)error;
    *form = (cm_form){.kind = v->has_source_chunks ? CM_LOCATED_CHUNKS : CM_LOCATED_SLAB,
                      .dtype = v->dtype,
                      .rank = v->rank,
                      .swap = 1};
    *out = (cm_located){.form = form, .begin = 1000, .row_stride = v->dtype.nbytes};
    for (unsigned k = 1; k < v->rank; k++)
        out->row_stride *= v->shape[k];
    if (!v->has_source_chunks)
        return CM_OK;
    cm_codec_spec *codecs;
    OK(cm_codec_specs_copy(&(cm_codec_spec){.id = CM_CODEC_BYTES}, 1, &codecs, err));
    form->codecs = codecs;
    form->ncodecs = 1;
    memcpy(form->chunk, v->source_chunk, sizeof form->chunk);
    cm_chunk_place *place = calloc(grid->nchunks + 1, sizeof *place);
    out->nplaces = grid->nchunks;
    for (uint64_t i = 0; i < grid->nchunks; i++)
        place[i] = (cm_chunk_place){.address = 1000 + 100 * i, .nbytes = 100};
    out->place = place;
    return CM_OK;
}

static inline void made_close(cm_dataset *ds)
{
    made_dataset *m = (made_dataset *)ds;
    for (size_t i = 0; i < ds->nvars; i++) {
        for (unsigned k = 0; k < ds->var[i].rank; k++)
            free(m->dim_name[i][k]);
        cm_json_free((cm_json *)(uintptr_t)ds->var[i].attrs);
        free(m->array[i].values);
    }
    for (size_t i = 0; i < ds->ngroups; i++)
        cm_json_free(ds->group[i].attrs);
    free(m->array);
    cm_dataset_release(ds);
    free(m);
}

/* ---- making one ---- */

static inline void made_dims(made_dataset *m, cm_variable *v, const char *text)
{
    char name[64];
    int used;
    unsigned long long length;
    for (; text != NULL && sscanf(text, " %63[^=]=%llu%n", name, &length, &used) == 2;
         text += used) {
        char *star = strchr(name, '*');
        if (star != NULL)
            *star = '\0';
        v->unlimited[v->rank] = star != NULL;
        m->dim_name[v->index][v->rank] = strdup(name);
        v->shape[v->rank++] = length;
    }
    v->dim_name = m->dim_name[v->index];
    v->is_coordinate = v->rank == 1 && strcmp(v->dim_name[0], v->name) == 0;
}

static inline void made_chunks(cm_variable *v, const char *text)
{
    for (unsigned k = 0; text != NULL && k < v->rank; k++)
        v->source_chunk[k] = strtoull(text, (char **)(uintptr_t)&text, 10);
    v->has_source_chunks = text != NULL;
}

static inline void made_variable(made_dataset *m, cm_variable *v, const made_var *made)
{
    static const cm_array_ops OPS = {.read_box = made_read_box};
    made_array *a = &m->array[v->index];
    v->name = made->name;
    v->is_char = strcmp(made->type, "char") == 0;
    if (v->is_char)
        v->dtype = cm_dtype_make(CM_KIND_BYTES, 1);
    else
        OK(cm_dtype_parse(made->type, &v->dtype, err));
    made_dims(m, v, made->dims);
    made_chunks(v, made->chunk);
    v->attrs = made_json(made->attrs);
    if (made->fill != NULL) {
        assert_true(cm_fill_parse(&v->dtype, made->fill, v->fill_value));
        v->has_fill_value = true;
        v->fill = v->fill_value;
    }
    a->base = (cm_array){.ops = &OPS,
                         .name = (char *)(uintptr_t)made->name,
                         .dtype = v->dtype,
                         .rank = v->rank,
                         .fill = v->has_fill_value ? v->fill_value : NULL,
                         .attrs = (cm_json *)(uintptr_t)v->attrs};
    memcpy(a->base.shape, v->shape, sizeof v->shape);
    memcpy(a->base.dim_name, v->dim_name, v->rank * sizeof v->dim_name[0]);
    uint64_t nelem = 1, chunk[CM_MAX_RANK];
    for (unsigned k = 0; k < v->rank; k++) {
        nelem *= v->shape[k];
        chunk[k] = v->has_source_chunks ? v->source_chunk[k] : v->shape[k] + (v->shape[k] == 0);
    }
    OK(cm_grid_init(&a->base.grid, v->rank, v->shape, chunk, err));
    a->values = calloc(nelem + 1, v->dtype.nbytes + 1);
    if (v->is_char && made->values != NULL)
        memcpy(a->values, made->values, nelem);
    else if (cm_dtype_is_number(&v->dtype))
        made_elements(&v->dtype, made->values, nelem, a->values);
}

static inline cm_dataset *made_open(const made_file *file)
{
    static const cm_dataset_ops OPS = {
        .prepare = made_prepare, .read = made_read, .close = made_close};
    static const cm_dataset_ops LOCATED = {
        .prepare = made_prepare, .read = made_read, .locate = made_locate, .close = made_close};
    made_dataset *m = calloc(1, sizeof *m);
    size_t n = 0;
    while (n < MADE_VARS && file->var[n].name != NULL)
        n++;
    m->array = calloc(n + 1, sizeof *m->array);
    m->base.ops = file->located ? &LOCATED : &OPS;
    OK(cm_dataset_init(&m->base, file->path, n, 1, err));
    m->base.format_name = "memory";
    m->base.nvars = n;
    m->base.ngroups = 1;
    m->base.group[0] = (cm_dataset_group){.path = "", .attrs = made_json(file->attrs)};
    for (size_t i = 0; i < n; i++) {
        m->base.var[i].index = i;
        made_variable(m, &m->base.var[i], &file->var[i]);
    }
    return &m->base;
}

#endif

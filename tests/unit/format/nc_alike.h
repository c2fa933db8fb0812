/*
 * A file opened without a library and with them: whether both say the same, to the last byte.
 * For tests and for a fuzzer.
 */
#ifndef TESTS_NC_ALIKE_H
#define TESTS_NC_ALIKE_H

#include <stdlib.h>
#include <string.h>

#include "format/nc/file.h"
#include "format/nc/locate.h"

#define ALIKE(condition)                                                                           \
    do {                                                                                           \
        if (!(condition))                                                                          \
            return #condition;                                                                     \
    } while (0)

static inline bool alike_text(const char *a, const char *b)
{
    return (a == NULL) == (b == NULL) && (a == NULL || strcmp(a, b) == 0);
}

/* In the same order, too. */
static inline bool alike_json(const cm_json *a, const cm_json *b)
{
    cm_buf x = {0}, y = {0};
    bool same = cm_json_write(a, false, &x, NULL) == CM_OK &&
                cm_json_write(b, false, &y, NULL) == CM_OK && cm_buf_equal(&x, &y);
    cm_buf_release(&x);
    cm_buf_release(&y);
    return same;
}

static inline const char *alike_located(const cm_located *a, const cm_located *b)
{
    ALIKE(cm_form_equal(a->form, b->form));
    ALIKE(a->begin == b->begin && a->row_stride == b->row_stride && a->nplaces == b->nplaces);
    for (uint64_t i = 0; i < a->nplaces; i++)
        ALIKE(a->place[i].address == b->place[i].address &&
              a->place[i].nbytes == b->place[i].nbytes && a->place[i].mask == b->place[i].mask);
    return NULL;
}

static inline const char *alike_array(const cm_array *a, const cm_array *b)
{
    ALIKE(alike_text(a->name, b->name));
    ALIKE(alike_text(a->place, b->place));
    ALIKE(cm_dtype_equal(&a->dtype, &b->dtype));
    ALIKE(a->rank == b->rank);
    for (unsigned j = 0; j < a->rank; j++) {
        ALIKE(a->shape[j] == b->shape[j]);
        ALIKE(alike_text(a->dim_name[j], b->dim_name[j]));
        ALIKE(a->grid.chunk[j] == b->grid.chunk[j] && a->grid.count[j] == b->grid.count[j]);
    }
    ALIKE((a->fill == NULL) == (b->fill == NULL));
    ALIKE(a->fill == NULL || memcmp(a->fill, b->fill, a->dtype.nbytes) == 0);
    ALIKE(alike_text(a->fill_text, b->fill_text));
    ALIKE(alike_json(a->attrs, b->attrs));
    ALIKE(a->chunked == b->chunked && a->serial == b->serial);
    ALIKE(a->max_stored_nbytes == b->max_stored_nbytes);
    return NULL;
}

/* A is of the plain file, whose variables are prepared. */
static inline const char *alike_node(cm_nc_file *plain, cm_nc_file *known, size_t i)
{
    cm_nc_node *a = &plain->node[i], *b = &known->node[i];
    ALIKE(cm_nc_var_prepare(known, &b->var, NULL) == CM_OK);
    const char *difference = alike_array(&a->var.array, &b->var.array);
    if (difference != NULL)
        return difference;
    ALIKE(a->var.access == b->var.access);
    ALIKE(alike_text(a->var.access_reason, b->var.access_reason));
    ALIKE(alike_text(a->var.unsupported, b->var.unsupported));
    ALIKE(a->var.is_char == b->var.is_char && a->var.is_coordinate == b->var.is_coordinate);
    ALIKE(a->var.scale_nbytes == b->var.scale_nbytes);
    ALIKE(a->var.offset_nbytes == b->var.offset_nbytes);
    ALIKE(a->var.has_fill_value == b->var.has_fill_value);
    ALIKE(memcmp(a->var.fill_value, b->var.fill_value, sizeof(a->var.fill_value)) == 0);
    ALIKE(memcmp(a->var.unlimited, b->var.unlimited, sizeof(a->var.unlimited)) == 0);
    ALIKE(a->var.stored_nbytes == b->var.stored_nbytes);
    ALIKE(a->var.has_source_chunks == b->var.has_source_chunks);
    ALIKE(memcmp(a->var.source_chunk, b->var.source_chunk, sizeof(a->var.source_chunk)) == 0);
    ALIKE(a->has_nc_fill == b->has_nc_fill);
    ALIKE(memcmp(a->nc_fill, b->nc_fill, sizeof(a->nc_fill)) == 0);
    cm_located x = {0}, y = {0};
    ALIKE(cm_nc_var_locate(&a->var, &x, NULL) == CM_OK);
    ALIKE(cm_nc_var_locate(&b->var, &y, NULL) == CM_OK);
    difference = alike_located(&x, &y);
    cm_located_release(&x);
    cm_located_release(&y);
    return difference;
}

static inline const char *alike_group(const cm_nc_group *a, const cm_nc_group *b)
{
    ALIKE(alike_text(a->path, b->path));
    ALIKE(alike_json(a->attrs, b->attrs));
    ALIKE(a->ndims == b->ndims);
    for (size_t i = 0; i < a->ndims; i++) {
        ALIKE(alike_text(a->dim[i].name, b->dim[i].name));
        ALIKE(a->dim[i].length == b->dim[i].length);
        ALIKE(a->dim[i].unlimited == b->dim[i].unlimited);
    }
    return NULL;
}

/* The first difference, or NULL. */
static inline const char *alike_files(cm_nc_file *plain, cm_nc_file *known)
{
    const char *difference = NULL;
    ALIKE(alike_text(plain->format_name, known->format_name));
    ALIKE(plain->ngroups == known->ngroups && plain->nnodes == known->nnodes);
    ALIKE(plain->nwarnings == known->nwarnings);
    for (size_t i = 0; i < plain->nwarnings; i++)
        ALIKE(alike_text(plain->warning[i], known->warning[i]));
    for (size_t i = 0; i < plain->ngroups && difference == NULL; i++)
        difference = alike_group(&plain->group[i], &known->group[i]);
    for (size_t i = 0; i < plain->nnodes && difference == NULL; i++)
        difference = alike_node(plain, known, i);
    return difference;
}

typedef enum alike_answer {
    ALIKE_LEFT, /* to the libraries: there is nothing to compare */
    ALIKE_SAME,
    ALIKE_DIFFER
} alike_answer;

/* *WHY: what differs. */
static inline alike_answer alike_path(const char *path, const char **why)
{
    cm_nc_file *plain = NULL, *known = NULL;
    alike_answer answer = ALIKE_LEFT;
    *why = NULL;
    if (cm_nc_open(path, &(cm_nc_options){.plain = true}, &plain, NULL) == CM_OK && plain->plain) {
        *why = cm_nc_open(path, NULL, &known, NULL) == CM_OK ? alike_files(plain, known)
                                                             : "the libraries refuse it";
        answer = *why == NULL ? ALIKE_SAME : ALIKE_DIFFER;
    }
    cm_nc_close(plain);
    cm_nc_close(known);
    return answer;
}

#endif

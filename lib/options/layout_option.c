#include "options/layout_option.h"

#include <stdio.h>
#include <string.h>

#include "base/number.h"
#include "plan/autochunk.h"
#include "plan/meetings.h"

cm_layout_kind cm_layout_kind_of(const char *value)
{
    if (value == NULL)
        return CM_LAYOUT_DEFAULT;
    if (strcmp(value, "auto") == 0 || strncmp(value, "auto:", 5) == 0)
        return CM_LAYOUT_AUTO;
    if (strcmp(value, "source") == 0)
        return CM_LAYOUT_SOURCE;
    if (strcmp(value, "none") == 0)
        return CM_LAYOUT_NONE;
    return CM_LAYOUT_SHAPE;
}

int cm_layout_auto(const char *option, const char *value, uint64_t *nbytes, cm_error *err)
{
    if (value[4] == '\0')
        return CM_OK;
    int rc = cm_parse_size(value + 5, nbytes, err);
    if (rc == CM_OK && *nbytes == 0)
        rc = cm_fail(err, CM_EINVAL, "the size is 0");
    if (rc != CM_OK)
        cm_error_prefix(err, "%s %s", option, value);
    return rc;
}

static int parse_shape(const char *option, const char *value, cm_shape_option *shape, cm_error *err)
{
    int rc = cm_shape_option_parse_chunks(value, shape, err);
    if (rc != CM_OK)
        cm_error_prefix(err, "%s", option);
    return rc;
}

static bool has_dim(const cm_layout_array *a, const char *name)
{
    for (unsigned j = 0; j < a->rank; j++)
        if (a->dim_name[j] != NULL && strcmp(a->dim_name[j], name) == 0)
            return true;
    return false;
}

static void apply(const cm_shape_option *shape, const cm_layout_array *a, uint64_t *length)
{
    uint64_t most[CM_MAX_RANK];
    for (unsigned j = 0; j < a->rank; j++)
        most[j] = a->grows != NULL && a->grows[j] ? UINT64_MAX : a->shape[j];
    cm_shape_option_apply(shape, a->rank, most, a->dim_name, a->has_source ? a->source : NULL,
                          length);
    /* "full" */
    for (unsigned j = 0; j < a->rank; j++)
        if (length[j] == UINT64_MAX)
            length[j] = a->shape[j] > 0 ? a->shape[j] : 1;
}

int cm_layout_shape(const char *option, const char *value, bool named, const cm_layout_array *a,
                    uint64_t *length, bool *fits, cm_error *err)
{
    cm_shape_option shape;
    int rc = parse_shape(option, value, &shape, err);
    memset(length, 0, CM_MAX_RANK * sizeof(length[0]));
    *fits = false;
    if (rc != CM_OK)
        return rc;
    *fits = cm_shape_option_fits(&shape, a->rank, a->dim_name);
    if (*fits)
        apply(&shape, a, length);
    else if (named && !shape.by_name)
        rc = cm_fail(err, CM_EINVAL, "%s %s: %s %s has %u dimension%s, not %u", option, value,
                     a->noun, a->name, a->rank, cm_of_count(a->rank, "", "s"), shape.n);
    for (unsigned i = 0; rc == CM_OK && named && shape.by_name && i < shape.n; i++)
        if (!has_dim(a, shape.item[i].name))
            rc = cm_fail(err, CM_EINVAL, "%s %s: %s %s has no dimension %s", option, value, a->noun,
                         a->name, shape.item[i].name);
    cm_shape_option_release(&shape);
    return rc;
}

bool cm_layout_reaches_too_far(const cm_layout_array *a, const uint64_t *chunk, unsigned *past,
                               uint64_t *padded)
{
    enum {
        LONG_CHUNK = 256 << 20,
        LONG_ARRAY = 1 << 30,
        LONG_TIMES = 1024
    };
    uint64_t one = a->itemsize, nbytes = one, n = 1;
    *past = a->rank;
    for (unsigned j = 0; j < a->rank; j++) {
        one = cm_mul_sat(one, chunk[j]);
        nbytes = cm_mul_sat(nbytes, a->shape[j]);
        n = cm_mul_sat(n, cm_div_ceil(a->shape[j], chunk[j]));
        if (chunk[j] > a->shape[j] && a->grows != NULL && a->grows[j])
            *past = j;
    }
    *padded = cm_mul_sat(one, n);
    return *past < a->rank &&
           (one > LONG_CHUNK || (*padded > LONG_ARRAY && *padded / LONG_TIMES > nbytes));
}

uint64_t cm_layout_room(uint64_t length, uint32_t nbytes)
{
    enum {
        ROOM = 8192 /* elements: 22 years of days, 11 months of hours */
    };
    uint64_t room = length < ROOM / 2              ? ROOM
                    : length < CM_WHOLE_COORDINATE ? 2 * length
                                                   : UINT64_MAX;
    return room <= CM_WHOLE_COORDINATE / (nbytes > 0 ? nbytes : 64) ? room : 0;
}

static int refuse_shard(const char *value, const cm_layout_array *a, unsigned j, uint64_t shard,
                        uint64_t chunk, cm_error *err)
{
    char number[32];
    snprintf(number, sizeof number, "dimension %u", j);
    const char *name = a->dim_name != NULL && a->dim_name[j] != NULL ? a->dim_name[j] : number;
    return cm_fail(err, CM_EINVAL,
                   "`shards` %s: %s %s: %llu along %s is not a multiple of the chunk's %llu", value,
                   a->noun, a->name, (unsigned long long)shard, name, (unsigned long long)chunk);
}

int cm_layout_shards(const char *value, bool named, const cm_layout_array *a, const uint64_t *chunk,
                     uint64_t target, uint64_t *shard, bool *fits, cm_error *err)
{
    uint64_t fixed[CM_MAX_RANK];
    int rc = cm_layout_shape("`shards`", value, named, a, fixed, fits, err);
    if (rc != CM_OK || !*fits)
        return rc;
    for (unsigned j = 0; j < a->rank; j++) {
        /* "full", or a length past the end: whole chunks that cover the dimension. */
        if (fixed[j] == a->shape[j] || (fixed[j] > a->shape[j] && fixed[j] % chunk[j] != 0))
            fixed[j] = cm_div_ceil(a->shape[j], chunk[j]) * chunk[j];
        if (fixed[j] % chunk[j] != 0)
            return refuse_shard(value, a, j, fixed[j], chunk[j], err);
    }
    return cm_autoshard(a->rank, a->shape, a->itemsize, chunk, target, fixed, shard, err);
}

static bool any_fits(const cm_shape_option *shape, cm_layout_array_at *at, const void *context,
                     size_t n)
{
    for (size_t i = 0; i < n; i++) {
        cm_layout_array a = at(context, i);
        if (cm_shape_option_fits(shape, a.rank, a.dim_name))
            return true;
    }
    return false;
}

static int check_shape(const char *option, const char *value, const cm_shape_option *shape,
                       cm_layout_array_at *at, const void *context, size_t n, cm_error *err)
{
    const char *noun = n > 0 ? at(context, 0).noun : "array";
    if (!shape->by_name && !any_fits(shape, at, context, n))
        return cm_fail(err, CM_EINVAL, "%s %s: no chosen %s has %u dimensions", option, value, noun,
                       shape->n);
    for (unsigned i = 0; shape->by_name && i < shape->n; i++) {
        cm_shape_option one = {.by_name = true, .n = 1, .item = {shape->item[i]}};
        if (!any_fits(&one, at, context, n))
            return cm_fail(err, CM_EINVAL, "%s %s: no chosen %s has a dimension %s", option, value,
                           noun, shape->item[i].name);
    }
    return CM_OK;
}

int cm_layout_check_general(const cm_varopts *opts, bool words, cm_layout_array_at *at,
                            const void *context, size_t n, cm_error *err)
{
    int rc = CM_OK;
    for (size_t k = 0; rc == CM_OK && k < opts->n; k++) {
        const cm_varopt *item = &opts->item[k];
        cm_shape_option shape;
        if (item->pattern != NULL || (words && cm_layout_kind_of(item->value) != CM_LAYOUT_SHAPE))
            continue;
        rc = parse_shape(opts->option, item->value, &shape, err);
        if (rc != CM_OK)
            return rc;
        rc = check_shape(opts->option, item->value, &shape, at, context, n, err);
        cm_shape_option_release(&shape);
    }
    return rc;
}

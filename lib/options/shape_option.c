#include "options/shape_option.h"

#include <stdlib.h>
#include <string.h>

#include "base/number.h"
#include "options/varopt.h"

typedef struct parse_state {
    cm_shape_option *out;
    const char *text;
    bool of_chunks;
} parse_state;

static int parse_length(const parse_state *s, const char *number, cm_shape_item *out, cm_error *err)
{
    if (strcmp(number, "full") == 0 || strcmp(number, "-1") == 0)
        return CM_OK;
    out->as_source = s->of_chunks && (strcmp(number, "source") == 0 || strcmp(number, "same") == 0);
    if (!out->as_source && (cm_parse_u64(number, &out->length, NULL) != CM_OK || out->length == 0))
        return cm_fail(err, CM_EINVAL, "shape %s: \"%s\" is not a length: %s", s->text, number,
                       strchr(number, ',') != NULL ? "write 24x64x64 or time=24,lat=64,lon=64"
                       : s->of_chunks              ? "use a positive integer, full, -1 or source"
                                                   : "use a positive integer, full or -1");
    return CM_OK;
}

static int parse_part(void *context, char *part, cm_error *err)
{
    parse_state *s = context;
    if (s->out->n == CM_MAX_RANK)
        return cm_fail(err, CM_EINVAL, "shape %s: more than %d dimensions", s->text, CM_MAX_RANK);
    cm_shape_item *item = &s->out->item[s->out->n++];
    if (!s->out->by_name)
        return parse_length(s, part, item, err);
    char *equals = cm_find_unescaped(part, '=');
    if (equals == NULL || equals == part)
        return cm_fail(err, CM_EINVAL, "shape %s: \"%s\" is not of the form NAME=LENGTH", s->text,
                       part);
    *equals = '\0';
    cm_unescape(part);
    for (unsigned i = 0; i + 1 < s->out->n; i++)
        if (strcmp(s->out->item[i].name, part) == 0)
            return cm_fail(err, CM_EINVAL, "shape %s: dimension %s is given twice", s->text, part);
    if ((item->name = cm_strdup(part, err)) == NULL)
        return CM_ENOMEM;
    return parse_length(s, equals + 1, item, err);
}

static int parse(const char *text, bool of_chunks, cm_shape_option *out, cm_error *err)
{
    *out = (cm_shape_option){.by_name = cm_find_unescaped(text, '=') != NULL};
    parse_state s = {out, text, of_chunks};
    if ((out->text = cm_strdup(text, err)) == NULL)
        return CM_ENOMEM;
    int rc = cm_split(text, out->by_name ? ',' : 'x', parse_part, &s, err);
    if (rc != CM_OK)
        cm_shape_option_release(out);
    return rc;
}

int cm_shape_option_parse(const char *text, cm_shape_option *out, cm_error *err)
{
    return parse(text, false, out, err);
}

int cm_shape_option_parse_chunks(const char *text, cm_shape_option *out, cm_error *err)
{
    return parse(text, true, out, err);
}

void cm_shape_option_release(cm_shape_option *option)
{
    for (unsigned i = 0; i < option->n; i++)
        free(option->item[i].name);
    free(option->text);
    *option = (cm_shape_option){0};
}

static const cm_shape_item *item_for(const cm_shape_option *option, unsigned j, const char *name)
{
    if (!option->by_name)
        return j < option->n ? &option->item[j] : NULL;
    for (unsigned i = 0; i < option->n; i++)
        if (name != NULL && strcmp(option->item[i].name, name) == 0)
            return &option->item[i];
    return NULL;
}

bool cm_shape_option_fits(const cm_shape_option *option, unsigned rank, char *const *dim_name)
{
    if (!option->by_name)
        return option->n == rank;
    for (unsigned j = 0; j < rank; j++)
        if (item_for(option, j, dim_name[j]) != NULL)
            return true;
    return false;
}

void cm_shape_option_apply(const cm_shape_option *option, unsigned rank, const uint64_t *shape,
                           char *const *dim_name, const uint64_t *source, uint64_t *length)
{
    for (unsigned j = 0; j < rank; j++) {
        const cm_shape_item *item = item_for(option, j, dim_name[j]);
        uint64_t whole = shape[j] > 0 ? shape[j] : 1;
        length[j] = 0;
        if (item == NULL)
            continue;
        uint64_t asked = item->as_source ? (source != NULL ? source[j] : 0) : item->length;
        if (item->as_source && asked == 0)
            continue;
        length[j] = asked == 0 || asked > whole ? whole : asked;
    }
}

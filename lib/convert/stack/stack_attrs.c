/*
 * The attributes of a stack.  What all variables say alike is said of the array; of the rest
 * each channel's value stands in a list, "channel_units" and so on, so that nothing is lost.
 */
#include <stdlib.h>
#include <string.h>

#include "convert/stack/stack.h"

/* Attributes of packed numbers mean nothing once they are plain. */
static bool is_of_packing(const char *name)
{
    static const char *const NAMES[] = {"scale_factor", "add_offset",  "valid_min",
                                        "valid_max",    "valid_range", "missing_value"};
    for (size_t i = 0; i < sizeof(NAMES) / sizeof(NAMES[0]); i++)
        if (strcmp(name, NAMES[i]) == 0)
            return true;
    return false;
}

/* NULL where M says nothing of it that is still so. */
static const cm_json *said(const cm_stack_member *m, const char *name)
{
    if ((m->unpacks && is_of_packing(name)) ||
        ((m->unpacks || m->how.other_sign) && strcmp(name, "_Unsigned") == 0))
        return NULL;
    return cm_json_member(m->var->attrs, name);
}

static bool all_alike(const cm_stack *s, const char *name)
{
    for (size_t i = 0; i < s->nmembers; i++)
        if (!cm_json_equal(said(&s->member[i], name), said(&s->member[0], name)))
            return false;
    return true;
}

/*
 * Numbers that stay packed are packed alike, however that is spelled: the array says it once, and
 * not at all where it changes nothing.  False: NAME is not of such a packing.
 */
static bool sets_packing(cm_stack *s, const char *name, int *rc, cm_error *err)
{
    const bool is_scale = strcmp(name, "scale_factor") == 0;
    const cm_json *value = NULL;
    double x;
    for (size_t i = 0; value == NULL && i < s->nmembers; i++)
        value = said(&s->member[i], name);
    if ((!is_scale && strcmp(name, "add_offset") != 0) || !cm_json_get_double(value, &x))
        return false;
    *rc = x == (is_scale ? 1 : 0) ? CM_OK : cm_json_set(s->attrs, name, cm_json_copy(value), err);
    return true;
}

/* One value for each channel. */
static int set_list(cm_stack *s, const char *name, cm_error *err)
{
    cm_json *list = cm_json_array();
    int rc = list == NULL ? CM_ENOMEM : CM_OK;
    for (size_t i = 0; rc == CM_OK && i < s->nmembers; i++) {
        const cm_json *value = said(&s->member[i], name);
        for (size_t k = 0; rc == CM_OK && k < s->member[i].nchannels; k++)
            rc = value == NULL ? cm_json_append_null(list, err)
                               : cm_json_append(list, cm_json_copy(value), err);
    }
    char *key = rc == CM_OK ? cm_asprintf(err, "%s_%s", s->dim, name) : NULL;
    if (rc == CM_OK && key == NULL)
        rc = CM_ENOMEM;
    if (rc == CM_OK)
        rc = cm_json_set(s->attrs, key, list, err);
    else
        cm_json_free(list);
    free(key);
    return rc;
}

static bool has_word(const char *text, const char *word, size_t n)
{
    while (text != NULL && *text != '\0') {
        size_t length = strcspn(text, " ");
        if (length == n && memcmp(text, word, n) == 0)
            return true;
        text += length + strspn(text + length, " ");
    }
    return false;
}

/* Coordinates that all variables have are the array's. */
static int set_common_words(cm_stack *s, const char *name, cm_error *err)
{
    const char *text = cm_json_text(said(&s->member[0], name), NULL);
    cm_buf out = {0};
    int rc = CM_OK;
    while (rc == CM_OK && text != NULL && *text != '\0') {
        const size_t n = strcspn(text, " ");
        bool common = n > 0;
        for (size_t i = 1; common && i < s->nmembers; i++)
            common = has_word(cm_json_text(said(&s->member[i], name), NULL), text, n);
        if (common)
            rc = cm_buf_printf(&out, err, "%s%.*s", out.nbytes > 0 ? " " : "", (int)n, text);
        text += n + strspn(text + n, " ");
    }
    if (rc == CM_OK && out.nbytes > 0)
        rc = cm_json_set(s->attrs, name, cm_json_string_n((const char *)out.data, out.nbytes), err);
    cm_buf_release(&out);
    return rc;
}

static int set_one(cm_stack *s, const char *name, cm_error *err)
{
    if (strcmp(name, "missing_value") == 0 && !s->keeps_missing) /* the fill value stands for it */
        return CM_OK;
    if (all_alike(s, name)) {
        const cm_json *value = said(&s->member[0], name);
        return value == NULL ? CM_OK : cm_json_set(s->attrs, name, cm_json_copy(value), err);
    }
    int rc = CM_OK;
    if (sets_packing(s, name, &rc, err) || (s->unpacked_later && is_of_packing(name)))
        return rc;
    rc = strcmp(name, "coordinates") == 0 ? set_common_words(s, name, err) : CM_OK;
    return rc == CM_OK ? set_list(s, name, err) : rc;
}

static int set_attributes(cm_stack *s, cm_error *err)
{
    int rc = CM_OK;
    for (size_t i = 0; rc == CM_OK && i < s->nmembers; i++) {
        cm_json_iter it = cm_json_begin(s->member[i].var->attrs);
        while (rc == CM_OK && cm_json_next(&it)) {
            bool seen = false;
            for (size_t k = 0; k < i && !seen; k++)
                seen = cm_json_has(s->member[k].var->attrs, it.name);
            if (!seen)
                rc = set_one(s, it.name, err);
        }
    }
    return rc;
}

/* Of each channel: the variable, and the level where some are levels. */
static int describe_labels(cm_stack *s, cm_error *err)
{
    cm_json *names = cm_json_array(), *levels = cm_json_array();
    bool any = false;
    int rc = names == NULL || levels == NULL ? CM_ENOMEM : CM_OK;
    for (size_t i = 0; rc == CM_OK && i < s->nmembers; i++) {
        const cm_stack_member *m = &s->member[i];
        any = any || m->coordinate != NULL;
        for (size_t k = 0; rc == CM_OK && k < m->nchannels; k++) {
            rc = cm_json_append(names, cm_json_string(m->item->name), err);
            if (rc == CM_OK)
                rc = m->coordinate == NULL
                         ? cm_json_append_null(levels, err)
                         : cm_json_append(levels, cm_json_double(m->coordinate[k]), err);
        }
    }
    if (rc != CM_OK) {
        cm_json_free(names);
        cm_json_free(levels);
        return rc;
    }
    rc = cm_json_set(s->label_attrs, "variable", names, err);
    if (rc == CM_OK && any)
        return cm_json_set(s->label_attrs, "level", levels, err);
    cm_json_free(levels);
    return rc;
}

int cm_stack_describe(cm_stack *s, cm_error *err)
{
    s->attrs = cm_json_object();
    s->label_attrs = cm_json_object();
    if (s->attrs == NULL || s->label_attrs == NULL)
        return cm_fail(err, CM_ENOMEM, "no memory for attributes");
    int rc = set_attributes(s, err);
    return rc == CM_OK ? describe_labels(s, err) : rc;
}

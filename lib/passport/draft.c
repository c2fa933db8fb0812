#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "base/mem.h"
#include "format/attr_value.h"
#include "format/missing.h"
#include "passport/draft_impl.h"

enum {
    TOTAL = 256 << 20, /* bytes for all variables, and */
    MOST = 24 << 20,   /* for one */
    LEAST = 1 << 18,
    MOST_TEXT = 4096 /* of an attribute */
};

int cm_draft_create(size_t nvars, cm_draft **out, cm_error *err)
{
    cm_draft *d = *out = cm_calloc(1, sizeof(*d), err);
    if (d == NULL)
        return CM_ENOMEM;
    d->passport = cm_calloc(1, sizeof(*d->passport), err);
    d->entry = cm_calloc(nvars + 1, sizeof(d->entry[0]), err);
    if (d->passport != NULL)
        d->passport->variable = cm_calloc(nvars + 1, sizeof(d->passport->variable[0]), err);
    if (d->passport == NULL || d->entry == NULL || d->passport->variable == NULL) {
        cm_draft_free(d);
        *out = NULL;
        return CM_ENOMEM;
    }
    d->n = d->passport->nvariables = nvars;
    for (size_t i = 0; i < nvars; i++)
        d->entry[i].v = &d->passport->variable[i];
    return CM_OK;
}

void cm_draft_free(cm_draft *d)
{
    if (d == NULL)
        return;
    for (size_t i = 0; i < d->n; i++)
        cm_counter_free(d->entry[i].counter);
    cm_passport_free(d->passport);
    free(d->entry);
    free(d);
}

/* ---- what variables are ---- */

static char *shortened(const char *text, size_t nbytes, cm_error *err)
{
    if (nbytes <= MOST_TEXT)
        return cm_strdup(text, err);
    while (nbytes > MOST_TEXT || ((unsigned char)text[nbytes] & 0xc0) == 0x80)
        nbytes--;
    return cm_asprintf(err, "%.*s ...", (int)nbytes, text);
}

/* Text or a single number, as text; "" for lists, which are for programs. */
static char *text_of(const cm_json *value, cm_error *err)
{
    size_t nbytes;
    const char *text = cm_json_text(value, &nbytes);
    double number;
    if (text != NULL)
        return shortened(text, nbytes, err);
    if (cm_json_get_double(value, &number))
        return cm_asprintf(err, "%.9g", number);
    return cm_strdup("", err);
}

int cm_draft_attributes(cm_draft *d, const cm_json *attrs, cm_error *err)
{
    cm_passport *p = d->passport;
    p->attribute = cm_calloc(cm_json_length(attrs) + 1, sizeof(p->attribute[0]), err);
    if (p->attribute == NULL)
        return CM_ENOMEM;
    for (cm_json_iter it = cm_json_begin(attrs); cm_json_next(&it);) {
        cm_passport_text *a = &p->attribute[p->nattributes++];
        a->name = cm_strdup(it.name, err);
        a->text = text_of(it.value, err);
        if (a->name == NULL || a->text == NULL)
            return CM_ENOMEM;
    }
    return CM_OK;
}

/* The text NAME of ATTRS, or NULL where there is none; false: no memory. */
static bool take_text(const cm_json *attrs, const char *name, char **out, cm_error *err)
{
    size_t nbytes;
    const char *text = cm_json_text(cm_json_member(attrs, name), &nbytes);
    free(*out);
    *out = text != NULL ? shortened(text, nbytes, err) : NULL;
    return text == NULL || *out != NULL;
}

static bool begins_with(const char *text, const char *with)
{
    return text != NULL && strncasecmp(text, with, strlen(with)) == 0;
}

static bool is_text(const char *text, const char *what)
{
    return text != NULL && strcasecmp(text, what) == 0;
}

static const char *last_name(const char *name)
{
    const char *slash = strrchr(name, '/');
    return slash != NULL ? slash + 1 : name;
}

/* Meaning of numbers: packing, valid values, times, places. */
static void find_meaning(cm_draft_entry *e, const cm_json *attrs)
{
    const cm_passport_variable *v = e->v;
    const char *axis = cm_json_text(cm_json_member(attrs, "axis"), NULL);
    const cm_json *range = cm_json_member(attrs, "valid_range");
    e->scale = 1;
    e->offset = 0;
    const bool scaled = cm_attr_number(cm_json_member(attrs, "scale_factor"), &e->scale);
    const bool moved = cm_attr_number(cm_json_member(attrs, "add_offset"), &e->offset);
    e->packed = scaled || moved;
    e->has_low = cm_attr_number(cm_json_member(attrs, "valid_min"), &e->low) ||
                 (cm_json_length(range) == 2 && cm_attr_number(cm_json_at(range, 0), &e->low));
    e->has_high = cm_attr_number(cm_json_member(attrs, "valid_max"), &e->high) ||
                  (cm_json_length(range) == 2 && cm_attr_number(cm_json_at(range, 1), &e->high));
    if (e->packed) /* stored numbers by the conventions, and shown ones by habit */
        e->has_low = e->has_high = false;
    const char *calendar = cm_json_text(cm_json_member(attrs, "calendar"), NULL);
    e->is_axis = v->units != NULL && cm_time_axis_is(v->units) &&
                 cm_time_axis_parse(v->units, calendar, &e->axis, NULL) == CM_OK;
    e->is_timely = (v->units != NULL && cm_time_axis_is(v->units)) ||
                   is_text(v->standard_name, "time") || is_text(axis, "T");
    e->is_latitude = is_text(v->standard_name, "latitude") || begins_with(v->units, "degrees_n") ||
                     begins_with(v->units, "degree_n");
    e->is_longitude = is_text(v->standard_name, "longitude") ||
                      begins_with(v->units, "degrees_e") || begins_with(v->units, "degree_e");
}

int cm_draft_describe(cm_draft *d, size_t i, const cm_draft_source *s, cm_error *err)
{
    cm_draft_entry *e = &d->entry[i];
    cm_passport_variable *v = e->v;
    char text[64];
    v->name = cm_strdup(s->name, err);
    v->type = cm_strdup(s->is_other && cm_dtype_is_vlen(&s->type)
                            ? "text"
                            : cm_dtype_name(&s->type, text, sizeof text),
                        err);
    if (v->name == NULL || v->type == NULL || !take_text(s->attrs, "units", &v->units, err) ||
        !take_text(s->attrs, "long_name", &v->long_name, err) ||
        !take_text(s->attrs, "standard_name", &v->standard_name, err))
        return CM_ENOMEM;
    v->rank = s->rank;
    for (unsigned j = 0; j < s->rank; j++) {
        v->shape[j] = s->shape[j];
        if (s->dim_name[j] != NULL && (v->dim_name[j] = cm_strdup(s->dim_name[j], err)) == NULL)
            return CM_ENOMEM;
    }
    v->is_coordinate =
        v->rank == 1 && v->dim_name[0] != NULL && strcmp(last_name(v->name), v->dim_name[0]) == 0;
    v->is_counted = !s->is_other && cm_tally_takes(&s->type) && s->rank > 0;
    find_meaning(e, s->attrs);
    if (!v->is_counted)
        return CM_OK;
    v->is_counted = cm_missing_rule(&s->type, s->attrs, s->masked, &e->options.rule);
    if (!v->is_counted)
        return CM_OK;
    if (s->fill != NULL)
        memcpy(e->fill, s->fill, s->type.nbytes);
    e->options.rank = s->rank;
    memcpy(e->options.shape, v->shape, sizeof(e->options.shape[0]) * s->rank);
    return CM_OK;
}

/* ---- along which dimension ---- */

/* The group of NAME, with its slash. */
static size_t group_length(const char *name)
{
    return (size_t)(last_name(name) - name);
}

const cm_draft_entry *cm_draft_coordinate(const cm_draft *d, const cm_passport_variable *v,
                                          unsigned j)
{
    const cm_draft_entry *found = NULL;
    size_t depth = 0;
    for (size_t i = 0; i < d->n && v->dim_name[j] != NULL; i++) {
        const cm_passport_variable *c = d->entry[i].v;
        const size_t group = group_length(c->name);
        if (!c->is_coordinate || !c->is_counted || c->shape[0] != v->shape[j] ||
            strcmp(c->dim_name[0], v->dim_name[j]) != 0 || group > group_length(v->name) ||
            strncmp(c->name, v->name, group) != 0)
            continue;
        if (found == NULL || group > depth) {
            found = &d->entry[i];
            depth = group;
        }
    }
    return found;
}

static bool is_time_name(const char *name)
{
    static const char *const NAMES[] = {"time",  "t",    "valid_time",   "date", "day",
                                        "month", "year", "time_counter", "times"};
    for (size_t i = 0; i < sizeof(NAMES) / sizeof(NAMES[0]); i++)
        if (is_text(name, NAMES[i]))
            return true;
    return false;
}

static bool is_time_dim(const cm_draft *d, const cm_passport_variable *v, unsigned j)
{
    const cm_draft_entry *c = cm_draft_coordinate(d, v, j);
    return (c != NULL && c->is_timely) || is_time_name(v->dim_name[j]);
}

void cm_draft_settle(cm_draft *d)
{
    uint64_t each = TOTAL / (d->n + 1);
    each = each > MOST ? MOST : each < LEAST ? LEAST : each;
    for (size_t i = 0; i < d->n; i++) {
        cm_draft_entry *e = &d->entry[i];
        for (unsigned j = 0; j < e->v->rank && e->v->is_counted && !e->v->is_time; j++)
            if (is_time_dim(d, e->v, j)) {
                e->v->is_time = true;
                e->v->step_dim = j;
            }
        e->options.step = e->v->step_dim;
        e->options.fill = e->fill;
        e->options.nbytes = each;
    }
}

/* ---- counting ---- */

uint64_t cm_draft_nbytes(const cm_draft *d)
{
    uint64_t total = 0;
    for (size_t i = 0; i < d->n; i++)
        if (d->entry[i].v->is_counted)
            total += cm_counter_nbytes(&d->entry[i].options);
    return total;
}

int cm_draft_watch(cm_draft *d, size_t i, bool *counted, cm_error *err)
{
    cm_draft_entry *e = &d->entry[i];
    *counted = e->v->is_counted;
    cm_counter_free(e->counter);
    e->counter = NULL;
    return e->v->is_counted ? cm_counter_create(&e->options, &e->counter, err) : CM_OK;
}

void cm_draft_see(cm_draft *d, size_t i, const cm_box *box, const uint64_t *extent,
                  const uint8_t *data)
{
    if (d->entry[i].counter != NULL)
        cm_counter_see(d->entry[i].counter, box, extent, data);
}

void cm_draft_see_nothing(cm_draft *d, size_t i)
{
    const cm_draft_entry *e = &d->entry[i];
    cm_box all = {.rank = e->v->rank};
    memcpy(all.shape, e->v->shape, sizeof(all.shape[0]) * e->v->rank);
    cm_draft_see(d, i, &all, all.shape, NULL);
}

int cm_draft_give_up(cm_draft *d, size_t i, const char *why, cm_error *err)
{
    cm_draft_entry *e = &d->entry[i];
    cm_counter_free(e->counter);
    e->counter = NULL;
    e->v->is_counted = false;
    free(e->v->unread);
    e->v->unread = cm_strdup(why, err);
    return e->v->unread != NULL ? CM_OK : CM_ENOMEM;
}

cm_passport_variable *cm_draft_variable(cm_draft *d, size_t i)
{
    return d->entry[i].v;
}

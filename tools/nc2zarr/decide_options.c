/* Options of a join, as decisions name them. */
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "decide.h"

static const struct {
    const char *name;
    size_t at;
} LISTS[] = {
    {"new-dim", offsetof(cm_archive_options, new_dim)},
    {"promote", offsetof(cm_archive_options, promote)},
    {"merge-along", offsetof(cm_archive_options, merge_along)},
    {"rename", offsetof(cm_archive_options, rename)},
    {"exclude", offsetof(cm_archive_options, exclude)},
    {"dtype", offsetof(cm_archive_options, dtype)},
    {"static", offsetof(cm_archive_options, statics)},
};

static const struct {
    const char *name;
    size_t at;
    int value;
} CHOICES[] = {
    {"packing", offsetof(cm_archive_options, unpack), 1},
    {"missing", offsetof(cm_archive_options, fill_missing), 1},
    {"overlap", offsetof(cm_archive_options, overlap), CM_OVERLAP_FIRST},
    {"gaps", offsetof(cm_archive_options, gaps), CM_GAPS_FILL},
    {"order", offsetof(cm_archive_options, order), CM_ORDER_NAME},
    {"attrs", offsetof(cm_archive_options, first_attrs), 1},
    {"bad-file", offsetof(cm_archive_options, skip_bad), 1},
    {"offline", offsetof(cm_archive_options, skip_offline), 1},
};

#define COUNT(list) (sizeof(list) / sizeof((list)[0]))

static cm_texts *list_at(cm_archive_options *o, size_t i)
{
    return (cm_texts *)((char *)o + LISTS[i].at);
}

void nc2zarr_release_options(cm_archive_options *o)
{
    for (size_t i = 0; i < COUNT(LISTS); i++)
        free((void *)(uintptr_t)list_at(o, i)->text);
}

int nc2zarr_copy_options(const cm_archive_options *asked, const nc2zarr_decisions *d,
                         cm_archive_options *out, cm_error *err)
{
    *out = *asked;
    for (size_t i = 0; i < COUNT(LISTS); i++) {
        cm_texts *list = list_at(out, i);
        const char **text = cm_calloc(list->n + d->n + 1, sizeof(*text), err);
        if (text == NULL) {
            for (; i < COUNT(LISTS); i++)
                list_at(out, i)->text = NULL;
            return CM_ENOMEM;
        }
        for (size_t k = 0; k < list->n; k++)
            text[k] = list->text[k];
        for (size_t k = 0; k < d->n; k++)
            if (strcmp(d->of[k].option.name, LISTS[i].name) == 0)
                text[list->n++] = d->of[k].option.value;
        list->text = text;
    }
    for (size_t k = 0; k < d->n; k++) {
        const nc2zarr_option *o = &d->of[k].option;
        for (size_t i = 0; i < COUNT(CHOICES); i++)
            if (strcmp(o->name, CHOICES[i].name) == 0)
                *(int *)((char *)out + CHOICES[i].at) = CHOICES[i].value;
        if (strcmp(o->name, "along") == 0)
            out->along = o->value;
        if (strcmp(o->name, "store-per") == 0)
            out->store_per = o->value;
        if (strcmp(o->name, "tolerance") == 0)
            out->tolerance = strtod(o->value, NULL);
    }
    return CM_OK;
}

bool nc2zarr_is_one_of(const nc2zarr_option *o, const char *const *name)
{
    while (*name != NULL && strcmp(o->name, *name) != 0)
        name++;
    return *name != NULL;
}

#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "base/number.h"
#include "passport/look.h"

enum {
    MOST_OF_A_KIND = 12 /* findings of one variable that are kept */
};

/* ---- the list ---- */

static size_t count_alike(const cm_findings *f, const char *variable, const char *kind)
{
    size_t n = 0;
    for (size_t i = 0; i < f->n; i++)
        n += strcmp(f->item[i].kind, kind) == 0 && strcmp(f->item[i].variable, variable) == 0;
    return n;
}

static int add_text(cm_findings *out, const char *variable, const cm_passport_finding *f,
                    const char *sentence, cm_error *err)
{
    if (count_alike(out, variable, f->kind) >= MOST_OF_A_KIND) {
        out->left_out++;
        return CM_OK;
    }
    void *items = cm_make_room(out->item, out->n, &out->capacity, sizeof(out->item[0]), 16);
    if (items == NULL)
        return cm_fail(err, CM_ENOMEM, "no memory for findings");
    out->item = items;
    cm_passport_finding *to = &out->item[out->n];
    *to = *f;
    to->from = to->to = NULL;
    to->variable = cm_strdup(variable, err);
    to->sentence = cm_strdup(sentence, err);
    if (to->variable == NULL || to->sentence == NULL) {
        free(to->variable);
        free(to->sentence);
        return CM_ENOMEM;
    }
    out->n++;
    return CM_OK;
}

int cm_findings_add(cm_findings *out, const char *variable, const cm_passport_finding *f,
                    cm_error *err, const char *format, ...)
{
    char text[512];
    va_list args;
    va_start(args, format);
    vsnprintf(text, sizeof text, format, args);
    va_end(args);
    return add_text(out, variable, f, text, err);
}

int cm_look_add(const cm_look *l, const char *kind, size_t first, size_t last, double value,
                double expected, cm_error *err, const char *format, ...)
{
    char text[512];
    const uint64_t together = l->s->together;
    const cm_passport_finding f = {.kind = kind,
                                   .has_steps = true,
                                   .first = first * together,
                                   .last = (last + 1) * together - 1,
                                   .value = value,
                                   .expected = expected};
    va_list args;
    va_start(args, format);
    vsnprintf(text, sizeof text, format, args);
    va_end(args);
    return add_text(l->out, l->s->name, &f, text, err);
}

void cm_findings_release(cm_findings *f)
{
    for (size_t i = 0; i < f->n; i++) {
        free(f->item[i].variable);
        free(f->item[i].from);
        free(f->item[i].to);
        free(f->item[i].sentence);
    }
    free(f->item);
    *f = (cm_findings){0};
}

/* ---- numbers ---- */

void cm_sort(double *value, size_t n)
{
    cm_sort_doubles(value, n);
}

double cm_quantile(const double *sorted, size_t n, double q)
{
    return n == 0 ? NAN : sorted[(size_t)(q * (double)(n - 1) + 0.5)];
}

size_t cm_look_most(size_t n)
{
    return n / 10 > 2 ? n / 10 : 2;
}

double cm_look_outstanding(const double *value, size_t n, double least, double *sorted)
{
    const size_t most = cm_look_most(n);
    memcpy(sorted, value, n * sizeof(value[0]));
    cm_sort(sorted, n);
    const double usual = cm_quantile(sorted, n, 0.7);
    double found = INFINITY;
    for (size_t k = 1; k <= most && k < n; k++) {
        const double one = sorted[n - k], next = sorted[n - k - 1];
        /* A change that makes up for a stuck field is large, and small beside these. */
        if (one > least && one >= 10 * usual && next < one &&
            (next <= 5 * usual || one >= 20 * next))
            found = one;
    }
    return found;
}

void cm_look_again(cm_look *l)
{
    l->nat = 0;
    for (size_t i = 0; i < l->s->n; i++)
        if (!l->skip[i])
            l->at[l->nat++] = i;
}

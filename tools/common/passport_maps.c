/* Pictures of a variable's fields, with the scale of their colours. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "page.h"
#include "passport_page.h"
#include "passport_png.h"

static int compare(const void *a, const void *b)
{
    const float x = *(const float *)a, y = *(const float *)b;
    return (x > y) - (x < y);
}

/*
 * From the 1st to the 99th of a hundred values of the pictures that say most: the range of a
 * picture with one wild value would show nothing else.
 */
static int find_scale(const cm_passport_variable *v, passport_scale *scale, bool *any,
                      cm_error *err)
{
    size_t total = 0, n = 0;
    for (unsigned i = 0; i < v->npictures; i++)
        total += (size_t)v->picture[i].width * v->picture[i].height;
    float *value = cm_calloc(total + 1, sizeof(value[0]), err);
    if (value == NULL)
        return CM_ENOMEM;
    for (unsigned i = 0; i < v->npictures; i++) {
        const cm_passport_picture *p = &v->picture[i];
        for (size_t k = 0; k < (size_t)p->width * p->height; k++)
            if (isfinite(p->value[k]))
                value[n++] = p->value[k];
    }
    qsort(value, n, sizeof(value[0]), compare);
    *any = n > 0;
    if (n > 0)
        *scale = (passport_scale){value[n / 100], value[n - 1 - n / 100]};
    free(value);
    return CM_OK;
}

static size_t count_missing(const cm_passport_picture *p)
{
    size_t n = 0;
    for (size_t k = 0; k < (size_t)p->width * p->height; k++)
        n += isnan(p->value[k]);
    return n;
}

/* The picture in words, for those who do not see it. */
static void put_alt(const cm_passport_variable *v, const cm_passport_picture *p, const char *when,
                    FILE *to)
{
    const size_t n = (size_t)p->width * p->height;
    double low = INFINITY, high = -INFINITY;
    for (size_t k = 0; k < n; k++)
        if (isfinite(p->value[k])) {
            low = fmin(low, p->value[k]);
            high = fmax(high, p->value[k]);
        }
    page_text(v->name, to);
    fputs(", ", to);
    page_text(when, to);
    if (low <= high) {
        fprintf(to, ": from %.4g to %.4g", low, high);
        if (v->units != NULL) {
            putc(' ', to);
            page_text(v->units, to);
        }
    }
    fprintf(to, ", %zu of %zu points missing", count_missing(p), n);
}

static int put_picture(const cm_passport_variable *v, const cm_passport_picture *p,
                       const passport_scale *scale, const char *which, FILE *to, cm_error *err)
{
    char *uri = passport_png(p, scale, !v->north_is_up, err);
    if (uri == NULL)
        return CM_ENOMEM;
    const double ratio = (double)p->width / (double)p->height;
    fprintf(to,
            "<figure><img class=\"map\" width=\"%u\" height=\"%u\" style=\"aspect-ratio:%.3g\" "
            "alt=\"",
            p->width, p->height,
            ratio < 0.5 ? 0.5
            : ratio > 4 ? 4
                        : ratio);
    put_alt(v, p, p->label != NULL ? p->label : which, to);
    fprintf(to, "\" src=\"%s\"><figcaption>%s", uri, which);
    if (p->label != NULL) {
        fputs(": ", to);
        page_text(p->label, to);
    }
    fputs("</figcaption></figure>\n", to);
    free(uri);
    return CM_OK;
}

static int put_legend(const cm_passport_variable *v, const passport_scale *scale, FILE *to,
                      cm_error *err)
{
    char *uri = passport_png_scale(err);
    if (uri == NULL)
        return CM_ENOMEM;
    fprintf(to,
            "<p class=\"scale\"><span>%.4g</span><img alt=\"dark to light\" src=\"%s\">"
            "<span>%.4g",
            scale->low, uri, scale->high);
    if (v->units != NULL) {
        putc(' ', to);
        page_text(v->units, to);
    }
    fputs("</span><span class=\"grey\"></span><span>missing</span></p>\n", to);
    free(uri);
    return CM_OK;
}

int passport_maps(const cm_passport *p, const cm_passport_variable *v, FILE *to, cm_error *err)
{
    static const char *const WHICH[] = {"first step", "middle step", "last step"};
    passport_scale scale;
    bool any = false;
    (void)p;
    int rc = find_scale(v, &scale, &any, err);
    if (rc != CM_OK || !any)
        return rc;
    fputs("<div class=\"maps\">\n", to);
    for (unsigned i = 0; i < v->npictures && rc == CM_OK; i++) {
        const unsigned which = v->npictures == 2 && i == 1 ? 2 : i;
        rc = put_picture(v, &v->picture[i], &scale,
                         v->picture_is_whole ? "all of it, one step a row"
                         : v->npictures == 1 ? "the only step"
                                             : WHICH[which],
                         to, err);
    }
    fputs("</div>\n", to);
    return rc == CM_OK ? put_legend(v, &scale, to, err) : rc;
}

#include "archive/axes/coordinate.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "base/number.h"

enum {
    SHORT = 128 /* runs */
};

cm_join_vec *cm_axis_vec_at(const cm_join_input *in, const cm_join_dim *d, size_t i)
{
    cm_paged *paged = in->survey->paged;
    cm_join_vec *v = &d->vec[i];
    cm_paged_touch(paged, v, sizeof(*v));
    if (v->key != NULL)
        cm_paged_touch(paged, v->key, v->n * sizeof(v->key[0]));
    return v;
}

const cm_join_vec *cm_axis_vec(const cm_join_input *in, const cm_join_dim *d, uint32_t file)
{
    cm_paged *paged = in->survey->paged;
    if (d->at[file] == CM_JOIN_NONE)
        return NULL;
    const cm_join_vec *own = &d->vec[d->at[file]];
    cm_paged_touch(paged, own, sizeof(*own));
    const cm_join_vec *v = &d->vec[own->same];
    cm_paged_touch(paged, v, sizeof(*v));
    /* Touching a long list for each step of a file would let it go each time. */
    if (v->nruns <= SHORT)
        cm_paged_touch(paged, v->run, v->nruns * sizeof(v->run[0]));
    return v;
}

size_t cm_axis_runs_before(const cm_join_vec *v, uint64_t at)
{
    size_t low = 0, high = v->nruns;
    while (low < high) {
        const size_t middle = low + (high - low) / 2;
        if (v->run[middle].origin < at)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

int64_t cm_key_of_real(double x)
{
    int64_t bits;
    x += 0.0; /* -0 becomes 0 */
    memcpy(&bits, &x, sizeof(bits));
    return bits < 0 ? bits ^ INT64_MAX : bits;
}

double cm_key_real(int64_t key)
{
    double x;
    int64_t bits = key < 0 ? key ^ INT64_MAX : key;
    memcpy(&x, &bits, sizeof(x));
    return x;
}

char *cm_key_text(const cm_join_input *in, const cm_join_dim *d, int64_t key, char *buf,
                  size_t size)
{
    if (d->descending)
        key = ~key;
    switch (d->kind) {
    case CM_KEY_TIME:
        return cm_time_axis_text(&d->axis, key - d->axis.origin_us, buf, size);
    case CM_KEY_REAL:
        return cm_format_double(cm_key_real(key), buf, size);
    case CM_KEY_TEXT:
        for (size_t i = 0; d->said != NULL && i < d->nvecs; i++)
            if (d->vec[i].key[0] == key) {
                snprintf(buf, size, "%s", d->said[d->vec[i].file]);
                return buf;
            }
        for (size_t i = 0; i < d->nvecs; i++) {
            const cm_join_vec *v = &d->vec[i];
            size_t nbytes;
            for (uint64_t k = 0; v->like != NULL && v->key != NULL && k < v->n; k++) {
                const char *text =
                    v->key[k] != key ? NULL : cm_survey_values(in->survey, v->values, &nbytes);
                if (text == NULL)
                    continue;
                snprintf(buf, size, "%.*s", (int)(nbytes / v->n), text + k * (nbytes / v->n));
                return buf;
            }
        }
        break;
    default:
        break;
    }
    snprintf(buf, size, "%lld", (long long)key);
    return buf;
}

/* ---- steps that several files have ---- */

/* Consecutive steps of one file, among files of the same GROUP. */
typedef struct stretch {
    cm_digest group;
    uint64_t begin, end;
} stretch;

static int by_begin(const void *a, const void *b)
{
    const stretch *x = a, *y = b;
    const int group = memcmp(&x->group, &y->group, sizeof(x->group));
    return group != 0 ? group : (x->begin > y->begin) - (x->begin < y->begin);
}

bool cm_axis_shares_steps(const cm_join_input *in, const cm_join_dim *d, const uint32_t *file,
                          size_t nfiles, const cm_digest *group)
{
    stretch *list = NULL;
    size_t n = 0;
    bool shared = false;
    for (size_t i = 0; !shared && i < nfiles; i++) {
        const cm_join_vec *v = cm_axis_vec(in, d, file[i]);
        for (size_t k = 0; v != NULL && !shared && k < v->nruns; k++) {
            const uint64_t begin = v->run[k].origin;
            shared = CM_GROW(list, n, NULL) != CM_OK;
            if (!shared)
                list[n++] = (stretch){group != NULL ? group[i] : (cm_digest){0}, begin,
                                      begin + v->run[k].count};
        }
    }
    if (!shared && n > 0)
        qsort(list, n, sizeof(*list), by_begin);
    for (size_t i = 1; !shared && i < n; i++)
        shared = list[i].begin < list[i - 1].end &&
                 memcmp(&list[i].group, &list[i - 1].group, sizeof(list[i].group)) == 0;
    free(list);
    return shared;
}

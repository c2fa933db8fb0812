#include "passport/counter.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "model/convert.h"
#include "model/copy.h"
#include "passport/part_sums.h"

enum {
    MAX_BINS = 1 << 17,
    LEAST_POINTS = 48, /* of a sketch */
    MOST_POINTS = 512,
    SKETCH_X = 32,
    SKETCH_Y = 16,
    SKETCH_OTHERS = 2,
    PICTURE_X = 128,
    PICTURE_Y = 64,
    SHORT_RUN = 8 /* elements of a step side by side, below which steps are counted together */
};

/* ---- samples along dimensions ---- */

static uint64_t position(uint64_t length, unsigned count, unsigned k)
{
    return (uint64_t)((unsigned __int128)(2 * k + 1) * length / (2 * count));
}

static unsigned least(uint64_t a, uint64_t b)
{
    return (unsigned)(a < b ? a : b);
}

/* Of all dimensions but SKIPPED: the last has X points, the one before Y, others OTHERS. */
static cm_lattice lattice_of(const cm_counter_options *o, int skipped, const unsigned *most,
                             uint64_t points)
{
    cm_lattice l = {.npoints = 1};
    unsigned nth = 0;
    for (unsigned j = o->rank; j-- > 0;) {
        l.count[j] = 1;
        if ((int)j == skipped)
            continue;
        uint64_t want = most[nth < 2 ? nth : 2];
        want = want < o->shape[j] ? want : o->shape[j];
        want = want * l.npoints <= points ? want : points / l.npoints;
        l.count[j] = want > 0 ? (unsigned)want : 1;
        l.npoints *= l.count[j];
        nth++;
    }
    return l;
}

/* The samples K of dimension J that lie in FROM up to TO: the first, and how many. */
static unsigned samples_in(const cm_counter_options *o, const cm_lattice *l, unsigned j,
                           uint64_t from, uint64_t to, unsigned *first)
{
    unsigned k = 0, n = 0;
    while (k < l->count[j] && position(o->shape[j], l->count[j], k) < from)
        k++;
    *first = k;
    while (k < l->count[j] && position(o->shape[j], l->count[j], k) < to) {
        k++;
        n++;
    }
    return n;
}

/* ---- sizes ---- */

typedef struct sizes {
    uint64_t nsteps, together, nbins, points;
    bool whole;
    unsigned npictures;
    cm_lattice sketch, grid;
} sizes;

static sizes measure(const cm_counter_options *o)
{
    static const unsigned SKETCH[] = {SKETCH_X, SKETCH_Y, SKETCH_OTHERS};
    static const unsigned WIDE_SKETCH[] = {MOST_POINTS, SKETCH_Y, SKETCH_OTHERS};
    static const unsigned PICTURE[] = {PICTURE_X, PICTURE_Y, 1};
    sizes s = {.nsteps = o->shape[o->step], .together = 1};
    uint64_t most = o->nbytes / (2 * sizeof(cm_bin));
    most = most < 1024 ? 1024 : most > MAX_BINS ? MAX_BINS : most;
    s.together = s.nsteps > most ? (s.nsteps + most - 1) / most : 1;
    s.nbins = (s.nsteps + s.together - 1) / s.together;
    s.points = s.nbins > 0 ? o->nbytes / 2 / sizeof(double) / s.nbins : LEAST_POINTS;
    s.points = s.points < LEAST_POINTS  ? LEAST_POINTS
               : s.points > MOST_POINTS ? MOST_POINTS
                                        : s.points;
    s.sketch = lattice_of(o, (int)o->step, o->rank > 2 ? SKETCH : WIDE_SKETCH, s.points);
    s.whole = o->rank == 2;
    s.grid = lattice_of(o, s.whole ? -1 : (int)o->step, PICTURE, PICTURE_X * PICTURE_Y);
    s.npictures = o->rank < 2 || s.nsteps == 0     ? 0
                  : s.whole                        ? 1
                  : s.nsteps < CM_COUNTER_PICTURES ? (unsigned)s.nsteps
                                                   : CM_COUNTER_PICTURES;
    return s;
}

uint64_t cm_counter_nbytes(const cm_counter_options *o)
{
    const sizes s = measure(o);
    return sizeof(cm_counter) + s.nbins * (sizeof(cm_bin) + s.sketch.npoints * sizeof(double)) +
           (uint64_t)s.npictures * s.grid.npoints * sizeof(float);
}

int cm_counter_create(const cm_counter_options *o, cm_counter **out, cm_error *err)
{
    const sizes s = measure(o);
    cm_counter *c = *out = cm_calloc(1, sizeof(*c), err);
    if (c == NULL)
        return CM_ENOMEM;
    pthread_mutex_init(&c->lock, NULL);
    c->o = *o;
    c->nsteps = s.nsteps;
    c->together = s.together;
    c->nbins = s.nbins;
    c->sketch = s.sketch;
    c->grid = s.grid;
    c->whole = s.whole;
    c->npictures = s.npictures;
    for (unsigned i = 0; i < s.npictures; i++)
        c->pictured[i] = s.npictures > 1 ? i * (s.nsteps - 1) / (s.npictures - 1) : 0;
    c->bin = cm_calloc(s.nbins + 1, sizeof(c->bin[0]), err);
    c->sample = c->bin == NULL
                    ? NULL
                    : cm_calloc(s.nbins * s.sketch.npoints + 1, sizeof(c->sample[0]), err);
    c->picture = c->sample == NULL ? NULL
                                   : cm_calloc((size_t)s.npictures * s.grid.npoints + 1,
                                               sizeof(c->picture[0]), err);
    if (c->picture == NULL) {
        cm_counter_free(c);
        *out = NULL;
        return CM_ENOMEM;
    }
    for (uint64_t i = 0; i < s.nbins; i++) {
        c->bin[i].min = INFINITY;
        c->bin[i].max = -INFINITY;
    }
    return CM_OK;
}

void cm_counter_free(cm_counter *c)
{
    if (c == NULL)
        return;
    free(c->bin);
    free(c->sample);
    free(c->picture);
    pthread_mutex_destroy(&c->lock);
    free(c);
}

/* ---- sums ---- */

/* Knuth's two-sum: what rounding lost stays. */
static void add_wide(cm_wide *a, double x, double low)
{
    const double sum = a->high + x, part = sum - a->high;
    const double lost = (a->high - (sum - part)) + (x - part);
    if (!isfinite(sum)) {
        *a = (cm_wide){sum, 0};
        return;
    }
    a->low += lost + low;
    a->high = sum + a->low;
    a->low -= a->high - sum;
}

static void add_product(cm_wide *a, double x, double y)
{
    const double product = x * y;
    add_wide(a, product, fma(x, y, -product));
}

static uint64_t mix(uint64_t x)
{
    x = (x ^ (x >> 31)) * UINT64_C(0x9e3779b97f4a7c15);
    x = (x ^ (x >> 29)) * UINT64_C(0xbf58476d1ce4e5b9);
    return x ^ (x >> 32);
}

static uint64_t mix_double(uint64_t hash, double x)
{
    uint64_t bits;
    memcpy(&bits, &x, sizeof bits);
    return mix(hash ^ bits);
}

/* A fingerprint of the part of a field: equal sums, at the same PLACE. */
static uint64_t hash_part(uint64_t place, const cm_part *p)
{
    uint64_t h = mix_double(place ^ p->count ^ p->nelem << 32, p->sum);
    return mix_double(mix_double(mix_double(h, p->square), p->min), p->max + p->shift);
}

static void add_part(cm_bin *b, const cm_part *p, uint64_t place)
{
    const double n = (double)p->count;
    b->count += p->count;
    b->missing += p->nelem - p->count;
    b->hash += hash_part(place, p);
    if (p->count == 0)
        return;
    b->min = p->min < b->min ? p->min : b->min;
    b->max = p->max > b->max ? p->max : b->max;
    /* The sum of shift + d and of its square, whose terms have more digits than a double. */
    const double sum = n * p->shift, lost = fma(n, p->shift, -sum);
    add_wide(&b->sum, sum, lost);
    add_wide(&b->sum, p->sum, 0);
    add_product(&b->square, sum, p->shift);
    add_product(&b->square, lost, p->shift);
    add_product(&b->square, 2 * p->shift, p->sum);
    add_wide(&b->square, p->square, 0);
}

/* Parts of the steps FIRST to FIRST + N - 1. */
static void add_parts(cm_counter *c, uint64_t first, const cm_part *part, size_t n, uint64_t place)
{
    pthread_mutex_lock(&c->lock);
    for (size_t k = 0; k < n; k++)
        add_part(&c->bin[(first + k) / c->together], &part[k], place);
    pthread_mutex_unlock(&c->lock);
}

/* ---- runs ---- */

/* The elements of one step in a box: runs of elements that lie side by side. */
typedef struct runs {
    unsigned rank, step;
    const cm_box *box;
    unsigned last; /* dimensions from here on are one run */
    uint64_t nelem;
    int64_t stride[CM_MAX_RANK]; /* bytes */
} runs;

static void plan_runs(runs *r, const cm_box *box, const uint64_t *extent, unsigned step,
                      size_t itemsize)
{
    *r = (runs){.rank = box->rank, .step = step, .box = box, .last = box->rank, .nelem = 1};
    cm_strides_c(box->rank, extent, itemsize, r->stride);
    while (r->last > 0 && r->last - 1 != step) {
        r->last--;
        r->nelem *= box->shape[r->last];
        if (box->shape[r->last] != extent[r->last])
            break;
    }
}

/* The next run of a step; false: it was the last. */
static bool next_run(const runs *r, uint64_t *at)
{
    for (unsigned j = r->last; j-- > 0;) {
        if (j == r->step)
            continue;
        if (++at[j] < r->box->shape[j])
            return true;
        at[j] = 0;
    }
    return false;
}

static const uint8_t *run_at(const runs *r, const uint64_t *at, const uint8_t *data)
{
    for (unsigned j = 0; j < r->last; j++)
        data += (int64_t)at[j] * r->stride[j];
    return data;
}

static void sum_runs(const runs *r, const cm_tally_rule *rule, uint64_t step, const uint8_t *data,
                     cm_tally_sum *sum)
{
    uint64_t at[CM_MAX_RANK] = {0};
    at[r->step] = step;
    do
        cm_tally_run(sum, rule, run_at(r, at, data), r->nelem);
    while (next_run(r, at));
}

static cm_tally tally_step(const runs *r, const cm_tally_rule *rule, uint64_t step,
                           const uint8_t *data)
{
    cm_tally out;
    cm_tally_sum sum;
    cm_tally_begin(&sum, NULL);
    sum_runs(r, rule, step, data, &sum);
    if (cm_tally_end(&sum, &out))
        return out;
    const double mean = out.mean + out.rest;
    cm_tally_begin(&sum, &mean);
    sum_runs(r, rule, step, data, &sum);
    (void)cm_tally_end(&sum, &out);
    return out;
}

/* Runs of a step that follow each other at even distances. */
static cm_part_rows rows_of(const runs *r, unsigned *inner)
{
    cm_part_rows rows = {r->nelem, 1, 0};
    *inner = r->last;
    for (unsigned j = r->last; j-- > 0;)
        if (j != r->step && r->box->shape[j] > 1) {
            rows.nrows = r->box->shape[j];
            rows.stride = r->stride[j];
            *inner = j;
            break;
        }
    return rows;
}

/* The first value of a step that is not missing, as a float; false: there is none. */
static bool find_shift(const runs *r, const cm_tally_rule *rule, uint64_t step, const uint8_t *data,
                       cm_part *p)
{
    uint64_t at[CM_MAX_RANK] = {0};
    at[r->step] = step;
    do {
        const uint8_t *run = run_at(r, at, data);
        for (uint64_t i = 0; i < r->nelem; i++, run += rule->type.nbytes)
            if (!cm_tally_is_missing(rule, run)) {
                p->shift = cm_element_to_double(&rule->type, run);
                return true;
            }
    } while (next_run(r, at));
    return false;
}

static cm_part sum_floats(const runs *r, const cm_tally_rule *rule, uint64_t step,
                          const uint8_t *data, double shift)
{
    cm_part p = cm_part_empty();
    uint64_t at[CM_MAX_RANK] = {0};
    unsigned inner;
    const cm_part_rows rows = rows_of(r, &inner);
    p.shift = shift;
    at[r->step] = step;
    do {
        cm_part_add(&p, rule, run_at(r, at, data), &rows);
        if (inner < r->last)
            at[inner] = r->box->shape[inner] - 1;
    } while (next_run(r, at));
    return p;
}

/* The part of a step that lies in a chunk. */
static cm_part part_of(const runs *r, const cm_tally_rule *rule, uint64_t step, const uint8_t *data)
{
    cm_part p = cm_part_empty();
    if (cm_part_takes(rule)) {
        if (!find_shift(r, rule, step, data, &p)) {
            p.nelem = cm_box_nelem(r->box) / r->box->shape[r->step];
            return p;
        }
        p = sum_floats(r, rule, step, data, p.shift);
        if (cm_part_is_good(&p))
            return p;
        const double mean = (float)(p.shift + p.sum / (double)p.count);
        /* Least and largest would be the shift where all lie on one side of it. */
        if (isfinite(mean) && mean >= p.min && mean <= p.max) {
            cm_part q = sum_floats(r, rule, step, data, mean);
            q.min = p.min;
            q.max = p.max;
            if (cm_part_is_good(&q))
                return q;
        }
    }
    const cm_tally t = tally_step(r, rule, step, data);
    return cm_part_of_tally(&t);
}

/* Where BOX lies, but for its place among the steps. */
static uint64_t place_of(const cm_counter *c, const cm_box *box)
{
    uint64_t place = 0;
    for (unsigned j = 0; j < box->rank; j++)
        if (j != c->o.step)
            place = mix(place ^ box->start[j]) + j;
    return place;
}

static void count_long(cm_counter *c, const runs *r, const uint8_t *data)
{
    const uint64_t place = place_of(c, r->box), n = r->box->shape[c->o.step];
    cm_part part[CM_PART_STEPS];
    for (uint64_t first = 0; first < n; first += CM_PART_STEPS) {
        const unsigned m = least(n - first, CM_PART_STEPS);
        for (unsigned k = 0; k < m; k++)
            part[k] = part_of(r, &c->o.rule, first + k, data);
        add_parts(c, r->box->start[c->o.step] + first, part, m, place);
    }
}

/* Steps with few elements side by side: many steps at once, element after element. */
static void count_short(cm_counter *c, const runs *r, const uint8_t *data)
{
    const uint64_t place = place_of(c, r->box), n = r->box->shape[c->o.step];
    const int64_t itemsize = c->o.rule.type.nbytes;
    cm_part part[CM_PART_STEPS];
    for (uint64_t first = 0; first < n; first += CM_PART_STEPS) {
        const unsigned m = least(n - first, CM_PART_STEPS);
        uint64_t at[CM_MAX_RANK] = {0};
        for (unsigned k = 0; k < m; k++)
            part[k] = cm_part_empty();
        at[c->o.step] = first;
        do {
            const uint8_t *run = run_at(r, at, data);
            for (uint64_t i = 0; i < r->nelem; i++)
                cm_part_add_short(part, m, &c->o.rule, run + (int64_t)i * itemsize,
                                  r->stride[c->o.step]);
        } while (next_run(r, at));
        add_parts(c, r->box->start[c->o.step] + first, part, m, place);
    }
}

static void count_fill(cm_counter *c, const cm_box *box)
{
    const uint64_t n = box->shape[c->o.step], place = place_of(c, box);
    const cm_tally t = cm_tally_of_one(&c->o.rule, c->o.fill, cm_box_nelem(box) / n);
    const cm_part part = cm_part_of_tally(&t);
    for (uint64_t k = 0; k < n; k++)
        add_parts(c, box->start[c->o.step] + k, &part, 1, place);
}

/* ---- samples ---- */

/* Of a lattice, the points that lie in a box. */
typedef struct points {
    const cm_lattice *lattice;
    unsigned first[CM_MAX_RANK], n[CM_MAX_RANK];
} points;

static bool find_points(const cm_counter *c, const cm_lattice *l, const cm_box *box, bool steps,
                        points *p)
{
    p->lattice = l;
    for (unsigned j = 0; j < box->rank; j++) {
        p->first[j] = 0;
        p->n[j] = 1;
        if (j == c->o.step && !steps)
            continue;
        p->n[j] =
            samples_in(&c->o, l, j, box->start[j], box->start[j] + box->shape[j], &p->first[j]);
        if (p->n[j] == 0)
            return false;
    }
    return true;
}

static double value_at(const cm_counter *c, const uint8_t *element)
{
    if (element == NULL || cm_tally_is_missing(&c->o.rule, element))
        return NAN;
    return cm_element_to_double(&c->o.rule.type, element);
}

/* Every point of P at step STEP of BOX goes to SAMPLE or PICTURE. */
static void take_points(const cm_counter *c, const points *p, const cm_box *box,
                        const int64_t *stride, uint64_t step, bool steps, const uint8_t *data,
                        double *sample, float *picture)
{
    static const uint8_t zero[8];
    unsigned at[CM_MAX_RANK] = {0};
    for (;;) {
        uint64_t index = 0;
        const uint8_t *from = data;
        for (unsigned j = 0; j < box->rank; j++) {
            const unsigned k = p->first[j] + at[j];
            const bool fixed = j == c->o.step && !steps;
            const uint64_t where =
                fixed ? step : position(c->o.shape[j], p->lattice->count[j], k) - box->start[j];
            index = index * p->lattice->count[j] + (fixed ? 0 : k);
            if (from != NULL)
                from += (int64_t)where * stride[j];
        }
        const double v = value_at(c, from != NULL ? from : c->o.fill != NULL ? c->o.fill : zero);
        if (sample != NULL)
            sample[index] = v;
        else
            picture[index] = (float)v;
        unsigned j = box->rank;
        while (j-- > 0) {
            if (++at[j] < p->n[j])
                break;
            at[j] = 0;
        }
        if (j == (unsigned)-1)
            return;
    }
}

static void sample_box(cm_counter *c, const cm_box *box, const int64_t *stride, const uint8_t *data)
{
    const uint64_t first = box->start[c->o.step], n = box->shape[c->o.step];
    points p;
    if (find_points(c, &c->sketch, box, false, &p))
        for (uint64_t k = (c->together - first % c->together) % c->together; k < n;
             k += c->together)
            take_points(c, &p, box, stride, k, false, data,
                        c->sample + (first + k) / c->together * c->sketch.npoints, NULL);
    if (c->npictures == 0 || !find_points(c, &c->grid, box, c->whole, &p))
        return;
    for (unsigned i = 0; i < c->npictures; i++) {
        const uint64_t step = c->pictured[i];
        if (c->whole || (step >= first && step - first < n))
            take_points(c, &p, box, stride, c->whole ? 0 : step - first, c->whole, data, NULL,
                        c->picture + (size_t)i * c->grid.npoints);
    }
}

void cm_counter_see(cm_counter *c, const cm_box *box, const uint64_t *extent, const uint8_t *data)
{
    const uint64_t begin = cm_now_ns();
    runs r;
    if (cm_box_nelem(box) == 0)
        return;
    plan_runs(&r, box, extent, c->o.step, c->o.rule.type.nbytes);
    if (data == NULL)
        count_fill(c, box);
    else if (r.nelem < SHORT_RUN)
        count_short(c, &r, data);
    else
        count_long(c, &r, data);
    sample_box(c, box, r.stride, data);
    atomic_fetch_add(&c->ns, cm_now_ns() - begin);
}

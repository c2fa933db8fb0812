/*
 * Sums of single floats, eight at a time: differences to the shift are summed as floats in blocks
 * of a few hundred, whose sums are doubles.  An element that is missing counts as the shift, whose
 * difference is nothing and which is a value of the part itself.
 */
#include <math.h>
#include <string.h>

#include "passport/part_sums.h"

enum {
    LANES = 8,
    BLOCK = 32 /* additions of floats to one lane before it becomes a double */
};

cm_part cm_part_empty(void)
{
    return (cm_part){.min = INFINITY, .max = -INFINITY};
}

cm_part cm_part_of_tally(const cm_tally *t)
{
    const double n = (double)t->count;
    cm_part p = {.nelem = t->count + t->missing, .count = t->count, .min = t->min, .max = t->max};
    if (t->count > 0) {
        p.shift = t->mean;
        p.sum = t->rest * n;
        p.square = t->m2 + t->rest * t->rest * n;
    }
    return p;
}

bool cm_part_is_good(const cm_part *p)
{
    if (p->count == 0)
        return true;
    /* A shift far from all values leaves nothing but itself in the squares. */
    const double lost = p->sum * (p->sum / (double)p->count);
    /* Of differences that small the squares have few digits, or none, as floats. */
    const bool faint = p->min < p->max && p->square < (double)p->count * 0x1p-120;
    return isfinite(p->square) && isfinite(p->sum) && lost <= p->square * (1 - 0x1p-6) && !faint;
}

#if defined(__x86_64__)
#include <immintrin.h>

#define AVX2   __attribute__((target("avx2")))
#define INLINE static inline __attribute__((always_inline))

/* Two of each, so that one addition does not wait for the other. */
typedef struct lanes {
    __m256 fill[CM_TALLY_MAX_FILLS], shift, min[2], max[2], sum[2], square[2];
    __m256i count[2];
    __m256d wide_sum, wide_square;
    unsigned pending;
} lanes;

AVX2 INLINE void add(lanes *s, __m256 v, __m256 among, unsigned nfills, unsigned k)
{
    __m256 ok = _mm256_and_ps(_mm256_cmp_ps(v, v, _CMP_ORD_Q), among);
    for (unsigned f = 0; f < nfills; f++)
        ok = _mm256_and_ps(ok, _mm256_cmp_ps(v, s->fill[f], _CMP_NEQ_UQ));
    const __m256 w = _mm256_blendv_ps(s->shift, v, ok), d = _mm256_sub_ps(w, s->shift);
    s->sum[k] = _mm256_add_ps(s->sum[k], d);
    s->square[k] = _mm256_add_ps(s->square[k], _mm256_mul_ps(d, d));
    s->min[k] = _mm256_min_ps(s->min[k], w);
    s->max[k] = _mm256_max_ps(s->max[k], w);
    s->count[k] = _mm256_sub_epi32(s->count[k], _mm256_castps_si256(ok));
}

AVX2 INLINE __m256d widen(__m256 v)
{
    return _mm256_add_pd(_mm256_cvtps_pd(_mm256_castps256_ps128(v)),
                         _mm256_cvtps_pd(_mm256_extractf128_ps(v, 1)));
}

AVX2 INLINE void close_block(lanes *s)
{
    s->wide_sum = _mm256_add_pd(s->wide_sum, _mm256_add_pd(widen(s->sum[0]), widen(s->sum[1])));
    s->wide_square =
        _mm256_add_pd(s->wide_square, _mm256_add_pd(widen(s->square[0]), widen(s->square[1])));
    s->sum[0] = s->sum[1] = s->square[0] = s->square[1] = _mm256_setzero_ps();
    s->pending = 0;
}

AVX2 INLINE void add_row(lanes *s, const float *x, uint64_t n, unsigned nfills)
{
    const __m256 all = _mm256_castsi256_ps(_mm256_set1_epi32(-1));
    uint64_t i = 0;
    while (i + 2 * LANES <= n) {
        uint64_t end = i + (uint64_t)(BLOCK - s->pending) * 2 * LANES;
        end = end < n ? end : n;
        const uint64_t from = i;
        for (; i + 2 * LANES <= end; i += 2 * LANES) {
            add(s, _mm256_loadu_ps(x + i), all, nfills, 0);
            add(s, _mm256_loadu_ps(x + i + LANES), all, nfills, 1);
        }
        s->pending += (unsigned)((i - from) / (2 * LANES));
        if (s->pending >= BLOCK)
            close_block(s);
    }
    for (; i < n; i += LANES) {
        int32_t mask[LANES];
        for (unsigned k = 0; k < LANES; k++)
            mask[k] = i + k < n ? -1 : 0;
        const __m256i among = _mm256_loadu_si256((const __m256i *)mask);
        add(s, _mm256_maskload_ps(x + i, among), _mm256_castsi256_ps(among), nfills, 0);
        if (++s->pending >= BLOCK)
            close_block(s);
    }
}

AVX2 INLINE void add_rows(cm_part *p, const cm_tally_rule *rule, const uint8_t *data,
                          const cm_part_rows *rows, unsigned nfills)
{
    lanes s = {.shift = _mm256_set1_ps((float)p->shift)};
    float low[LANES], high[LANES], fill;
    int32_t count[LANES];
    double sum[4], square[4];
    s.min[0] = s.min[1] = s.max[0] = s.max[1] = s.shift;
    s.count[0] = s.count[1] = _mm256_setzero_si256();
    s.wide_sum = s.wide_square = _mm256_setzero_pd();
    s.sum[0] = s.sum[1] = s.square[0] = s.square[1] = _mm256_setzero_ps();
    for (unsigned f = 0; f < nfills; f++) {
        memcpy(&fill, rule->fill[f], sizeof fill);
        s.fill[f] = _mm256_set1_ps(fill);
    }
    for (uint64_t r = 0; r < rows->nrows; r++)
        add_row(&s, (const float *)(const void *)(data + (int64_t)r * rows->stride), rows->length,
                nfills);
    close_block(&s);
    _mm256_storeu_ps(low, _mm256_min_ps(s.min[0], s.min[1]));
    _mm256_storeu_ps(high, _mm256_max_ps(s.max[0], s.max[1]));
    _mm256_storeu_si256((__m256i *)count, _mm256_add_epi32(s.count[0], s.count[1]));
    _mm256_storeu_pd(sum, s.wide_sum);
    _mm256_storeu_pd(square, s.wide_square);
    float least = low[0], most = high[0];
    for (unsigned k = 0; k < LANES; k++) {
        p->count += (uint64_t)count[k];
        least = low[k] < least ? low[k] : least;
        most = high[k] > most ? high[k] : most;
    }
    p->min = least < p->min ? least : p->min;
    p->max = most > p->max ? most : p->max;
    p->sum += (sum[0] + sum[1]) + (sum[2] + sum[3]);
    p->square += (square[0] + square[1]) + (square[2] + square[3]);
    p->nelem += rows->length * rows->nrows;
}

AVX2 static void add_all(cm_part *p, const cm_tally_rule *rule, const uint8_t *data,
                         const cm_part_rows *rows)
{
    if (rule->nfills == 0)
        add_rows(p, rule, data, rows, 0);
    else if (rule->nfills == 1)
        add_rows(p, rule, data, rows, 1);
    else
        add_rows(p, rule, data, rows, rule->nfills);
}

bool cm_part_takes(const cm_tally_rule *rule)
{
    return rule->simd >= CM_SIMD_AVX2 && rule->type.kind == CM_KIND_FLOAT && rule->type.nbytes == 4;
}

void cm_part_add(cm_part *p, const cm_tally_rule *rule, const uint8_t *data,
                 const cm_part_rows *rows)
{
    add_all(p, rule, data, rows);
}
#else
bool cm_part_takes(const cm_tally_rule *rule)
{
    (void)rule;
    return false;
}

void cm_part_add(cm_part *p, const cm_tally_rule *rule, const uint8_t *data,
                 const cm_part_rows *rows)
{
    (void)p;
    (void)rule;
    (void)data;
    (void)rows;
}
#endif

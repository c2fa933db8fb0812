/*
 * Floats, eight at a time: the sums of tally.c by hand for AVX2, with the same bits.  Comparisons,
 * least and largest are made of the floats as they are; what is missing becomes the shift, whose
 * difference to itself is nothing.
 */
#include "model/tally_impl.h"

#if defined(__x86_64__)
#include <immintrin.h>
#include <math.h>
#include <string.h>

#define AVX2 __attribute__((target("avx2")))

/* ---- single ---- */

typedef struct singles {
    __m256 fill[CM_TALLY_MAX_FILLS], shift, min, max;
    __m256d wide_shift, sum[2], square[2];
    __m256i count;
} singles;

AVX2 static inline __attribute__((always_inline)) void add_singles(singles *s, __m256 v,
                                                                   unsigned nfills, __m256 among)
{
    __m256 ok = _mm256_and_ps(_mm256_cmp_ps(v, v, _CMP_ORD_Q), among);
    for (unsigned f = 0; f < nfills; f++)
        ok = _mm256_and_ps(ok, _mm256_cmp_ps(v, s->fill[f], _CMP_NEQ_UQ));
    const __m256 w = _mm256_blendv_ps(s->shift, v, ok);
    const __m256d d[2] = {
        _mm256_sub_pd(_mm256_cvtps_pd(_mm256_castps256_ps128(w)), s->wide_shift),
        _mm256_sub_pd(_mm256_cvtps_pd(_mm256_extractf128_ps(w, 1)), s->wide_shift)};
    for (unsigned h = 0; h < 2; h++) {
        s->sum[h] = _mm256_add_pd(s->sum[h], d[h]);
        s->square[h] = _mm256_add_pd(s->square[h], _mm256_mul_pd(d[h], d[h]));
    }
    s->count = _mm256_sub_epi32(s->count, _mm256_castps_si256(ok));
    s->min = _mm256_min_ps(_mm256_blendv_ps(_mm256_set1_ps(INFINITY), v, ok), s->min);
    s->max = _mm256_max_ps(_mm256_blendv_ps(_mm256_set1_ps(-INFINITY), v, ok), s->max);
}

AVX2 static inline __attribute__((always_inline)) void add_all_singles(singles *s, const float *x,
                                                                       uint64_t n, unsigned nfills)
{
    const __m256 all = _mm256_castsi256_ps(_mm256_set1_epi32(-1));
    uint64_t i = 0;
    for (; i + CM_TALLY_LANES <= n; i += CM_TALLY_LANES)
        add_singles(s, _mm256_loadu_ps(x + i), nfills, all);
    if (i < n) {
        float rest[CM_TALLY_LANES] = {0};
        int32_t among[CM_TALLY_LANES] = {0};
        memcpy(rest, x + i, (n - i) * sizeof *rest);
        memset(among, 0xff, (n - i) * sizeof *among);
        add_singles(s, _mm256_loadu_ps(rest), nfills,
                    _mm256_castsi256_ps(_mm256_loadu_si256((const __m256i *)among)));
    }
}

AVX2 static void add_f32(cm_tally_sum *t, const cm_tally_rule *rule, const void *data, uint64_t n)
{
    singles s = {.shift = _mm256_set1_ps((float)t->shift),
                 .wide_shift = _mm256_set1_pd(t->shift),
                 .min = _mm256_set1_ps(INFINITY),
                 .max = _mm256_set1_ps(-INFINITY),
                 .sum = {_mm256_loadu_pd(t->sum), _mm256_loadu_pd(t->sum + 4)},
                 .square = {_mm256_loadu_pd(t->square), _mm256_loadu_pd(t->square + 4)},
                 .count = _mm256_setzero_si256()};
    float min[CM_TALLY_LANES], max[CM_TALLY_LANES];
    uint32_t count[CM_TALLY_LANES];
    for (unsigned f = 0; f < rule->nfills; f++) {
        float fill;
        memcpy(&fill, rule->fill[f], sizeof fill);
        s.fill[f] = _mm256_set1_ps(fill);
    }
    if (rule->nfills == 0)
        add_all_singles(&s, data, n, 0);
    else if (rule->nfills == 1)
        add_all_singles(&s, data, n, 1);
    else
        add_all_singles(&s, data, n, rule->nfills);
    for (unsigned h = 0; h < 2; h++) {
        _mm256_storeu_pd(t->sum + 4 * h, s.sum[h]);
        _mm256_storeu_pd(t->square + 4 * h, s.square[h]);
    }
    _mm256_storeu_ps(min, s.min);
    _mm256_storeu_ps(max, s.max);
    _mm256_storeu_si256((__m256i *)count, s.count);
    for (unsigned k = 0; k < CM_TALLY_LANES; k++) {
        t->count[k] += count[k];
        t->min[k] = min[k] < t->min[k] ? min[k] : t->min[k];
        t->max[k] = max[k] > t->max[k] ? max[k] : t->max[k];
    }
}

cm_tally_kernel *cm_tally_float_kernel(const cm_tally_rule *rule)
{
    return rule->simd >= CM_SIMD_AVX2 && rule->type.nbytes == 4 ? add_f32 : NULL;
}

#else

cm_tally_kernel *cm_tally_float_kernel(const cm_tally_rule *rule)
{
    (void)rule;
    return NULL;
}

#endif

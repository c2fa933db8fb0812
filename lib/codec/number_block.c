/*
 * Runs of numbers between their stored type and one to compute with.
 */
#include "codec/number_block.h"

/* Elements lie at any address. */
typedef uint16_t __attribute__((aligned(1), may_alias)) any_u16;
typedef uint32_t __attribute__((aligned(1), may_alias)) any_u32;
typedef uint64_t __attribute__((aligned(1), may_alias)) any_u64;
typedef int8_t __attribute__((may_alias)) any_i8;
typedef int16_t __attribute__((aligned(1), may_alias)) any_i16;
typedef int32_t __attribute__((aligned(1), may_alias)) any_i32;
typedef int64_t __attribute__((aligned(1), may_alias)) any_i64;
typedef float __attribute__((aligned(1), may_alias)) any_f32;
typedef double __attribute__((aligned(1), may_alias)) any_f64;

bool cm_block_takes(const cm_dtype *t)
{
    return cm_dtype_is_number(t) || t->kind == CM_KIND_BOOL || t->kind == CM_KIND_DATETIME ||
           t->kind == CM_KIND_TIMEDELTA;
}

bool cm_block_is_float(const cm_dtype *t)
{
    return t->kind == CM_KIND_FLOAT;
}

static bool is_unsigned(const cm_dtype *t)
{
    return t->kind == CM_KIND_UINT || t->kind == CM_KIND_BOOL;
}

/* Selects a loop by class and size: s1 .. s8, u1 .. u8, f2 .. f8. */
enum {
    S1 = 1,
    S2 = 2,
    S4 = 4,
    S8 = 8,
    U = 16,
    F = 32
};

static unsigned shape_of(const cm_dtype *t)
{
    return t->nbytes | (cm_block_is_float(t) ? F : is_unsigned(t) ? U : 0);
}

/* The conversion of C where it is defined; elsewhere what x86 and so numpy give. */
static uint64_t int_from_double(double x)
{
    if (x > -0x1p63 && x < 0x1p63)
        return (uint64_t)(int64_t)x;
    return x >= 0x1p63 && x < 0x1p64 ? (uint64_t)x : (uint64_t)1 << 63;
}

#define EACH(expression)                                                                           \
    for (size_t i = 0; i < n; i++)                                                                 \
        dst[i] = expression;                                                                       \
    break

void cm_block_load_int(const cm_dtype *t, const void *src, size_t n, uint64_t *dst)
{
    switch (shape_of(t)) {
    case S1:
        EACH((uint64_t)(int64_t)((const any_i8 *)src)[i]);
    case S2:
        EACH((uint64_t)(int64_t)((const any_i16 *)src)[i]);
    case S4:
        EACH((uint64_t)(int64_t)((const any_i32 *)src)[i]);
    case U | S1:
        EACH(((const uint8_t *)src)[i]);
    case U | S2:
        EACH(((const any_u16 *)src)[i]);
    case U | S4:
        EACH(((const any_u32 *)src)[i]);
    case F | S2:
        EACH(int_from_double(cm_half_to_double(((const any_u16 *)src)[i])));
    case F | S4:
        EACH(int_from_double(((const any_f32 *)src)[i]));
    case F | S8:
        EACH(int_from_double(((const any_f64 *)src)[i]));
    default:
        EACH(((const any_u64 *)src)[i]);
    }
}

void cm_block_load_double(const cm_dtype *t, const void *src, size_t n, double *dst)
{
    switch (shape_of(t)) {
    case S1:
        EACH(((const any_i8 *)src)[i]);
    case S2:
        EACH(((const any_i16 *)src)[i]);
    case S4:
        EACH(((const any_i32 *)src)[i]);
    case S8:
        EACH((double)((const any_i64 *)src)[i]);
    case U | S1:
        EACH(((const uint8_t *)src)[i]);
    case U | S2:
        EACH(((const any_u16 *)src)[i]);
    case U | S4:
        EACH(((const any_u32 *)src)[i]);
    case U | S8:
        EACH((double)((const any_u64 *)src)[i]);
    case F | S2:
        EACH(cm_half_to_double(((const any_u16 *)src)[i]));
    case F | S4:
        EACH(((const any_f32 *)src)[i]);
    default:
        EACH(((const any_f64 *)src)[i]);
    }
}

#undef EACH
#define EACH(type, expression)                                                                     \
    for (size_t i = 0; i < n; i++)                                                                 \
        ((type *)dst)[i] = (type)(expression);                                                     \
    break

void cm_block_store_int(const cm_dtype *t, const uint64_t *src, size_t n, bool from_unsigned,
                        void *dst)
{
    if (t->kind == CM_KIND_BOOL) {
        for (size_t i = 0; i < n; i++)
            ((uint8_t *)dst)[i] = src[i] != 0;
        return;
    }
    switch (shape_of(t) & ~(unsigned)U) {
    case S1:
        EACH(uint8_t, src[i]);
    case S2:
        EACH(any_u16, src[i]);
    case S4:
        EACH(any_u32, src[i]);
    case F | S2:
        EACH(any_u16,
             cm_half_from_double(from_unsigned ? (double)src[i] : (double)(int64_t)src[i]));
    case F | S4: /* in one step: by way of double it would be rounded twice */
        EACH(any_f32, from_unsigned ? (float)src[i] : (float)(int64_t)src[i]);
    case F | S8:
        EACH(any_f64, from_unsigned ? (double)src[i] : (double)(int64_t)src[i]);
    default:
        EACH(any_u64, src[i]);
    }
}

void cm_block_store_double(const cm_dtype *t, const double *src, size_t n, void *dst)
{
    if (t->kind == CM_KIND_BOOL) {
        for (size_t i = 0; i < n; i++)
            ((uint8_t *)dst)[i] = src[i] != 0;
        return;
    }
    switch (shape_of(t) & ~(unsigned)U) {
    case S1:
        EACH(uint8_t, int_from_double(src[i]));
    case S2:
        EACH(any_u16, int_from_double(src[i]));
    case S4:
        EACH(any_u32, int_from_double(src[i]));
    case S8:
        EACH(any_u64, int_from_double(src[i]));
    case F | S2:
        EACH(any_u16, cm_half_from_double(src[i]));
    case F | S4:
        EACH(any_f32, src[i]);
    default:
        EACH(any_f64, src[i]);
    }
}

void cm_block_cast(const cm_dtype *src_type, const void *src, const cm_dtype *dst_type, void *dst,
                   size_t n)
{
    const uint8_t *from = src;
    uint8_t *to = dst;
    union {
        uint64_t i[CM_BLOCK_NELEM];
        double f[CM_BLOCK_NELEM];
    } block;
    while (n > 0) {
        size_t m = n < CM_BLOCK_NELEM ? n : CM_BLOCK_NELEM;
        if (cm_block_is_float(src_type)) {
            cm_block_load_double(src_type, from, m, block.f);
            cm_block_store_double(dst_type, block.f, m, to);
        } else {
            cm_block_load_int(src_type, from, m, block.i);
            cm_block_store_int(dst_type, block.i, m, is_unsigned(src_type), to);
        }
        from += m * src_type->nbytes;
        to += m * dst_type->nbytes;
        n -= m;
    }
}

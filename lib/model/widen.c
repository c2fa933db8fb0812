#include "model/widen.h"

/* Bits of an integer type that every float of its size and smaller holds exactly. */
static uint32_t float_for(uint32_t integer_nbytes)
{
    return integer_nbytes == 1 ? 2 : integer_nbytes == 2 ? 4 : integer_nbytes == 4 ? 8 : 0;
}

static uint32_t larger(uint32_t a, uint32_t b)
{
    return a > b ? a : b;
}

static bool is_integer(const cm_dtype *t)
{
    return t->kind == CM_KIND_INT || t->kind == CM_KIND_UINT;
}

bool cm_widen(const cm_dtype *a, const cm_dtype *b, cm_dtype *out)
{
    if (cm_dtype_equal(a, b)) {
        *out = *a;
        return true;
    }
    if (a->kind == b->kind &&
        (a->kind == CM_KIND_INT || a->kind == CM_KIND_UINT || a->kind == CM_KIND_FLOAT)) {
        *out = cm_dtype_make(a->kind, larger(a->nbytes, b->nbytes));
        return true;
    }
    if (is_integer(a) && is_integer(b)) { /* one of them unsigned: a signed one of twice its size */
        uint32_t is_signed = a->kind == CM_KIND_INT ? a->nbytes : b->nbytes;
        uint32_t is_unsigned = a->kind == CM_KIND_INT ? b->nbytes : a->nbytes;
        if (is_unsigned >= 8)
            return false;
        *out = cm_dtype_make(CM_KIND_INT, larger(is_signed, is_unsigned * 2));
        return true;
    }
    const cm_dtype *f = a->kind == CM_KIND_FLOAT ? a : b, *i = a->kind == CM_KIND_FLOAT ? b : a;
    if (f->kind != CM_KIND_FLOAT || !is_integer(i) || float_for(i->nbytes) == 0)
        return false;
    *out = cm_dtype_make(CM_KIND_FLOAT, larger(f->nbytes, float_for(i->nbytes)));
    return true;
}

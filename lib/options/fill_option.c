#include "options/fill_option.h"

#include <math.h>
#include <string.h>

#include "base/number.h"
#include "model/convert.h"

bool cm_fill_parse(const cm_dtype *t, const char *text, uint8_t *out)
{
    double number = 0;
    int64_t i;
    uint64_t u;
    bool ok = false;
    if (t->kind == CM_KIND_UINT && cm_parse_u64(text, &u, NULL) == CM_OK) {
        ok = t->nbytes == 8 || u >> (8 * t->nbytes) == 0;
        memcpy(out, &u, t->nbytes);
    } else if (t->kind == CM_KIND_INT && cm_parse_i64(text, &i, NULL) == CM_OK) {
        unsigned shift = 64 - 8 * t->nbytes;
        ok = (int64_t)((uint64_t)i << shift) >> shift == i;
        memcpy(out, &i, t->nbytes);
    } else if (t->kind == CM_KIND_FLOAT) {
        bool nan = strcmp(text, "NaN") == 0 || strcmp(text, "nan") == 0;
        ok = nan || cm_parse_double(text, &number, NULL) == CM_OK;
        if (ok && !cm_element_from_double(t, nan ? (double)__builtin_nanf("") : number, out)) {
            /* 0.1 is no float32, its nearest neighbour is meant. */
            float nearest = (float)number;
            ok = t->nbytes == 4 && isfinite(nearest);
            memcpy(out, &nearest, ok ? sizeof(nearest) : 0);
        }
    }
    return ok;
}

#include "archive/survey/wire.h"

#include <string.h>

void cm_wire_put(cm_wire_out *w, const void *data, size_t nbytes)
{
    if (w->status == CM_OK && nbytes > 0)
        w->status = cm_buf_append(w->buf, data, nbytes, w->err);
}

void cm_wire_put_u8(cm_wire_out *w, uint8_t v)
{
    cm_wire_put(w, &v, sizeof(v));
}

void cm_wire_put_u32(cm_wire_out *w, uint32_t v)
{
    cm_wire_put(w, &v, sizeof(v));
}

void cm_wire_put_u64(cm_wire_out *w, uint64_t v)
{
    cm_wire_put(w, &v, sizeof(v));
}

void cm_wire_put_text(cm_wire_out *w, const char *text)
{
    size_t n = text == NULL ? 0 : strlen(text) + 1;
    if (n > UINT32_MAX) {
        w->status = cm_fail(w->err, CM_EFORMAT, "a text of %zu bytes", n);
        return;
    }
    cm_wire_put_u32(w, (uint32_t)n);
    cm_wire_put(w, text, n);
}

void cm_wire_put_digest(cm_wire_out *w, cm_digest d)
{
    cm_wire_put_u64(w, d.lo);
    cm_wire_put_u64(w, d.hi);
}

const void *cm_wire_get(cm_wire_in *w, size_t nbytes)
{
    if (w->bad || (size_t)(w->end - w->at) < nbytes) {
        w->bad = true;
        return NULL;
    }
    const void *data = w->at;
    w->at += nbytes;
    return data;
}

uint8_t cm_wire_get_u8(cm_wire_in *w)
{
    const uint8_t *p = cm_wire_get(w, 1);
    return p == NULL ? 0 : *p;
}

uint32_t cm_wire_get_u32(cm_wire_in *w)
{
    const void *p = cm_wire_get(w, sizeof(uint32_t));
    return p == NULL ? 0 : cm_load_le32(p);
}

uint64_t cm_wire_get_u64(cm_wire_in *w)
{
    const void *p = cm_wire_get(w, sizeof(uint64_t));
    return p == NULL ? 0 : cm_load_le64(p);
}

const char *cm_wire_get_text(cm_wire_in *w)
{
    uint32_t n = cm_wire_get_u32(w);
    const char *text = n == 0 ? NULL : cm_wire_get(w, n);
    if (text != NULL && memchr(text, '\0', n) != text + n - 1) {
        w->bad = true;
        return NULL;
    }
    return text;
}

cm_digest cm_wire_get_digest(cm_wire_in *w)
{
    cm_digest d = {.lo = cm_wire_get_u64(w)};
    d.hi = cm_wire_get_u64(w);
    return d;
}

cm_digest cm_wire_digest(const void *data, size_t nbytes)
{
    cm_digest d = {0};
    cm_digest_element(&d, 0, data, nbytes);
    return d;
}

bool cm_wire_same(cm_digest a, cm_digest b)
{
    return a.lo == b.lo && a.hi == b.hi;
}

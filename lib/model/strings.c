#include "model/strings.h"

#include <stdlib.h>
#include <string.h>

void cm_strings_init(cm_strings *s, size_t max_arena_nbytes)
{
    *s = (cm_strings){0};
    cm_buf_init(&s->arena, max_arena_nbytes);
}

int cm_strings_reset(cm_strings *s, size_t nelem, cm_error *err)
{
    if (nelem > s->capacity) {
        size_t nbytes;
        cm_string_ref *ref =
            cm_mul_size(nelem, sizeof *ref, &nbytes) ? realloc(s->ref, nbytes) : NULL;
        if (ref == NULL)
            return cm_fail(err, CM_ENOMEM, "no memory for %zu strings", nelem);
        s->ref = ref;
        s->capacity = nelem;
    }
    if (nelem)
        memset(s->ref, 0, nelem * sizeof *s->ref);
    s->nelem = nelem;
    s->arena.nbytes = 0;
    return CM_OK;
}

int cm_strings_set(cm_strings *s, size_t i, const void *text, size_t nbytes, cm_error *err)
{
    if (i >= s->nelem)
        return cm_fail(err, CM_EINTERNAL, "string %zu of %zu is set", i, s->nelem);
    const size_t offset = s->arena.nbytes;
    int rc = cm_buf_append(&s->arena, text, nbytes, err);
    if (rc != CM_OK)
        return rc;
    s->ref[i] = (cm_string_ref){offset, nbytes};
    return CM_OK;
}

const char *cm_strings_get(const cm_strings *s, size_t i, size_t *nbytes)
{
    *nbytes = s->ref[i].nbytes;
    /* An arena in which nothing was stored has no data to point to. */
    return s->ref[i].nbytes ? (const char *)s->arena.data + s->ref[i].offset : "";
}

size_t cm_strings_memory(const cm_strings *s)
{
    return s->capacity * sizeof *s->ref + s->arena.capacity;
}

void cm_strings_release(cm_strings *s)
{
    if (s == NULL)
        return;
    free(s->ref);
    s->ref = NULL;
    s->nelem = s->capacity = 0;
    cm_buf_release(&s->arena);
}

int cm_strings_pad(const cm_grid *grid, const cm_box *box, const cm_strings *from, cm_strings *out,
                   cm_error *err)
{
    int rc = cm_strings_reset(out, grid->chunk_nelem, err);
    uint64_t n = cm_box_nelem(box);
    for (uint64_t i = 0; rc == CM_OK && i < n; i++) {
        uint64_t rest = i, index = 0, stride = 1;
        for (unsigned j = grid->rank; j-- > 0;) {
            index += rest % box->shape[j] * stride;
            rest /= box->shape[j];
            stride *= grid->chunk[j];
        }
        size_t nbytes;
        const char *text = cm_strings_get(from, i, &nbytes);
        rc = cm_strings_set(out, index, text, nbytes, err);
    }
    return rc;
}

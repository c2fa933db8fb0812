#include "format/nc/h5_bytes.h"

#include <stdlib.h>
#include <string.h>

enum {
    READ_NBYTES = 8 << 10,  /* at once: neighbouring structures are usually read next */
    FIRST_WINDOWS = 16,     /* initial capacity */
    MOST_WINDOWS = 1 << 12, /* per file */
    /* Of all windows; a file with more structure than this is left to the library. */
    MOST_NBYTES = 32 << 20,
    RECENT = 16 /* windows to search */
};

struct cm_h5_window {
    uint64_t begin;
    uint64_t nbytes;
    uint8_t *data;
};

cm_h5_bytes cm_h5_bytes_of(const cm_source *source, const cm_h5_super *super)
{
    return (cm_h5_bytes){.source = source,
                         .base = super->base,
                         .offset_nbytes = super->offset_nbytes,
                         .length_nbytes = super->length_nbytes};
}

void cm_h5_bytes_release(cm_h5_bytes *b)
{
    for (size_t i = 0; i < b->nwindows; i++)
        free(b->window[i].data);
    free(b->window);
    b->window = NULL;
    b->nwindows = b->capacity = 0;
}

static int add_window(cm_h5_bytes *b, uint64_t begin, uint64_t nbytes)
{
    if (b->nwindows == MOST_WINDOWS || (b->held += nbytes) > MOST_NBYTES)
        return CM_EUNSUPPORTED;
    cm_h5_window *window =
        cm_make_room(b->window, b->nwindows, &b->capacity, sizeof(*window), FIRST_WINDOWS);
    if (window == NULL)
        return CM_ENOMEM;
    b->window = window;
    uint8_t *data = malloc((size_t)nbytes);
    if (data == NULL)
        return CM_ENOMEM;
    int rc = cm_source_read(b->source, begin, data, (size_t)nbytes, b->err);
    if (rc != CM_OK) {
        free(data);
        return b->err != NULL ? rc : CM_EUNSUPPORTED;
    }
    b->window[b->nwindows++] = (cm_h5_window){begin, nbytes, data};
    return CM_OK;
}

uint64_t cm_h5_bytes_left(const cm_h5_bytes *b, uint64_t address)
{
    const uint64_t nbytes = b->source->nbytes;
    return b->base <= nbytes && address <= nbytes - b->base ? nbytes - b->base - address : 0;
}

int cm_h5_bytes_get(cm_h5_bytes *b, uint64_t address, uint64_t nbytes, const uint8_t **out)
{
    const cm_source *s = b->source;
    if (nbytes > cm_h5_bytes_left(b, address))
        return CM_EUNSUPPORTED;
    address += b->base;
    if (s->memory != NULL) {
        *out = s->memory + address;
        return CM_OK;
    }
    size_t last = b->nwindows > RECENT ? b->nwindows - RECENT : 0;
    for (size_t i = b->nwindows; i-- > last;) {
        const cm_h5_window *w = &b->window[i];
        if (address >= w->begin && address - w->begin <= w->nbytes &&
            nbytes <= w->nbytes - (address - w->begin)) {
            *out = w->data + (address - w->begin);
            return CM_OK;
        }
    }
    uint64_t left = s->nbytes - address, least = nbytes > READ_NBYTES ? nbytes : READ_NBYTES;
    int rc = add_window(b, address, left < least ? left : least);
    if (rc == CM_OK)
        *out = b->window[b->nwindows - 1].data;
    return rc;
}

int cm_h5_bytes_checked(cm_h5_bytes *b, uint64_t address, uint64_t nbytes, const char *signature,
                        const uint8_t **out)
{
    if (nbytes < 8)
        return CM_EUNSUPPORTED;
    int rc = cm_h5_bytes_get(b, address, nbytes, out);
    if (rc != CM_OK)
        return rc;
    const uint8_t *p = *out;
    bool good = memcmp(p, signature, 4) == 0 &&
                cm_h5_checksum(p, (size_t)nbytes - 4) == cm_load_le32(p + nbytes - 4);
    return good ? CM_OK : CM_EUNSUPPORTED;
}

static uint32_t rotate(uint32_t v, unsigned n)
{
    return v << n | v >> (32 - n);
}

uint32_t cm_h5_checksum(const void *data, size_t nbytes)
{
    const uint8_t *p = data;
    uint32_t a = 0xdeadbeef + (uint32_t)nbytes, b = a, c = a;
    for (; nbytes > 12; nbytes -= 12, p += 12) {
        a += cm_load_le32(p);
        b += cm_load_le32(p + 4);
        c += cm_load_le32(p + 8);
        a = (a - c) ^ rotate(c, 4), c += b;
        b = (b - a) ^ rotate(a, 6), a += c;
        c = (c - b) ^ rotate(b, 8), b += a;
        a = (a - c) ^ rotate(c, 16), c += b;
        b = (b - a) ^ rotate(a, 19), a += c;
        c = (c - b) ^ rotate(b, 4), b += a;
    }
    if (nbytes == 0)
        return c;
    uint8_t rest[12] = {0};
    memcpy(rest, p, nbytes);
    a += cm_load_le32(rest);
    b += cm_load_le32(rest + 4);
    c += cm_load_le32(rest + 8);
    c = (c ^ b) - rotate(b, 14);
    a = (a ^ c) - rotate(c, 11);
    b = (b ^ a) - rotate(a, 25);
    c = (c ^ b) - rotate(b, 16);
    a = (a ^ c) - rotate(c, 4);
    b = (b ^ a) - rotate(a, 14);
    return (c ^ b) - rotate(b, 24);
}

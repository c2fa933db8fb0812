#include "format/nc/h5_header.h"

#include <stdlib.h>
#include <string.h>

enum {
    FLAG_WIDTH = 0x03, /* of the first block's size */
    FLAG_ORDER = 0x04,
    FLAG_PHASE_CHANGE = 0x10,
    FLAG_TIMES = 0x20,
    FLAGS_KNOWN = 0x3f,
    MESSAGE_CONSTANT = 0x01,
    MESSAGE_NOT_SHARED = 0x04, /* and must never be */
    MOST_BLOCKS = 64,
    FIRST_MESSAGES = 32, /* initial capacity */
    MOST_MESSAGES = 1 << 14,
    MOST_BLOCK_NBYTES = 1 << 22
};

typedef struct block {
    uint64_t address, nbytes;
} block;

typedef struct walker {
    cm_h5_bytes *bytes;
    cm_h5_header *header;
    block todo[MOST_BLOCKS];
    unsigned nblocks;
} walker;

static int add_message(cm_h5_header *h, const cm_h5_message *m)
{
    cm_h5_message *message =
        cm_make_room(h->message, h->nmessages, &h->capacity, sizeof(*message), FIRST_MESSAGES);
    if (message == NULL)
        return CM_ENOMEM;
    h->message = message;
    if (h->nmessages == MOST_MESSAGES)
        return CM_EUNSUPPORTED;
    h->message[h->nmessages++] = *m;
    return CM_OK;
}

static int add_continuation(walker *w, const cm_h5_message *m)
{
    cm_h5_cursor c = {m->data, m->data + m->nbytes, false};
    block b;
    b.address = cm_h5_take_place(&c, w->bytes->offset_nbytes);
    b.nbytes = cm_h5_take_place(&c, w->bytes->length_nbytes);
    /* Signature and checksum, and at least one message. */
    const uint64_t least = 8 + (w->header->ordered ? 6 : 4);
    if (c.bad || w->nblocks == MOST_BLOCKS || b.nbytes < least || b.nbytes > MOST_BLOCK_NBYTES)
        return CM_EUNSUPPORTED;
    w->todo[w->nblocks++] = b;
    return CM_OK;
}

/* A remainder too short for a message is a gap. */
static int read_messages(walker *w, const uint8_t *p, size_t nbytes)
{
    const size_t prefix = w->header->ordered ? 6 : 4;
    int rc = CM_OK;
    while (rc == CM_OK && nbytes >= prefix) {
        cm_h5_message m = {.type = p[0], .nbytes = cm_load_le16(p + 1), .data = p + prefix};
        unsigned flags = p[3];
        if (w->header->ordered)
            m.order = cm_load_le16(p + 4);
        if (m.nbytes > nbytes - prefix)
            return CM_EUNSUPPORTED;
        p += prefix + m.nbytes;
        nbytes -= prefix + m.nbytes;
        if (flags & ~(unsigned)(MESSAGE_CONSTANT | MESSAGE_NOT_SHARED))
            return CM_EUNSUPPORTED;
        if (m.type == CM_H5_MESSAGE_NIL)
            continue;
        rc = m.type == CM_H5_MESSAGE_CONTINUATION ? add_continuation(w, &m)
                                                  : add_message(w->header, &m);
    }
    return rc;
}

static int read_first(walker *w, uint64_t address)
{
    enum {
        LONGEST_PREFIX = 6 + 16 + 4 + 8
    };
    const uint8_t *p;
    uint64_t left = address < w->bytes->source->nbytes ? w->bytes->source->nbytes - address : 0;
    int rc = cm_h5_bytes_get(w->bytes, address, left < LONGEST_PREFIX ? left : LONGEST_PREFIX, &p);
    if (rc != CM_OK)
        return rc;
    cm_h5_cursor c = {p, p + (left < LONGEST_PREFIX ? left : LONGEST_PREFIX), false};
    const uint8_t *signature = cm_h5_take(&c, 4);
    uint64_t version = cm_h5_take_number(&c, 1);
    unsigned flags = (unsigned)cm_h5_take_number(&c, 1);
    if (c.bad || memcmp(signature, "OHDR", 4) != 0 || version != 2 ||
        (flags & ~(unsigned)FLAGS_KNOWN) != 0)
        return CM_EUNSUPPORTED;
    (void)cm_h5_take(&c, (flags & FLAG_TIMES ? 16 : 0) + (flags & FLAG_PHASE_CHANGE ? 4 : 0));
    uint64_t nbytes = cm_h5_take_number(&c, 1u << (flags & FLAG_WIDTH));
    size_t prefix = (size_t)(c.at - p);
    if (c.bad || nbytes > MOST_BLOCK_NBYTES)
        return CM_EUNSUPPORTED;
    w->header->ordered = flags & FLAG_ORDER;
    rc = cm_h5_bytes_checked(w->bytes, address, prefix + nbytes + 4, "OHDR", &p);
    return rc == CM_OK ? read_messages(w, p + prefix, (size_t)nbytes) : rc;
}

int cm_h5_header_read(cm_h5_bytes *b, uint64_t address, cm_h5_header *out)
{
    walker w = {.bytes = b, .header = out};
    out->nmessages = 0;
    int rc = read_first(&w, address);
    for (unsigned i = 0; rc == CM_OK && i < w.nblocks; i++) {
        const uint8_t *p;
        rc = cm_h5_bytes_checked(b, w.todo[i].address, w.todo[i].nbytes, "OCHK", &p);
        if (rc == CM_OK)
            rc = read_messages(&w, p + 4, (size_t)w.todo[i].nbytes - 8);
    }
    return rc;
}

void cm_h5_header_release(cm_h5_header *h)
{
    free(h->message);
    *h = (cm_h5_header){0};
}

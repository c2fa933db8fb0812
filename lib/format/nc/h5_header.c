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
    MESSAGE_NOT_SHARED = 0x04,   /* and must never be */
    MOST_BLOCKS = 256,           /* real headers have a handful */
    MOST_BLOCK_NBYTES = 1 << 22, /* large attributes lie in the header, 64 KiB each */
    FIRST_MESSAGES = 32,         /* initial capacity */
    MOST_MESSAGES = 1 << 14
};

typedef struct block {
    uint64_t address, nbytes;
} block;

typedef struct walker {
    cm_h5_bytes *bytes;
    bool strict;
    unsigned version;
    bool ordered; /* version 2: messages have the order of their creation */
    block todo[MOST_BLOCKS];
    unsigned nblocks;
    cm_h5_visit_message *visit;
    void *context;
    const char *why;
} walker;

static int refuse(walker *w, const char *why)
{
    w->why = why;
    return CM_EUNSUPPORTED;
}

static size_t prefix_of(const walker *w)
{
    return w->version == 1 ? 8 : w->ordered ? 6 : 4;
}

static int add_block(walker *w, uint64_t address, uint64_t nbytes)
{
    if (w->nblocks == MOST_BLOCKS)
        return refuse(w, "it has too many blocks");
    if (nbytes > MOST_BLOCK_NBYTES)
        return refuse(w, "a block is too long");
    w->todo[w->nblocks++] = (block){address, nbytes};
    return CM_OK;
}

static int add_continuation(walker *w, const cm_h5_message *m)
{
    cm_h5_cursor c = {m->data, m->data + m->nbytes, false};
    uint64_t address = cm_h5_take_place(&c, w->bytes->offset_nbytes);
    uint64_t nbytes = cm_h5_take_place(&c, w->bytes->length_nbytes);
    if (c.bad)
        return refuse(w, "a continuation is cut off");
    if (address == CM_H5_UNDEFINED || nbytes == CM_H5_UNDEFINED)
        return refuse(w, "a continuation leads nowhere");
    /* Signature and checksum, and at least one message. */
    if (w->version == 2 && nbytes < 8 + prefix_of(w))
        return refuse(w, "a continuation is too short");
    return add_block(w, address, nbytes);
}

/* A remainder too short for a message is a gap. */
static int visit_messages(walker *w, const uint8_t *p, size_t nbytes)
{
    const size_t prefix = prefix_of(w);
    int rc = CM_OK;
    while (rc == CM_OK && nbytes >= prefix) {
        cm_h5_message m = {.type = p[0], .flags = p[3], .nbytes = cm_load_le16(p + 1)};
        if (w->version == 1)
            m = (cm_h5_message){
                .type = cm_load_le16(p), .flags = p[4], .nbytes = cm_load_le16(p + 2)};
        if (w->ordered)
            m.order = cm_load_le16(p + 4);
        m.data = p + prefix;
        if (m.nbytes > nbytes - prefix)
            return refuse(w, "a message is longer than its block");
        if (w->strict && (m.flags & ~(unsigned)(MESSAGE_CONSTANT | MESSAGE_NOT_SHARED)) != 0)
            return CM_EUNSUPPORTED;
        p += prefix + m.nbytes;
        nbytes -= prefix + m.nbytes;
        if (m.type == CM_H5_MESSAGE_CONTINUATION)
            rc = add_continuation(w, &m);
        else if (m.type != CM_H5_MESSAGE_NIL)
            rc = w->visit(w->context, &m);
    }
    return rc;
}

/* The NBYTES of a block of version 2, which begins with SIGNATURE and ends with a checksum. */
static int get_block(walker *w, uint64_t address, uint64_t nbytes, const char *signature,
                     const uint8_t **out)
{
    return w->strict ? cm_h5_bytes_checked(w->bytes, address, nbytes, signature, out)
                     : cm_h5_bytes_get(w->bytes, address, nbytes, out);
}

static int visit_first(walker *w, uint64_t address)
{
    enum {
        LONGEST_PREFIX = 6 + 16 + 4 + 8
    };
    const uint8_t *p;
    uint64_t left = cm_h5_bytes_left(w->bytes, address);
    if (left > LONGEST_PREFIX)
        left = LONGEST_PREFIX;
    int rc = cm_h5_bytes_get(w->bytes, address, left, &p);
    if (rc != CM_OK)
        return rc;
    cm_h5_cursor c = {p, p + left, false};
    const uint8_t *signature = cm_h5_take(&c, 4);
    uint64_t version = cm_h5_take_number(&c, 1);
    unsigned flags = (unsigned)cm_h5_take_number(&c, 1);
    if (!w->strict && left >= 12 && p[0] == 1) {
        w->version = 1;
        return add_block(w, address + 16, cm_load_le32(p + 8));
    }
    if (c.bad || memcmp(signature, "OHDR", 4) != 0)
        return refuse(w, "it has no signature");
    if (version != 2 || (w->strict && (flags & ~(unsigned)FLAGS_KNOWN) != 0))
        return refuse(w, "its version is not known");
    (void)cm_h5_take(&c, (flags & FLAG_TIMES ? 16 : 0) + (flags & FLAG_PHASE_CHANGE ? 4 : 0));
    uint64_t nbytes = cm_h5_take_number(&c, 1u << (flags & FLAG_WIDTH));
    size_t prefix = (size_t)(c.at - p);
    if (c.bad)
        return refuse(w, "it is cut off");
    if (nbytes > MOST_BLOCK_NBYTES)
        return refuse(w, "a block is too long");
    w->version = 2;
    w->ordered = flags & FLAG_ORDER;
    rc = get_block(w, address, prefix + nbytes + (w->strict ? 4 : 0), "OHDR", &p);
    return rc == CM_OK ? visit_messages(w, p + prefix, (size_t)nbytes) : rc;
}

static int walk(walker *w, uint64_t address)
{
    int rc = visit_first(w, address);
    for (unsigned i = 0; rc == CM_OK && i < w->nblocks; i++) {
        const block *b = &w->todo[i];
        const uint8_t *p;
        rc = w->version == 1 ? cm_h5_bytes_get(w->bytes, b->address, b->nbytes, &p)
                             : get_block(w, b->address, b->nbytes, "OCHK", &p);
        if (rc == CM_OK)
            rc = w->version == 1 ? visit_messages(w, p, (size_t)b->nbytes)
                                 : visit_messages(w, p + 4, (size_t)b->nbytes - 8);
    }
    return rc;
}

int cm_h5_header_walk(cm_h5_bytes *b, uint64_t address, cm_h5_visit_message *visit, void *context,
                      const char **why)
{
    walker w = {.bytes = b, .visit = visit, .context = context, .why = "it leaves the file"};
    int rc = walk(&w, address);
    *why = w.why;
    return rc;
}

static int add_message(void *context, const cm_h5_message *m)
{
    cm_h5_header *h = context;
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

int cm_h5_header_read(cm_h5_bytes *b, uint64_t address, cm_h5_header *out)
{
    walker w = {.bytes = b, .strict = true, .visit = add_message, .context = out};
    out->nmessages = 0;
    int rc = walk(&w, address);
    out->ordered = w.ordered;
    return rc;
}

void cm_h5_header_release(cm_h5_header *h)
{
    free(h->message);
    *h = (cm_h5_header){0};
}

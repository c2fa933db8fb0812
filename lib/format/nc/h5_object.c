#include "format/nc/h5_object.h"

#include <inttypes.h>
#include <string.h>

enum {
    MESSAGE_LAYOUT = 0x08,
    MESSAGE_CONTINUATION = 0x10,
    FLAG_WIDTH = 3, /* of a version 2 header: width of the first block's size */
    FLAG_CREATION_ORDER = 4,
    FLAG_PHASE_CHANGE = 16,
    FLAG_TIMES = 32,
    MAX_BLOCKS = 256,          /* per header; real ones have a handful */
    MAX_BLOCK_NBYTES = 1 << 22 /* large attributes live in the header, 64 KiB each */
};

typedef struct block {
    uint64_t at; /* from the start of the file */
    uint64_t nbytes;
} block;

typedef struct walker {
    const cm_source *source;
    const cm_h5_super *super;
    unsigned version;    /* of the object header, 1 or 2 */
    bool creation_order; /* version 2: messages have two more bytes */
    block todo[MAX_BLOCKS];
    unsigned nblocks;
    bool found;
    cm_h5_layout_message *out;
    cm_error *err;
} walker;

static int corrupt(cm_error *err, const char *what)
{
    return cm_fail(err, CM_EFORMAT, "the object header is corrupt: %s", what);
}

static int add_block(walker *w, uint64_t at, uint64_t nbytes)
{
    if (w->nblocks == MAX_BLOCKS)
        return corrupt(w->err, "it has too many blocks");
    if (nbytes > MAX_BLOCK_NBYTES)
        return corrupt(w->err, "a block is too long");
    w->todo[w->nblocks++] = (block){at, nbytes};
    return CM_OK;
}

static int read_layout_v4(walker *w, const uint8_t *p, size_t n)
{
    static const cm_h5_index kind[] = {
        CM_H5_INDEX_NONE,        CM_H5_INDEX_SINGLE,           CM_H5_INDEX_IMPLICIT,
        CM_H5_INDEX_FIXED_ARRAY, CM_H5_INDEX_EXTENSIBLE_ARRAY, CM_H5_INDEX_BTREE2};
    static const uint8_t parameter_nbytes[] = {0, 0, 0, 1, 5, 6};
    cm_h5_layout_message *m = w->out;
    if (n < 5)
        return corrupt(w->err, "the layout message is cut off");
    unsigned flags = p[2], rank = p[3], width = p[4];
    size_t at = 5 + (size_t)rank * width;
    if (rank < 2 || rank > 33 || width == 0 || width > 8 || n < at + 1)
        return corrupt(w->err, "the layout message has a wrong rank");
    unsigned type = p[at++];
    if (type == 0 || type >= sizeof kind / sizeof *kind)
        return corrupt(w->err, "the chunk index is of an unknown kind");
    m->index = kind[type];
    m->rank = rank - 1;
    size_t parameters = parameter_nbytes[type];
    m->single_filtered = type == 1 && (flags & 2);
    if (m->single_filtered)
        parameters = w->super->length_nbytes + 4;
    if (n < at + parameters + w->super->offset_nbytes)
        return corrupt(w->err, "the layout message is cut off");
    if (m->single_filtered) {
        m->single_nbytes = cm_h5_load(p + at, w->super->length_nbytes);
        m->single_mask = cm_load_le32(p + at + w->super->length_nbytes);
    }
    m->address = cm_h5_load(p + at + parameters, w->super->offset_nbytes);
    return CM_OK;
}

/* In versions 1 to 3 chunks are always in a version 1 B-tree. */
static int read_layout(walker *w, const uint8_t *p, size_t n)
{
    enum {
        CHUNKED = 2
    };
    if (n < 3)
        return corrupt(w->err, "the layout message is cut off");
    unsigned version = p[0];
    unsigned class = version < 3 ? p[2] : p[1];
    w->found = true;
    if (class != CHUNKED) {
        w->out->index = CM_H5_INDEX_NONE;
        w->out->address = CM_H5_UNDEFINED;
        return CM_OK;
    }
    if (version == 4)
        return read_layout_v4(w, p, n);
    if (version < 1 || version > 3)
        return cm_fail(w->err, CM_EUNSUPPORTED, "data layout message version %u is not known",
                       version);
    unsigned rank = version < 3 ? p[1] : p[2];
    size_t at = version < 3 ? 8 : 3;
    if (n < at + w->super->offset_nbytes)
        return corrupt(w->err, "the layout message is cut off");
    if (rank < 2 || rank > 33)
        return corrupt(w->err, "the layout message has a wrong rank");
    w->out->index = CM_H5_INDEX_BTREE1;
    w->out->rank = rank - 1;
    w->out->address = cm_h5_load(p + at, w->super->offset_nbytes);
    return CM_OK;
}

static int read_continuation(walker *w, const uint8_t *p, size_t n)
{
    unsigned o = w->super->offset_nbytes, l = w->super->length_nbytes;
    if (n < o + l)
        return corrupt(w->err, "a continuation is cut off");
    uint64_t at = cm_h5_load(p, o), nbytes = cm_h5_load(p + o, l);
    if (at == CM_H5_UNDEFINED || at > INT64_MAX || nbytes == CM_H5_UNDEFINED)
        return corrupt(w->err, "a continuation leads nowhere");
    at += w->super->base;
    if (w->version == 1)
        return add_block(w, at, nbytes);
    if (nbytes < 8) /* "OCHK" in front, a checksum behind */
        return corrupt(w->err, "a continuation is too short");
    return add_block(w, at + 4, nbytes - 8);
}

static int read_message(walker *w, unsigned type, unsigned flags, const uint8_t *p, size_t n)
{
    enum {
        SHARED = 2
    };
    if (type == MESSAGE_CONTINUATION)
        return read_continuation(w, p, n);
    if (type != MESSAGE_LAYOUT || w->found)
        return CM_OK;
    if (flags & SHARED)
        return corrupt(w->err, "the layout message is a shared one");
    return read_layout(w, p, n);
}

/* Reads the messages of one block; a gap shorter than a message's prefix may end it. */
static int read_block(walker *w, const block *b, cm_buf *buf)
{
    int rc = cm_buf_resize(buf, (size_t)b->nbytes, w->err);
    if (!rc)
        rc = cm_source_read(w->source, b->at, buf->data, buf->nbytes, w->err);
    size_t prefix = w->version == 1 ? 8 : w->creation_order ? 6 : 4;
    size_t at = 0;
    while (!rc && buf->nbytes - at >= prefix) {
        const uint8_t *p = buf->data + at;
        unsigned type = w->version == 1 ? cm_load_le16(p) : p[0];
        size_t nbytes = cm_load_le16(w->version == 1 ? p + 2 : p + 1);
        unsigned flags = w->version == 1 ? p[4] : p[3];
        at += prefix;
        if (nbytes > buf->nbytes - at)
            return corrupt(w->err, "a message is longer than its block");
        rc = read_message(w, type, flags, p + prefix, nbytes);
        at += nbytes;
    }
    return rc;
}

/* Reads the prefix of the header, with its version and its first block. */
static int read_prefix(walker *w, uint64_t at)
{
    uint8_t b[16];
    int rc = cm_source_read(w->source, at, b, sizeof b, w->err);
    if (rc)
        return rc;
    if (memcmp(b, "OHDR", 4) != 0) {
        if (b[0] != 1)
            return corrupt(w->err, "it has no signature");
        w->version = 1;
        return add_block(w, at + 16, cm_load_le32(b + 8));
    }
    if (b[4] != 2)
        return corrupt(w->err, "its version is not known");
    unsigned flags = b[5];
    w->version = 2;
    w->creation_order = flags & FLAG_CREATION_ORDER;
    at += 6;
    at += flags & FLAG_TIMES ? 16 : 0;
    at += flags & FLAG_PHASE_CHANGE ? 4 : 0;
    unsigned width = 1u << (flags & FLAG_WIDTH);
    uint8_t size[8];
    rc = cm_source_read(w->source, at, size, width, w->err);
    if (rc)
        return rc;
    return add_block(w, at + width, cm_h5_load(size, width));
}

int cm_h5_layout_read(const cm_source *source, const cm_h5_super *super, uint64_t header,
                      cm_h5_layout_message *out, cm_error *err)
{
    *out = (cm_h5_layout_message){0};
    walker w = {.source = source, .super = super, .out = out, .err = err};
    if (header > INT64_MAX - super->base)
        return corrupt(err, "its address is outside the file");
    int rc = read_prefix(&w, header + super->base);
    cm_buf buf;
    cm_buf_init(&buf, MAX_BLOCK_NBYTES);
    for (unsigned i = 0; !rc && !w.found && i < w.nblocks; i++)
        rc = read_block(&w, &w.todo[i], &buf);
    cm_buf_release(&buf);
    if (!rc && !w.found)
        rc = corrupt(err, "it has no data layout");
    return rc;
}

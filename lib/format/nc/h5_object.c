#include "format/nc/h5_object.h"

#include "format/nc/h5_header.h"

typedef struct reading {
    const cm_h5_bytes *bytes;
    cm_h5_layout_message *out;
    bool found;
    cm_error *err;
} reading;

static int corrupt(cm_error *err, const char *what)
{
    return cm_fail(err, CM_EFORMAT, "the object header is corrupt: %s", what);
}

/* The rank of chunks as a message has it, with the dimension of the element's bytes. */
static bool set_rank(cm_h5_layout_message *out, uint64_t rank)
{
    out->rank = (unsigned)rank - 1;
    return rank >= 2 && rank <= 33;
}

static int read_version_4(const reading *r, cm_h5_cursor *c)
{
    static const cm_h5_index kind[] = {
        CM_H5_INDEX_NONE,        CM_H5_INDEX_SINGLE,           CM_H5_INDEX_IMPLICIT,
        CM_H5_INDEX_FIXED_ARRAY, CM_H5_INDEX_EXTENSIBLE_ARRAY, CM_H5_INDEX_BTREE2};
    static const uint8_t parameter_nbytes[] = {0, 0, 0, 1, 5, 6};
    enum {
        FILTERED = 2
    };
    cm_h5_layout_message *m = r->out;
    uint64_t flags = cm_h5_take_number(c, 1), rank = cm_h5_take_number(c, 1);
    uint64_t width = cm_h5_take_number(c, 1);
    if (c->bad)
        return CM_OK;
    if (!set_rank(m, rank) || width == 0 || width > 8)
        return corrupt(r->err, "the layout message has a wrong rank");
    (void)cm_h5_take(c, rank * width);
    uint64_t type = cm_h5_take_number(c, 1);
    if (!c->bad && (type == 0 || type >= sizeof kind / sizeof *kind))
        return corrupt(r->err, "the chunk index is of an unknown kind");
    if (c->bad)
        return CM_OK;
    m->index = kind[type];
    m->single_filtered = m->index == CM_H5_INDEX_SINGLE && (flags & FILTERED);
    if (m->single_filtered) {
        m->single_nbytes = cm_h5_take_place(c, r->bytes->length_nbytes);
        m->single_mask = (uint32_t)cm_h5_take_number(c, 4);
    }
    (void)cm_h5_take(c, parameter_nbytes[type]);
    m->address = cm_h5_take_place(c, r->bytes->offset_nbytes);
    return CM_OK;
}

/* In versions 1 to 3 chunks are always in a version 1 B-tree. */
static int read_older(const reading *r, unsigned version, uint64_t rank, cm_h5_cursor *c)
{
    if (version < 3)
        (void)cm_h5_take(c, 5);
    else
        rank = cm_h5_take_number(c, 1);
    r->out->index = CM_H5_INDEX_BTREE1;
    r->out->address = cm_h5_take_place(c, r->bytes->offset_nbytes);
    return c->bad || set_rank(r->out, rank)
               ? CM_OK
               : corrupt(r->err, "the layout message has a wrong rank");
}

static int read_layout(const reading *r, const cm_h5_message *m)
{
    enum {
        CHUNKED = 2
    };
    cm_h5_cursor c = {m->data, m->data + m->nbytes, false};
    unsigned version = (unsigned)cm_h5_take_number(&c, 1);
    uint64_t rank = version < 3 ? cm_h5_take_number(&c, 1) : 0;
    uint64_t class = cm_h5_take_number(&c, 1);
    int rc = CM_OK;
    *r->out = (cm_h5_layout_message){.index = CM_H5_INDEX_NONE, .address = CM_H5_UNDEFINED};
    if (c.bad || class != CHUNKED)
        rc = CM_OK;
    else if (version == 4)
        rc = read_version_4(r, &c);
    else if (version >= 1 && version <= 3)
        rc = read_older(r, version, rank, &c);
    else
        rc = cm_fail(r->err, CM_EUNSUPPORTED, "data layout message version %u is not known",
                     version);
    return rc == CM_OK && c.bad ? corrupt(r->err, "the layout message is cut off") : rc;
}

static int visit(void *context, const cm_h5_message *m)
{
    enum {
        SHARED = 2
    };
    reading *r = context;
    if (m->type != CM_H5_MESSAGE_LAYOUT)
        return CM_OK;
    r->found = true;
    int rc = m->flags & SHARED ? corrupt(r->err, "the layout message is a shared one")
                               : read_layout(r, m);
    return rc == CM_OK ? CM_ECANCELED : rc; /* there is no second one */
}

int cm_h5_layout_read(const cm_source *source, const cm_h5_super *super, uint64_t header,
                      cm_h5_layout_message *out, cm_error *err)
{
    cm_error own;
    cm_h5_bytes bytes = cm_h5_bytes_of(source, super);
    reading r = {.bytes = &bytes, .out = out, .err = err != NULL ? err : &own};
    const char *why;
    bytes.err = r.err;
    *out = (cm_h5_layout_message){0};
    int rc = cm_h5_header_walk(&bytes, header, visit, &r, &why);
    if (rc == CM_OK)
        rc = corrupt(err, "it has no data layout");
    else if (rc == CM_ENOMEM)
        rc = cm_fail(err, CM_ENOMEM, "no memory for an object header");
    else if (rc == CM_ECANCELED && r.found)
        rc = CM_OK;
    else if (rc == CM_EUNSUPPORTED && !r.found)
        rc = corrupt(err, why);
    cm_h5_bytes_release(&bytes);
    return rc;
}

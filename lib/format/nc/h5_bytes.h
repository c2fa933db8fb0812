/*
 * Reads the structures of an HDF5 file, for the readers of this folder that call no library.
 *
 * Those readers know less than the library.  Anything unknown or doubtful, damage as well as rare
 * features, is CM_EUNSUPPORTED without a message: the library is asked then, and reports the
 * reason.  CM_ENOMEM is the only other failure.
 */
#ifndef CM_FORMAT_NC_H5_BYTES_H
#define CM_FORMAT_NC_H5_BYTES_H

#include "format/nc/h5_super.h"

typedef struct cm_h5_window cm_h5_window;

typedef struct cm_h5_bytes {
    const cm_source *source;
    unsigned offset_nbytes; /* of an address */
    unsigned length_nbytes; /* of a length */
    cm_h5_window *window;   /* bytes read so far, unless the source is in memory */
    size_t nwindows, capacity;
    uint64_t held;
    uint64_t base; /* of addresses in the source */
    cm_error
        *err; /* set when a read fails, whose status is returned then; NULL: left to a library */
} cm_h5_bytes;

/* SOURCE is borrowed. */
cm_h5_bytes cm_h5_bytes_of(const cm_source *source, const cm_h5_super *super);
/* How many bytes the file has from ADDRESS on. */
uint64_t cm_h5_bytes_left(const cm_h5_bytes *b, uint64_t address);
/* NBYTES at ADDRESS, valid until the release. */
int cm_h5_bytes_get(cm_h5_bytes *b, uint64_t address, uint64_t nbytes, const uint8_t **out);
/*
 * cm_h5_bytes_get of a structure that begins with the 4 bytes SIGNATURE and ends with its checksum.
 */
int cm_h5_bytes_checked(cm_h5_bytes *b, uint64_t address, uint64_t nbytes, const char *signature,
                        const uint8_t **out);
void cm_h5_bytes_release(cm_h5_bytes *b);

/*
 * HDF5's checksum of metadata: "lookup3" of Bob Jenkins, hashlittle() with a seed of 0
 * (http://burtleburtle.net/bob/c/lookup3.c, public domain).
 */
uint32_t cm_h5_checksum(const void *data, size_t nbytes);

/* Takes little-endian numbers from a run of bytes.  Past its end all are 0, and BAD is set. */
typedef struct cm_h5_cursor {
    const uint8_t *at, *end;
    bool bad;
} cm_h5_cursor;

static inline const uint8_t *cm_h5_take(cm_h5_cursor *c, uint64_t nbytes)
{
    if (c->bad || (uint64_t)(c->end - c->at) < nbytes) {
        c->bad = true;
        return NULL;
    }
    const uint8_t *p = c->at;
    c->at += nbytes;
    return p;
}

/* A number of up to 8 bytes. */
static inline uint64_t cm_h5_take_number(cm_h5_cursor *c, unsigned nbytes)
{
    const uint8_t *p = cm_h5_take(c, nbytes);
    uint64_t v = 0;
    for (unsigned i = 0; p != NULL && i < nbytes; i++)
        v |= (uint64_t)p[i] << (8 * i);
    return v;
}

/* An address or a length: CM_H5_UNDEFINED where all bits are set. */
static inline uint64_t cm_h5_take_place(cm_h5_cursor *c, unsigned nbytes)
{
    const uint8_t *p = cm_h5_take(c, nbytes);
    return p == NULL ? 0 : cm_h5_load(p, nbytes);
}

#endif

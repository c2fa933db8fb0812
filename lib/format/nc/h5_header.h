/*
 * The messages of an object header.
 *
 * Source: "HDF5 File Format Specification" version 3.0, IV.A.1.
 */
#ifndef CM_FORMAT_NC_H5_HEADER_H
#define CM_FORMAT_NC_H5_HEADER_H

#include "format/nc/h5_bytes.h"

typedef enum cm_h5_message_type {
    CM_H5_MESSAGE_NIL = 0x00,
    CM_H5_MESSAGE_DATASPACE = 0x01,
    CM_H5_MESSAGE_LINK_INFO = 0x02,
    CM_H5_MESSAGE_DATATYPE = 0x03,
    CM_H5_MESSAGE_OLD_FILL = 0x04,
    CM_H5_MESSAGE_FILL = 0x05,
    CM_H5_MESSAGE_LINK = 0x06,
    CM_H5_MESSAGE_LAYOUT = 0x08,
    CM_H5_MESSAGE_GROUP_INFO = 0x0a,
    CM_H5_MESSAGE_FILTERS = 0x0b,
    CM_H5_MESSAGE_ATTRIBUTE = 0x0c,
    CM_H5_MESSAGE_CONTINUATION = 0x10,
    CM_H5_MESSAGE_ATTRIBUTE_INFO = 0x15
} cm_h5_message_type;

typedef struct cm_h5_message {
    unsigned type, flags;
    /* Of creation, if the header tracks it; a link's order is only in its own message. */
    uint64_t order;
    const uint8_t *data;
    size_t nbytes;
} cm_h5_message;

typedef struct cm_h5_header {
    bool ordered;           /* attributes know the order of their creation */
    cm_h5_message *message; /* without NIL and continuations, in the order of the file */
    size_t nmessages, capacity;
} cm_h5_header;

/* Called for each message but NIL and continuations; anything but CM_OK ends the walk. */
typedef int cm_h5_visit_message(void *context, const cm_h5_message *m);
/*
 * Walks over the messages of any version, which point into B, and trusts the checksums to a
 * library.  Returns what VISIT did; CM_EUNSUPPORTED with WHY for damage ("it is cut off").
 */
int cm_h5_header_walk(cm_h5_bytes *b, uint64_t address, cm_h5_visit_message *visit, void *context,
                      const char **why);

/*
 * Reads a header of version 2, whose blocks have checksums, and with nothing unusual in it.  The
 * messages point into B.  A header that was used before keeps its list for reuse.
 */
int cm_h5_header_read(cm_h5_bytes *b, uint64_t address, cm_h5_header *out);
void cm_h5_header_release(cm_h5_header *h);

#endif

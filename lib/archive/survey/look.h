/*
 * The content of one file as a record, made by a child process of a survey.
 *
 * A record is a run of frames.  Data that files share are in frames of their own, named
 * by digest and sent once by each child: the description of a variable, the list of them, the
 * attributes of groups, and values.  16 bytes in the file's own frame stand for each of these.
 */
#ifndef CM_ARCHIVE_SURVEY_LOOK_H
#define CM_ARCHIVE_SURVEY_LOOK_H

#include <time.h>

#include <chunkmill/net.h>

#include "archive/survey/known.h"
#include "archive/survey/wire.h"
#include "codec/codec.h"
#include "format/dataset.h"
#include "store/copies.h"

enum {
    CM_FRAME_SHARED = 1, /* payload: 16 bytes of digest, then what it is the digest of */
    CM_FRAME_FILE = 2,   /* payload: number of the file, then its record */
    /* In a cache only: what it is, the absolute path of the next file, and the number of frames. */
    CM_FRAME_HEAD = 3,
    CM_FRAME_PATH = 4,
    CM_FRAME_END = 5,
    /* of values that a survey reads of one variable; a coordinate may have more */
    CM_LOOK_VALUES = 1 << 20,
    CM_LOOK_COORDINATE = 64 << 20,
    /* a variable that may be a static field: larger ones are compared while data move */
    CM_LOOK_STATIC = 16 << 10
};

typedef struct cm_frame {
    uint32_t kind;
    uint32_t check; /* of the payload */
    uint64_t nbytes;
} cm_frame;

typedef struct cm_looker {
    cm_known sent;
    cm_buf out;        /* frames, to be taken by the caller */
    cm_buf scratch;    /* of one frame */
    cm_net *net;       /* for a store behind a network; or NULL */
    cm_codec_ctx *ctx; /* made when first needed */
} cm_looker;

/* The file that is looked at. */
typedef struct cm_look_file {
    const char *path;    /* its name */
    const cm_copy *copy; /* an object behind a network; NULL: a file or a store of that path */
    const char *lies;    /* where COPY is */
} cm_look_file;

/*
 * Appends the frames of FILE, which is file NUMBER.  A file that cannot be read has a record too,
 * with the reason; only CM_ENOMEM is returned.
 */
int cm_look(cm_looker *l, const cm_look_file *file, uint64_t number, cm_error *err);
/* cm_look for an open dataset, whose file is unknown. */
int cm_look_at(cm_looker *l, cm_dataset *ds, uint64_t number, cm_error *err);
/* Appends the record of a file that cost its process: STATUS and TEXT say why. */
int cm_look_failed(cm_looker *l, const cm_look_file *file, uint64_t number, const cm_error *why,
                   cm_error *err);
void cm_looker_release(cm_looker *l);

static inline uint64_t cm_look_ns(const struct timespec *t)
{
    return (uint64_t)t->tv_sec * 1000000000u + (uint64_t)t->tv_nsec;
}

/* Whether the payload of a CM_FRAME_FILE is of a file that could be read. */
bool cm_look_is_good(const uint8_t *payload, uint64_t nbytes);

/* The checksum of a frame's payload. */
uint32_t cm_frame_check(const void *payload, size_t nbytes);

#endif

/* The holder of a lock: the process that the lock names, and whether it still runs. */
#ifndef CM_CONVERT_BESIDE_HOLDER_H
#define CM_CONVERT_BESIDE_HOLDER_H

#include "base/mem.h"

/* The holder of a lock. */
typedef struct cm_holder {
    char host[256], boot[64], machine[64], space[64], time[32];
    int64_t process;
    uint64_t start; /* of the process, in clock ticks since the boot */
    bool of_part, beats;
    int64_t beat;       /* the file's time, seconds */
    uint64_t beat_mark; /* another number after each beat */
} cm_holder;

typedef enum cm_holder_state {
    CM_HELD,             /* the process runs */
    CM_HOLDER_ENDED,     /* it does not */
    CM_HOLDER_ELSEWHERE, /* it cannot be seen from here */
    CM_HOLDER_SILENT,    /* nor seen; it looks silent, and has not been watched yet (silence.h) */
    CM_HOLDER_UNCLEAR    /* the file does not say */
} cm_holder_state;

/* By the processes of this host: no CM_HOLDER_SILENT. */
cm_holder_state cm_holder_judge(const cm_holder *h);

/* Appends the text of a lock that this process holds; BEATS: it is renewed while it is held. */
int cm_holder_write(bool of_part, bool beats, cm_buf *text, cm_error *err);

/* CM_HOLDER_UNCLEAR, or CM_HELD with what TEXT says in H, but for its time. */
cm_holder_state cm_holder_read(const char *text, size_t nbytes, cm_holder *h);

#endif

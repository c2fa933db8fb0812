/*
 * The frames of a survey on disk, and what is found in them by digest.
 */
#ifndef CM_ARCHIVE_SURVEY_RECORDS_H
#define CM_ARCHIVE_SURVEY_RECORDS_H

#include "archive/survey/look.h"
#include "archive/survey/survey.h"

typedef struct cm_shared {
    cm_digest digest;
    uint64_t offset; /* of the payload behind its digest */
    uint64_t nbytes;
    void *parsed; /* cm_described or cm_skeleton, once it was asked for */
    int kind;     /* of PARSED: 0: none, 1, 2, 3 */
    bool used;    /* for those who write a cache */
} cm_shared;

typedef struct cm_records {
    int fd;
    cm_paged *paged;       /* borrowed: for what is parsed */
    cm_described **loaded; /* whose attributes are parsed */
    size_t nloaded, full;  /* FULL: how many before those not kept go */
    cm_status failed;      /* attributes were asked for in vain */
    uint64_t nbytes;       /* appended */
    cm_buf unwritten;      /* the last of them: frames are small, and written together */
    const uint8_t *map;
    uint64_t mapped;
    uint64_t touched; /* bytes of MAP that were read since it was let go */
    /* By digest: those of one half of it that lie in SLOT, where 0 is free. */
    struct {
        uint32_t half, number; /* from 1 */
    } * slot;
    size_t nslots;
    cm_shared **shared; /* blocks of them, in paged memory */
    size_t nshared, nblocks;
} cm_records;

/* In a file without a name in FOLDER, or where that cannot be made the system's. */
int cm_records_create(const char *folder, cm_paged *paged, cm_records **out, cm_error *err);
void cm_records_free(cm_records *r);

/*
 * Appends a frame; *OFFSET is where its payload lies.  A shared one that is there is passed
 * over.
 */
int cm_records_append(cm_records *r, const cm_frame *frame, const uint8_t *payload,
                      uint64_t *offset, cm_error *err);
/*
 * Makes what was written readable.  What was parsed before is forgotten, as it points to where
 * the records were.
 */
int cm_records_map(cm_records *r, cm_error *err);
/*
 * Counts NBYTES more as read of the mapping.  Every so often the mapping's pages are dropped from
 * this process's memory; they stay readable.
 */
void cm_records_touch(cm_records *r, uint64_t nbytes);
/* Lets all pages go. */
void cm_records_let_go(cm_records *r);
/* Frees attributes that are parsed and not kept, where there are many. */
void cm_records_rest(cm_records *r);
/* Frees what was parsed. */
void cm_records_forget(cm_records *r);
/* Nothing was appended. */
void cm_records_clear(cm_records *r);
cm_shared *cm_records_find(const cm_records *r, cm_digest digest);
/* Number I, of r->nshared, in the order in which they came. */
cm_shared *cm_records_shared(const cm_records *r, size_t i);

/* Parsed once, owned by R. */
int cm_records_form(cm_records *r, cm_digest digest, const cm_form **out, cm_error *err);
int cm_records_skeleton(cm_records *r, cm_digest digest, size_t *nskeletons, cm_skeleton **out,
                        cm_error *err);

#endif

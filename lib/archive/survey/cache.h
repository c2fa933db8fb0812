/*
 * Records of files, kept from one survey to the next (`cache` of the options).
 *
 * A file of frames (look.h): what it is, what files have in common, then for each file its
 * absolute path and its record, and how many frames there are.  Each has a checksum, and what
 * is named by a digest is held against it.  A record counts where the file has the inode, size
 * and times that it had; those of other files stay as long as these are as they were.  What is
 * damaged in any place is not believed at all.
 *
 * Read frame by frame into the records of the survey, so that memory is bounded by the
 * longest; written anew beside itself, and renamed.
 */
#ifndef CM_ARCHIVE_SURVEY_CACHE_H
#define CM_ARCHIVE_SURVEY_CACHE_H

#include "archive/survey/survey.h"
#include "base/outfile.h"

enum {
    /* Of the records in it.  What another version of the program made is not believed either. */
    CM_SURVEY_CACHE_FORMAT = 3
};

/* A record of a file that this survey is not about. */
typedef struct cm_cached {
    cm_spot spot;
    uint64_t path; /* offset of its text */
} cm_cached;

typedef struct cm_survey_cache {
    cm_outfile file;
    bool is_old; /* the file must be written again */
    cm_cached *other;
    size_t nothers;
} cm_survey_cache;

/*
 * CM_EEXIST where PATH is a file that is none of ours, CM_EINVAL where it lies in MADE.  Writes
 * nothing.
 */
int cm_survey_cache_open(cm_survey_cache *c, const char *path, const char *made, cm_error *err);
/*
 * Gives S, whose files were seen but not looked at, the records that hold: their SPOT.  A cache
 * that cannot be believed is no error: s->cache_refused says why.
 */
int cm_survey_cache_load(cm_survey_cache *c, cm_survey *s, cm_spot *spot, cm_error *err);
/* Writes the records that S has, which is mapped, unless just these are there. */
int cm_survey_cache_save(cm_survey_cache *c, cm_survey *s, const cm_spot *spot, cm_error *err);
void cm_survey_cache_release(cm_survey_cache *c);

#endif

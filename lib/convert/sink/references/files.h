/* The names of files in references: what readers will open. */
#ifndef CM_CONVERT_SINK_REFERENCES_FILES_H
#define CM_CONVERT_SINK_REFERENCES_FILES_H

#include "convert/job.h"

typedef struct cm_refer_files {
    const cm_job *job;
    char *folder; /* of all files, with its '/': what the base URL stands for; NULL: no URL */
    bool escapes; /* keys of a bucket, too */
} cm_refer_files;

/* Whether the only input came over a network: then the open file is a temporary copy. */
bool cm_refer_was_fetched(const cm_job *job);
/* Of the N inputs PATH of JOB, which is borrowed. */
int cm_refer_files_find(cm_refer_files *f, const cm_job *job, const char *const *path, size_t n,
                        cm_error *err);
/* The folder of all N PATHs, absolute and without links, with its '/'; to be freed. */
int cm_refer_folder(const char *const *path, size_t n, char **out, cm_error *err);
/* The name of the file at PATH, which is absolute where there is no base URL; to be freed. */
int cm_refer_files_name(const cm_refer_files *f, const char *path, char **out, cm_error *err);
/* Appends PATH as it stands in a URL. */
int cm_refer_escape(cm_buf *out, const char *path, cm_error *err);
void cm_refer_files_release(cm_refer_files *f); /* zeroed memory accepted */

/*
 * Chunks that are not stored have no reference, and readers give the fill value for them: makes
 * that what the file's readers see there, or fails.
 */
int cm_job_refer_fill(cm_job *job, cm_error *err);

#endif

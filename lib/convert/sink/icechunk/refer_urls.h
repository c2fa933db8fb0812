/* The URLs of a job's files, as references have them. */
#ifndef CM_CONVERT_SINK_ICECHUNK_REFER_URLS_H
#define CM_CONVERT_SINK_ICECHUNK_REFER_URLS_H

#include "convert/sink/references/files.h"

/* The URLs of all files of a job, by their paths. */
typedef struct cm_refer_urls {
    struct cm_refer_url {
        const char *path; /* borrowed: equal paths are the same text */
        char *url;
        uint32_t modified_s;
    } * item; /* sorted by the address of PATH */
    size_t n, capacity;
    cm_refer_files files;
} cm_refer_urls;

/* CM_EINVAL: options that do not go with references in a repository. */
int cm_refer_urls_check(const cm_transform_options *o, cm_error *err);
/* U is zeroed, and to be released in any case. */
int cm_refer_urls_list(cm_refer_urls *u, const cm_job *job, cm_error *err);
/* The number of PATH. */
int cm_refer_urls_find(const cm_refer_urls *u, const char *path, uint32_t *out, cm_error *err);
/*
 * The folder of all of them, with its '/'; to be freed, also after an error.  CM_EINVAL: they have
 * none in common.  There is one URL at least.
 */
int cm_refer_urls_prefix(const cm_refer_urls *u, char **out, cm_error *err);
void cm_refer_urls_release(cm_refer_urls *u);

#endif

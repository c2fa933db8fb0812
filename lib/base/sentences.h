/* Lists of sentences in reports: warnings, notes, differences. */
#ifndef CM_BASE_SENTENCES_H
#define CM_BASE_SENTENCES_H

#include <stdarg.h>
#include <stddef.h>

#include <chunkmill/error.h>

/* Appends one, printed; *list and *n grow. */
int cm_sentences_add(char ***list, size_t *n, cm_error *err, const char *format, va_list args)
    __attribute__((format(printf, 4, 0)));
void cm_sentences_free(char **list, size_t n);

/* Defines FUNCTION(JOB *, cm_error *, format, ...), which appends to job->report->LIST. */
#define CM_DEFINE_SENTENCE(function, job_type, list, count)                                        \
    int function(job_type *job, cm_error *err, const char *format, ...)                            \
    {                                                                                              \
        va_list args;                                                                              \
        va_start(args, format);                                                                    \
        int rc = cm_sentences_add(&job->report->list, &job->report->count, err, format, args);     \
        va_end(args);                                                                              \
        return rc;                                                                                 \
    }

#endif

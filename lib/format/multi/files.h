/*
 * The files of a joined dataset: opened when they are read, closed when others need the room.  Any
 * thread.
 */
#ifndef CM_FORMAT_MULTI_FILES_H
#define CM_FORMAT_MULTI_FILES_H

#include "format/multi/multi.h"
#include "format/nc/source.h"

typedef struct cm_multi_files cm_multi_files;

/* FILE is borrowed.  OPTIONS apply to every file opened by a library; copied. */
int cm_multi_files_create(const cm_multi_file *file, size_t n, const cm_dataset_options *options,
                          cm_multi_files **out, cm_error *err);
void cm_multi_files_free(cm_multi_files *files); /* NULL accepted */
/* How many files stay open for reading at addresses. */
size_t cm_multi_files_most(const cm_multi_files *files);

/*
 * Opens file I for reading at addresses, until it is given back.  CM_EFORMAT with its name if it
 * changed since the survey.  A thread has one at a time.
 */
int cm_multi_files_take(cm_multi_files *files, uint32_t i, cm_source *out, cm_error *err);
void cm_multi_files_give(cm_multi_files *files, uint32_t i);

/*
 * Opens file I by a library, for this thread alone until it is given back; variables may be
 * prepared.  A thread has one at a time.  Datasets that the specification has open are shared by
 * all.
 */
int cm_multi_files_open(cm_multi_files *files, uint32_t i, cm_dataset **out, cm_error *err);
void cm_multi_files_close(cm_multi_files *files, uint32_t i);

/* CM_EFORMAT with the name of F if it changed since the survey. */
int cm_multi_file_check(const cm_multi_file *f, cm_error *err);

#endif

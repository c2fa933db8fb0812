/*
 * The files of a joined dataset, opened when they are read and closed when others need the
 * room.  Any thread.
 */
#ifndef CM_FORMAT_MULTI_FILES_H
#define CM_FORMAT_MULTI_FILES_H

#include "format/multi/multi.h"
#include "format/nc/source.h"

typedef struct cm_multi_files cm_multi_files;

/* FILE is borrowed.  OPTIONS are those of every file that libraries open; copied. */
int cm_multi_files_create(const cm_multi_file *file, size_t n, const cm_dataset_options *options,
                          cm_multi_files **out, cm_error *err);
void cm_multi_files_free(cm_multi_files *files); /* NULL accepted */

/*
 * File I to read addresses of, until it is given back.  CM_EFORMAT with its name where it is
 * not the file any more that was surveyed.  A thread has one at a time.
 */
int cm_multi_files_take(cm_multi_files *files, uint32_t i, cm_source *out, cm_error *err);
void cm_multi_files_give(cm_multi_files *files, uint32_t i);

/*
 * The same opened by libraries, for this thread alone until it is given back: variables may be
 * prepared.  A thread has one at a time.  What the specification has open is everybody's.
 */
int cm_multi_files_open(cm_multi_files *files, uint32_t i, cm_dataset **out, cm_error *err);
void cm_multi_files_close(cm_multi_files *files, uint32_t i);

/* CM_EFORMAT with the name of F where it is not as it was surveyed. */
int cm_multi_file_check(const cm_multi_file *f, cm_error *err);

#endif

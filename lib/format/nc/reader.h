/*
 * Reads elements through netCDF-C or HDF5 in a child process, because these libraries crash, loop
 * or ask for all memory on some files with good metadata and damaged data.
 *
 * The child is the one that opened the file first (preflight.h).  It stays while the file is open,
 * serves one request at a time, and returns elements in shared memory.  If it dies, the read
 * fails.  Any thread may ask.
 *
 * After a read of a variable failed, the variable is not read again: HDF5 1.10 would return what
 * the failed read left in its buffers.
 */
#ifndef CM_FORMAT_NC_READER_H
#define CM_FORMAT_NC_READER_H

#include "format/dataset.h"
#include "format/nc/file.h"

/* ---- reader_start.c ---- */

/*
 * cm_nc_open after a child has tried it; the child stays and reads for the libraries.
 * Errors are those of cm_nc_preflight too.
 */
int cm_nc_open_tried(const char *path, const cm_dataset_options *options, cm_nc_file **out,
                     cm_error *err);

/*
 * Starts a child that reads for the libraries from now on, unless FILE, which is open, has one.
 * Call it before other threads read.
 */
int cm_nc_guard(cm_nc_file *file, const cm_dataset_options *options, cm_error *err);

/* ---- reader.c ---- */

/* Ends the child; false: closing the file crashed there, or was not tried.  NULL: true. */
bool cm_nc_reader_stop(cm_nc_reader *r);

int cm_nc_reader_box(cm_nc_node *node, const cm_box *box, void *dst, cm_error *err);
/* Reads into OUT, which was reset to the elements of BOX. */
int cm_nc_reader_strings(cm_nc_node *node, const cm_box *box, cm_strings *out, cm_error *err);

/*
 * Chunks of a node with CM_NC_CHUNK_LOCKED: their stored bytes, and their lengths (0: not stored).
 */
int cm_nc_reader_chunk(cm_nc_node *node, uint64_t number, cm_buf *buf, cm_fetch *out,
                       cm_error *err);
int cm_nc_reader_chunk_nbytes(cm_nc_node *node, uint64_t number, uint64_t *nbytes, cm_error *err);

#endif

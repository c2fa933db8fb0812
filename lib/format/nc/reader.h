/*
 * Elements that only libraries read, read in a child process: netCDF-C and HDF5 crash, loop
 * or ask for all memory also on data of some damaged files, whose metadata are good.
 *
 * The child is the one that opened the file first (preflight.h): it stays while the file is
 * open, one request at a time, and gives elements through memory that both share.  Its death
 * is an error of the read.  Any thread may ask.
 *
 * A variable that could not be read once is not asked for again: HDF5 1.10 takes what a failed
 * read has left in its buffers for data.
 */
#ifndef CM_FORMAT_NC_READER_H
#define CM_FORMAT_NC_READER_H

#include "format/dataset.h"
#include "format/nc/file.h"

/*
 * The child for PATH, with what it found of the file; NULL where none can be made, and then the
 * caller reads for itself.  Errors are those of cm_nc_preflight.
 */
int cm_nc_reader_start(const char *path, const cm_dataset_options *options, cm_nc_reader **out,
                       cm_error *err);
/* Whether the child has opened the file that OPENED is of. */
bool cm_nc_reader_has_opened(const cm_nc_reader *r, const struct stat *opened);
/* Ends the child; false: closing the file crashed there, or was not tried.  NULL: true. */
bool cm_nc_reader_stop(cm_nc_reader *r);

int cm_nc_reader_box(cm_nc_node *node, const cm_box *box, void *dst, cm_error *err);
/* OUT has been reset to the elements of BOX. */
int cm_nc_reader_strings(cm_nc_node *node, const cm_box *box, cm_strings *out, cm_error *err);

/* Chunks of a node with CM_NC_CHUNK_LOCKED: as stored, and how long they are (0: not stored). */
int cm_nc_reader_chunk(cm_nc_node *node, uint64_t number, cm_buf *buf, cm_fetch *out,
                       cm_error *err);
int cm_nc_reader_chunk_nbytes(cm_nc_node *node, uint64_t number, uint64_t *nbytes, cm_error *err);

#endif

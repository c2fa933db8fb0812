/* Describes in sentences how readers of a store see it differently. */
#ifndef CM_FORMAT_ZARR_CONFLICT_TEXT_H
#define CM_FORMAT_ZARR_CONFLICT_TEXT_H

#include "format/zarr/open.h"

/* "tas: fill_value: its own zarr.json and the consolidated metadata differ: ...", on the heap. */
char *cm_conflict_text(const cm_zarr_conflict *c, int zarr_format, cm_error *err);

#endif

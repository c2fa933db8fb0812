/* How the elements of a variable are cut and stored: layout.c decides, or refer.c. */
#ifndef CM_CONVERT_LAYOUT_LAYOUT_H
#define CM_CONVERT_LAYOUT_LAYOUT_H

#include "engine/engine.h"
#include "options/codec_option.h"

typedef struct cm_layout {
    uint64_t chunk[CM_MAX_RANK];
    uint64_t shard[CM_MAX_RANK];
    bool sharded;
    bool asked_chunk, asked_shard; /* an option says them of this array, and not `auto` */
    bool rectilinear; /* CHUNK is the longest of the source's, which stay as they are */
    bool same_codec;  /* the source's chain stays; CODEC says nothing */
    cm_codec_choice codec;
    cm_pass pass;           /* stored bytes of a file go through */
    struct cm_refer *refer; /* refer.h: where its chunks lie; NULL: they are written */
} cm_layout;

#endif

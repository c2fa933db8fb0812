/* What the files of the packer share; for them alone. */
#ifndef CM_LOAD_BATCHES_PACK_IMPL_H
#define CM_LOAD_BATCHES_PACK_IMPL_H

#include "load/batches/carry.h"

enum {
    CM_PACK_GROUP = 64,        /* chunks that are fetched at once */
    CM_PACK_VALUE_NBYTES = 256 /* of one element, at most */
};

/* A chunk of the batch. */
typedef struct cm_packed {
    uint64_t number;
    uint32_t array;
    bool present;
    bool travels;            /* with this batch; else it has come with one before */
    uint64_t place;          /* of its elements, once it is decoded; not present: of a fill value */
    uint64_t frame;          /* where it is to be decoded; CM_CARRY_NO_FRAME: anywhere */
    cm_carry_chunk *carried; /* planned: where its failure is told; or NULL */
} cm_packed;

/* A part of a sample and a chunk that it meets. */
typedef struct cm_pack_use {
    uint32_t chunk, part, piece;
} cm_pack_use;

struct cm_packer {
    const cm_load_arrays *in;
    cm_proof *proof;
    cm_codec_ctx *ctx;
    cm_fetch_many many;
    cm_fetch_item item[CM_PACK_GROUP];
    cm_chunk_streams split;
    cm_parcel_writer w;
    cm_buf decoded; /* of a chunk that is proven, or damaged */
    cm_packed *chunk;
    cm_pack_use *use;
    uint32_t *order; /* chunks by array and number */
    int32_t *bucket; /* of a hash table: a chunk, or NONE */
    size_t nchunks, nuses, room, nbuckets;
    uint64_t *fill; /* places of the arrays' fill values; 0: none yet */
    uint64_t zeros; /* of a byte that is 0; 0: none yet */
    uint64_t last_ns;
};

/* ---- pack.c ---- */

/* Tells COUNTS that stage WHICH took what passed since the one before. */
void cm_pack_stage(cm_packer *p, cm_load_counts *counts, int which);

/* ---- pack_chunk.c ---- */

/*
 * Fetches the batch's chunks, holds them against their proof, and puts their streams into the
 * parcel.  The first one that fails is the status; all of them are tried.
 */
int cm_pack_chunks(cm_packer *p, cm_load_counts *counts, cm_error *err);

#endif

/*
 * Writes Zarr: chunks and shards of one array, then the metadata of all.
 *
 * Data first, metadata last: until cm_zarr_hierarchy_write has returned, no reader finds an array
 * with missing chunks.
 */
#ifndef CM_FORMAT_ZARR_WRITER_H
#define CM_FORMAT_ZARR_WRITER_H

#include "format/target.h"
#include "format/zarr/early.h"
#include "format/zarr/meta.h"
#include "store/store.h"

typedef struct cm_zarr_writer cm_zarr_writer;

/*
 * Writes the chunks of META (borrowed; must outlive the writer) at PATH.  If META's chain is
 * sharding_indexed alone, chunks are inner chunks and shards are assembled meanwhile: inner chunks
 * are written in the order of the grid, and the last one writes the index and gives the shard its
 * name.
 */
int cm_zarr_writer_create(cm_store *store, const char *path, const cm_zarr_meta *meta,
                          cm_zarr_writer **out, cm_error *err);
/* Aborts unfinished shards. */
void cm_zarr_writer_free(cm_zarr_writer *w);

/*
 * Limits this writer to objects FIRST <= number < END of the outer grid; others write the rest,
 * which is neither put, skipped, kept nor missed here.  Call it before any chunk.
 */
int cm_zarr_writer_restrict(cm_zarr_writer *w, uint64_t first, uint64_t end, cm_error *err);
/*
 * META describes a window of a larger array: outer chunk COORD has the key of COORD + ORIGIN
 * there.  Call it before any chunk.
 */
void cm_zarr_writer_shift(cm_zarr_writer *w, const uint64_t origin[CM_MAX_RANK]);
/*
 * Existing objects are being read while they are replaced: shards keep the ranges that readers of
 * the old index need.  Call it before any chunk.
 */
void cm_zarr_writer_replace(cm_zarr_writer *w);
/* Computes the memory of a shard; after cm_store_limit has set the store's limits. */
void cm_zarr_writer_measure(cm_zarr_writer *w);
/*
 * Where inner chunks wait (borrowed) that are put before those in front of them in their shard; by
 * default in memory, without a limit.  Call it before any chunk.
 */
void cm_zarr_writer_early(cm_zarr_writer *w, cm_early *early);
/* This writer's objects; all of them unless restricted. */
void cm_zarr_writer_range(const cm_zarr_writer *w, uint64_t *first, uint64_t *end);

/* The grid that numbers chunks in PUT and SKIP: inner chunks if there are shards. */
const cm_grid *cm_zarr_writer_grid(const cm_zarr_writer *w);
/* The chain that encodes such chunks. */
const cm_chain *cm_zarr_writer_chain(const cm_zarr_writer *w);
/* The shard grid; equal to the grid if there are no shards. */
const cm_grid *cm_zarr_writer_outer_grid(const cm_zarr_writer *w);
/* The writer as a target for the engine; NULL for NULL. */
cm_target *cm_zarr_writer_target(cm_zarr_writer *w);

/* Puts chunk NUMBER, the encoded DATA.  Each chunk is put or skipped exactly once.  Any thread. */
int cm_zarr_writer_put(cm_zarr_writer *w, uint64_t number, const void *data, size_t nbytes,
                       cm_error *err);
/* Puts N chunks.  Chunks adjacent in a shard and in memory are written with one request. */
int cm_zarr_writer_put_many(cm_zarr_writer *w, const cm_put *put, size_t n, cm_error *err);
/* Leaves out chunk NUMBER, which holds only the fill value; removes an existing object. */
int cm_zarr_writer_skip(cm_zarr_writer *w, uint64_t number, cm_error *err);
/* Removes the objects of all outer chunks, for a window that is to be emptied. */
int cm_zarr_writer_remove_all(cm_zarr_writer *w, cm_error *err);
/* The key of the object of OUTER, a number in the outer grid; to be freed. */
int cm_zarr_writer_key(const cm_zarr_writer *w, uint64_t outer, char **out, cm_error *err);
/* Whether that object exists. */
int cm_zarr_writer_has(cm_zarr_writer *w, uint64_t outer, bool *there, cm_error *err);
/*
 * For resuming an interrupted run: if the object of OUTER exists, all its chunks count as delivered
 * and *kept is true.  The caller has checked that it is good.  Call it before any of them is put.
 */
int cm_zarr_writer_keep(cm_zarr_writer *w, uint64_t outer, bool *kept, cm_error *err);
/* True once chunk NUMBER was put, skipped or kept, and for chunks of others. */
bool cm_zarr_writer_is_delivered(const cm_zarr_writer *w, uint64_t number);
/* CM_EINTERNAL, naming one, when a chunk was neither put, skipped nor kept. */
int cm_zarr_writer_finish(cm_zarr_writer *w, cm_error *err);

typedef struct cm_zarr_written {
    uint64_t nchunks;  /* put */
    uint64_t nskipped; /* left out */
    uint64_t nkept;    /* existing, in NKEPT_OBJECTS objects */
    uint64_t nkept_objects;
    uint64_t nobjects; /* objects made */
    uint64_t nbytes;   /* of those, indices included */
} cm_zarr_written;
cm_zarr_written cm_zarr_writer_counts(const cm_zarr_writer *w);

/* A node of the hierarchy; META's attrs must be complete. */
typedef struct cm_zarr_entry {
    const char *path;
    const cm_zarr_meta *meta;
} cm_zarr_entry;

/*
 * Writes the metadata of all nodes: arrays first, then groups from the deepest up, the root last,
 * with CONSOLIDATED metadata as zarr-python writes them (v3: inline in the root and in nested
 * groups; v2: .zmetadata).  Adds missing groups between the root and a node.  Writes `verbatim`
 * metadata as they were read.  CM_EINVAL: a name that Zarr does not allow, two nodes at one path,
 * or a node below an array.
 */
int cm_zarr_hierarchy_write(cm_store *store, int zarr_format, const cm_zarr_entry *entry, size_t n,
                            bool consolidated, cm_error *err);

/*
 * The order of entries in consolidated metadata: by depth, then by parent, then by name, ignoring
 * case first, as in zarr-python.  A group's children must be adjacent: zarr-python takes each run
 * of them for all that the group has.
 */
int cm_zarr_compare_entries(const char *a, const char *b);
/* Makes the value of "consolidated_metadata" from NODES, which it takes; NULL: no memory. */
cm_json *cm_zarr_inline_metadata(cm_json *nodes);

/*
 * Copies the objects below the array at FROM_PATH, except its metadata, under TO_PATH: for arrays
 * that are carried over without being understood.  Needs 1 MiB, whatever the objects' sizes.
 * *nobjects and *nbytes (NULL accepted) are increased.
 */
int cm_zarr_objects_copy(cm_store *from, const char *from_path, cm_store *to, const char *to_path,
                         uint64_t *nobjects, uint64_t *nbytes, cm_error *err);
/* The number of objects that it would copy. */
int cm_zarr_objects_count(cm_store *store, const char *path, uint64_t *nobjects, cm_error *err);

#endif

/*
 * Writing Zarr: chunks and shards of one array, then the metadata of all.
 *
 * Data first, metadata last: until cm_zarr_hierarchy_write has returned, no
 * reader finds an array where chunks are missing.
 */
#ifndef CM_FORMAT_ZARR_WRITER_H
#define CM_FORMAT_ZARR_WRITER_H

#include "format/target.h"
#include "format/zarr/early.h"
#include "format/zarr/meta.h"
#include "store/store.h"

typedef struct cm_zarr_writer cm_zarr_writer;

/*
 * Writes the chunks of META (borrowed; must outlive the writer) at PATH.  Where
 * META's chain is sharding_indexed alone, chunks are inner chunks and shards are
 * assembled on the way: inner chunks are written in the order of the grid, and the last one
 * writes the index and gives the shard its name.
 */
int cm_zarr_writer_create(cm_store *store, const char *path, const cm_zarr_meta *meta,
                          cm_zarr_writer **out, cm_error *err);
/* Aborts shards that are not whole. */
void cm_zarr_writer_free(cm_zarr_writer *w);

/*
 * Only objects FIRST <= number < END of the outer grid are this writer's; the rest is
 * made by others, and is neither put, skipped, kept nor missed here.  Before any chunk.
 */
int cm_zarr_writer_restrict(cm_zarr_writer *w, uint64_t first, uint64_t end, cm_error *err);
/*
 * META describes a window of a larger array: outer chunk COORD of it is COORD + ORIGIN there, which
 * its key says.  Before any chunk.
 */
void cm_zarr_writer_shift(cm_zarr_writer *w, const uint64_t origin[CM_MAX_RANK]);
/*
 * Objects that are there are being read while others take their place: shards keep what readers of
 * the old index look for.  Before any chunk.
 */
void cm_zarr_writer_replace(cm_zarr_writer *w);
/* The memory of a shard, after the store was told how it is to send (cm_store_send). */
void cm_zarr_writer_measure(cm_zarr_writer *w);
/*
 * Where inner chunks wait (borrowed) that are put before those in front of them in their shard;
 * else they wait in memory, without a bound.  Before any chunk.
 */
void cm_zarr_writer_early(cm_zarr_writer *w, cm_early *early);
/* Those objects; all where nobody restricted the writer. */
void cm_zarr_writer_range(const cm_zarr_writer *w, uint64_t *first, uint64_t *end);

/* The grid in whose chunks PUT and SKIP count: inner chunks where there are shards. */
const cm_grid *cm_zarr_writer_grid(const cm_zarr_writer *w);
/* The chain that encodes such a chunk. */
const cm_chain *cm_zarr_writer_chain(const cm_zarr_writer *w);
/* The shard grid; the same as the grid where there are no shards. */
const cm_grid *cm_zarr_writer_outer_grid(const cm_zarr_writer *w);
/* The writer as the engine sees it; NULL for NULL. */
cm_target *cm_zarr_writer_target(cm_zarr_writer *w);

/* Chunk NUMBER is DATA, encoded.  Each chunk is put or skipped exactly once.  Any thread. */
int cm_zarr_writer_put(cm_zarr_writer *w, uint64_t number, const void *data, size_t nbytes,
                       cm_error *err);
/*
 * The same for N chunks.  Those that follow each other in a shard and in memory go there with one
 * request.
 */
int cm_zarr_writer_put_many(cm_zarr_writer *w, const cm_put *put, size_t n, cm_error *err);
/* Chunk NUMBER holds only the fill value and is left out; an object that is there goes. */
int cm_zarr_writer_skip(cm_zarr_writer *w, uint64_t number, cm_error *err);
/* Removes the objects of all outer chunks, for a window of which nothing is to stay. */
int cm_zarr_writer_remove_all(cm_zarr_writer *w, cm_error *err);
/* Whether an object has the name of OUTER (a number in the outer grid). */
int cm_zarr_writer_has(cm_zarr_writer *w, uint64_t outer, bool *there, cm_error *err);
/*
 * For going on after an interruption: where the object of OUTER is there already,
 * all its chunks count as delivered and *kept is true.  The caller has proven that
 * it is a good one.  Before any of them is put.
 */
int cm_zarr_writer_keep(cm_zarr_writer *w, uint64_t outer, bool *kept, cm_error *err);
/* True once chunk NUMBER was put, skipped or kept, and where it is not this writer's. */
bool cm_zarr_writer_is_delivered(const cm_zarr_writer *w, uint64_t number);
/* CM_EINTERNAL, naming one, when a chunk was neither put, skipped nor kept. */
int cm_zarr_writer_finish(cm_zarr_writer *w, cm_error *err);

typedef struct cm_zarr_written {
    uint64_t nchunks;  /* put */
    uint64_t nskipped; /* left out */
    uint64_t nkept;    /* there already, in NKEPT_OBJECTS files */
    uint64_t nkept_objects;
    uint64_t nobjects; /* files made */
    uint64_t nbytes;   /* of those, indices counted */
} cm_zarr_written;
cm_zarr_written cm_zarr_writer_counts(const cm_zarr_writer *w);

/* One node of the hierarchy to describe; META's attrs are complete. */
typedef struct cm_zarr_entry {
    const char *path;
    const cm_zarr_meta *meta;
} cm_zarr_entry;

/*
 * Writes the metadata of all nodes, arrays first, then groups from the deepest
 * up, the root last, with CONSOLIDATED metadata as zarr-python writes it (v3:
 * inline in the root and in nested groups; v2: .zmetadata).  Groups that are
 * missing between the root and a node are added.  `verbatim` metadata is written
 * as it was read.  CM_EINVAL: a name that Zarr does not allow, two nodes of one
 * path, or a node below an array.
 */
int cm_zarr_hierarchy_write(cm_store *store, int zarr_format, const cm_zarr_entry *entry, size_t n,
                            bool consolidated, cm_error *err);

/*
 * The order of entries in consolidated metadata: by depth, then by parent, then by
 * name, case counting last, as zarr-python has it.  The children of a group stand
 * together: zarr-python takes each run of them for all that the group has.
 */
int cm_zarr_compare_entries(const char *a, const char *b);
/* The value of "consolidated_metadata" that holds NODES, which it takes; NULL: no memory. */
cm_json *cm_zarr_inline_metadata(cm_json *nodes);

/*
 * Copies the objects below the array at FROM_PATH, its metadata apart, under
 * TO_PATH: for arrays that are carried over without being understood.  Holds
 * 1 MiB, whatever the objects' sizes.  *nobjects and *nbytes (NULL accepted)
 * are increased.
 */
int cm_zarr_objects_copy(cm_store *from, const char *from_path, cm_store *to, const char *to_path,
                         uint64_t *nobjects, uint64_t *nbytes, cm_error *err);

#endif

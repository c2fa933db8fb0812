/* Digests of arrays, which do not depend on chunks, shards or codecs. */
#ifndef CHUNKMILL_DIGEST_H
#define CHUNKMILL_DIGEST_H

#include <stdint.h>

#include <chunkmill/error.h>
#include <chunkmill/monitor.h>
#include <chunkmill/net.h>

typedef struct cm_digest_row {
    const char *warning; /* a sentence about the store, and nothing else is set; or NULL */
    const char *name;
    const char *type;
    uint64_t nelem;
    const char *digest;     /* NULL: */
    const char *undigested; /* why there is none */
} cm_digest_row;

typedef int cm_digest_visit(void *context, const cm_digest_row *row, cm_error *err);

/*
 * `rechunk --digest STORE`: the digest of every array of a Zarr store or NetCDF
 * file (or of the one after "::").  VISIT gets each in turn, and what there is to
 * warn of before; a non-zero value that it returns ends the walk and is passed on.
 * NET, which may be NULL, reaches stores behind a network.  MEMORY: of the whole
 * process, in bytes; 0: up to 1 GiB, and half of what is available.
 */
int cm_digest_store(const char *path, cm_net *net, unsigned nthreads, uint64_t memory,
                    cm_monitor *monitor, cm_digest_visit *visit, void *context, cm_error *err);

#endif

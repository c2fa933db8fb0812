/* The layout that is there: its grids, where chunks differ in length, and how many files it has. */
#include <inttypes.h>
#include <string.h>

#include "base/number.h"
#include "chunkcalc/chunkcalc.h"
#include "plan/autochunk.h"
#include "plan/meetings.h"
#include "store/dir.h"

bool cm_calc_cut_grids(const cm_calc *c, const cm_chunkcalc_layout *l, cm_grid *chunks,
                       cm_grid *objects)
{
    const cm_zarr_meta *m = &c->present_words;
    return strcmp(l->rule, "present") == 0 && cm_zarr_meta_is_cut(m) &&
           cm_zarr_meta_grid(m, chunks, NULL) == CM_OK &&
           cm_zarr_meta_outer_grid(m, objects, NULL) == CM_OK;
}

/* Files of A were it stored in shards. */
static int count_in_shards(const cm_chunkcalc_array *a, uint64_t *files, cm_error *err)
{
    uint64_t nelem = 1, n = a->nobjects;
    int rc = CM_OK;
    for (unsigned j = 0; j < a->rank; j++)
        nelem *= a->chunk[j];
    if (a->chunked && !a->sharded && !a->cut && n > 1 && a->chunk_nbytes >= nelem)
        rc = cm_autoshard_count(a->rank, a->shape, (uint32_t)(a->chunk_nbytes / nelem), a->chunk,
                                CM_CALC_SHARD_TARGET, &n, err);
    *files = cm_add_sat(*files, n);
    return rc;
}

int cm_calc_note_files(cm_calc *c, const cm_store *store, cm_error *err)
{
    const cm_chunkcalc_report *r = c->report;
    uint64_t files = 0, in_shards = 0;
    int rc = CM_OK;
    if (store == NULL || !cm_store_is_dir(store))
        return CM_OK;
    for (size_t i = 0; i < r->narrays && rc == CM_OK; i++) {
        files = cm_add_sat(files, r->array[i].nobjects);
        rc = count_in_shards(&r->array[i], &in_shards, err);
    }
    if (rc != CM_OK || files <= CM_MANY_OBJECTS || in_shards >= files / 2)
        return rc;
    return cm_calc_note(c, err,
                        "chunks are %" PRIu64 " files, which take longer to copy, list and remove "
                        "than to read; rechunked with `shards` auto they are %" PRIu64 " %s",
                        files, in_shards, cm_of_count(in_shards, "file", "files"));
}

/* The grids of the layout that is there, where its chunks differ in length. */
#include <string.h>

#include "chunkcalc/chunkcalc.h"

bool cm_calc_cut_grids(const cm_calc *c, const cm_chunkcalc_layout *l, cm_grid *chunks,
                       cm_grid *objects)
{
    const cm_zarr_meta *m = &c->present_words;
    return strcmp(l->rule, "present") == 0 && cm_zarr_meta_is_cut(m) &&
           cm_zarr_meta_grid(m, chunks, NULL) == CM_OK &&
           cm_zarr_meta_outer_grid(m, objects, NULL) == CM_OK;
}

#include "format/zarr/conflict_text.h"

#include "base/mem.h"

char *cm_conflict_text(const cm_zarr_conflict *c, int zarr_format, cm_error *err)
{
    const char *name = c->path[0] ? c->path : "/", *what = c->what != NULL ? c->what : "";
    const char *document = zarr_format == 3 ? "zarr.json" : "metadata document";
    const char *of = c->group[0] ? " of group " : "", *group = c->group;
    switch (c->kind) {
    case CM_ZARR_IGNORED:
        return cm_asprintf(err,
                           "%s: its consolidated metadata cannot be read (%s): xarray fails with "
                           "them, tensorstore does without",
                           name, what);
    case CM_ZARR_UNLISTED:
        return cm_asprintf(err,
                           "%s: is not in the consolidated metadata%s%s: tensorstore sees it, "
                           "xarray does not",
                           name, of, group);
    case CM_ZARR_LOST:
        return cm_asprintf(err,
                           "%s: is in the consolidated metadata%s%s and has no %s: xarray sees it, "
                           "tensorstore does not",
                           name, of, group, document);
    case CM_ZARR_BROKEN:
        return cm_asprintf(err,
                           "%s: its own %s cannot be read (%s): xarray reads the consolidated "
                           "metadata, tensorstore fails",
                           name, document, what);
    case CM_ZARR_DIFFERENT:
        return cm_asprintf(err,
                           "%s: %s: its own %s and the consolidated metadata%s%s differ: "
                           "tensorstore reads the former, xarray the latter",
                           name, what, document, of, group);
    case CM_ZARR_REORDERED:
        break;
    }
    return cm_asprintf(err,
                       "%s: its own %s has its attributes in another order than the consolidated "
                       "metadata%s%s",
                       name, document, of, group);
}

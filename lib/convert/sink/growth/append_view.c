/* Whether the store that grows is the one that was opened. */
#include <string.h>

#include "convert/sink/growth/append_repository.h"

typedef struct lengths {
    uint64_t least, most; /* of all arrays along the dimension */
} lengths;

static lengths lengths_of(const cm_dataset *ds, const char *dimension)
{
    lengths l = {UINT64_MAX, 0};
    for (size_t i = 0; i < ds->nvars; i++)
        for (unsigned j = 0; j < ds->var[i].rank; j++) {
            const char *name = ds->var[i].dim_name[j];
            const uint64_t n = ds->var[i].shape[j];
            if (name == NULL || strcmp(name, dimension) != 0)
                continue;
            l.least = n < l.least ? n : l.least;
            l.most = n > l.most ? n : l.most;
        }
    return l;
}

static int open_store(const cm_append *a, cm_dataset **out, cm_error *err)
{
    const cm_dataset_options options = {.net = a->beside.net};
    return cm_dataset_open(a->opens, "", &options, out, err);
}

int cm_append_note_length(cm_append *a, cm_error *err)
{
    cm_dataset *ds = NULL;
    int rc = open_store(a, &ds, err);
    if (rc == CM_OK) {
        const lengths l = lengths_of(ds, a->dimension);
        /* Else nobody else changes it, no array has it, or they never agreed. */
        a->knows_was = (a->part || a->look) && l.least == l.most;
        a->was = l.most;
        a->ends = l.least;
    }
    cm_dataset_close(ds);
    return rc;
}

int cm_append_check_length(const cm_append *a, const cm_dataset *now, cm_error *err)
{
    const lengths l = lengths_of(now, a->dimension);
    if (!a->knows_was || (l.least == a->was && l.most == a->was))
        return CM_OK;
    return cm_fail(err, CM_EEXIST, "%s: another process added to it meanwhile; start again",
                   a->root);
}

int cm_append_check(cm_append *a, cm_error *err)
{
    cm_dataset *ds = NULL;
    if (a != NULL && a->repository != NULL)
        return cm_append_check_repository(a, err);
    if (a == NULL || !a->knows_was)
        return CM_OK;
    int rc = open_store(a, &ds, err);
    if (rc == CM_OK)
        rc = cm_append_check_length(a, ds, err);
    cm_dataset_close(ds);
    return rc;
}

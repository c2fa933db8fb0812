#include "convert/sink/icechunk/stale.h"

#include <stdlib.h>
#include <string.h>

/* Takes PATH, also when it fails. */
static int add(cm_stale *stale, char *path, cm_error *err)
{
    for (size_t i = 0; i < stale->n; i++)
        if (strcmp(stale->path[i], path) == 0) {
            free(path);
            return CM_OK;
        }
    char **room = cm_make_room(stale->path, stale->n, &stale->capacity, sizeof(stale->path[0]), 4);
    if (room == NULL) {
        free(path);
        return cm_fail(err, CM_ENOMEM, "no memory for statistics");
    }
    stale->path = room;
    room[stale->n++] = path;
    return CM_OK;
}

/* The statistics of the first SKIP bytes of PATH, a group, if they tell of PATH. */
static int look_in(cm_stale *stale, const cm_repository *r, const char *path, size_t skip,
                   cm_error *err)
{
    const char *below = path + skip + (skip > 0);
    char *group = cm_asprintf(err, "%.*s", (int)skip, path);
    char *told = cm_asprintf(err, "/%.*s%s" CM_REPOSITORY_STATISTICS "/%s", (int)skip, path,
                             skip > 0 ? "/" : "", below);
    int rc = group == NULL || told == NULL ? CM_ENOMEM : CM_OK;
    char *ours = rc == CM_OK && cm_ice_snapshot_find(r->base->snapshot.tree.root, told) != NULL
                     ? cm_repository_statistics(r, group)
                     : NULL;
    free(group);
    free(told);
    return ours != NULL ? add(stale, ours, err) : rc;
}

/* In every group that the array PATH lies in. */
static int look_above(cm_stale *stale, const cm_repository *r, const char *path, cm_error *err)
{
    int rc = look_in(stale, r, path, 0, err);
    for (const char *slash = strchr(path, '/'); rc == CM_OK && slash != NULL;
         slash = strchr(slash + 1, '/'))
        rc = look_in(stale, r, path, (size_t)(slash - path), err);
    return rc;
}

int cm_stale_find(cm_stale *stale, const cm_repository *r, const cm_sink *s,
                  const cm_repository_array *array, size_t n, cm_error *err)
{
    const char *node = s->into.node;
    int rc = CM_OK;
    if (r->grows || s->options->overwrite) {
        char *own = cm_repository_statistics(r, node);
        rc = own != NULL ? add(stale, own, err) : CM_OK;
    }
    for (size_t i = 0; rc == CM_OK && i < n; i++) {
        char *path = cm_asprintf(err, "%s%s%s", node, *node != '\0' ? "/" : "", array[i].name);
        rc = path == NULL ? CM_ENOMEM : look_above(stale, r, path, err);
        free(path);
    }
    return rc;
}

void cm_stale_release(cm_stale *stale)
{
    for (size_t i = 0; i < stale->n; i++)
        free(stale->path[i]);
    free(stale->path);
    *stale = (cm_stale){0};
}

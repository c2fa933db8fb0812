#include "format/zarr/foreign_key.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>

#include "base/path.h"

/* Names that writers give to what they have not finished: ours, zarr-python's, of rsync and NFS. */
static bool is_temporary(const char *key)
{
    static const char *const ENDS[] = {".tmp", ".partial", ".part", "~"};
    const char *name = cm_path_last(key);
    const size_t n = strlen(name);
    if (strncmp(name, ".nfs", 4) == 0)
        return true;
    for (size_t i = 0; i < sizeof(ENDS) / sizeof(*ENDS); i++) {
        const size_t end = strlen(ENDS[i]);
        if (n > end && strcmp(name + n - end, ENDS[i]) == 0)
            return true;
    }
    return false;
}

#define TEMPORARY "a temporary file"

static bool is_group(const cm_zarr_tree *tree, const char *key, size_t nbytes)
{
    char *path = cm_asprintf(NULL, "%.*s", (int)nbytes, key);
    const cm_zarr_node *node = path != NULL ? cm_zarr_find(tree, path) : NULL;
    free(path);
    return node != NULL && node->meta.is_group;
}

const char *cm_foreign_node_key(const cm_zarr_tree *tree, const char *key)
{
    const char *name = cm_path_last(key);
    const size_t folder = name > key ? (size_t)(name - key) - 1 : 0;
    const bool in_group = is_group(tree, key, folder);
    if (cm_zarr_is_document(name))
        return in_group ? NULL : "of a node that the store does not list";
    if (is_temporary(key))
        return TEMPORARY;
    return in_group ? "no part of a group" : "in a folder that is no node";
}

/* BELOW in lower case, where that makes it a chunk's name. */
static bool is_case_twin(const cm_chunk_names *names, const char *below)
{
    char lower[CM_CHUNK_KEY_SIZE];
    size_t n = 0;
    for (; below[n] != '\0' && n + 1 < sizeof(lower); n++)
        lower[n] = (char)tolower((unsigned char)below[n]);
    lower[n] = '\0';
    return below[n] == '\0' && strcmp(lower, below) != 0 &&
           cm_chunk_name_parse(names, lower, NULL) == CM_CHUNK_NAME_CHUNK;
}

/* Whether BELOW is a chunk's name by other rules: the separator, the "c" of version 3. */
static bool is_of_other_rules(const cm_chunk_names *names, const char *below)
{
    cm_zarr_meta meta = *names->meta;
    cm_chunk_names other = *names;
    other.meta = &meta;
    for (int rule = 0; rule < 4; rule++) {
        meta.zarr_format = 3;
        meta.key_v2 = (rule & 1) != 0;
        meta.separator = (rule & 2) != 0 ? '/' : '.';
        if (cm_chunk_name_parse(&other, below, NULL) == CM_CHUNK_NAME_CHUNK)
            return true;
    }
    return false;
}

const char *cm_foreign_chunk_key(const cm_chunk_names *names, const char *below)
{
    const char *name = cm_path_last(below);
    if (is_temporary(below))
        return TEMPORARY;
    if (name > below && cm_zarr_is_document(name))
        return "of a node below an array";
    if (cm_chunk_name_parse(names, below, NULL) == CM_CHUNK_NAME_OUTSIDE)
        return "outside the grid of chunks";
    if (is_of_other_rules(names, below))
        return "named as chunks of another layout";
    if (is_case_twin(names, below))
        return "a chunk's name but for the case";
    return "no chunk of its array";
}

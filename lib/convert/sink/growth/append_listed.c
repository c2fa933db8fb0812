#include "convert/sink/growth/append_listed.h"

#include <stdlib.h>

#include "format/zarr/meta.h"

static bool is_empty(const cm_json *j)
{
    return j == NULL || (cm_json_is(j, CM_JSON_OBJECT) && cm_json_length(j) == 0);
}

static bool is_same(const cm_json *a, const cm_json *b)
{
    double x, y;
    if (cm_json_get_double(a, &x) && cm_json_get_double(b, &y))
        return x == y;
    return cm_json_equal(a, b) || (is_empty(a) && is_empty(b));
}

static int fail(const cm_growth *g, const char *name, const char *what, cm_error *err)
{
    return cm_fail(err, CM_EFORMAT,
                   "%s/%s: array %s: its %s: not as other metadata say; `consolidate` renews them",
                   g->path, name, g->path, what);
}

/* The document NAME of G's array; NULL: there is none. */
static int read_own(cm_store *store, const cm_growth *g, const char *name, cm_json **out,
                    cm_error *err)
{
    cm_buf text = {0};
    char *key = cm_asprintf(err, "%s%s%s", g->path, *g->path != '\0' ? "/" : "", name);
    *out = NULL;
    int rc =
        key == NULL ? CM_ENOMEM : cm_store_get(store, key, CM_ZARR_MAX_META_NBYTES, &text, err);
    if (rc == CM_OK && (rc = cm_json_parse(text.data, text.nbytes, out, err)) != CM_OK)
        cm_error_prefix(err, "%s", key);
    cm_buf_release(&text);
    free(key);
    return rc == CM_ENOTFOUND ? CM_OK : rc;
}

/* Holds MEMBERS, or where that is NULL all of the document, against what stands AT in TEXT. */
static int check(cm_store *store, const cm_growth *g, const char *name, const char *const *members,
                 const char *text, const cm_json_place *at, cm_error *err)
{
    cm_json *own = NULL, *listed = NULL;
    int rc = read_own(store, g, name, &own, err);
    if (rc == CM_OK && at != NULL)
        rc = cm_json_parse(text + at->begin, at->end - at->begin, &listed, err);
    if (rc == CM_OK && members == NULL && !is_same(own, listed))
        rc = fail(g, name, "attributes", err);
    for (; rc == CM_OK && members != NULL && *members != NULL; members++)
        if (!is_same(cm_json_member(own, *members), cm_json_member(listed, *members)))
            rc = fail(g, name, *members, err);
    cm_json_free(own);
    cm_json_free(listed);
    return rc;
}

int cm_listed_check_v3(cm_store *store, const cm_growth *g, const char *text, cm_json_place at,
                       cm_error *err)
{
    static const char *const MEMBERS[] = {"data_type", "fill_value", "attributes", NULL};
    return check(store, g, "zarr.json", MEMBERS, text, &at, err);
}

static int check_in_list(cm_store *store, const cm_growth *g, const char *name,
                         const char *const *members, const char *text, cm_json_place list,
                         cm_error *err)
{
    cm_json_place at;
    char *key = cm_asprintf(err, "%s/%s", g->path, name);
    if (key == NULL)
        return CM_ENOMEM;
    const bool there = cm_json_place_member(text, list, key, &at);
    free(key);
    return check(store, g, name, members, text, there ? &at : NULL, err);
}

int cm_listed_check_v2(cm_store *store, const cm_growth *g, const char *text, cm_json_place list,
                       cm_error *err)
{
    static const char *const MEMBERS[] = {"dtype", "fill_value", NULL};
    int rc = check_in_list(store, g, ".zarray", MEMBERS, text, list, err);
    return rc == CM_OK ? check_in_list(store, g, ".zattrs", NULL, text, list, err) : rc;
}

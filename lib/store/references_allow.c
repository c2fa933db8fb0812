/* Limits a document's references to its own place and those that the user allows. */
#include <string.h>

#include "store/allow.h"
#include "store/net/url.h"
#include "store/references_read.h"

/* True if ORIGIN is the server or bucket of the document at URL. */
static bool is_from(const char *url, const char *origin)
{
    cm_url own = {0};
    bool same = cm_url_parse(url, &own, NULL) == CM_OK && cm_allow_same_origin(own.origin, origin);
    cm_url_release(&own);
    return same;
}

static bool is_allowed(const cm_reference_reading *r, const cm_reference_file *file)
{
    if (file->origin == CM_REFERENCE_LOCAL)
        return cm_allow_in_folder(file->name, r->own_folder) ||
               cm_allow_has_path(r->allow, file->name);
    const char *origin = r->out->origin[file->origin];
    return (r->remote && is_from(r->path, origin)) ||
           cm_allow_has_object(r->allow, origin, file->key);
}

int cm_reference_check_place(const cm_reference_reading *r, const cm_reference_file *file,
                             cm_error *err)
{
    const bool local = file->origin == CM_REFERENCE_LOCAL;
    if (local && !cm_allow_is_plain(file->name))
        return cm_fail(err, CM_EFORMAT, "'%s': is not an absolute path without \"..\"", file->name);
    if (r->trusted || is_allowed(r, file))
        return CM_OK;
    return cm_allow_refuse(file->name, local,
                           r->remote ? "lies elsewhere than the document, which may refer only to "
                                       "its own server or bucket"
                                     : "lies elsewhere than the document, which may refer only to "
                                       "its own folder",
                           err);
}

#include "document.h"

#include <chunkmill/version.h>

#include "print.h"

static void note(cm_document *d, int status)
{
    if (d->status == CM_OK)
        d->status = status;
}

void cm_document_put(cm_document *d, cm_json *object, const char *name, cm_json *value)
{
    note(d, cm_json_set(object, name, value, d->err));
}

void cm_document_null(cm_document *d, cm_json *object, const char *name)
{
    note(d, cm_json_set_null(object, name, d->err));
}

cm_json *cm_document_object(cm_document *d, cm_json *object, const char *name, bool there)
{
    cm_json *member = there ? cm_json_object() : NULL;
    int status =
        there ? cm_json_set(object, name, member, d->err) : cm_json_set_null(object, name, d->err);
    note(d, status);
    return status == CM_OK ? member : NULL;
}

void cm_document_append(cm_document *d, cm_json *array, cm_json *value)
{
    note(d, cm_json_append(array, value, d->err));
}

void cm_document_text(cm_document *d, cm_json *object, const char *name, const char *text)
{
    if (text)
        cm_document_put(d, object, name, cm_json_string(text));
    else
        cm_document_null(d, object, name);
}

void cm_document_u64(cm_document *d, cm_json *object, const char *name, uint64_t v)
{
    cm_document_put(d, object, name, cm_json_u64(v));
}

void cm_document_bool(cm_document *d, cm_json *object, const char *name, bool v)
{
    cm_document_put(d, object, name, cm_json_bool(v));
}

void cm_document_known_u64(cm_document *d, cm_json *object, const char *name, uint64_t v,
                           bool known)
{
    if (known)
        cm_document_u64(d, object, name, v);
    else
        cm_document_null(d, object, name);
}

void cm_document_double(cm_document *d, cm_json *object, const char *name, double v, bool known)
{
    if (known)
        cm_document_put(d, object, name, cm_json_double(v));
    else
        cm_document_null(d, object, name);
}

void cm_document_texts(cm_document *d, cm_json *object, const char *name, char *const *text,
                       size_t n)
{
    cm_json *array = cm_json_array();
    for (size_t i = 0; i < n; i++)
        cm_document_append(d, array, cm_json_string(text[i]));
    cm_document_put(d, object, name, array);
}

void cm_document_shape(cm_document *d, cm_json *object, const char *name, unsigned rank,
                       const uint64_t *shape, bool known)
{
    if (!known) {
        cm_document_null(d, object, name);
        return;
    }
    cm_json *array = cm_json_array();
    for (unsigned i = 0; i < rank; i++)
        cm_document_append(d, array, cm_json_u64(shape[i]));
    cm_document_put(d, object, name, array);
}

void cm_document_names(cm_document *d, cm_json *object, const char *name, unsigned rank,
                       char *const *text)
{
    cm_json *array = cm_json_array();
    for (unsigned i = 0; i < rank; i++) {
        if (text[i])
            cm_document_append(d, array, cm_json_string(text[i]));
        else
            note(d, cm_json_append_null(array, d->err));
    }
    cm_document_put(d, object, name, array);
}

void cm_document_head(cm_document *d, cm_json *object, const char *schema, const char *outcome,
                      const cm_error *failure)
{
    char libraries[512];
    cm_document_text(d, object, "schema", schema);
    cm_document_text(d, object, "version", cm_version());
    cm_document_text(d, object, "libraries", cm_library_versions(libraries, sizeof(libraries)));
    if (outcome)
        cm_document_text(d, object, "outcome", outcome);
    if (!failure) {
        cm_document_null(d, object, "error");
        return;
    }
    cm_json *e = cm_json_object();
    cm_document_text(d, e, "status", cm_status_name(failure->status));
    cm_document_text(d, e, "message", failure->text);
    cm_document_put(d, object, "error", e);
}

int cm_document_print(cm_document *d, cm_json *object, FILE *to)
{
    int status = d->status == CM_OK ? cm_print_json(object, to, d->err) : d->status;
    cm_json_free(object);
    return status;
}

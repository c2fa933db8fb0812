/*
 * What a worker process that is begun anew must know to read the same samples: a
 * document of JSON with the options that say what is read and how, and nothing else.
 */
#include <stdlib.h>
#include <string.h>

#include "base/json.h"
#include "load/run.h"

typedef enum field_kind {
    FIELD_TEXT,
    FIELD_U64,
    FIELD_UNSIGNED,
    FIELD_BOOL
} field_kind;

static const struct field {
    const char *name;
    field_kind kind;
    size_t offset;
} fields[] = {
#define FIELD(kind, member)                                                                        \
    {                                                                                              \
#member, kind, offsetof(cm_readbench_options, member)                                      \
    }
    FIELD(FIELD_TEXT, lags),
    FIELD(FIELD_TEXT, sample),
    FIELD(FIELD_U64, batch),
    FIELD(FIELD_U64, batches),
    FIELD(FIELD_U64, epochs),
    FIELD(FIELD_U64, seed),
    FIELD(FIELD_BOOL, drop_last),
    FIELD(FIELD_TEXT, order),
    FIELD(FIELD_TEXT, loader),
    FIELD(FIELD_TEXT, mode),
    FIELD(FIELD_UNSIGNED, workers),
    FIELD(FIELD_UNSIGNED, worker_threads),
    FIELD(FIELD_UNSIGNED, prefetch),
    FIELD(FIELD_TEXT, context),
    FIELD(FIELD_TEXT, pool),
    FIELD(FIELD_U64, world_size),
    FIELD(FIELD_U64, rank),
    FIELD(FIELD_UNSIGNED, accelerators),
    FIELD(FIELD_UNSIGNED, reserve),
    FIELD(FIELD_TEXT, engine),
    FIELD(FIELD_TEXT, io),
    FIELD(FIELD_U64, cache_nbytes),
    FIELD(FIELD_TEXT, cache_policy),
    FIELD(FIELD_TEXT, cache_dir),
    FIELD(FIELD_U64, cache_dir_nbytes),
    FIELD(FIELD_U64, memory),
    FIELD(FIELD_TEXT, cast),
    FIELD(FIELD_BOOL, unpack),
    FIELD(FIELD_BOOL, fill_to_nan),
#undef FIELD
};

#define NFIELDS (sizeof fields / sizeof *fields)

/* ---- writing ------------------------------------------------------------------------------- */

static cm_json *value_of(const cm_readbench_options *o, const struct field *f)
{
    const void *at = (const char *)o + f->offset;
    switch (f->kind) {
    case FIELD_TEXT:
        return cm_json_string(*(const char *const *)at);
    case FIELD_U64:
        return cm_json_u64(*(const uint64_t *)at);
    case FIELD_UNSIGNED:
        return cm_json_u64(*(const unsigned *)at);
    case FIELD_BOOL:
        return cm_json_bool(*(const bool *)at);
    }
    return NULL;
}

static int fill_document(const cm_readbench_options *o, const char *store, cm_json *document,
                         cm_error *err)
{
    cm_json *list = cm_json_array();
    int rc = CM_OK;
    for (size_t i = 0; i < o->variables.n && rc == CM_OK; i++)
        rc = cm_json_append(list, cm_json_string(o->variables.text[i]), err);
    if (rc == CM_OK)
        rc = cm_json_set(document, "variables", list, err);
    else
        cm_json_free(list);
    if (rc == CM_OK)
        rc = cm_json_set(document, "store", cm_json_string(store), err);
    for (size_t i = 0; i < NFIELDS && rc == CM_OK; i++) {
        const struct field *f = &fields[i];
        if (f->kind != FIELD_TEXT || *(const char *const *)((const char *)o + f->offset) != NULL)
            rc = cm_json_set(document, f->name, value_of(o, f), err);
    }
    return rc;
}

int cm_load_setup_write(const cm_readbench_options *o, const char *store, cm_buf *out,
                        cm_error *err)
{
    cm_json *document = cm_json_object();
    int rc = document != NULL ? fill_document(o, store, document, err)
                              : cm_fail(err, CM_ENOMEM, "no memory for the workers' setup");
    if (rc == CM_OK)
        rc = cm_json_write(document, false, out, err);
    cm_json_free(document);
    return rc;
}

/* ---- reading ------------------------------------------------------------------------------- */

static bool read_field(const cm_json *value, const struct field *f, cm_readbench_options *o)
{
    void *at = (char *)o + f->offset;
    uint64_t n;
    switch (f->kind) {
    case FIELD_TEXT:
        *(const char **)at = cm_json_text(value, NULL);
        return value == NULL || *(const char **)at != NULL;
    case FIELD_U64:
        return cm_json_get_u64(value, at);
    case FIELD_UNSIGNED:
        if (!cm_json_get_u64(value, &n) || n > UINT32_MAX)
            return false;
        *(unsigned *)at = (unsigned)n;
        return true;
    case FIELD_BOOL:
        return cm_json_get_bool(value, at);
    }
    return false;
}

int cm_load_setup_read(const void *text, size_t nbytes, cm_load_setup *out, cm_error *err)
{
    memset(out, 0, sizeof *out);
    cm_readbench_options_init(&out->options);
    int rc = cm_json_parse(text, nbytes, &out->document, err);
    if (rc != CM_OK)
        return rc;
    bool ok = true;
    for (size_t i = 0; i < NFIELDS && ok; i++)
        ok = read_field(cm_json_member(out->document, fields[i].name), &fields[i], &out->options);
    const cm_json *list = cm_json_member(out->document, "variables");
    out->store = cm_json_text(cm_json_member(out->document, "store"), NULL);
    out->variable = cm_calloc(cm_json_length(list) + 1, sizeof *out->variable, err);
    if (out->variable == NULL)
        return CM_ENOMEM;
    for (size_t i = 0; i < cm_json_length(list) && ok; i++)
        ok = (out->variable[i] = cm_json_text(cm_json_at(list, i), NULL)) != NULL;
    out->options.variables = (cm_texts){out->variable, cm_json_length(list)};
    if (!ok || out->store == NULL)
        return cm_fail(err, CM_EINTERNAL, "the setup that a worker got is not whole");
    return CM_OK;
}

void cm_load_setup_release(cm_load_setup *s)
{
    cm_json_free(s->document);
    free(s->variable);
    memset(s, 0, sizeof *s);
}

/* The group beside the target: what was counted, as arrays and as JSON. */
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/path.h"
#include "base/utf8.h"
#include "convert/select/rename.h"
#include "convert/select/subset.h"
#include "convert/statistics/statistics_impl.h"
#include "format/counted.h"
#include "format/zarr/erase.h"
#include "store/open.h"

/* Lies there while they are written: arrays without documents are ours, too. */
#define BEGUN ".chunkmill-statistics"

enum {
    NKINDS = 6,
    MOST_TEXT = 1 << 16 /* bytes of the names of levels that are kept */
};
static const char *const KIND[NKINDS] = {"count", "missing", "minimum", "maximum", "mean", "std"};

static char *place(const char *target, cm_error *err)
{
    size_t n = strlen(target);
    while (n > 1 && target[n - 1] == '/')
        n--;
    return cm_asprintf(err, "%.*s.statistics.zarr", (int)n, target);
}

/* ---- those of an older store ---- */

typedef enum there {
    NOTHING, /* of ours */
    EMPTY,   /* a folder without a name in it, temporaries of killed runs apart */
    PARTLY,  /* a run was killed while it wrote them */
    WHOLE
} there;

/* A group that was written here, or what is left of one. */
static int look(cm_store *store, there *out, cm_error *err)
{
    static const char *const DOCUMENT[] = {"zarr.json", ".zattrs"};
    cm_error why;
    *out = NOTHING;
    int rc = cm_store_size(store, BEGUN, NULL, err);
    if (rc == CM_OK)
        *out = PARTLY;
    if (rc != CM_ENOTFOUND)
        return rc;
    for (unsigned i = 0; i < 2 && *out == NOTHING; i++) {
        cm_buf text = {0};
        cm_json *j = NULL;
        rc = cm_store_get(store, DOCUMENT[i], CM_ZARR_MAX_META_NBYTES, &text, &why);
        if (rc == CM_OK && cm_json_parse((const char *)text.data, text.nbytes, &j, &why) == CM_OK) {
            const cm_json *attrs = i == 0 ? cm_json_member(j, "attributes") : j;
            *out = cm_group_is_counted(attrs) ? WHOLE : NOTHING;
        }
        cm_json_free(j);
        cm_buf_release(&text);
        if (rc != CM_OK && rc != CM_ENOTFOUND && rc != CM_EFORMAT) {
            if (err != NULL)
                *err = why;
            return rc;
        }
    }
    return CM_OK;
}

/* *OUT is NULL where nothing is there. */
static int open_place(const char *path, cm_net *net, cm_store **out, there *what, cm_error *err)
{
    cm_place place;
    *out = NULL;
    *what = NOTHING;
    const cm_store_options options = {.output = true, .net = net};
    int rc = cm_store_probe(path, &options, &place, err);
    if (rc != CM_OK || place == CM_PLACE_NOTHING)
        return rc;
    if (place == CM_PLACE_FOLDER)
        rc = cm_store_open(path, &options, out, err);
    if (rc == CM_OK && *out != NULL)
        rc = look(*out, what, err);
    bool any = false;
    if (rc == CM_OK && *out != NULL && *what == NOTHING)
        rc = cm_store_has_any(*out, "", &any, err);
    if (rc == CM_OK && *out != NULL && *what == NOTHING && !any)
        *what = EMPTY;
    return rc;
}

int cm_statistics_are_there(const char *target, cm_net *net, bool *out, cm_error *err)
{
    cm_store *store = NULL;
    there what = NOTHING;
    char *path = place(target, err);
    int rc = path == NULL ? CM_ENOMEM : open_place(path, net, &store, &what, err);
    *out = what == WHOLE;
    cm_store_free(store);
    free(path);
    return rc;
}

int cm_statistics_check_place(const cm_job *job, const char *target, cm_error *err)
{
    const cm_transform_options *o = job->options;
    struct stat st;
    cm_store *store = NULL;
    there what = NOTHING;
    char *path = place(target, err);
    int rc = path == NULL ? CM_ENOMEM : open_place(path, o->net, &store, &what, err);
    if (rc == CM_OK && what == NOTHING &&
        (cm_store_url_is_remote(path) ? store != NULL : lstat(path, &st) == 0))
        rc = cm_fail(err, CM_EEXIST,
                     "%s: statistics are written there, and it is something else; move it away",
                     path);
    if (rc == CM_OK && what == WHOLE && !o->overwrite && !o->resume)
        rc = cm_fail(err, CM_EEXIST, "%s: exists; `overwrite` replaces it", path);
    cm_store_free(store);
    free(path);
    return rc;
}

/* Names that groups and arrays of statistics have here, whose arrays have one chunk each. */
static cm_verdict judge_own(void *context, const char *below, cm_entry_kind kind)
{
    static const char *const OWN[] = {"zarr.json", ".zgroup", ".zarray", ".zattrs",
                                      "c",         "c.0",     "0"};
    const char *name = cm_path_last(below);
    (void)context;
    if (kind == CM_ENTRY_FOLDER || kind == CM_ENTRY_TEMPORARY)
        return CM_REMOVE; /* a folder, when it is empty then */
    for (size_t i = 0; i < sizeof(OWN) / sizeof(OWN[0]); i++)
        if (strcmp(name, OWN[i]) == 0)
            return CM_REMOVE;
    return CM_KEEP;
}

/* Arrays that may have no documents yet, and then the mark. */
static int sweep_begun(cm_store *store, cm_error *err)
{
    int rc = CM_OK;
    for (unsigned kind = 0; kind < NKINDS && rc == CM_OK; kind++)
        rc = cm_store_sweep(store, KIND[kind], judge_own, NULL, err);
    if (rc == CM_OK)
        rc = cm_zarr_erase_metadata(store, "", err);
    return rc == CM_OK ? cm_store_delete(store, BEGUN, err) : rc;
}

int cm_statistics_forget(const char *target, cm_net *net, cm_error *err)
{
    cm_store *store = NULL;
    there what = NOTHING;
    char *path = place(target, err);
    int rc = path == NULL ? CM_ENOMEM : open_place(path, net, &store, &what, err);
    /* If this is interrupted, the rest of them can still be found. */
    if (rc == CM_OK && what == WHOLE)
        rc = cm_store_put(store, BEGUN, "", 0, err);
    if (rc == CM_OK && what == WHOLE)
        rc = cm_zarr_erase(store, err);
    if (rc == CM_OK && what == WHOLE)
        rc = cm_store_delete(store, BEGUN, err);
    if (rc == CM_OK && what == PARTLY)
        rc = sweep_begun(store, err);
    if (rc != CM_OK && path != NULL)
        cm_error_place(err, path);
    else if ((what == PARTLY || what == WHOLE) && !cm_store_url_is_remote(path))
        (void)rmdir(path); /* files of others stay */
    cm_store_free(store);
    free(path);
    return rc;
}

/* ---- arrays ---- */

static bool is_counter(unsigned kind)
{
    return kind < 2;
}

static double number_of(const cm_tally *t, unsigned kind)
{
    if (t->count == 0)
        return NAN;
    const double number[NKINDS] = {0, 0, t->min, t->max, t->mean + t->rest, cm_tally_std(t)};
    return number[kind];
}

static cm_json *json_of(const cm_tally *t, unsigned kind)
{
    return is_counter(kind) ? cm_json_u64(kind == 0 ? t->count : t->missing)
                            : cm_json_double(number_of(t, kind));
}

/* Null for NaN; infinities become "Infinity" and "-Infinity", as in other attributes. */
static int append(cm_json *list, const cm_tally *t, unsigned kind, cm_error *err)
{
    if (!is_counter(kind) && isnan(number_of(t, kind)))
        return cm_json_append_null(list, err);
    return cm_json_append(list, json_of(t, kind), err);
}

typedef struct writing {
    cm_job *job;
    cm_store *store;
    cm_zarr_entry *entry;
    cm_zarr_meta *meta;
    char **path;
    size_t n;
    cm_codec_spec codec;
    bool within; /* the target: the arrays of a variable are a group, so that none has its name */
    bool consolidated;
    cm_json *summary; /* of all variables */
} writing;

/* The levels' dimension by its name in the target, which readers of both look for. */
static char *dimension_of(const cm_job *job, const cm_job_var *v)
{
    return (char *)(uintptr_t)cm_job_dim_name(job, v->source, (unsigned)v->statistics->level);
}

static void describe(writing *w, const cm_job_var *v, unsigned kind, cm_zarr_meta *m)
{
    static uint8_t nan[8] = {0, 0, 0, 0, 0, 0, 0xf8, 0x7f}, zero[8];
    const cm_statistics *s = v->statistics;
    *m = (cm_zarr_meta){
        .zarr_format = w->job->zarr_format,
        .dtype = {.kind = is_counter(kind) ? CM_KIND_UINT : CM_KIND_FLOAT, .nbytes = 8},
        .rank = s->level >= 0,
        .shape = {s->nlevels},
        .chunk = {s->nlevels > 0 ? s->nlevels : 1},
        .has_dim_names = true,
        .has_fill = true,
        .fill = is_counter(kind) ? zero : nan,
        .separator = w->within ? '/' : '.', /* one folder less for each array */
        .codecs = &w->codec,
        .ncodecs = 1};
    if (s->level >= 0)
        m->dim_name[0] = dimension_of(w->job, v);
}

static int write_chunk(writing *w, const char *path, const cm_zarr_meta *m, const cm_tally *t,
                       unsigned kind, cm_error *err)
{
    const uint64_t n = m->rank > 0 ? m->shape[0] : 1;
    cm_zarr_writer *writer = NULL;
    uint64_t *data = cm_calloc(n + 1, sizeof(*data), err);
    int rc = data == NULL ? CM_ENOMEM : cm_zarr_writer_create(w->store, path, m, &writer, err);
    for (uint64_t i = 0; i < n && rc == CM_OK; i++) {
        const double number = number_of(&t[i], kind);
        data[i] = kind == 0 ? t[i].count : t[i].missing;
        if (!is_counter(kind))
            memcpy(&data[i], &number, sizeof(number));
    }
    if (rc == CM_OK && n > 0)
        rc = cm_zarr_writer_put(writer, 0, data, n * sizeof(*data), err);
    if (rc == CM_OK)
        rc = cm_zarr_writer_finish(writer, err);
    cm_zarr_writer_free(writer);
    free(data);
    return rc;
}

static char *path_of(const cm_job_var *v, unsigned kind, bool within, cm_error *err)
{
    return cm_asprintf(err, "%s/%s", within ? v->name : KIND[kind], within ? KIND[kind] : v->name);
}

static int add_array(writing *w, const cm_job_var *v, const cm_tally *t, unsigned kind,
                     cm_error *err)
{
    cm_zarr_meta *m = &w->meta[w->n];
    char *path = path_of(v, kind, w->within, err);
    if (path == NULL)
        return CM_ENOMEM;
    w->path[w->n] = path;
    describe(w, v, kind, m);
    m->attrs = cm_json_object();
    w->entry[w->n++] = (cm_zarr_entry){path, m};
    if (m->attrs == NULL)
        return cm_fail(err, CM_ENOMEM, "no memory for attributes");
    return write_chunk(w, path, m, t, kind, err);
}

static int add_units(const cm_dataset *ds, const cm_job_var *v, unsigned j, cm_json *of,
                     cm_error *err)
{
    const cm_variable *c =
        cm_coordinate_of(ds, v->source, v->source->dim_name[j], v->source->shape[j]);
    const char *units = cm_json_text(cm_json_member(c->attrs, "units"), NULL);
    return units != NULL ? cm_json_set(of, "units", cm_json_string(units), err) : CM_OK;
}

/* The place in the source of level I. */
static uint64_t place_of(const cm_job_var *v, uint64_t i)
{
    const unsigned j = (unsigned)v->statistics->level;
    return v->view.start[j] + i * v->view.step[j];
}

static int add_numbers(const cm_job_var *v, const double *all, cm_json *list, cm_error *err)
{
    int rc = CM_OK;
    for (uint64_t i = 0; rc == CM_OK && i < v->statistics->nlevels; i++) {
        const double at = all[place_of(v, i)];
        rc = isfinite(at) ? cm_json_append(list, cm_json_double(at), err)
                          : cm_json_append_null(list, err);
    }
    return rc;
}

static int add_texts(const cm_job_var *v, const cm_strings *all, cm_json *list, cm_error *err)
{
    int rc = CM_OK;
    for (uint64_t i = 0; rc == CM_OK && i < v->statistics->nlevels; i++) {
        size_t n;
        const char *text = cm_strings_get(all, (size_t)place_of(v, i), &n);
        rc = cm_utf8_is_valid(text, n) ? cm_json_append(list, cm_json_string_n(text, n), err)
                                       : cm_json_append_null(list, err);
    }
    return rc;
}

/*
 * The coordinates of V's levels, numbers and their units, or texts: who uses the statistics for
 * another store can tell whether it has the same levels.
 */
static int add_coordinates(const cm_job *job, const cm_job_var *v, cm_json *of, cm_error *err)
{
    const unsigned j = (unsigned)v->statistics->level;
    const char *dim = v->source->dim_name[j];
    cm_dataset *ds = v->dataset != NULL ? v->dataset : job->source;
    double *number = NULL;
    cm_strings text;
    bool has_text = false;
    if (dim == NULL)
        return CM_OK;
    cm_strings_init(&text, MOST_TEXT);
    int rc = cm_coordinate_read(ds, v->source, dim, v->source->shape[j], &number, err);
    if (rc == CM_OK && number == NULL)
        rc = cm_coordinate_read_texts(ds, v->source, dim, v->source->shape[j], &text, &has_text,
                                      err);
    if (rc == CM_OK && (number != NULL || has_text)) {
        cm_json *list = cm_json_array();
        rc = number != NULL ? add_numbers(v, number, list, err) : add_texts(v, &text, list, err);
        if (rc == CM_OK)
            rc = cm_json_set(of, "coordinates", list, err);
        else
            cm_json_free(list);
    }
    if (rc == CM_OK && number != NULL)
        rc = add_units(ds, v, j, of, err);
    cm_strings_release(&text);
    free(number);
    return rc;
}

static int summarise(writing *w, const cm_job_var *v, const cm_tally *t, cm_error *err)
{
    const cm_statistics *s = v->statistics;
    cm_json *of = cm_json_object();
    int rc = CM_OK;
    if (s->level >= 0)
        rc = cm_json_set(of, "dimension", cm_json_string(dimension_of(w->job, v)), err);
    if (rc == CM_OK && s->level >= 0)
        rc = add_coordinates(w->job, v, of, err);
    for (unsigned kind = 0; kind < NKINDS && rc == CM_OK; kind++) {
        cm_json *list = cm_json_array();
        for (uint64_t i = 0; i < s->nlevels && rc == CM_OK; i++)
            rc = append(list, &t[i], kind, err);
        if (rc == CM_OK)
            rc = cm_json_set(of, KIND[kind], list, err);
        else
            cm_json_free(list);
    }
    if (rc != CM_OK) {
        cm_json_free(of);
        return rc;
    }
    return cm_json_set(w->summary, v->name, of, err);
}

static int add_variable(writing *w, const cm_job_var *v, cm_error *err)
{
    const uint64_t n = v->statistics->nlevels;
    cm_tally *t = cm_calloc(n + 1, sizeof(*t), err);
    int rc = t == NULL ? CM_ENOMEM : CM_OK;
    for (uint64_t i = 0; i < n && rc == CM_OK; i++)
        rc = cm_statistics_level(v, i, &t[i], err);
    for (unsigned kind = 0; kind < NKINDS && rc == CM_OK; kind++)
        rc = add_array(w, v, t, kind, err);
    if (rc == CM_OK)
        rc = summarise(w, v, t, err);
    free(t);
    return rc;
}

/* ---- the group ---- */

static int describe_root(writing *w, const char *target, cm_zarr_meta *root, cm_error *err)
{
    const cm_texts *ranges = &w->job->options->statistics_range;
    const char *name = strrchr(target, '/');
    cm_json *list = cm_json_array();
    int rc = CM_OK;
    *root = (cm_zarr_meta){
        .zarr_format = w->job->zarr_format, .is_group = true, .attrs = cm_json_object()};
    for (size_t i = 0; i < ranges->n && rc == CM_OK; i++)
        rc = cm_json_append(list, cm_json_string(ranges->text[i]), err);
    if (rc != CM_OK) {
        cm_json_free(list);
        return rc;
    }
    rc = cm_json_set(root->attrs, "range", list, err);
    if (rc == CM_OK)
        rc = cm_json_set(root->attrs, CM_COUNTED_MARK, cm_json_string(CM_COUNTED_VALUE), err);
    if (rc == CM_OK)
        rc = cm_json_set(root->attrs, "store",
                         cm_json_string(name != NULL && name[1] != '\0' ? name + 1 : target), err);
    if (rc == CM_OK) {
        rc = cm_json_set(root->attrs, "variables", w->summary, err);
        w->summary = NULL;
    }
    return rc;
}

static int write_all(writing *w, const char *target, cm_error *err)
{
    const cm_job *job = w->job;
    cm_zarr_meta root = {0};
    size_t most = job->nvars * NKINDS + 1;
    w->entry = cm_calloc(most, sizeof(w->entry[0]), err);
    w->meta = cm_calloc(most, sizeof(w->meta[0]), err);
    w->path = cm_calloc(most, sizeof(w->path[0]), err);
    w->summary = cm_json_object();
    int rc = w->entry == NULL || w->meta == NULL || w->path == NULL ? CM_ENOMEM : CM_OK;
    for (size_t i = 0; i < job->nvars && rc == CM_OK; i++)
        if (job->var[i].statistics != NULL)
            rc = add_variable(w, &job->var[i], err);
    if (rc == CM_OK)
        rc = describe_root(w, target, &root, err);
    if (rc == CM_OK) {
        w->entry[w->n] = (cm_zarr_entry){"", &root};
        rc = cm_zarr_hierarchy_write(w->store, job->zarr_format, w->entry, w->n + 1,
                                     w->consolidated, err);
    }
    if (rc == CM_OK && job->options->durable)
        rc = cm_store_sync(w->store, err);
    for (size_t i = 0; i < w->n; i++) {
        cm_json_free(w->meta[i].attrs);
        free(w->path[i]);
    }
    cm_json_free(root.attrs);
    cm_json_free(w->summary);
    free(w->entry);
    free(w->meta);
    free(w->path);
    return rc;
}

/* Work apart from waiting, of all workers. */
static double worked(const cm_transform_report *r)
{
    double total = 0;
    for (size_t i = 0; i < r->nstages; i++)
        if (strcmp(r->stage[i].name, "wait") != 0)
            total += r->stage[i].seconds;
    return total;
}

/* They are at PLACE, which the report takes. */
static void tell(cm_job *job, char *path)
{
    cm_transform_report *r = job->report;
    for (size_t i = 0; i < job->nvars; i++)
        if (job->var[i].statistics != NULL) {
            r->nstatistics++;
            r->statistics_seconds += (double)job->var[i].statistics->ns * 1e-9;
        }
    r->statistics_share =
        r->statistics_seconds > 0 ? r->statistics_seconds / (r->statistics_seconds + worked(r)) : 0;
    r->statistics = path;
}

int cm_statistics_write_into(cm_job *job, cm_store *store, const char *target, char *path,
                             cm_error *err)
{
    writing w = {.job = job, .store = store, .codec = {.id = CM_CODEC_BYTES}, .within = true};
    int rc = write_all(&w, target, err);
    tell(job, path);
    return rc;
}

int cm_statistics_visit(const cm_job *job,
                        int (*visit)(void *context, const char *path, unsigned rank, cm_error *err),
                        void *context, cm_error *err)
{
    int rc = CM_OK;
    for (size_t i = 0; i < job->nvars; i++)
        for (unsigned kind = 0; rc == CM_OK && kind < NKINDS; kind++) {
            const cm_job_var *v = &job->var[i];
            if (v->statistics == NULL)
                break;
            char *path = path_of(v, kind, true, err);
            rc = path == NULL ? CM_ENOMEM : visit(context, path, v->statistics->level >= 0, err);
            free(path);
        }
    return rc;
}

int cm_statistics_write(cm_job *job, const char *target, cm_error *err)
{
    writing w = {
        .job = job, .codec = {.id = CM_CODEC_BYTES}, .consolidated = !job->options->no_consolidate};
    char *path = place(target, err);
    const cm_store_options options = {.output = true, .create = true, .net = job->options->net};
    /* A run that was killed here, and is done again, left some of them. */
    int rc = path == NULL ? CM_ENOMEM : cm_statistics_forget(target, job->options->net, err);
    if (rc == CM_OK)
        rc = cm_store_open(path, &options, &w.store, err);
    if (rc == CM_OK)
        rc = cm_store_sweep_temporaries(w.store, "", true, err);
    if (rc == CM_OK)
        rc = cm_store_put(w.store, BEGUN, "", 0, err);
    if (rc == CM_OK)
        rc = write_all(&w, target, err);
    if (rc == CM_OK)
        rc = cm_store_delete(w.store, BEGUN, err);
    if (rc != CM_OK)
        cm_error_prefix(err, "%s: written, but its statistics were not", target);
    cm_store_free(w.store);
    tell(job, path);
    return rc;
}

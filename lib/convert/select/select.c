/*
 * Which variables are converted: those asked for and what they need, without
 * those excluded, under the names they get.
 */
#include <stdlib.h>
#include <string.h>

#include "convert/select/rename.h"
#include "format/counted.h"
#include "format/multi/multi.h"
#include "options/varopt.h"

static bool has_prefix_path(const char *path, const char *prefix)
{
    size_t n = strlen(prefix);
    return n == 0 || (strncmp(path, prefix, n) == 0 && (path[n] == '\0' || path[n] == '/'));
}

/*
 * The group of statistics that PATH, which is converted with all others, lies in, where they would
 * tell of other elements than those that are stored; NULL: there is none.
 */
static const char *stale_group(const cm_job *job, const char *path)
{
    const cm_transform_options *o = job->options;
    if (o->variable.n > 0 || o->subset.n + o->dtype.n + o->keepbits.n == 0)
        return NULL;
    for (size_t i = 0; i < job->source->ngroups; i++) {
        const char *group = job->source->group[i].path;
        if (*group != '\0' && has_prefix_path(path, group) &&
            cm_group_is_counted(job->source->group[i].attrs))
            return group;
    }
    return NULL;
}

/*
 * Groups that are described: those below the converted one; with a choice of variables, only
 * those that hold some.
 */
bool cm_job_wants_group(const cm_job *job, const char *path)
{
    if (!has_prefix_path(path, job->from.group) || stale_group(job, path) != NULL)
        return false;
    if (job->options->variable.n == 0)
        return true;
    for (size_t i = 0; i < job->nvars; i++)
        if (has_prefix_path(job->var[i].source->name, path))
            return true;
    return strcmp(path, job->from.group) == 0;
}

typedef struct selection {
    cm_job *job;
    bool *chosen; /* one for each variable of the file */
    bool found;
    bool value; /* what visit_name sets */
    const char *option;
} selection;

/* The variable's path below the group that is converted; NULL when it lies elsewhere. */
static const char *path_in_group(const cm_job *job, const cm_variable *v)
{
    size_t n = strlen(job->from.group);
    const char *name = v->name;
    if (n == 0)
        return name;
    return strncmp(name, job->from.group, n) == 0 && name[n] == '/' ? name + n + 1 : NULL;
}

/* Whether the source is many files, whose names the survey compared. */
static bool is_joined(const cm_job *job)
{
    return cm_multi_spec_of(job->source) != NULL;
}

static int visit_name(void *context, char *pattern, cm_error *err)
{
    selection *s = context;
    bool found = false;
    /* A store that is a single array has no name for it. */
    if (*pattern == '\0' && !(s->job->source->nvars == 1 && *s->job->source->var[0].name == '\0'))
        return cm_fail(err, CM_EINVAL, "%s: an empty name stands in the list", s->option);
    for (size_t i = 0; i < s->job->source->nvars; i++) {
        const char *path = path_in_group(s->job, &s->job->source->var[i]);
        if (path != NULL && cm_name_matches(pattern, path)) {
            const cm_variable *v = &s->job->source->var[i];
            const bool merged = v->is_taken && v->is_coordinate;
            if (v->is_taken && (!s->value || (merged && strcmp(pattern, path) == 0)))
                return cm_fail(err, CM_EINVAL, "%s %s: %s is %s", s->option, pattern, path,
                               merged ? "taken out by `merge_along`" : "a channel of a stack");
            s->chosen[i] = s->value;
            found = true;
        }
    }
    /* Variables to leave out of many files were left out when they were joined. */
    if (!found && !s->value && is_joined(s->job))
        return CM_OK;
    if (!found)
        return cm_fail(err, CM_EINVAL, "%s %s: the %s has no such %s", s->option, pattern,
                       s->job->source->kind == CM_DATASET_ZARR ? "store" : "file",
                       cm_job_noun(s->job));
    return CM_OK;
}

/* The group part of a variable's path: "a/b" of "a/b/tas". */
static size_t group_length(const char *name)
{
    const char *last = strrchr(name, '/');
    return last == NULL ? 0 : (size_t)(last - name);
}

const cm_variable *cm_job_find_from(const cm_job *job, const char *group, size_t ngroup,
                                    const char *name, size_t nname)
{
    bool absolute = nname > 0 && *name == '/';
    name += absolute;
    nname -= absolute;
    for (size_t depth = absolute ? 0 : ngroup;;) {
        size_t skip = depth > 0 ? depth + 1 : 0;
        for (size_t i = 0; i < job->source->nvars; i++) {
            const char *other = job->source->var[i].name;
            if (strlen(other) == skip + nname && strncmp(other, group, depth) == 0 &&
                (depth == 0 || other[depth] == '/') && strncmp(other + skip, name, nname) == 0)
                return &job->source->var[i];
        }
        if (depth == 0)
            return NULL;
        while (depth > 0 && group[--depth] != '/') {
        }
    }
}

static bool choose(selection *s, const cm_variable *from, const char *name, size_t nname)
{
    const cm_variable *v =
        nname == 0 ? NULL
                   : cm_job_find_from(s->job, from->name, group_length(from->name), name, nname);
    if (v == NULL || s->chosen[v->index])
        return false;
    s->chosen[v->index] = true;
    return true;
}

/*
 * CF attributes whose words name other variables.  In some of them words that
 * end in ':' say what the next one is ("area: areacella", "b: orog").
 */
static const char *const referring[] = {"coordinates",  "bounds",        "climatology",
                                        "grid_mapping", "formula_terms", NULL};

static bool choose_needed(selection *s, const cm_variable *v)
{
    bool any = false;
    for (unsigned j = 0; j < v->rank; j++)
        if (v->dim_name[j] != NULL)
            any |= choose(s, v, v->dim_name[j], strlen(v->dim_name[j]));
    for (size_t k = 0; referring[k] != NULL; k++) {
        const char *text = cm_json_text(cm_json_member(v->attrs, referring[k]), NULL);
        while (text != NULL && *text != '\0') {
            size_t n = strcspn(text, " \t\n,");
            size_t name = n > 0 && text[n - 1] == ':' ? n - 1 : n;
            any |= choose(s, v, text, name);
            text += n + strspn(text + n, " \t\n,");
        }
    }
    return any;
}

static void choose_all_needed(selection *s)
{
    bool more = true;
    while (more) {
        more = false;
        for (size_t i = 0; i < s->job->source->nvars; i++)
            if (s->chosen[i])
                more |= choose_needed(s, &s->job->source->var[i]);
    }
}

static int apply_list(selection *s, const char *option, const cm_texts *texts, bool value,
                      cm_error *err)
{
    s->option = option;
    s->value = value;
    for (size_t i = 0; i < texts->n; i++) {
        int rc = cm_split(texts->text[i], ',', visit_name, s, err);
        if (rc != CM_OK)
            return rc;
    }
    return CM_OK;
}

/* Variables of types that have no place in Zarr stop the conversion, or are listed and left out. */
static int drop_unsupported(selection *s, cm_error *err)
{
    cm_job *job = s->job;
    for (size_t i = 0; i < job->source->nvars; i++) {
        const cm_variable *v = &job->source->var[i];
        /* Arrays of a store that are not understood are carried over as they are. */
        if (!s->chosen[i] || v->unsupported == NULL || v->words != NULL)
            continue;
        if (!job->options->skip_unsupported)
            return cm_fail(err, CM_EUNSUPPORTED,
                           "variable %s: %s; `skip_unsupported` leaves it out", v->name,
                           v->unsupported);
        s->chosen[i] = false;
        int rc = cm_job_skip(job, err, "%s: %s", v->name, v->unsupported);
        if (rc != CM_OK)
            return rc;
    }
    return CM_OK;
}

/* One name of V's path in the store. */
static int check_part(cm_job *job, const cm_job_var *v, const char *name, size_t nbytes,
                      cm_error *err)
{
    char part[256];
    bool warn = false;
    int rc = CM_OK;
    if (nbytes >= sizeof(part)) {
        rc = cm_fail(err, CM_EUNSUPPORTED, "a name of more than 255 bytes");
    } else {
        memcpy(part, name, nbytes);
        part[nbytes] = '\0';
        rc = cm_zarr_name_check(part, &warn, err);
    }
    if (rc != CM_OK) {
        bool renamed = strcmp(v->name, path_in_group(job, v->source)) != 0;
        cm_error_prefix(err, "variable %.300s", v->source->name);
        return cm_fail(err, renamed ? CM_EINVAL : CM_EUNSUPPORTED,
                       "%.800s; `rename` gives it another name", err == NULL ? "" : err->text);
    }
    if (!warn)
        return CM_OK;
    return cm_job_warn(job, err,
                       "variable %s: names that begin with \"__\" are reserved in Zarr, some "
                       "readers may refuse it",
                       v->name);
}

static int check_path(cm_job *job, const cm_job_var *v, cm_error *err)
{
    for (const char *p = v->name;; p++) {
        size_t n = strcspn(p, "/");
        int rc = check_part(job, v, p, n, err);
        if (rc != CM_OK || p[n] == '\0')
            return rc;
        p += n;
    }
}

/* No two arrays share a path, and nothing lies below an array. */
static int check_place(const cm_job *job, const cm_job_var *v, cm_error *err)
{
    size_t n = strlen(v->name), skip = strlen(job->from.group);
    for (size_t i = 0; i < job->nvars; i++) {
        const cm_job_var *other = &job->var[i];
        if (other < v && strcmp(other->name, v->name) == 0)
            return cm_fail(err, CM_EINVAL, "two variables would be named %s", v->name);
        if (strncmp(other->name, v->name, n) == 0 && other->name[n] == '/')
            return cm_fail(err, CM_EINVAL, "%s would lie below %s, which is an array", other->name,
                           v->name);
    }
    for (size_t i = 0; i < job->source->ngroups; i++) {
        const char *path = job->source->group[i].path;
        if (cm_job_wants_group(job, path) && path[skip] != '\0' &&
            strcmp(path + skip + (path[skip] == '/'), v->name) == 0)
            return cm_fail(err, CM_EINVAL,
                           "variable %s: a group is named %s; `rename` gives it another name",
                           v->source->name, v->name);
    }
    return CM_OK;
}

static int check_names(cm_job *job, cm_error *err)
{
    int rc = CM_OK;
    for (size_t i = 0; rc == CM_OK && i < job->nvars; i++) {
        const cm_job_var *v = &job->var[i];
        /* An array of a store has a name that may stand in a store. */
        bool stays = v->source->words != NULL && strcmp(v->name, v->source->name) == 0;
        rc = stays ? CM_OK : check_path(job, v, err);
        if (rc == CM_OK)
            rc = check_place(job, v, err);
    }
    return rc;
}

static bool any_chosen(const selection *s)
{
    for (size_t i = 0; i < s->job->source->nvars; i++)
        if (s->chosen[i])
            return true;
    return false;
}

static int collect(selection *s, cm_error *err)
{
    cm_job *job = s->job;
    size_t n = 0;
    for (size_t i = 0; i < job->source->nvars; i++)
        n += s->chosen[i];
    if ((job->var = cm_calloc(n > 0 ? n : 1, sizeof(job->var[0]), err)) == NULL)
        return CM_ENOMEM;
    for (size_t i = 0; i < job->source->nvars; i++) {
        if (!s->chosen[i])
            continue;
        cm_job_var *v = &job->var[job->nvars++];
        v->source = &job->source->var[i];
        if ((v->name = cm_strdup(path_in_group(job, v->source), err)) == NULL)
            return CM_ENOMEM;
    }
    return CM_OK;
}

static int warn_of_stale(cm_job *job, cm_error *err)
{
    const char *last = NULL;
    int rc = CM_OK;
    for (size_t i = 0; rc == CM_OK && i < job->source->nvars; i++) {
        const char *group = stale_group(job, job->source->var[i].name);
        if (group != NULL && group != last)
            rc = cm_job_warn(job, err,
                             "%s: statistics of what the source stores, and left out; `variable` "
                             "takes them along",
                             group);
        last = group;
    }
    return rc;
}

int cm_job_select(cm_job *job, cm_error *err)
{
    const cm_transform_options *o = job->options;
    size_t nvars = job->source->nvars;
    selection s = {.job = job, .chosen = cm_calloc(nvars > 0 ? nvars : 1, sizeof(bool), err)};
    if (s.chosen == NULL)
        return CM_ENOMEM;
    for (size_t i = 0; i < nvars && o->variable.n == 0; i++)
        s.chosen[i] = path_in_group(job, &job->source->var[i]) != NULL &&
                      stale_group(job, job->source->var[i].name) == NULL;
    int rc = warn_of_stale(job, err);
    if (rc == CM_OK)
        rc = apply_list(&s, "`variable`", &o->variable, true, err);
    for (size_t i = 0; i < nvars; i++)
        s.chosen[i] = s.chosen[i] || job->source->var[i].is_made;
    if (rc == CM_OK && o->variable.n > 0 && o->defaults == CM_DEFAULTS_CHOOSE)
        choose_all_needed(&s);
    for (size_t i = 0; i < nvars; i++)
        s.chosen[i] = s.chosen[i] && !job->source->var[i].is_taken &&
                      path_in_group(job, &job->source->var[i]) != NULL;
    if (rc == CM_OK)
        rc = apply_list(&s, "`exclude`", &o->exclude, false, err);
    if (rc == CM_OK && o->exclude.n > 0 && !is_joined(job) && !any_chosen(&s))
        rc = cm_fail(err, CM_EINVAL, "`exclude` leaves no %s of the %s", cm_job_noun(job),
                     job->source->kind == CM_DATASET_ZARR ? "store" : "file");
    if (rc == CM_OK)
        rc = drop_unsupported(&s, err);
    if (rc == CM_OK)
        rc = collect(&s, err);
    if (rc == CM_OK)
        rc = cm_job_rename(job, err);
    if (rc == CM_OK)
        rc = check_names(job, err);
    if (rc == CM_OK)
        rc = cm_job_rename_rest(job, err);
    free(s.chosen);
    return rc;
}

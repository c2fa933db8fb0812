/* Which variables and dimensions there are, by the names that they get. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "archive/join.h"
#include "archive/tables/described.h"
#include "archive/tables/scalars.h"
#include "base/number.h"
#include "base/path.h"
#include "options/varopt.h"

/* ---- --rename ---- */

static bool is_renamed(const char *pair, const char *name, const char **new)
{
    const char *equals = strchr(pair, '=');
    size_t n = equals == NULL ? 0 : (size_t)(equals - pair);
    if (n == 0 || strlen(name) != n || strncmp(pair, name, n) != 0)
        return false;
    *new = equals + 1;
    return true;
}

const char *cm_join_name(const cm_join_input *in, const cm_join_tables *tables, const char *name,
                         char *buf, size_t size)
{
    const cm_texts *pairs = &in->options->rename;
    const char *last = cm_path_last(name), *new = NULL;
    for (size_t i = 0; i < pairs->n; i++)
        if (tables->renames[i] && is_renamed(pairs->text[i], name, &new))
            return new;
    for (size_t i = 0; i < pairs->n; i++) {
        if (!tables->renames[i] || !is_renamed(pairs->text[i], last, &new))
            continue;
        int n = snprintf(buf, size, "%.*s%s", (int)(last - name), name, new);
        return n > 0 && (size_t)n < size ? buf : name;
    }
    return cm_join_scalar_name(in, tables, name, buf, size);
}

static bool has_name(const cm_skeleton *k, const char *name, size_t nbytes)
{
    for (size_t i = 0; i < k->nvars; i++)
        if (strlen(k->var[i]->name) == nbytes && strncmp(k->var[i]->name, name, nbytes) == 0)
            return true;
    return false;
}

/* Pairs of which some files have the old name and others the new one. */
static int find_renames(const cm_join_input *in, cm_join_tables *tables, cm_error *err)
{
    const cm_texts *pairs = &in->options->rename;
    if ((tables->renames = cm_calloc(pairs->n + 1, sizeof(tables->renames[0]), err)) == NULL)
        return CM_ENOMEM;
    for (size_t p = 0; p < pairs->n; p++) {
        const char *equals = strchr(pairs->text[p], '=');
        bool old = false, new = false;
        for (size_t i = 0; equals != NULL && i < in->nfiles && !(old && new); i++) {
            const cm_skeleton *k = cm_join_skeleton(in, (uint32_t)i);
            bool has_old = has_name(k, pairs->text[p], (size_t)(equals - pairs->text[p]));
            old |= has_old;
            new |= !has_old &&has_name(k, equals + 1, strlen(equals + 1));
        }
        tables->renames[p] = old && new;
    }
    return CM_OK;
}

char *cm_join_reword(const cm_join_input *in, const cm_join_tables *tables, const char *text,
                     cm_error *err)
{
    cm_buf out = {0};
    char word[512], buf[512];
    int rc = CM_OK;
    while (rc == CM_OK && *text != '\0') {
        size_t n = strcspn(text, " \t\n,:"), space = strspn(text + n, " \t\n,:");
        snprintf(word, sizeof(word), "%.*s", (int)n, text);
        const char *name =
            n < sizeof(word) ? cm_join_name(in, tables, word, buf, sizeof(buf)) : word;
        rc = cm_buf_printf(&out, err, "%s%.*s", name, (int)space, text + n);
        text += n + space;
    }
    char *copy = rc == CM_OK ? cm_asprintf(err, "%.*s", (int)out.nbytes, (char *)out.data) : NULL;
    cm_buf_release(&out);
    return copy;
}

/* ---- tables ---- */

uint32_t cm_join_dim_named(const cm_join_tables *tables, const char *name)
{
    for (size_t i = 0; i < tables->ndims; i++)
        if (strcmp(tables->dim[i].name, name) == 0)
            return (uint32_t)i;
    return CM_JOIN_NONE;
}

/* The variable NAME, ignored or not. */
static uint32_t find_name(const cm_join_tables *tables, const char *name)
{
    for (size_t i = 0; i < tables->nvars; i++)
        if (strcmp(tables->var[i].name, name) == 0)
            return (uint32_t)i;
    return CM_JOIN_NONE;
}

uint32_t cm_join_var_named(const cm_join_tables *tables, const char *name)
{
    const uint32_t at = find_name(tables, name);
    return at != CM_JOIN_NONE && tables->var[at].ignored ? CM_JOIN_NONE : at;
}

int cm_join_add_dim(const cm_join_input *in, cm_join_tables *tables, const char *name,
                    uint32_t *out, cm_error *err)
{
    if (CM_GROW(tables->dim, tables->ndims, err) != CM_OK)
        return CM_ENOMEM;
    cm_join_dim *d = &tables->dim[tables->ndims];
    *d = (cm_join_dim){.var = CM_JOIN_NONE, .same_as = CM_JOIN_NONE, .joined = -1};
    *out = (uint32_t)tables->ndims++;
    d->name = cm_strdup(name, err);
    d->length = cm_join_alloc(in, in->nfiles, sizeof(d->length[0]), err);
    d->at = cm_join_alloc(in, in->nfiles, sizeof(d->at[0]), err);
    if (d->name == NULL || d->length == NULL || d->at == NULL)
        return CM_ENOMEM;
    for (size_t i = 0; i < in->nfiles; i++)
        d->at[i] = CM_JOIN_NONE;
    return CM_OK;
}

/* Attributes that name what is renamed. */
static int reword_attrs(const cm_join_input *in, const cm_join_tables *tables, cm_join_var *v,
                        cm_error *err)
{
    static const char *const REFERRING[] = {"coordinates", "bounds", "climatology", "grid_mapping"};
    bool any = false;
    int rc = CM_OK;
    for (size_t i = 0; i < in->options->rename.n; i++)
        any |= tables->renames[i];
    for (size_t i = 0; i < in->options->new_dim.n; i++)
        any |= tables->scalar[i];
    for (size_t i = 0; any && rc == CM_OK && i < sizeof(REFERRING) / sizeof(REFERRING[0]); i++) {
        const char *text = cm_json_text(cm_json_member(v->attrs, REFERRING[i]), NULL);
        if (text == NULL)
            continue;
        char *reworded = cm_join_reword(in, tables, text, err);
        rc = reworded == NULL ? CM_ENOMEM
                              : cm_json_set(v->attrs, REFERRING[i], cm_json_string(reworded), err);
        free(reworded);
    }
    return rc;
}

static int add_var(const cm_join_input *in, cm_join_tables *tables, cm_described *like,
                   const char *name, uint32_t *out, cm_error *err)
{
    char buf[512];
    if (CM_GROW(tables->var, tables->nvars, err) != CM_OK)
        return CM_ENOMEM;
    cm_join_var *v = &tables->var[tables->nvars];
    *v = (cm_join_var){
        .like = like, .first = CM_JOIN_NONE, .rank = like->rank, .bounds_of = CM_JOIN_NONE};
    *out = (uint32_t)tables->nvars++;
    v->name = cm_strdup(name, err);
    v->dtype = like->dtype;
    like->kept = true;
    v->attrs = cm_json_copy(cm_described_attrs(like));
    v->has_fill_value = like->has_fill_value;
    memcpy(v->fill_value, like->fill_value, sizeof(v->fill_value));
    if (v->name == NULL || (v->attrs == NULL && like->text != NULL))
        return cm_fail(err, CM_ENOMEM, "no memory for variables");
    if (reword_attrs(in, tables, v, err) != CM_OK)
        return CM_ENOMEM;
    for (unsigned i = 0; i < like->rank; i++) {
        const char *dim = cm_join_name(in, tables, like->dim[i], buf, sizeof(buf));
        v->dim[i] = cm_join_dim_named(tables, dim);
        int rc =
            v->dim[i] == CM_JOIN_NONE ? cm_join_add_dim(in, tables, dim, &v->dim[i], err) : CM_OK;
        if (rc != CM_OK)
            return rc;
        tables->dim[v->dim[i]].unlimited |= like->unlimited[i];
    }
    return CM_OK;
}

int cm_join_make_var(cm_join_tables *tables, const char *name, uint32_t dim, cm_dtype dtype,
                     uint32_t *out, cm_error *err)
{
    if (CM_GROW(tables->var, tables->nvars, err) != CM_OK)
        return CM_ENOMEM;
    cm_described *d = cm_calloc(1, sizeof(*d), err);
    cm_join_var *v = &tables->var[tables->nvars];
    *v = (cm_join_var){.like = d,
                       .made = d,
                       .first = CM_JOIN_NONE,
                       .bounds_of = CM_JOIN_NONE,
                       .rank = 1,
                       .dim = {dim},
                       .dtype = dtype,
                       .wanted = true,
                       .given = true};
    *out = (uint32_t)tables->nvars++;
    v->name = cm_strdup(name, err);
    v->attrs = cm_json_object();
    if (d == NULL || v->name == NULL || v->attrs == NULL)
        return cm_fail(err, CM_ENOMEM, "no memory for the coordinate %s", name);
    d->name = v->name;
    d->dtype = dtype;
    d->rank = 1;
    return CM_OK;
}

/* The variables of skeleton K, each with its number here. */
static int map_skeleton(const cm_join_input *in, cm_join_tables *tables, const cm_skeleton *k,
                        cm_error *err)
{
    char buf[512];
    uint32_t *to = cm_join_alloc(in, k->nvars, sizeof(*to), err);
    if ((tables->to_var[k->index] = to) == NULL)
        return CM_ENOMEM;
    for (size_t i = 0; i < k->nvars; i++) {
        const char *name = cm_join_name(in, tables, k->var[i]->name, buf, sizeof(buf));
        to[i] = find_name(tables, name);
        int rc = to[i] == CM_JOIN_NONE ? add_var(in, tables, k->var[i], name, &to[i], err) : CM_OK;
        if (rc != CM_OK)
            return rc;
        tables->var[to[i]].decoded |= k->var[i]->decoded_from != NULL;
    }
    return CM_OK;
}

static cm_digest digest_names(const uint32_t *pos, size_t nvars)
{
    struct {
        cm_digest before;
        uint64_t var;
    } next = {{0}, 0};
    for (; next.var < nvars; next.var++)
        if (pos[next.var] != CM_JOIN_NONE)
            next.before = cm_wire_digest(&next, sizeof(next));
    return next.before;
}

/* Back from variables to positions, when all variables are known. */
static int map_back(const cm_join_input *in, cm_join_tables *tables, const cm_skeleton *k,
                    cm_error *err)
{
    uint32_t *pos = cm_join_alloc(in, tables->nvars, sizeof(*pos), err);
    if ((tables->to_pos[k->index] = pos) == NULL)
        return CM_ENOMEM;
    for (size_t i = 0; i < tables->nvars; i++)
        pos[i] = CM_JOIN_NONE;
    for (size_t i = 0; i < k->nvars; i++)
        pos[tables->to_var[k->index][i]] = (uint32_t)i;
    tables->names[k->index] = digest_names(pos, tables->nvars);
    return CM_OK;
}

/* ---- what is wanted ---- */

typedef struct choice {
    const cm_join_input *in;
    cm_join_tables *tables;
    bool value;
} choice;

/* Checks names to leave out; the conversion reports chosen names that match nothing. */
static int visit(void *context, char *pattern, cm_error *err)
{
    const choice *c = context;
    bool found = c->value || c->in->has_base || c->in->options->store_per != NULL;
    for (size_t i = 0; i < c->tables->nvars; i++)
        if (!c->tables->var[i].ignored && cm_name_matches(pattern, c->tables->var[i].name)) {
            c->tables->var[i].wanted = c->value;
            found = true;
        }
    return found ? CM_OK
                 : cm_fail(err, CM_EINVAL, "`exclude` %s: no file has such a variable", pattern);
}

static int apply_list(const cm_join_input *in, cm_join_tables *tables, const cm_texts *texts,
                      bool value, cm_error *err)
{
    choice c = {in, tables, value};
    int rc = CM_OK;
    for (size_t i = 0; rc == CM_OK && i < texts->n; i++)
        rc = cm_split(texts->text[i], ',', visit, &c, err);
    return rc;
}

static bool want(cm_join_tables *tables, const char *name, size_t nbytes)
{
    for (size_t i = 0; i < tables->nvars; i++) {
        cm_join_var *v = &tables->var[i];
        if (v->wanted || v->ignored || strlen(v->name) != nbytes ||
            strncmp(v->name, name, nbytes) != 0)
            continue;
        v->wanted = true;
        return true;
    }
    return false;
}

/* Chooses the variables that V needs: its coordinates, and those that its attributes name. */
static bool want_needed(cm_join_tables *tables, const cm_join_var *v)
{
    static const char *const REFERRING[] = {"coordinates", "bounds", "climatology", "grid_mapping",
                                            "formula_terms"};
    bool more = false;
    for (unsigned i = 0; i < v->rank; i++)
        more |= want(tables, tables->dim[v->dim[i]].name, strlen(tables->dim[v->dim[i]].name));
    for (size_t k = 0; k < sizeof(REFERRING) / sizeof(REFERRING[0]); k++) {
        const char *text = cm_join_text(v->like, REFERRING[k]);
        while (text != NULL && *text != '\0') {
            size_t n = strcspn(text, " \t\n,");
            more |= want(tables, text, n > 0 && text[n - 1] == ':' ? n - 1 : n);
            text += n + strspn(text + n, " \t\n,");
        }
    }
    return more;
}

void cm_join_want_needed(cm_join_tables *tables)
{
    for (bool more = true; more;) {
        more = false;
        for (size_t i = 0; i < tables->nvars; i++)
            if (tables->var[i].wanted)
                more |= want_needed(tables, &tables->var[i]);
    }
}

static int choose(const cm_join_input *in, cm_join_tables *tables, cm_error *err)
{
    bool all = in->only == NULL && in->options->variable.n == 0;
    int rc = CM_OK;
    for (size_t i = 0; i < tables->nvars; i++)
        tables->var[i].wanted = all && !tables->var[i].ignored;
    for (size_t i = 0; in->only != NULL && i < in->only->n; i++)
        (void)want(tables, in->only->text[i], strlen(in->only->text[i]));
    if (in->only == NULL)
        rc = apply_list(in, tables, &in->options->variable, true, err);
    if (!all)
        cm_join_want_needed(tables);
    return rc == CM_OK ? apply_list(in, tables, &in->options->exclude, false, err) : rc;
}

/* ---- files ---- */

/* V of FILE has N elements along dimension DIM: if another has more, a finding, once for each. */
static int note_length(cm_join_tables *tables, cm_join_findings *findings, uint32_t dim,
                       uint32_t file, const cm_join_var *v, uint64_t n, cm_error *err)
{
    cm_join_dim *d = &tables->dim[dim];
    const cm_file_length before = d->length[file];
    if (!cm_file_has(before))
        d->length[file] = cm_file_length_make(n);
    if (!cm_file_has(before) || cm_file_count(before) == n || d->apart)
        return CM_OK;
    d->apart = tables->refused = true;
    return cm_join_find(
               findings, CM_FINDING_LENGTH, CM_WEIGHT_DECISION, false, d->name, file, err,
               "variable %s has %" PRIu64 " %s along it, and that of another group %" PRIu64
               ": files whose groups have other dimensions of one name are not joined",
               v->name, n, cm_of_count(n, "element", "elements"), cm_file_count(before)) == NULL
               ? CM_ENOMEM
               : CM_OK;
}

static int add_file(const cm_join_input *in, cm_join_tables *tables, cm_join_findings *findings,
                    uint32_t file, cm_error *err)
{
    char buf[512];
    cm_surveyed_var s;
    cm_surveyed_iter it = cm_surveyed_begin(in->file[file]);
    const uint32_t *to = tables->to_var[cm_join_skeleton(in, file)->index];
    for (size_t i = 0; cm_surveyed_next(&it, &s); i++) {
        cm_join_var *v = &tables->var[to[i]];
        if (v->first == CM_JOIN_NONE) {
            v->first = file;
            v->file = cm_join_alloc(in, in->nfiles, sizeof(v->file[0]), err);
            if (v->file == NULL)
                return CM_ENOMEM;
        } else if (v->file[v->nfiles - 1] == file) {
            return cm_fail(err, CM_EINVAL, "%s: two variables would be named %s",
                           in->file[file]->path, v->name);
        }
        v->file[v->nfiles++] = file;
        for (unsigned k = 0; k < s.var->rank; k++) {
            const char *name = cm_join_name(in, tables, s.var->dim[k], buf, sizeof(buf));
            uint32_t dim = cm_join_dim_named(tables, name);
            int rc = dim == CM_JOIN_NONE ? cm_join_add_dim(in, tables, name, &dim, err) : CM_OK;
            if (rc != CM_OK)
                return rc;
            rc = note_length(tables, findings, dim, file, v, s.shape[k], err);
            if (rc != CM_OK)
                return rc;
        }
    }
    return it.at.bad ? cm_fail(err, CM_EFORMAT, "%s: its record in the survey is damaged",
                               in->file[file]->path)
                     : CM_OK;
}

/*
 * A coordinate decoded from text needs all files with its dimension to have it: text that is not a
 * date in one file leaves all files' texts as they are.  A store that has such a coordinate demands
 * it of the files.
 */
static void ignore_decoded(const cm_join_input *in, cm_join_tables *tables)
{
    for (size_t i = 0; i < tables->nvars; i++) {
        cm_join_var *v = &tables->var[i];
        size_t nfiles = 0;
        if (!v->decoded || (in->has_base && v->first == 0))
            continue;
        for (size_t k = 0; k < in->nfiles; k++)
            nfiles += cm_file_has(tables->dim[v->dim[0]].length[k]);
        v->ignored = nfiles > v->nfiles;
    }
}

int cm_join_names(const cm_join_input *in, cm_join_tables *tables, cm_join_findings *findings,
                  cm_error *err)
{
    int rc = find_renames(in, tables, err);
    if (rc == CM_OK)
        rc = cm_join_find_scalars(in, tables, err);
    if (rc != CM_OK)
        return rc;
    tables->to_var = cm_join_alloc(in, in->survey->nskeletons, sizeof(tables->to_var[0]), err);
    tables->to_pos = cm_join_alloc(in, in->survey->nskeletons, sizeof(tables->to_pos[0]), err);
    tables->names = cm_join_alloc(in, in->survey->nskeletons, sizeof(tables->names[0]), err);
    if (tables->to_var == NULL || tables->to_pos == NULL || tables->names == NULL)
        return CM_ENOMEM;
    for (size_t i = 0; rc == CM_OK && i < in->nfiles; i++)
        if (tables->to_var[cm_join_skeleton(in, (uint32_t)i)->index] == NULL)
            rc = map_skeleton(in, tables, cm_join_skeleton(in, (uint32_t)i), err);
    for (size_t i = 0; rc == CM_OK && i < in->nfiles; i++)
        if (tables->to_pos[cm_join_skeleton(in, (uint32_t)i)->index] == NULL)
            rc = map_back(in, tables, cm_join_skeleton(in, (uint32_t)i), err);
    for (size_t i = 0; rc == CM_OK && i < in->nfiles; i++)
        rc = add_file(in, tables, findings, (uint32_t)i, err);
    ignore_decoded(in, tables);
    return rc == CM_OK ? choose(in, tables, err) : rc;
}

/*
 * --rename: renames a variable, the dimension that it is the coordinate of, and its name in
 * attributes of other variables.
 */
#include <stdlib.h>
#include <string.h>

#include "base/path.h"
#include "convert/select/rename.h"
#include "options/varopt.h"

/* ---- names in attributes --------------------------------------------------------------------- */

/* The kind of words that an attribute has. */
typedef enum words {
    VARIABLES,       /* names of variables */
    KEYED_VARIABLES, /* "key: name": only the names */
    ALL_VARIABLES,   /* "name: name name": both */
    METHODS,         /* "name: method (comment: text)": a dimension or a coordinate */
    DIMENSIONS       /* names of dimensions */
} words;

/* CF 1.11, appendix A and section 5.6; UGRID 1.0. */
static const struct {
    const char *name;
    words words;
} referring[] = {
    {"ancillary_variables", VARIABLES},
    {"bounds", VARIABLES},
    {"cell_measures", KEYED_VARIABLES},
    {"cell_methods", METHODS},
    {"climatology", VARIABLES},
    {"compress", DIMENSIONS},
    {"coordinate_interpolation", ALL_VARIABLES},
    {"coordinates", VARIABLES},
    {"formula_terms", KEYED_VARIABLES},
    {"geometry", VARIABLES},
    {"grid_mapping", ALL_VARIABLES},
    {"instance_dimension", DIMENSIONS},
    {"interior_ring", VARIABLES},
    {"interpolation_parameters", KEYED_VARIABLES},
    {"node_coordinates", VARIABLES},
    {"node_count", VARIABLES},
    {"nodes", VARIABLES},
    {"part_node_count", VARIABLES},
    {"quantization", VARIABLES},
    {"sample_dimension", DIMENSIONS},
    {"mesh", VARIABLES},
    {"edge_coordinates", VARIABLES},
    {"face_coordinates", VARIABLES},
    {"volume_coordinates", VARIABLES},
    {"edge_node_connectivity", VARIABLES},
    {"face_node_connectivity", VARIABLES},
    {"face_edge_connectivity", VARIABLES},
    {"face_face_connectivity", VARIABLES},
    {"edge_face_connectivity", VARIABLES},
    {"boundary_node_connectivity", VARIABLES},
    {"node_dimension", DIMENSIONS},
    {"edge_dimension", DIMENSIONS},
    {"face_dimension", DIMENSIONS},
};

static size_t group_length(const char *path)
{
    const char *slash = strrchr(path, '/');
    return slash == NULL ? 0 : (size_t)(slash - path);
}

/* The chosen variable that is renamed and that WORD means below GROUP; NULL: none. */
static const cm_job_var *find_renamed(const cm_job *job, const char *group, size_t ngroup,
                                      const char *word, size_t nword)
{
    const cm_variable *v = cm_job_find_from(job, group, ngroup, word, nword);
    for (size_t i = 0; v != NULL && i < job->nvars; i++)
        if (job->var[i].source == v)
            return job->var[i].renamed ? &job->var[i] : NULL;
    return NULL;
}

/* Appends WORD, or the new name if it refers to a renamed variable. */
static int append_variable(const cm_job *job, const char *group, size_t ngroup, const char *word,
                           size_t nword, cm_buf *out, cm_error *err)
{
    const cm_job_var *v = find_renamed(job, group, ngroup, word, nword);
    if (v == NULL)
        return cm_buf_append(out, word, nword, err);
    const char *old = v->source->name + strlen(job->from.group);
    old += *old == '/';
    size_t depth = group_length(old);
    bool moved = group_length(v->name) != depth || strncmp(v->name, old, depth) != 0;
    if (*word == '/' || moved)
        return cm_buf_printf(out, err, "/%s", v->name);
    /* A path that leads down keeps its groups. */
    size_t above = nword - strlen(cm_path_last(old));
    return cm_buf_printf(out, err, "%.*s%s", (int)above, word, cm_path_last(v->name));
}

/* Appends WORD, or the new name if it is the dimension of a renamed coordinate. */
static int append_dimension(const cm_job *job, const char *group, size_t ngroup, const char *word,
                            size_t nword, cm_buf *out, cm_error *err)
{
    const cm_job_var *v = find_renamed(job, group, ngroup, word, nword);
    if (v == NULL || !v->source->is_coordinate)
        return cm_buf_append(out, word, nword, err);
    return cm_buf_printf(out, err, "%s", cm_path_last(v->name));
}

/* A standard name may stand there too, which a variable of other coordinates may have. */
static int append_cell(const cm_job *job, const char *group, size_t ngroup, const char *word,
                       size_t nword, cm_buf *out, cm_error *err)
{
    const cm_job_var *v = find_renamed(job, group, ngroup, word, nword);
    bool cell = v != NULL && (v->source->is_coordinate || v->source->rank == 0);
    return cell ? append_variable(job, group, ngroup, word, nword, out, err)
                : cm_buf_append(out, word, nword, err);
}

static int append_word(const cm_job *job, const char *group, size_t ngroup, words how,
                       bool in_parentheses, const char *word, size_t n, cm_buf *out, cm_error *err)
{
    bool key = n > 0 && word[n - 1] == ':';
    bool name = how == METHODS ? key && !in_parentheses : how != KEYED_VARIABLES || !key;
    size_t nname = key ? n - 1 : n;
    int rc = !name               ? cm_buf_append(out, word, nname, err)
             : how == DIMENSIONS ? append_dimension(job, group, ngroup, word, nname, out, err)
             : how == METHODS    ? append_cell(job, group, ngroup, word, nname, out, err)
                                 : append_variable(job, group, ngroup, word, nname, out, err);
    return rc == CM_OK && key ? cm_buf_append(out, ":", 1, err) : rc;
}

/* TEXT with the new names; separators stay. */
static int rewrite(const cm_job *job, const char *group, size_t ngroup, words how, const char *text,
                   cm_buf *out, cm_error *err)
{
    static const char blanks[] = " \t\r\n";
    int rc = CM_OK;
    bool inside = false;
    while (rc == CM_OK && *text != '\0') {
        size_t gap = strspn(text, blanks);
        size_t n = strcspn(text + gap, blanks);
        const char *word = text + gap;
        inside = inside || (n > 0 && *word == '(');
        rc = cm_buf_append(out, text, gap, err);
        if (rc == CM_OK)
            rc = append_word(job, group, ngroup, how, inside, word, n, out, err);
        inside = inside && (n == 0 || word[n - 1] != ')');
        text += gap + n;
    }
    return rc;
}

static int rename_in(const cm_job *job, const char *group, size_t ngroup, cm_json *attrs,
                     cm_error *err)
{
    cm_buf out;
    int rc = CM_OK;
    cm_buf_init(&out, 0);
    for (size_t k = 0; rc == CM_OK && k < sizeof(referring) / sizeof(referring[0]); k++) {
        size_t nbytes;
        const char *text = cm_json_text(cm_json_member(attrs, referring[k].name), &nbytes);
        if (text == NULL || strlen(text) != nbytes)
            continue;
        out.nbytes = 0;
        rc = rewrite(job, group, ngroup, referring[k].words, text, &out, err);
        if (rc == CM_OK && (out.nbytes != nbytes || memcmp(out.data, text, nbytes) != 0))
            rc = cm_json_set(attrs, referring[k].name,
                             cm_json_string_n((const char *)out.data, out.nbytes), err);
    }
    cm_buf_release(&out);
    return rc;
}

int cm_job_rename_words(const cm_job *job, const cm_variable *v, cm_json *attrs, cm_error *err)
{
    return job->options->rename.n == 0 ? CM_OK
                                       : rename_in(job, v->name, group_length(v->name), attrs, err);
}

/*
 * ---- dimensions
 * --------------------------------------------------------------------------------
 */

const char *cm_job_dim_name(const cm_job *job, const cm_variable *v, unsigned j)
{
    const char *name = v->dim_name[j];
    const cm_job_var *c =
        name == NULL || job->options->rename.n == 0
            ? NULL
            : find_renamed(job, v->name, group_length(v->name), name, strlen(name));
    bool its_coordinate =
        c != NULL && c->source->is_coordinate && c->source->shape[0] == v->shape[j];
    return its_coordinate ? cm_path_last(c->name) : name;
}

/* Two dimensions of one variable, or one that others have already, would get one name. */
static int check_dimension(const cm_job *job, const cm_job_var *renamed, cm_error *err)
{
    const char *old = renamed->source->dim_name[0], *new = cm_path_last(renamed->name);
    size_t scope = group_length(renamed->source->name);
    for (size_t i = 0; i < job->nvars; i++) {
        const cm_variable *v = job->var[i].source;
        if (strncmp(v->name, renamed->source->name, scope) != 0 ||
            (scope > 0 && v->name[scope] != '/'))
            continue;
        for (unsigned j = 0; j < v->rank; j++)
            if (v->dim_name[j] != NULL && strcmp(v->dim_name[j], new) == 0 &&
                strcmp(cm_job_dim_name(job, v, j), new) == 0)
                return cm_fail(
                    err, CM_EINVAL,
                    "dimension %s would be renamed to %s like its coordinate %s, but variable "
                    "%s has a dimension of that name already",
                    old, new, renamed->source->name, v->name);
    }
    return CM_OK;
}

/*
 * ---- variables
 * ---------------------------------------------------------------------------------
 */

static int set_name(cm_job_var *v, const char *path, const char *to, cm_error *err)
{
    size_t depth = strchr(to, '/') == NULL ? group_length(path) : 0;
    char *name = cm_asprintf(err, "%.*s%s%s", (int)depth, path, depth > 0 ? "/" : "", to);
    if (name == NULL)
        return CM_ENOMEM;
    v->renamed = strcmp(name, path) != 0;
    free(v->name);
    v->name = name;
    return CM_OK;
}

static int rename_one(cm_job *job, const char *text, cm_error *err)
{
    char *copy = cm_strdup(text, err);
    if (copy == NULL)
        return CM_ENOMEM;
    char *to = cm_find_unescaped(copy, '=');
    int rc = CM_OK;
    bool found = false;
    if (to == NULL || to == copy || to[1] == '\0') {
        rc = cm_fail(err, CM_EINVAL, "`rename` %s: not of the form OLD=NEW", text);
    } else {
        *to++ = '\0';
        cm_unescape(copy);
        cm_unescape(to);
    }
    for (size_t i = 0; rc == CM_OK && i < job->nvars; i++) {
        const char *path = job->var[i].source->name + strlen(job->from.group);
        path += *path == '/' && *job->from.group != '\0';
        if (strcmp(path, copy) != 0)
            continue;
        found = true;
        rc = set_name(&job->var[i], path, to, err);
    }
    for (size_t i = 0; rc == CM_OK && !found && i < job->options->nothers; i++)
        found = strcmp(job->options->other[i].name, copy) == 0;
    if (rc == CM_OK && !found)
        rc = cm_fail(err, CM_EINVAL, "`rename` %s: no chosen variable is named %s", text, copy);
    free(copy);
    return rc;
}

int cm_job_rename(cm_job *job, cm_error *err)
{
    const cm_texts *renames = &job->options->rename;
    int rc = CM_OK;
    for (size_t i = 0; rc == CM_OK && i < renames->n; i++)
        rc = rename_one(job, renames->text[i], err);
    return rc;
}

int cm_job_rename_rest(cm_job *job, cm_error *err)
{
    const cm_texts *renames = &job->options->rename;
    int rc = CM_OK;
    for (size_t i = 0; rc == CM_OK && i < job->nvars; i++)
        if (job->var[i].renamed && job->var[i].source->is_coordinate)
            rc = check_dimension(job, &job->var[i], err);
    /* The attributes of groups are written as the dataset has them. */
    for (size_t i = 0; rc == CM_OK && renames->n > 0 && i < job->source->ngroups; i++) {
        cm_dataset_group *g = &job->source->group[i];
        rc = rename_in(job, g->path, strlen(g->path), g->attrs, err);
    }
    return rc;
}

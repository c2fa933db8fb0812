#include "archive/stores.h"

#include <fnmatch.h>
#include <stdlib.h>
#include <string.h>

#include "archive/fields/fields.h"
#include "archive/tables/described.h"
#include "model/name_pattern.h"
#include "store/net/url.h"

enum {
    MOST_LIKES = 4 /* patterns that a sentence may hold */
};

typedef struct plans {
    cm_store_plan *item;
    size_t n;
} plans;

static int by_name(const void *a, const void *b)
{
    const cm_store_plan *x = a, *y = b;
    return strcmp(x->name, y->name);
}

static cm_store_plan *add_store(plans *p, const char *name, size_t nbytes, cm_error *err)
{
    if (CM_GROW(p->item, p->n, err) != CM_OK)
        return NULL;
    cm_store_plan *s = &p->item[p->n];
    *s = (cm_store_plan){.name = cm_asprintf(err, "%.*s", (int)nbytes, name)};
    p->n += s->name != NULL;
    return s->name != NULL ? s : NULL;
}

static int add_file(cm_store_plan *s, uint32_t file, cm_error *err)
{
    int rc = CM_GROW(s->file, s->nfiles, err);
    if (rc == CM_OK)
        s->file[s->nfiles++] = file;
    return rc;
}

/* The store of file I is called NAME: a path below the output that leads nowhere else. */
static int put(plans *p, const cm_survey *survey, uint32_t i, const char *name, size_t nbytes,
               cm_error *err)
{
    cm_store_plan *s = NULL;
    if (nbytes == 0 || name[0] == '.' || memmem(name, nbytes, "/.", 2) != NULL)
        return cm_fail(err, CM_EINVAL, "%s: '%.*s' cannot be the name of a store",
                       survey->file[i].path, (int)nbytes, name);
    /* Files come sorted: mostly it is the store of the file before. */
    for (size_t k = p->n; s == NULL && k-- > 0;)
        if (strlen(p->item[k].name) == nbytes && memcmp(p->item[k].name, name, nbytes) == 0)
            s = &p->item[k];
    if (s == NULL)
        s = add_store(p, name, nbytes, err);
    return s == NULL ? CM_ENOMEM : add_file(s, i, err);
}

/* ---- one, or by the names of files ---- */

static int plan_one(const cm_survey *survey, plans *p, cm_error *err)
{
    cm_store_plan *s = add_store(p, "", 0, err);
    int rc = s == NULL ? CM_ENOMEM : CM_OK;
    for (size_t i = 0; rc == CM_OK && i < survey->nfiles; i++)
        rc = add_file(s, (uint32_t)i, err);
    if (s != NULL) {
        free(s->name);
        s->name = NULL;
    }
    return rc;
}

/* How much of the paths all files have in common, up to a '/'. */
static size_t common_folder(const cm_survey *survey)
{
    const char *first = survey->file[0].path;
    const char *slash = strrchr(first, '/');
    size_t n = slash == NULL ? 0 : (size_t)(slash - first) + 1;
    for (size_t i = 1; i < survey->nfiles; i++) {
        size_t k = 0;
        while (k < n && survey->file[i].path[k] == first[k])
            k++;
        while (k > 0 && first[k - 1] != '/')
            k--;
        n = k;
    }
    return n;
}

/* The last part of a path of N bytes that ends with '/'; its length in *NBYTES. */
static const char *last_folder(const char *path, size_t n, size_t *nbytes)
{
    size_t end = n > 0 ? n - 1 : 0, begin = end;
    while (begin > 0 && path[begin - 1] != '/')
        begin--;
    *nbytes = end - begin;
    return path + begin;
}

/* The folder of each file below the one that all have in common; of files in this, its name. */
static int plan_folders(const cm_survey *survey, plans *p, cm_error *err)
{
    const size_t n = common_folder(survey);
    const char *direct = NULL; /* a file in the common folder itself */
    size_t nown, nname;
    const char *own = last_folder(survey->file[0].path, n, &nown);
    int rc = CM_OK;
    for (size_t i = 0; i < survey->nfiles && direct == NULL; i++)
        if (strchr(survey->file[i].path + n, '/') == NULL)
            direct = survey->file[i].path;
    for (size_t i = 0; rc == CM_OK && i < survey->nfiles; i++) {
        const char *path = survey->file[i].path, *name = path + n, *slash = strrchr(name, '/');
        nname = slash == NULL ? nown : (size_t)(slash - name);
        if (slash == NULL)
            name = own;
        else if (direct != NULL && nname == nown && memcmp(name, own, nown) == 0)
            return cm_fail(err, CM_EINVAL, "%s and %s: their folders have one name", direct, path);
        rc = put(p, survey, (uint32_t)i, name, nname, err);
    }
    return rc;
}

static int plan_names(const cm_archive_options *options, const cm_survey *survey, plans *p,
                      cm_error *err)
{
    cm_name_pattern pattern;
    char *option = cm_asprintf(err, "store=%s", options->store_per);
    int rc = option == NULL ? CM_ENOMEM : cm_name_pattern_parse(option, &pattern, err);
    free(option);
    if (rc != CM_ENOMEM && (rc != CM_OK || pattern.kind != CM_PATTERN_TEXT))
        rc = cm_fail(err, CM_EINVAL,
                     "`store_per` %s: must be {dir}, {variable}, or a part of the files' names "
                     "with *",
                     options->store_per);
    for (size_t i = 0; rc == CM_OK && i < survey->nfiles; i++) {
        const char *value, *path = survey->file[i].path;
        size_t n;
        rc = cm_name_pattern_value(&pattern, path, &value, &n, err);
        if (rc == CM_ENOTFOUND)
            return cm_fail(err, CM_EINVAL, "%s: its name does not match %s", path, pattern.text);
        if (rc == CM_OK)
            rc = put(p, survey, (uint32_t)i, value, n, err);
        else
            cm_error_prefix(err, "%s", path);
    }
    return rc;
}

/* ---- by what names are like ---- */

/* The plan whose store is called NAME, which is freed; made where there is none. */
static cm_store_plan *store_named(plans *p, char *name, cm_error *err)
{
    cm_store_plan *s = NULL;
    for (size_t k = p->n; s == NULL && name != NULL && k-- > 0;)
        if (strcmp(p->item[k].name, name) == 0)
            s = &p->item[k];
    if (s == NULL && name != NULL)
        s = add_store(p, name, strlen(name), err);
    free(name);
    return s;
}

/* Whether the pattern that a store of P is called gives other files than its own. */
static bool are_mixed(const plans *p, const cm_survey *survey)
{
    bool mixed = false;
    for (size_t i = 0; i < p->n; i++)
        for (size_t k = 0; k < p->n; k++)
            for (size_t f = 0; !mixed && f < p->item[k].nfiles; f++)
                mixed = (fnmatch(p->item[i].name, survey->file[p->item[k].file[f]].path,
                                 FNM_PATHNAME) == 0) != (i == k);
    return mixed;
}

/* Stores of files whose paths differ in digits alone, called by the pattern that gives them. */
static int plan_likes(const cm_survey *survey, plans *p, cm_error *err)
{
    int rc = CM_OK;
    for (uint32_t i = 0; rc == CM_OK && i < survey->nfiles; i++) {
        char *like = cm_strdup(survey->file[i].path, err);
        for (char *c = like; c != NULL && *c != '\0'; c++)
            *c = *c >= '0' && *c <= '9' ? '?' : *c;
        cm_store_plan *s = store_named(p, like, err);
        rc = s == NULL ? CM_ENOMEM : add_file(s, i, err);
        if (rc == CM_OK && p->n > MOST_LIKES)
            rc = cm_fail(err, CM_EINVAL, "names are like more than %d patterns", MOST_LIKES);
    }
    /* Web servers give no lists that patterns choose from. */
    const bool listed = cm_url_kind_of(survey->file[0].path) != CM_URL_HTTP;
    if (rc == CM_OK && (!listed || p->n == 1 || are_mixed(p, survey)))
        rc = cm_fail(err, CM_EINVAL, "no patterns tell the names apart");
    return rc;
}

/* ---- by variable ---- */

typedef struct by_variable {
    const cm_join_input *in;
    cm_join_tables *tables;
    const cm_survey *survey;
    bool *field;   /* of each variable: gets a store */
    bool *needed;  /* by any field */
    bool *chosen;  /* for the field at hand */
    bool *present; /* in the files of the field at hand, of those that are chosen */
} by_variable;

/* DONE: AT and all that it needs. */
static void close_over(cm_join_tables *tables, uint32_t at, bool *done)
{
    for (uint32_t i = 0; i < tables->nvars; i++)
        tables->var[i].wanted = i == at;
    cm_join_want_needed(tables);
    for (uint32_t i = 0; i < tables->nvars; i++)
        done[i] = tables->var[i].wanted;
}

static void find_fields(by_variable *b)
{
    for (uint32_t i = 0; i < b->tables->nvars; i++) {
        const cm_join_var *v = &b->tables->var[i];
        bool coordinate = v->rank == 1 && strcmp(b->tables->dim[v->dim[0]].name, v->name) == 0;
        b->field[i] =
            v->wanted && v->rank > 0 && !coordinate && !cm_join_is_auxiliary(b->tables, i);
    }
    for (uint32_t i = 0; i < b->tables->nvars; i++) {
        if (!b->field[i])
            continue;
        close_over(b->tables, i, b->chosen);
        for (uint32_t k = 0; k < b->tables->nvars; k++)
            b->needed[k] |= b->chosen[k];
    }
}

static bool holds(const cm_join_input *in, const cm_join_tables *tables, uint32_t file,
                  uint32_t var)
{
    return tables->to_pos[cm_join_skeleton(in, file)->index][var] != CM_JOIN_NONE;
}

/* Files that have field AT, and those that have what it needs where these lack it. */
static int add_files(by_variable *b, uint32_t at, cm_store_plan *s, cm_error *err)
{
    int rc = CM_OK;
    for (uint32_t k = 0; k < b->tables->nvars; k++) {
        b->present[k] = false;
        for (size_t i = 0; b->chosen[k] && !b->present[k] && i < b->tables->var[at].nfiles; i++)
            b->present[k] = holds(b->in, b->tables, b->tables->var[at].file[i], k);
    }
    for (uint32_t i = 0; rc == CM_OK && i < b->in->nfiles; i++) {
        bool wanted = holds(b->in, b->tables, i, at);
        for (uint32_t k = 0; !wanted && k < b->tables->nvars; k++)
            wanted = b->chosen[k] && !b->present[k] && holds(b->in, b->tables, i, k);
        if (wanted)
            rc = add_file(s, (uint32_t)(b->in->file[i] - b->survey->file), err);
    }
    /* A file that cannot be read may have had it. */
    for (size_t i = 0; rc == CM_OK && i < b->survey->nfiles; i++)
        if (b->survey->file[i].offline || b->survey->file[i].status != CM_OK)
            rc = add_file(s, (uint32_t)i, err);
    return rc;
}

static int by_number(const void *a, const void *b)
{
    const uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;
    return (x > y) - (x < y);
}

static int plan_field(by_variable *b, uint32_t at, plans *p, cm_error *err)
{
    const char *name = b->tables->var[at].name;
    cm_store_plan *s = add_store(p, name, strlen(name), err);
    if (s == NULL)
        return CM_ENOMEM;
    const char **text = cm_calloc(b->tables->nvars + 1, sizeof(*text), err);
    s->only = (cm_texts){text, 0};
    if (text == NULL)
        return CM_ENOMEM;
    close_over(b->tables, at, b->chosen);
    int rc = add_files(b, at, s, err);
    qsort(s->file, s->nfiles, sizeof(s->file[0]), by_number);
    /* Variables that no field needs go with all of them: nothing is left behind. */
    for (uint32_t k = 0; rc == CM_OK && k < b->tables->nvars; k++) {
        if (k != at && (b->field[k] || b->needed[k]))
            continue;
        if ((text[s->only.n] = cm_strdup(b->tables->var[k].name, err)) == NULL)
            rc = CM_ENOMEM;
        else
            s->only.n++;
    }
    return rc;
}

static int plan_fields(by_variable *b, plans *p, cm_error *err)
{
    int rc = CM_OK;
    find_fields(b);
    for (uint32_t i = 0; rc == CM_OK && i < b->tables->nvars; i++)
        if (b->field[i])
            rc = plan_field(b, i, p, err);
    if (rc == CM_OK && p->n == 0)
        rc = cm_fail(err, CM_ENOTFOUND, "no file has a variable that could make a store");
    return rc;
}

static int plan_variables(const cm_archive_options *options, cm_survey *survey, plans *p,
                          cm_error *err)
{
    cm_archive_report report = {0};
    by_variable b = {.survey = survey};
    cm_join *j = NULL;
    int rc = cm_join_create_names(options, survey, &report, &j, err);
    size_t n = j != NULL ? j->tables.nvars + 1 : 1;
    if (rc == CM_OK) {
        b.in = &j->in;
        b.tables = &j->tables;
        b.field = cm_calloc(n * 4, sizeof(bool), err);
        rc = b.field == NULL ? CM_ENOMEM : CM_OK;
    }
    if (rc == CM_OK && b.in->nfiles == 0) {
        rc = plan_one(survey, p, err); /* of which no file can be read: that is told */
    } else if (rc == CM_OK) {
        b.needed = b.field + n;
        b.chosen = b.needed + n;
        b.present = b.chosen + n;
        rc = plan_fields(&b, p, err);
    }
    free(b.field);
    cm_join_free(j);
    cm_report_release(&report);
    return rc;
}

/* ---- all ---- */

int cm_stores_plan(const cm_archive_options *options, cm_survey *survey, cm_store_plan **out,
                   size_t *n, cm_error *err)
{
    plans p = {0};
    const char *per = options->store_per;
    int rc;
    if (per == NULL || survey->nfiles == 0)
        rc = plan_one(survey, &p, err);
    else if (*per == '\0')
        rc = plan_likes(survey, &p, err);
    else if (strcmp(per, "{dir}") == 0)
        rc = plan_folders(survey, &p, err);
    else if (strcmp(per, "{variable}") == 0)
        rc = plan_variables(options, survey, &p, err);
    else
        rc = plan_names(options, survey, &p, err);
    if (p.n > 1)
        qsort(p.item, p.n, sizeof(p.item[0]), by_name);
    *out = p.item;
    *n = p.n;
    return rc;
}

void cm_stores_free(cm_store_plan *plan, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        for (size_t k = 0; k < plan[i].only.n; k++)
            free((char *)(uintptr_t)plan[i].only.text[k]);
        free((void *)(uintptr_t)plan[i].only.text);
        free(plan[i].name);
        free(plan[i].file);
    }
    free(plan);
}

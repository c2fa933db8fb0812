/* "workers=1,2,4" and "sample=time=1,lat=64;time=4,lat=64": every combination. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "readbench.h"

enum {
    MAX_LABEL = 120 /* of a folder's name, with room for the store's */
};

typedef struct readbench_key {
    const cm_option *option;
    bool common;
    const char **value;
    size_t n;
} key;

/* ---- values -------------------------------------------------------------------------------- */

static int set_flag(const char *text, bool *out, cm_error *err)
{
    *out = strcmp(text, "yes") == 0;
    if (!*out && strcmp(text, "no") != 0)
        return cm_fail(err, CM_EINVAL, "give yes or no");
    return CM_OK;
}

/* Sets the option of K to *VALUE, which V refers to from then on. */
static int set_value(const key *k, const char **value, readbench_values *v,
                     cm_common_options *common, cm_error *err)
{
    void *values = k->common ? (void *)common : (void *)v;
    void *field = (char *)values + k->option->field.offset;

    if (k->option->kind == CM_OPTION_FLAG)
        return set_flag(*value, field, err);
    if (k->option->kind == CM_OPTION_LIST) {
        *(cm_texts *)field = (cm_texts){value, 1};
        return CM_OK;
    }
    /* In DataLoader's terms no workers means that the step's own thread reads. */
    if (strcmp(k->option->name, "workers") == 0 && strcmp(*value, "0") == 0) {
        v->o.workers = 0;
        v->o.mode = "sync";
        return CM_OK;
    }
    return cm_option_store(k->option, *value, values, err);
}

/* ---- texts --------------------------------------------------------------------------------- */

static int add_value(key *k, const char *text, size_t nbytes, cm_error *err)
{
    if (nbytes == 0)
        return cm_fail(err, CM_EINVAL, "a value is empty");
    for (size_t i = 0; i < k->n; i++)
        if (strlen(k->value[i]) == nbytes && memcmp(k->value[i], text, nbytes) == 0)
            return cm_fail(err, CM_EINVAL, "%s is given twice", k->value[i]);
    if (CM_GROW(k->value, k->n, err) != CM_OK)
        return CM_ENOMEM;
    k->value[k->n] = cm_asprintf(err, "%.*s", (int)nbytes, text);
    return k->value[k->n] != NULL ? (k->n++, CM_OK) : CM_ENOMEM;
}

/* "time=1,lat=64" is one value that was cut in two: its parts have different names. */
static int check_cuts(const key *k, cm_error *err)
{
    const size_t n = strcspn(k->value[0], "=");

    for (size_t i = 1; i < k->n; i++)
        if (k->value[0][n] == '=' && strchr(k->value[i], '=') != NULL &&
            strncmp(k->value[i], k->value[0], n + 1) != 0)
            return cm_fail(err, CM_EINVAL,
                           "values that hold commas are separated by semicolons, and one alone "
                           "ends with one");
    return CM_OK;
}

/* TEXT at commas, or where there is one at semicolons; the last of these may end it. */
static int split_values(const char *text, key *k, cm_error *err)
{
    const char separator = strchr(text, ';') != NULL ? ';' : ',';
    int rc = CM_OK;

    for (const char *p = text;; p++) {
        size_t n = 0;
        while (p[n] != '\0' && p[n] != separator)
            n += p[n] == '\\' && p[n + 1] != '\0' ? 2 : 1;
        if (separator == ';' && n == 0 && *p == '\0' && k->n > 0)
            break;
        if ((rc = add_value(k, p, n, err)) != CM_OK)
            return rc;
        p += n;
        if (*p == '\0')
            break;
    }
    return separator == ',' ? check_cuts(k, err) : CM_OK;
}

static int find_option(const char *text, size_t n, key *k, cm_error *err)
{
    for (size_t i = 0; (k->option = cm_tool_option(&READBENCH, i, &k->common)); i++)
        if (k->option->swept && strlen(k->option->name) == n &&
            memcmp(k->option->name, text, n) == 0)
            return CM_OK;
    return cm_fail(err, CM_EINVAL, "%.*s is not an option whose values can be swept", (int)n, text);
}

static int parse_key(const char *text, readbench_sweep *s, cm_error *err)
{
    const char *equals = strchr(text, '=');
    key *k = &s->key[s->nkeys];

    if (equals == NULL || equals == text || equals[1] == '\0')
        return cm_fail(err, CM_EINVAL, "give KEY=V1,V2");
    int rc = find_option(text, (size_t)(equals - text), k, err);
    for (size_t i = 0; i < s->nkeys && rc == CM_OK; i++)
        if (s->key[i].option == k->option)
            rc = cm_fail(err, CM_EINVAL, "%s is given twice", k->option->name);
    if (rc != CM_OK)
        return rc;
    s->nkeys++; /* from here on to be released */
    return split_values(equals + 1, k, err);
}

/* ---- points -------------------------------------------------------------------------------- */

static int make_point(readbench_sweep *s, size_t number, const cm_common_options *usual,
                      const cm_texts *paths, cm_error *err)
{
    readbench_values *v = &s->values[number];
    cm_common_options common = *usual;
    size_t repeat = s->n;
    cm_buf label = {0};
    int rc = CM_OK;

    for (size_t i = 0; i < s->nkeys && rc == CM_OK; i++) {
        const key *k = &s->key[i];
        repeat /= k->n;
        const char **value = &k->value[number / repeat % k->n];
        rc = set_value(k, value, v, &common, err);
        if (rc != CM_OK)
            cm_error_prefix(err, "--sweep %s=%s", k->option->name, *value);
        else
            rc = cm_buf_printf(&label, err, "%s%s=%s", i > 0 ? "," : "", k->option->name, *value);
    }
    if (rc == CM_OK) {
        const size_t n = label.nbytes < MAX_LABEL ? label.nbytes : MAX_LABEL;
        s->point[number].label = cm_asprintf(err, "%.*s", (int)n, (const char *)label.data);
        rc = s->point[number].label != NULL ? CM_OK : CM_ENOMEM;
    }
    if (rc == CM_OK && (rc = readbench_complete(v, &common, paths, err)) != CM_OK)
        cm_error_prefix(err, "--sweep %s", s->point[number].label);
    cm_buf_release(&label);
    s->point[number].options = &v->o;
    return rc;
}

static int parse_keys(const cm_texts *sweep, readbench_sweep *out, size_t *npoints, cm_error *err)
{
    *npoints = 1;
    if ((out->key = cm_calloc(sweep->n, sizeof(*out->key), err)) == NULL)
        return CM_ENOMEM;
    for (size_t i = 0; i < sweep->n; i++) {
        int rc = parse_key(sweep->text[i], out, err);
        if (rc != CM_OK) {
            cm_error_prefix(err, "--sweep %s", sweep->text[i]);
            return rc;
        }
        if (!cm_mul_size(*npoints, out->key[i].n, npoints) || *npoints > READBENCH_MOST_POINTS)
            return cm_fail(err, CM_EINVAL, "--sweep: more than %d combinations",
                           READBENCH_MOST_POINTS);
    }
    return CM_OK;
}

int readbench_sweep_make(const readbench_values *values, const cm_common_options *common,
                         const cm_texts *paths, readbench_sweep *out, cm_error *err)
{
    size_t n = 0;

    *out = (readbench_sweep){0};
    if (values->sweep.n == 0)
        return CM_OK;
    int rc = parse_keys(&values->sweep, out, &n, err);
    if (rc != CM_OK)
        return rc;
    if ((out->point = cm_calloc(n, sizeof(*out->point), err)) == NULL ||
        (out->values = cm_calloc(n, sizeof(*out->values), err)) == NULL)
        return CM_ENOMEM;
    out->n = n;
    for (size_t i = 0; i < n && rc == CM_OK; i++) {
        out->values[i] = *values;
        out->values[i].sweep = (cm_texts){0};
        rc = make_point(out, i, common, paths, err);
    }
    return rc;
}

void readbench_sweep_release(readbench_sweep *s)
{
    if (s == NULL)
        return;
    for (size_t i = 0; i < s->n && s->point != NULL; i++)
        free((char *)s->point[i].label);
    for (size_t k = 0; k < s->nkeys; k++) {
        for (size_t i = 0; i < s->key[k].n; i++)
            free((char *)s->key[k].value[i]);
        free(s->key[k].value);
    }
    free(s->point);
    free(s->values);
    free(s->key);
    *s = (readbench_sweep){0};
}

#include "format/nc/dated.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/path.h"
#include "model/calendar.h"

#define TEXTS      "Times"
#define COORDINATE "Time"
#define UNITS      "seconds since 1970-01-01 00:00:00"

enum {
    DATE_NBYTES = 19,    /* "2000-01-24_12:00:00" */
    MOST_DATES = 1 << 20 /* per file, to be held in memory */
};

static const int64_t SECOND_US = 1000000;

/* ---- finding the variables ---- */

/* Whether PATH is NAME in the group of the variable OF. */
static bool is_beside(const char *path, const char *name, const char *of)
{
    const size_t above = (size_t)(cm_path_last(of) - of);
    return strncmp(path, of, above) == 0 && strcmp(path + above, name) == 0;
}

bool cm_nc_dated_is(cm_nc_file *file, const cm_nc_var *v)
{
    const cm_array *a = &v->array;
    if (strcmp(cm_path_last(a->name), TEXTS) != 0 || !v->is_char || v->unsupported != NULL ||
        a->rank != 2 || a->dim_name[0] == NULL || strcmp(a->dim_name[0], COORDINATE) != 0 ||
        a->shape[0] > MOST_DATES || a->shape[1] < DATE_NBYTES || a->shape[1] > 2 * DATE_NBYTES)
        return false;
    for (size_t i = 0; i < cm_nc_nvars(file); i++)
        if (is_beside(cm_nc_var_at(file, i)->array.name, COORDINATE, a->name))
            return false;
    for (size_t i = 0; i < cm_nc_ngroups(file); i++)
        if (is_beside(cm_nc_group_at(file, i)->path, COORDINATE, a->name))
            return false;
    return true;
}

/* ---- the coordinate ---- */

/* Parses the NBYTES at TEXT, a date followed only by NULs or spaces, into seconds. */
static bool read_date(const cm_time_axis *axis, const char *text, size_t nbytes, int64_t *out)
{
    static const char FORM[] = "dddd-dd-dd_dd:dd:dd";
    char date[DATE_NBYTES + 1] = {0};
    cm_time_span span;
    for (size_t i = 0; i < nbytes; i++) {
        const bool digit = text[i] >= '0' && text[i] <= '9';
        if (i >= DATE_NBYTES ? text[i] != '\0' && text[i] != ' '
            : FORM[i] == 'd' ? !digit
                             : text[i] != FORM[i])
            return false;
    }
    memcpy(date, text, DATE_NBYTES);
    *strchr(date, '_') = 'T';
    if (cm_time_span_parse(axis, date, &span, NULL) != CM_OK)
        return false;
    *out = span.first_us / SECOND_US;
    return true;
}

static int read_box(cm_array *a, const cm_box *box, void *dst, cm_error *err)
{
    (void)err;
    const cm_nc_dated *d = (const cm_nc_dated *)a;
    if (box->shape[0] > 0)
        memcpy(dst, d->second + box->start[0], (size_t)box->shape[0] * sizeof(d->second[0]));
    return CM_OK;
}

static int set_attributes(cm_array *a, cm_error *err)
{
    static const char *const ATTRIBUTE[][2] = {{"standard_name", "time"},
                                               {"long_name", "time, decoded from " TEXTS},
                                               {"units", UNITS},
                                               {"calendar", "standard"},
                                               {"axis", "T"}};
    int rc = (a->attrs = cm_json_object()) == NULL ? CM_ENOMEM : CM_OK;
    for (size_t i = 0; rc == CM_OK && i < sizeof(ATTRIBUTE) / sizeof(ATTRIBUTE[0]); i++)
        rc = cm_json_set(a->attrs, ATTRIBUTE[i][0], cm_json_string(ATTRIBUTE[i][1]), err);
    return rc;
}

static int describe(cm_nc_dated *d, cm_error *err)
{
    static const cm_array_ops ops = {.read_box = read_box};
    static const int64_t never_written = INT64_C(-9223372036854775806); /* NC_FILL_INT64 */
    const cm_array *texts = &d->texts->array;
    const uint64_t n = texts->shape[0], chunk = n > 0 ? n : 1;
    cm_array *a = &d->var.array;
    a->ops = &ops;
    a->name = cm_asprintf(err, "%.*s" COORDINATE, (int)(cm_path_last(texts->name) - texts->name),
                          texts->name);
    a->dtype = cm_dtype_make(CM_KIND_INT, sizeof(d->second[0]));
    a->rank = 1;
    a->shape[0] = n;
    a->dim_name[0] = texts->dim_name[0];
    if (a->name == NULL || (a->fill = cm_calloc(1, sizeof(never_written), err)) == NULL)
        return CM_ENOMEM;
    memcpy(a->fill, &never_written, sizeof(never_written));
    d->var.access = CM_NC_LIBRARY;
    d->var.decoded_from = TEXTS;
    d->var.is_coordinate = true;
    d->var.unlimited[0] = d->texts->unlimited[0];
    int rc = set_attributes(a, err);
    return rc == CM_OK ? cm_grid_init(&a->grid, 1, &n, &chunk, err) : rc;
}

int cm_nc_dated_create(cm_nc_var *texts, const char *text, cm_nc_dated **out, cm_error *err)
{
    const uint64_t n = texts->array.shape[0], width = texts->array.shape[1];
    cm_time_axis axis;
    *out = NULL;
    cm_nc_dated *d = cm_calloc(1, sizeof(*d), err);
    if (d == NULL)
        return CM_ENOMEM;
    d->texts = texts;
    bool good = (d->second = cm_calloc((size_t)n + 1, sizeof(d->second[0]), err)) != NULL;
    int rc = good ? cm_time_axis_parse(UNITS, "standard", &axis, err) : CM_ENOMEM;
    for (uint64_t i = 0; rc == CM_OK && good && i < n; i++)
        good = read_date(&axis, text + i * width, (size_t)width, &d->second[i]);
    if (rc == CM_OK && good)
        rc = describe(d, err);
    if (rc == CM_OK && good)
        *out = d;
    else
        cm_nc_dated_free(d);
    return rc;
}

void cm_nc_dated_free(cm_nc_dated *d)
{
    if (d == NULL)
        return;
    free(d->var.array.name);
    free(d->var.array.fill);
    cm_json_free(d->var.array.attrs);
    free(d->second);
    free(d);
}

/* ---- verification ---- */

/*
 * Days from noon of 4713-01-01 BC (Julian), by Fliegel and van Flandern's formulas; the one for the
 * Julian calendar applies before 1582-10-15.
 */
static int64_t julian_day(int64_t year, int64_t month, int64_t day)
{
    const int64_t a = (month - 14) / 12; /* -1 in January and February */
    if (year * 10000 + month * 100 + day < 15821015)
        return 367 * year - 7 * (year + 5001 + (month - 9) / 7) / 4 + 275 * month / 9 + day +
               1729777;
    return 1461 * (year + 4800 + a) / 4 + 367 * (month - 2 - 12 * a) / 12 -
           3 * ((year + 4900 + a) / 100) / 4 + day - 32075;
}

int cm_nc_dated_expect(const cm_nc_dated *d, const cm_box *box, const char *text, int64_t *dst,
                       cm_error *err)
{
    const uint64_t width = d->texts->array.shape[1];
    char date[DATE_NBYTES + 1] = {0};
    int year, month, day, hour, minute, second;
    for (uint64_t i = 0; i < box->shape[0]; i++) {
        memcpy(date, text + i * width, DATE_NBYTES);
        if (sscanf(date, "%4d-%2d-%2d_%2d:%2d:%2d", &year, &month, &day, &hour, &minute, &second) !=
            6)
            return cm_fail(err, CM_EFORMAT, "variable %s: \"%s\" is not a date",
                           d->texts->array.name, date);
        const int64_t days = julian_day(year, month, day) - julian_day(1970, 1, 1);
        dst[i] = ((days * 24 + hour) * 60 + minute) * 60 + second;
    }
    return CM_OK;
}

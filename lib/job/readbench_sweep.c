/* "workers=1,2,4" and "sample=time=1,lat=64;time=4,lat=64": every combination. */
#include <inttypes.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "base/number.h"
#include "job/readbench_tune.h"
#include "job/shape_option.h"
#include "job/varopt.h"

enum {
    MAX_LABEL = 120 /* of a folder's name, with room for the store's */
};

/* ---- keys ---------------------------------------------------------------------------------- */

typedef enum value_kind {
    KIND_COUNT, /* unsigned */
    KIND_NUMBER,
    KIND_SIZE,
    KIND_SECONDS,
    KIND_TEXT,
    KIND_CHOICE, /* text, one of `words` */
    KIND_SHAPE,
    KIND_FLAG,
    KIND_STEP,
    KIND_VALIDATE,
    KIND_VARIABLES
} value_kind;

typedef struct option {
    const char *name;
    value_kind kind;
    size_t offset; /* in cm_readbench_options */
    uint64_t least;
    const char *const *words;
} option;

#define AT(field) offsetof(cm_readbench_options, field)
#define WORDS(...)                                                                                 \
    (const char *const[])                                                                          \
    {                                                                                              \
        __VA_ARGS__, NULL                                                                          \
    }

static const option options_of_a_sweep[] = {
    {"variable", KIND_VARIABLES, AT(variables), 0, NULL},
    {"lags", KIND_TEXT, AT(lags), 0, NULL},
    {"sample", KIND_SHAPE, AT(sample), 0, NULL},
    {"batch", KIND_NUMBER, AT(batch), 1, NULL},
    {"batches", KIND_NUMBER, AT(batches), 1, NULL},
    {"epochs", KIND_NUMBER, AT(epochs), 1, NULL},
    {"seed", KIND_NUMBER, AT(seed), 0, NULL},
    {"drop-last", KIND_FLAG, AT(drop_last), 0, NULL},
    {"order", KIND_TEXT, AT(order), 0, NULL},
    {"loader", KIND_CHOICE, AT(loader), 0, WORDS("map", "planned")},
    {"shuffle-window", KIND_NUMBER, AT(window), 1, NULL},
    {"mode", KIND_CHOICE, AT(mode), 0, WORDS("sync", "threads", "processes")},
    {"workers", KIND_COUNT, AT(workers), 0, NULL},
    {"worker-threads", KIND_COUNT, AT(worker_threads), 1, NULL},
    {"prefetch", KIND_COUNT, AT(prefetch), 1, NULL},
    {"unordered", KIND_FLAG, AT(unordered), 0, NULL},
    {"no-persistent", KIND_FLAG, AT(no_persistent), 0, NULL},
    {"context", KIND_CHOICE, AT(context), 0, WORDS("fork", "spawn", "forkserver")},
    {"worker-memory", KIND_SIZE, AT(worker_memory), 0, NULL},
    {"pool", KIND_CHOICE, AT(pool), 0, WORDS("rank", "shared")},
    {"accelerators", KIND_COUNT, AT(accelerators), 1, NULL},
    {"world-size", KIND_NUMBER, AT(world_size), 1, NULL},
    {"rank", KIND_NUMBER, AT(rank), 0, NULL},
    {"step-time", KIND_STEP, AT(step_forward), 0, NULL},
    {"step-time-per-sample", KIND_SECONDS, AT(step_per_sample), 0, NULL},
    {"engine", KIND_TEXT, AT(engine), 0, NULL},
    {"io", KIND_CHOICE, AT(io), 0, WORDS("auto", "pread", "mmap", "uring", "direct")},
    {"cold", KIND_FLAG, AT(cold), 0, NULL},
    {"warm", KIND_FLAG, AT(warm), 0, NULL},
    {"cache", KIND_SIZE, AT(cache_nbytes), 0, NULL},
    {"cache-policy", KIND_CHOICE, AT(cache_policy), 0, WORDS("lru", "fifo")},
    {"cache-dir", KIND_TEXT, AT(cache_dir), 0, NULL},
    {"cache-dir-size", KIND_SIZE, AT(cache_dir_nbytes), 1, NULL},
    {"emulate", KIND_TEXT, AT(emulate), 0, NULL},
    {"device", KIND_TEXT, AT(device), 0, NULL},
    {"staging", KIND_CHOICE, AT(staging), 0, WORDS("pinned", "pageable")},
    {"no-overlap", KIND_FLAG, AT(no_overlap), 0, NULL},
    {"device-step", KIND_FLAG, AT(device_step), 0, NULL},
    {"slots", KIND_COUNT, AT(slots), 1, NULL},
    {"slot-size", KIND_SIZE, AT(slot_nbytes), 1, NULL},
    {"cast", KIND_CHOICE, AT(cast), 0, WORDS("float32", "float16", "bfloat16")},
    {"unpack", KIND_FLAG, AT(unpack), 0, NULL},
    {"fill-to-nan", KIND_FLAG, AT(fill_to_nan), 0, NULL},
    {"validate", KIND_VALIDATE, AT(validate), 0, WORDS("none", "checksum", "full")},
    {"memory", KIND_SIZE, AT(memory), 1, NULL},
    {"threads", KIND_COUNT, AT(nthreads), 1, NULL},
};

typedef struct cm_sweep_key {
    const option *option;
    char **value;
    size_t n;
} cm_sweep_key;

/* ---- values -------------------------------------------------------------------------------- */

static int parse_number(const option *o, const char *text, uint64_t *out, cm_error *err)
{
    int rc = o->kind == KIND_SIZE ? cm_parse_size(text, out, err) : cm_parse_u64(text, out, err);
    if (rc != CM_OK)
        return rc;
    if (*out < o->least || (o->kind == KIND_COUNT && *out > UINT32_MAX))
        return cm_fail(err, CM_EINVAL, "it is from %" PRIu64 " to %" PRIu64, o->least,
                       o->kind == KIND_COUNT ? (uint64_t)UINT32_MAX : UINT64_MAX);
    return CM_OK;
}

static int parse_word(const option *o, const char *text, size_t *out, cm_error *err)
{
    char known[128] = "";

    for (*out = 0; o->words[*out] != NULL; ++*out) {
        if (strcmp(o->words[*out], text) == 0)
            return CM_OK;
        const size_t used = strlen(known);
        snprintf(known + used, sizeof(known) - used, "%s%s", *out > 0 ? ", " : "", o->words[*out]);
    }
    return cm_fail(err, CM_EINVAL, "give one of %s", known);
}

static int parse_flag(const char *text, bool *out, cm_error *err)
{
    *out = strcmp(text, "yes") == 0;
    if (!*out && strcmp(text, "no") != 0)
        return cm_fail(err, CM_EINVAL, "give yes or no");
    return CM_OK;
}

static int parse_step_part(void *context, char *part, cm_error *err)
{
    static const char *const names[] = {"forward=", "backward=", "other="};
    cm_readbench_options *to = context;
    double *const field[] = {&to->step_forward, &to->step_backward, &to->step_other};

    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
        if (strncmp(part, names[i], strlen(names[i])) == 0)
            return cm_parse_time(part + strlen(names[i]), field[i], err);
    return cm_fail(err, CM_EINVAL, "'%s' is not forward=T, backward=T or other=T", part);
}

static int set_step(const char *text, cm_readbench_options *to, cm_error *err)
{
    to->step_forward = to->step_backward = to->step_other = 0;
    if (strchr(text, '=') == NULL)
        return cm_parse_time(text, &to->step_forward, err);
    return cm_split(text, ',', parse_step_part, to, err);
}

static int check_shape(const char *text, cm_error *err)
{
    cm_shape_option shape;
    int rc = cm_shape_option_parse(text, &shape, err);
    if (rc == CM_OK)
        cm_shape_option_release(&shape);
    return rc;
}

/* Sets option O of TO to *VALUE, whose text TO refers to from then on. */
static int set_value(const option *o, char *const *value, cm_readbench_options *to, cm_error *err)
{
    char *field = (char *)to + o->offset;
    uint64_t number = 0;
    size_t word = 0;
    int rc = CM_OK;

    switch (o->kind) {
    case KIND_COUNT:
    case KIND_NUMBER:
    case KIND_SIZE:
        rc = parse_number(o, *value, &number, err);
        if (rc == CM_OK && o->kind == KIND_COUNT)
            *(unsigned *)(void *)field = (unsigned)number;
        else if (rc == CM_OK)
            *(uint64_t *)(void *)field = number;
        return rc;
    case KIND_SECONDS:
        return cm_parse_time(*value, (double *)(void *)field, err);
    case KIND_SHAPE:
        rc = check_shape(*value, err);
        break;
    case KIND_CHOICE:
        rc = parse_word(o, *value, &word, err);
        break;
    case KIND_TEXT:
        break;
    case KIND_FLAG:
        return parse_flag(*value, (bool *)field, err);
    case KIND_STEP:
        return set_step(*value, to, err);
    case KIND_VALIDATE:
        rc = parse_word(o, *value, &word, err);
        to->validate = (cm_readbench_validate)(CM_READBENCH_VALIDATE_NONE + word);
        return rc;
    case KIND_VARIABLES:
        to->variables = (cm_texts){(const char *const *)value, 1};
        return CM_OK;
    }
    if (rc == CM_OK)
        *(const char **)(void *)field = *value;
    return rc;
}

/* ---- texts --------------------------------------------------------------------------------- */

static int add_value(void *context, char *part, cm_error *err)
{
    cm_sweep_key *key = context;

    for (size_t i = 0; i < key->n; i++)
        if (strcmp(key->value[i], part) == 0)
            return cm_fail(err, CM_EINVAL, "%s is given twice", part);
    char **bigger = realloc(key->value, (key->n + 1) * sizeof(*bigger));
    if (bigger == NULL)
        return cm_fail(err, CM_ENOMEM, "no memory for the sweep");
    key->value = bigger;
    key->value[key->n] = cm_strdup(part, err);
    return key->value[key->n] != NULL ? (key->n++, CM_OK) : CM_ENOMEM;
}

/* "time=1,lat=64" is one value that was cut in two: its parts have different names. */
static int check_cuts(const cm_sweep_key *key, cm_error *err)
{
    const size_t n = strcspn(key->value[0], "=");

    for (size_t i = 1; i < key->n; i++)
        if (key->value[0][n] == '=' && strcspn(key->value[i], "=") < strlen(key->value[i]) &&
            strncmp(key->value[i], key->value[0], n + 1) != 0)
            return cm_fail(err, CM_EINVAL,
                           "values that hold commas are separated by semicolons, and one alone "
                           "ends with one");
    return CM_OK;
}

/* VALUES at commas, or where there is one at semicolons; the last of these may end the text. */
static int split_values(const char *values, cm_sweep_key *key, cm_error *err)
{
    const char separator = strchr(values, ';') != NULL ? ';' : ',';
    char *text = cm_strdup(values, err);

    if (text == NULL)
        return CM_ENOMEM;
    const size_t n = strlen(text);
    if (separator == ';' && n > 1 && text[n - 1] == ';')
        text[n - 1] = '\0';
    int rc = cm_split(text, separator, add_value, key, err);
    free(text);
    if (rc == CM_OK && separator == ',')
        rc = check_cuts(key, err);
    for (size_t i = 0; i < key->n && rc == CM_OK; i++) {
        cm_readbench_options scratch = {0};
        if (key->value[i][0] == '\0')
            return cm_fail(err, CM_EINVAL, "a value is empty");
        rc = set_value(key->option, &key->value[i], &scratch, err);
        if (rc != CM_OK)
            cm_error_prefix(err, "%s", key->value[i]);
    }
    return rc;
}

static int parse_key(const char *text, cm_sweep_points *points, cm_error *err)
{
    const char *equals = strchr(text, '=');
    const size_t n = equals != NULL ? (size_t)(equals - text) : strlen(text);
    cm_sweep_key *key = &points->key[points->nkeys];

    for (size_t i = 0; i < sizeof(options_of_a_sweep) / sizeof(options_of_a_sweep[0]); i++)
        if (strlen(options_of_a_sweep[i].name) == n &&
            memcmp(options_of_a_sweep[i].name, text, n) == 0)
            key->option = &options_of_a_sweep[i];
    if (equals == NULL || n == 0 || equals[1] == '\0')
        return cm_fail(err, CM_EINVAL, "give KEY=V1,V2");
    if (key->option == NULL)
        return cm_fail(err, CM_EINVAL, "%.*s is no option whose values can be swept", (int)n, text);
    for (size_t i = 0; i < points->nkeys; i++)
        if (points->key[i].option == key->option)
            return cm_fail(err, CM_EINVAL, "%s is given twice", key->option->name);
    points->nkeys++; /* from here on to be released */
    return split_values(equals + 1, key, err);
}

/* ---- points -------------------------------------------------------------------------------- */

static int make_point(const cm_sweep_points *points, size_t number,
                      const cm_readbench_options *base, cm_sweep_point *out, cm_error *err)
{
    size_t repeat = points->n;
    cm_buf label = {0};
    int rc = CM_OK;

    out->options = *base;
    out->options.sweep = (cm_texts){0};
    for (size_t k = 0; k < points->nkeys && rc == CM_OK; k++) {
        const cm_sweep_key *key = &points->key[k];
        repeat /= key->n;
        char *const *value = &key->value[number / repeat % key->n];
        rc = set_value(key->option, value, &out->options, err);
        /* In DataLoader's terms no workers means that the step's own thread reads. */
        if (strcmp(key->option->name, "workers") == 0 && out->options.workers == 0)
            out->options.mode = "sync";
        if (rc == CM_OK)
            rc = cm_buf_printf(&label, err, "%s%s=%s", k > 0 ? "," : "", key->option->name, *value);
    }
    if (rc == CM_OK) {
        const size_t n = label.nbytes < MAX_LABEL ? label.nbytes : MAX_LABEL;
        out->label = cm_asprintf(err, "%.*s", (int)n, (const char *)label.data);
        rc = out->label != NULL ? CM_OK : CM_ENOMEM;
    }
    cm_buf_release(&label);
    return rc;
}

static int make_points(const cm_readbench_options *options, cm_sweep_points *out, cm_error *err)
{
    size_t n = 1;

    out->key = cm_calloc(options->sweep.n, sizeof(*out->key), err);
    if (out->key == NULL)
        return CM_ENOMEM;
    for (size_t i = 0; i < options->sweep.n; i++) {
        int rc = parse_key(options->sweep.text[i], out, err);
        if (rc != CM_OK) {
            cm_error_prefix(err, "--sweep %s", options->sweep.text[i]);
            return rc;
        }
        if (!cm_mul_size(n, out->key[out->nkeys - 1].n, &n) || n > CM_SWEEP_MAX_POINTS)
            return cm_fail(err, CM_EINVAL, "--sweep: more than %d combinations",
                           CM_SWEEP_MAX_POINTS);
    }
    out->point = cm_calloc(n, sizeof(*out->point), err);
    if (out->point == NULL)
        return CM_ENOMEM;
    out->n = n;
    for (size_t i = 0; i < n; i++) {
        int rc = make_point(out, i, options, &out->point[i], err);
        if (rc != CM_OK)
            return rc;
    }
    return CM_OK;
}

int cm_sweep_points_make(const cm_readbench_options *options, cm_sweep_points *out, cm_error *err)
{
    *out = (cm_sweep_points){0};
    if (options->sweep.n == 0)
        return cm_fail(err, CM_EINVAL, "--sweep: give KEY=V1,V2");
    return make_points(options, out, err);
}

void cm_sweep_points_release(cm_sweep_points *points)
{
    if (points == NULL)
        return;
    for (size_t i = 0; i < points->n; i++)
        free(points->point[i].label);
    for (size_t k = 0; k < points->nkeys; k++) {
        for (size_t i = 0; i < points->key[k].n; i++)
            free(points->key[k].value[i]);
        free(points->key[k].value);
    }
    free(points->point);
    free(points->key);
    *points = (cm_sweep_points){0};
}

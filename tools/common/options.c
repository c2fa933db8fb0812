#include "options.h"

#include <stdlib.h>
#include <string.h>

#include <chunkmill/version.h>

#include "base/number.h"
#include "result.h"
#include "say.h"

enum action {
    ACTION_NONE,
    ACTION_HELP,
    ACTION_VERSION,
    ACTION_GENERATE
};

#define COMMON(member) CM_FIELD(cm_common_options, member)

static const cm_option COMMON_OPTIONS[] = {
    {.section = "Common to all programs",
     .letter = 'j',
     .name = "threads",
     .brief = true,
     .value = "N",
     .kind = CM_OPTION_UINT,
     .field = COMMON(nthreads),
     .min = 1,
     .max = 4096,
     .swept = true,
     .help = "Work on N threads.",
     .unset = "the CPUs that this process may use"},
    {.name = "memory",
     .brief = true,
     .value = "SIZE",
     .kind = CM_OPTION_SIZE,
     .field = COMMON(memory),
     .min = 1,
     .swept = true,
     .help = "Stay below SIZE of memory (512MiB, 4GiB).",
     .unset = "enough to decode everything once, at most half of the available memory"},
    {.name = "progress",
     .kind = CM_OPTION_CHOICE,
     .field = COMMON(progress),
     .words = "auto|always|never",
     .help = "Show progress on standard error. auto: a bar on a terminal, elsewhere a plain line "
             "every 10 s. always: there also a line when a phase begins.",
     .preset = "auto"},
    {.letter = 'v',
     .name = "verbose",
     .brief = true,
     .kind = CM_OPTION_SET,
     .field = COMMON(verbosity),
     .number = 1,
     .help = "Say more. How each variable is read, and where the time went."},
    {.letter = 'q',
     .name = "quiet",
     .kind = CM_OPTION_SET,
     .field = COMMON(verbosity),
     .number = -1,
     .help = "Print errors only."},
    {.name = "json",
     .brief = true,
     .kind = CM_OPTION_FLAG,
     .field = COMMON(json),
     .help = "Print the result as one JSON document. Its fields are described in the schema that "
             "is installed in share/chunkmill."},
    {.letter = 'h',
     .name = "help",
     .kind = CM_OPTION_ACTION,
     .number = ACTION_HELP,
     .help = "Print all options; -h prints examples and the most used ones."},
    {.name = "version",
     .kind = CM_OPTION_ACTION,
     .number = ACTION_VERSION,
     .help = "Print the version and those of the libraries in use."},
    {.name = "generate",
     .value = "man|bash|zsh|fish",
     .kind = CM_OPTION_ACTION,
     .number = ACTION_GENERATE,
     .hidden = true,
     .help = "Print the man page or the completion of a shell."},
    {0},
};

const cm_option *cm_tool_option(const cm_tool *tool, size_t i, bool *common)
{
    size_t n = 0;
    while (tool->options && tool->options[n].name)
        n++;
    bool shared = i >= n;
    const cm_option *o = shared ? NULL : &tool->options[i];
    if (shared && i - n < sizeof(COMMON_OPTIONS) / sizeof(COMMON_OPTIONS[0]) - 1)
        o = &COMMON_OPTIONS[i - n];
    if (common)
        *common = shared;
    return o;
}

const char *cm_option_argument(const cm_option *o)
{
    bool closed = o->kind == CM_OPTION_CHOICE || o->kind == CM_OPTION_WORD;
    return o->value ? o->value : closed ? o->words : NULL;
}

const char *cm_option_words_after(const cm_option *o)
{
    return o->kind == CM_OPTION_LEVEL ? o->words : NULL;
}

const char *cm_option_default(const cm_option *o)
{
    return o->preset ? o->preset : o->unset;
}

bool cm_option_word(const char *words, size_t i, const char **word, size_t *nbytes)
{
    if (!words)
        return false;
    for (;; i--) {
        size_t n = strcspn(words, "|");
        if (i == 0) {
            *word = words;
            *nbytes = n;
            return true;
        }
        if (words[n] == '\0')
            return false;
        words += n + 1;
    }
}

size_t cm_option_first_sentence(const char *help)
{
    for (size_t i = 0; help[i]; i++)
        if (help[i] == '.' && (help[i + 1] == '\0' || help[i + 1] == ' '))
            return i;
    return strlen(help);
}

int cm_tool_usage_error(const cm_tool *tool, const char *format, ...)
{
    char text[2048];
    va_list args;
    va_start(args, format);
    vsnprintf(text, sizeof(text), format, args);
    va_end(args);
    size_t n = strlen(text);
    bool ended = n > 0 && text[n - 1] == '?';
    cm_say(tool->name, "%s%s %s --help", text, ended ? " See" : "; see", tool->name);
    return CM_EXIT_USAGE;
}

int cm_tool_exit_status(int status)
{
    switch (status) {
    case CM_OK:
        return CM_EXIT_DONE;
    case CM_EINVAL:
        return CM_EXIT_USAGE;
    case CM_EDIFFER:
        return CM_EXIT_DIFFER;
    default:
        return CM_EXIT_FAILED;
    }
}

int cm_tool_finish(const cm_tool *tool, int status)
{
    int errnum = cm_result_flush();
    if (errnum == 0)
        return status;
    cm_say(tool->name, "standard output: the result could not be written: %s", strerror(errnum));
    return status == CM_EXIT_DONE ? CM_EXIT_FAILED : status;
}

/* ---- suggestions ---------------------------------------------------------------------------- */

enum {
    MAX_NAME = 32
};

/* Insertions, deletions, replacements and swaps of neighbours that turn A into B. */
static size_t edit_distance(const char *a, size_t na, const char *b, size_t nb)
{
    size_t row[3][MAX_NAME + 1];
    if (na > MAX_NAME || nb > MAX_NAME)
        return MAX_NAME;
    for (size_t j = 0; j <= nb; j++)
        row[0][j] = j;
    for (size_t i = 1; i <= na; i++) {
        size_t *now = row[i % 3], *last = row[(i + 2) % 3], *before = row[(i + 1) % 3];
        now[0] = i;
        for (size_t j = 1; j <= nb; j++) {
            size_t best = last[j - 1] + (a[i - 1] != b[j - 1]);
            if (last[j] + 1 < best)
                best = last[j] + 1;
            if (now[j - 1] + 1 < best)
                best = now[j - 1] + 1;
            if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1] &&
                before[j - 2] + 1 < best)
                best = before[j - 2] + 1;
            now[j] = best;
        }
    }
    return row[na % 3][nb];
}

/* The option that was probably meant, or NULL.  A name cut short counts as close. */
static const char *nearest(const cm_tool *tool, const char *name, size_t nbytes)
{
    const char *best = NULL;
    size_t best_distance = nbytes / 3 + 1;
    const cm_option *o;
    for (size_t i = 0; (o = cm_tool_option(tool, i, NULL)); i++) {
        if (o->hidden)
            continue;
        const char *names[2] = {o->name, o->alias};
        for (size_t k = 0; k < 2 && names[k]; k++) {
            size_t d = edit_distance(name, nbytes, names[k], strlen(names[k]));
            if (nbytes >= 3 && strncmp(names[k], name, nbytes) == 0)
                d = 0;
            if (d < best_distance || (d == best_distance && !best)) {
                best_distance = d;
                best = names[k];
            }
        }
    }
    return best;
}

/* ---- storing -------------------------------------------------------------------------------- */

typedef struct parser {
    const cm_tool *tool;
    int argc;
    char **argv;
    void *values;
    cm_common_options *common;
    cm_texts *paths;
    const cm_option *action; /* the first --help or the like, which ends parsing */
    const char *action_value;
    bool brief;     /* the action was given by its letter: -h */
    bool no_memory; /* the system's fault, not the command line's */
} parser;

/* No list can hold more than the whole command line, so it is allocated once at that size. */
static bool append(parser *p, cm_texts *list, const char *text)
{
    const char **room = (const char **)(uintptr_t)list->text;
    if (!room)
        room = calloc((size_t)p->argc + 1, sizeof(*room));
    if (!room) {
        cm_say(p->tool->name, "no memory for the command line");
        p->no_memory = true;
        return false;
    }
    room[list->n++] = text;
    list->text = room;
    return true;
}

static bool is_word(const char *words, const char *text, size_t *position)
{
    const char *word;
    size_t n;
    for (size_t i = 0; cm_option_word(words, i, &word, &n); i++)
        if (strlen(text) == n && memcmp(text, word, n) == 0) {
            *position = i;
            return true;
        }
    return false;
}

static int store_word(const cm_option *o, const char *text, void *field, cm_error *err)
{
    size_t position;
    if (!is_word(o->words, text, &position))
        return cm_fail(err, CM_EINVAL, "--%s takes %s, not '%s'", o->name, o->words, text);
    if (o->kind == CM_OPTION_WORD)
        *(const char **)field = text;
    else
        *(int *)field = o->number + (int)position;
    return CM_OK;
}

static int store_level(const cm_option *o, const char *text, int *field, cm_error *err)
{
    size_t position = 0;
    if (text != NULL && !is_word(o->words, text, &position))
        return cm_fail(err, CM_EINVAL, "--%s takes %s or nothing, not '%s'", o->name, o->words,
                       text);
    *field = text != NULL ? 2 + (int)position : 1;
    return CM_OK;
}

static int store_integer(const cm_option *o, const char *text, void *field, cm_error *err)
{
    uint64_t v = 0;
    int rc = o->kind == CM_OPTION_SIZE ? cm_parse_size(text, &v, err) : cm_parse_u64(text, &v, err);
    uint64_t top = o->max ? o->max : o->kind == CM_OPTION_UINT ? UINT32_MAX : UINT64_MAX;
    if (rc != CM_OK) {
        cm_error_prefix(err, "--%s", o->name);
        return CM_EINVAL;
    }
    if (o->max == 0 && v < o->min)
        return cm_fail(err, CM_EINVAL, "--%s: '%s' is less than %llu", o->name, text,
                       (unsigned long long)o->min);
    if (v < o->min || v > top)
        return cm_fail(err, CM_EINVAL, "--%s: '%s' is not between %llu and %llu", o->name, text,
                       (unsigned long long)o->min, (unsigned long long)top);
    if (o->kind == CM_OPTION_UINT)
        *(unsigned *)field = (unsigned)v;
    else
        *(uint64_t *)field = v;
    return CM_OK;
}

static int store_real(const cm_option *o, const char *text, double *out, cm_error *err)
{
    int rc = o->kind == CM_OPTION_TIME   ? cm_parse_time(text, out, err)
             : o->kind == CM_OPTION_RATE ? cm_parse_rate(text, out, err)
                                         : cm_parse_double(text, out, err);
    if (rc == CM_OK && *out < 0)
        rc = cm_fail(err, CM_EINVAL, "%s: must not be negative", text);
    if (rc == CM_OK)
        return CM_OK;
    cm_error_prefix(err, "--%s", o->name);
    return CM_EINVAL;
}

int cm_option_store(const cm_option *o, const char *text, void *values, cm_error *err)
{
    void *field = (char *)values + o->field.offset;
    switch (o->kind) {
    case CM_OPTION_FLAG:
        *(bool *)field = true;
        return CM_OK;
    case CM_OPTION_SET:
        *(int *)field = o->number;
        return CM_OK;
    case CM_OPTION_LEVEL:
        return store_level(o, text, field, err);
    case CM_OPTION_TEXT:
        *(const char **)field = text;
        return CM_OK;
    case CM_OPTION_UINT:
    case CM_OPTION_U64:
    case CM_OPTION_SIZE:
        return store_integer(o, text, field, err);
    case CM_OPTION_DOUBLE:
    case CM_OPTION_TIME:
    case CM_OPTION_RATE:
        return store_real(o, text, field, err);
    case CM_OPTION_CHOICE:
    case CM_OPTION_WORD:
        return store_word(o, text, field, err);
    case CM_OPTION_LIST:
    case CM_OPTION_ACTION:
        break;
    }
    return cm_fail(err, CM_EINTERNAL, "--%s has no single value", o->name);
}

size_t cm_option_nbytes(const cm_option *o)
{
    switch (o->kind) {
    case CM_OPTION_FLAG:
        return sizeof(bool);
    case CM_OPTION_SET:
    case CM_OPTION_LEVEL:
    case CM_OPTION_CHOICE:
        return sizeof(int);
    case CM_OPTION_TEXT:
    case CM_OPTION_WORD:
        return sizeof(const char *);
    case CM_OPTION_LIST:
        return sizeof(cm_texts);
    case CM_OPTION_UINT:
        return sizeof(unsigned);
    case CM_OPTION_U64:
    case CM_OPTION_SIZE:
        return sizeof(uint64_t);
    case CM_OPTION_DOUBLE:
    case CM_OPTION_TIME:
    case CM_OPTION_RATE:
        return sizeof(double);
    case CM_OPTION_ACTION:
        break;
    }
    return 0;
}

/* TEXT is the value, or NULL for an option that takes none. */
static bool store(parser *p, const cm_option *o, bool common, const char *text)
{
    void *values = common ? (void *)p->common : p->values;
    cm_error err = {0};
    if (!common)
        p->common->given[o - p->tool->options] = true;
    if (o->kind == CM_OPTION_LIST)
        return append(p, (cm_texts *)((char *)values + o->field.offset), text);
    if (o->kind == CM_OPTION_ACTION) {
        p->action = o;
        p->action_value = text;
        return true;
    }
    if (cm_option_store(o, text, values, &err) == CM_OK)
        return true;
    cm_tool_usage_error(p->tool, "%s", err.text);
    return false;
}

/* False after a sentence: a row of the table is wrong. */
static bool store_presets(parser *p)
{
    const cm_option *o;
    bool common = false;
    for (size_t i = 0; (o = cm_tool_option(p->tool, i, &common)); i++) {
        void *values = common ? (void *)p->common : p->values;
        cm_error err = {0};
        if (o->preset && cm_option_store(o, o->preset, values, &err) != CM_OK) {
            cm_say(p->tool->name, "%s", err.text);
            return false;
        }
    }
    return true;
}

/* ---- reading the command line --------------------------------------------------------------- */

static bool named(const char *option, const char *name, size_t nbytes)
{
    return option && strlen(option) == nbytes && memcmp(option, name, nbytes) == 0;
}

const cm_option *cm_tool_option_named(const cm_tool *tool, const char *name, size_t nbytes,
                                      bool *common)
{
    const cm_option *o;
    for (size_t i = 0; (o = cm_tool_option(tool, i, common)); i++)
        if (named(o->name, name, nbytes) || named(o->alias, name, nbytes))
            break;
    return o;
}

const cm_option *cm_tool_option_lettered(const cm_tool *tool, char letter, bool *common)
{
    const cm_option *o;
    for (size_t i = 0; (o = cm_tool_option(tool, i, common)); i++)
        if (o->letter && o->letter == letter)
            break;
    return o;
}

/* ARG is "--name" or "--name=value".  *I is its place in argv, moved past a value that follows. */
static bool long_option(parser *p, const char *arg, int *i)
{
    const char *name = arg + 2;
    size_t n = strcspn(name, "=");
    const char *value = name[n] == '=' ? name + n + 1 : NULL;
    bool common = false;
    const cm_option *o = cm_tool_option_named(p->tool, name, n, &common);
    if (!o) {
        const char *meant = nearest(p->tool, name, n);
        cm_tool_usage_error(p->tool, "unknown option --%.*s%s%s%s", (int)n, name,
                            meant ? "; did you mean --" : "", meant ? meant : "", meant ? "?" : "");
        return false;
    }
    const char *words = cm_option_words_after(o);
    size_t position;
    if (words) {
        if (!value && *i + 1 < p->argc && is_word(words, p->argv[*i + 1], &position))
            value = p->argv[++*i];
        return store(p, o, common, value);
    }
    if (!cm_option_argument(o)) {
        if (value)
            cm_tool_usage_error(p->tool, "--%s takes no value", o->name);
        return !value && store(p, o, common, NULL);
    }
    if (!value && *i + 1 < p->argc)
        value = p->argv[++*i];
    if (!value) {
        cm_tool_usage_error(p->tool, "--%s needs a value: %s", o->name, cm_option_argument(o));
        return false;
    }
    return store(p, o, common, value);
}

/* ARG is "-j4", "-j" or a bundle of flags such as "-vq". */
static bool short_options(parser *p, const char *arg, int *i)
{
    for (const char *c = arg + 1; *c; c++) {
        bool common = false;
        const cm_option *o = cm_tool_option_lettered(p->tool, *c, &common);
        if (!o) {
            cm_tool_usage_error(p->tool, "unknown option -%c", *c);
            return false;
        }
        p->brief |= o->kind == CM_OPTION_ACTION;
        if (cm_option_argument(o)) {
            const char *value = c[1] ? c + 1 : *i + 1 < p->argc ? p->argv[++*i] : NULL;
            if (!value)
                cm_tool_usage_error(p->tool, "-%c needs a value: %s", *c, cm_option_argument(o));
            return value && store(p, o, common, value);
        }
        if (!store(p, o, common, NULL))
            return false;
    }
    return true;
}

static int act(const parser *p)
{
    const cm_tool *tool = p->tool;
    char libraries[512];
    switch (p->action->number) {
    case ACTION_HELP:
        if (p->brief)
            cm_tool_print_brief(tool, stdout);
        else
            cm_tool_print_help(tool, stdout);
        break;
    case ACTION_VERSION:
        printf("%s (Chunkmill) %s\n%s\n", tool->name, cm_version(),
               cm_library_versions(libraries, sizeof(libraries)));
        break;
    case ACTION_GENERATE:
        if (strcmp(p->action_value, "man") == 0)
            cm_tool_print_man(tool, stdin, stdout);
        else if (!cm_tool_print_completion(tool, p->action_value, stdout))
            return cm_tool_usage_error(tool, "--generate takes %s, not '%s'", p->action->value,
                                       p->action_value);
        break;
    }
    return CM_EXIT_DONE;
}

int cm_tool_parse(const cm_tool *tool, int argc, char **argv, void *values,
                  cm_common_options *common, cm_texts *paths)
{
    parser p = {.tool = tool,
                .argc = argc,
                .argv = argv,
                .values = values,
                .common = common,
                .paths = paths};
    memset(common, 0, sizeof(*common));
    memset(paths, 0, sizeof(*paths));
    int errnum = cm_result_open();
    if (errnum != 0)
        cm_say(tool->name, "standard output: cannot be opened: %s", strerror(errnum));
    if (errnum != 0 || !store_presets(&p))
        return CM_EXIT_FAILED;
    bool ended = false;
    for (int i = 1; i < argc && !p.action; i++) {
        char *arg = argv[i];
        bool good;
        if (arg[0] == '\0')
            return cm_tool_usage_error(tool, "path %zu is empty", paths->n + 1);
        if (ended || arg[0] != '-' || arg[1] == '\0')
            good = append(&p, paths, arg);
        else if (strcmp(arg, "--") == 0)
            good = ended = true;
        else
            good = arg[1] == '-' ? long_option(&p, arg, &i) : short_options(&p, arg, &i);
        if (!good)
            return p.no_memory ? CM_EXIT_FAILED : CM_EXIT_USAGE;
    }
    return p.action ? act(&p) : CM_TOOL_RUN;
}

void cm_tool_release(const cm_tool *tool, void *values, cm_texts *paths)
{
    for (const cm_option *o = tool->options; o && o->name; o++) {
        if (o->kind == CM_OPTION_LIST) {
            cm_texts *list = (cm_texts *)((char *)values + o->field.offset);
            free((void *)(uintptr_t)list->text);
            memset(list, 0, sizeof(*list));
        }
    }
    free((void *)(uintptr_t)paths->text);
    memset(paths, 0, sizeof(*paths));
}

#include "again.h"

#include <stdlib.h>
#include <string.h>

#include "base/outstream.h"
#include "print.h"

/* The last row that ARG names: "--name", "--name=value", or letters up to one with a value. */
static const cm_option *option_of(const cm_tool *tool, const char *arg, bool *value_follows)
{
    const cm_option *o = NULL;
    if (arg[1] == '-') {
        const size_t n = strcspn(arg + 2, "=");
        o = cm_tool_option_named(tool, arg + 2, n, NULL);
        *value_follows = o != NULL && cm_option_argument(o) != NULL && arg[2 + n] == '\0';
        return o;
    }
    for (const char *c = arg + 1; *c != '\0'; c++) {
        o = cm_tool_option_lettered(tool, *c, NULL);
        if (o == NULL || cm_option_argument(o) != NULL) {
            *value_follows = o != NULL && c[1] == '\0';
            break;
        }
    }
    return o;
}

static bool is_among(const cm_option *o, const char *const *names)
{
    for (; *names != NULL; names++)
        if (strcmp(o->name, *names) == 0)
            return true;
    return false;
}

/* Words of ARGV behind the first, each after a space; PATHS: those that are no options, too. */
static void print_words(const cm_tool *tool, int argc, char **argv, const char *const *without,
                        bool paths, FILE *f)
{
    bool ended = false;
    for (int i = 1; i < argc; i++) {
        const char *arg = argv[i];
        bool value_follows = false;
        if (!ended && strcmp(arg, "--") == 0) {
            ended = true;
            continue;
        }
        if (ended || arg[0] != '-' || arg[1] == '\0') {
            if (!paths)
                continue;
            fputs(arg[0] == '-' && arg[1] != '\0' ? " ./" : " ", f);
            cm_print_shell_word(arg, f);
            continue;
        }
        const cm_option *o = option_of(tool, arg, &value_follows);
        const bool kept = o == NULL || !is_among(o, without);
        for (const int last = i + value_follows;; i++) {
            if (kept && i < argc) {
                fputc(' ', f);
                cm_print_shell_word(argv[i], f);
            }
            if (i == last)
                break;
        }
    }
}

char *cm_again_command(const cm_tool *tool, int argc, char **argv, const char *const *without)
{
    cm_outtext t;
    FILE *f = cm_outtext_open(&t);
    if (f == NULL)
        return NULL;
    cm_print_shell_word(argv[0], f);
    print_words(tool, argc, argv, without, true, f);
    return cm_outtext_close(&t);
}

char *cm_again_options(const cm_tool *tool, int argc, char **argv, const char *const *without)
{
    cm_outtext t;
    FILE *f = cm_outtext_open(&t);
    if (f == NULL)
        return NULL;
    print_words(tool, argc, argv, without, false, f);
    return cm_outtext_close(&t);
}

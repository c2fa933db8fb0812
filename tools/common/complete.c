/* Completion for bash, zsh and fish, from the option table. */
#include "options.h"

#include <string.h>

static void print_words(const char *words, const char *separator, FILE *to)
{
    const char *word;
    size_t n;
    for (size_t i = 0; cm_option_word(words, i, &word, &n); i++)
        fprintf(to, "%s%.*s", i ? separator : "", (int)n, word);
}

/* The first sentence of HELP, with what the shell would take for syntax replaced. */
static void print_brief(const char *help, const char *special, FILE *to)
{
    size_t n = cm_option_first_sentence(help);
    for (size_t i = 0; i < n; i++)
        putc(strchr(special, help[i]) ? ' ' : help[i], to);
}

/* ---- bash ----------------------------------------------------------------------------------- */

static void print_bash_names(const cm_option *o, const char *separator, FILE *to)
{
    if (o->letter)
        fprintf(to, "-%c%s", o->letter, separator);
    fprintf(to, "--%s", o->name);
    if (o->alias)
        fprintf(to, "%s--%s", separator, o->alias);
}

static void print_bash_value(const cm_option *o, FILE *to)
{
    fputs("    ", to);
    print_bash_names(o, " | ", to);
    fputs(")\n", to);
    if (o->words) {
        fputs("        COMPREPLY=($(compgen -W '", to);
        print_words(o->words, " ", to);
        fputs("' -- \"$cur\"))\n", to);
    } else if (o->operand != CM_OPERAND_ANY) {
        fprintf(to,
                "        compopt -o filenames\n"
                "        COMPREPLY=($(compgen %s -- \"$cur\"))\n",
                o->operand == CM_OPERAND_FOLDER ? "-d" : "-f");
    }
    fputs("        return\n        ;;\n", to);
}

static void print_bash(const cm_tool *tool, FILE *to)
{
    const cm_option *o;
    fprintf(to,
            "# bash completion for %s\n"
            "_%s() {\n"
            "    local cur=${COMP_WORDS[COMP_CWORD]} prev=${COMP_WORDS[COMP_CWORD - 1]}\n"
            "    COMPREPLY=()\n"
            "    # bash splits --name=value at the equals sign.\n"
            "    if [[ $cur == = ]]; then\n"
            "        cur=\n"
            "    elif [[ $prev == = ]]; then\n"
            "        prev=${COMP_WORDS[COMP_CWORD - 2]}\n"
            "    fi\n"
            "    case $prev in\n",
            tool->name, tool->name);
    for (size_t i = 0; (o = cm_tool_option(tool, i, NULL)); i++)
        if (cm_option_argument(o) && !o->hidden)
            print_bash_value(o, to);
    fputs("    esac\n"
          "    if [[ $cur == -* ]]; then\n"
          "        COMPREPLY=($(compgen -W '",
          to);
    for (size_t i = 0; (o = cm_tool_option(tool, i, NULL)); i++) {
        if (o->hidden)
            continue;
        fputs(i ? " " : "", to);
        print_bash_names(o, " ", to);
    }
    fprintf(to,
            "' -- \"$cur\"))\n"
            "    else\n"
            "        compopt -o default\n"
            "    fi\n"
            "}\n"
            "complete -F _%s %s\n",
            tool->name, tool->name);
}

/* ---- zsh ------------------------------------------------------------------------------------ */

/* 'NAME[brief]:value:action' of one spelling of the option; the others exclude each other. */
static void print_zsh_spelling(const cm_option *o, const char *dashes, const char *name, FILE *to)
{
    fputs("    '", to);
    if (o->kind == CM_OPTION_LIST) {
        putc('*', to);
    } else {
        putc('(', to);
        print_bash_names(o, " ", to);
        putc(')', to);
    }
    fprintf(to, "%s%s%s[", dashes, name, cm_option_argument(o) ? (dashes[1] ? "=" : "+") : "");
    print_brief(o->help, "[]':", to);
    putc(']', to);
    if (cm_option_argument(o)) {
        putc(':', to);
        print_brief(cm_option_argument(o), "[]':.", to);
        putc(':', to);
        if (o->words) {
            putc('(', to);
            print_words(o->words, " ", to);
            putc(')', to);
        } else if (o->operand != CM_OPERAND_ANY) {
            fputs(o->operand == CM_OPERAND_FOLDER ? "_files -/" : "_files", to);
        }
    }
    fputs("' \\\n", to);
}

static void print_zsh(const cm_tool *tool, FILE *to)
{
    fprintf(to, "#compdef %s\n_arguments -s -S \\\n", tool->name);
    const cm_option *o;
    for (size_t i = 0; (o = cm_tool_option(tool, i, NULL)); i++) {
        if (o->hidden)
            continue;
        if (o->letter)
            print_zsh_spelling(o, "-", (char[]){o->letter, '\0'}, to);
        print_zsh_spelling(o, "--", o->name, to);
        if (o->alias)
            print_zsh_spelling(o, "--", o->alias, to);
    }
    fputs("    '*:path:_files'\n", to);
}

/* ---- fish ----------------------------------------------------------------------------------- */

static void print_fish_spelling(const cm_tool *tool, const cm_option *o, const char *name, FILE *to)
{
    fprintf(to, "complete -c %s -l %s", tool->name, name);
    if (o->letter)
        fprintf(to, " -s %c", o->letter);
    if (o->words && cm_option_argument(o)) {
        fputs(" -x -a '", to);
        print_words(o->words, " ", to);
        putc('\'', to);
    } else if (cm_option_argument(o)) {
        fputs(o->operand == CM_OPERAND_FOLDER ? " -x -a '(__fish_complete_directories)'"
              : o->operand == CM_OPERAND_FILE ? " -r -F"
                                              : " -x",
              to);
    }
    fputs(" -d '", to);
    print_brief(o->help, "'\\", to);
    fputs("'\n", to);
}

static void print_fish(const cm_tool *tool, FILE *to)
{
    fprintf(to, "# fish completion for %s\n", tool->name);
    const cm_option *o;
    for (size_t i = 0; (o = cm_tool_option(tool, i, NULL)); i++) {
        if (o->hidden)
            continue;
        print_fish_spelling(tool, o, o->name, to);
        if (o->alias)
            print_fish_spelling(tool, o, o->alias, to);
    }
}

bool cm_tool_print_completion(const cm_tool *tool, const char *shell, FILE *to)
{
    if (strcmp(shell, "bash") == 0)
        print_bash(tool, to);
    else if (strcmp(shell, "zsh") == 0)
        print_zsh(tool, to);
    else if (strcmp(shell, "fish") == 0)
        print_fish(tool, to);
    else
        return false;
    return true;
}

#include "naming.h"

#include <stdlib.h>
#include <string.h>

#include "base/outstream.h"

/* The field's own name, without that of the struct which holds it. */
static const char *setting(const cm_option *o)
{
    const char *name = o->field.name;
    const char *dot = name ? strrchr(name, '.') : NULL;
    return dot ? dot + 1 : name;
}

/* Of several rows with such a field the one that is named like it: --unpack, not --packing. */
static const cm_option *option_of(const cm_tool *tool, const char *name, size_t nbytes)
{
    const cm_option *o, *found = NULL;
    for (size_t i = 0; (o = cm_tool_option(tool, i, NULL)); i++) {
        const char *field = setting(o);
        if (!field || strlen(field) != nbytes || memcmp(field, name, nbytes) != 0)
            continue;
        if (!found || strcmp(o->name, field) == 0)
            found = o;
    }
    return found;
}

/* A setting stands as a word of its own; what a file's name has between backquotes rarely does. */
static bool is_word(char before, const char *end)
{
    return (before == ' ' || before == '(') && (end[1] == '\0' || strchr(" ,;:)", end[1]));
}

char *cm_tool_name_options(const cm_tool *tool, const char *text)
{
    cm_outtext t;
    FILE *f = cm_outtext_open(&t);
    if (!f)
        return NULL;
    for (char before = ' '; *text; before = *text++) {
        const char *end = *text == '`' ? strchr(text + 1, '`') : NULL;
        const cm_option *o = end && is_word(before, end)
                                 ? option_of(tool, text + 1, (size_t)(end - text - 1))
                                 : NULL;
        if (o) {
            fprintf(f, "--%s", o->name);
            text = end;
        } else {
            putc(*text, f);
        }
    }
    return cm_outtext_close(&t);
}

void cm_tool_name_error(const cm_tool *tool, cm_error *err)
{
    if (!err || !strchr(err->text, '`'))
        return;
    char *named = cm_tool_name_options(tool, err->text);
    if (named)
        snprintf(err->text, sizeof err->text, "%s", named);
    free(named);
}

void cm_tool_name_text(const cm_tool *tool, char **text)
{
    char *named = *text && strchr(*text, '`') ? cm_tool_name_options(tool, *text) : NULL;
    if (!named)
        return;
    free(*text);
    *text = named;
}

void cm_tool_name_texts(const cm_tool *tool, char **text, size_t n)
{
    for (size_t i = 0; i < n; i++)
        cm_tool_name_text(tool, &text[i]);
}

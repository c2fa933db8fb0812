#include "grid.h"

#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include "../common/say.h"
#include "base/mem.h"

static void append(grid *g, char *text)
{
    char **grown = cm_make_room(g->cell, g->ncells, &g->capacity, sizeof(*grown), 64);
    if (grown != NULL)
        g->cell = grown;
    if (grown == NULL || text == NULL) {
        free(text);
        g->failed = true;
        return;
    }
    g->cell[g->ncells++] = text;
}

void grid_column(grid *g, const char *name, bool left)
{
    g->left[g->ncolumns++] = left;
    append(g, strdup(name));
}

void grid_cell(grid *g, const char *format, ...)
{
    char *text = NULL;
    va_list args;

    va_start(args, format);
    if (vasprintf(&text, format, args) < 0)
        text = NULL;
    va_end(args);
    append(g, text);
}

static size_t width_of(const grid *g, size_t column)
{
    size_t width = 0;

    for (size_t i = column; i < g->ncells; i += g->ncolumns)
        width = strlen(g->cell[i]) > width ? strlen(g->cell[i]) : width;
    return width;
}

static void print_padding(size_t n, char c, FILE *to)
{
    while (n-- > 0)
        putc(c, to);
}

static void print_aligned(const grid *g, bool markdown, FILE *to)
{
    for (size_t i = 0; i < g->ncells; i++) {
        size_t column = i % g->ncolumns, row = i / g->ncolumns;
        size_t pad = width_of(g, column) - strlen(g->cell[i]);
        bool last = column + 1 == g->ncolumns;
        fputs(markdown ? "| " : column > 0 ? "  " : "", to);
        if (!g->left[column])
            print_padding(pad, ' ', to);
        cm_print_clean(g->cell[i], to);
        if (g->left[column] && (markdown || !last))
            print_padding(pad, ' ', to);
        fputs(markdown ? (last ? " |\n" : " ") : last ? "\n" : "", to);
        if (markdown && last && row == 0)
            for (size_t k = 0; k < g->ncolumns; k++) {
                fputs(k == 0 ? "| " : " ", to);
                print_padding(width_of(g, k) > 2 ? width_of(g, k) - 1 : 2, '-', to);
                fputs(g->left[k] ? "- |" : ": |", to);
                fputs(k + 1 == g->ncolumns ? "\n" : "", to);
            }
    }
}

/* RFC 4180, but for line ends of one character. */
static void print_csv(const grid *g, FILE *to)
{
    for (size_t i = 0; i < g->ncells; i++) {
        bool quote = strpbrk(g->cell[i], ",\"\n\r") != NULL;
        if (quote)
            putc('"', to);
        for (const char *p = g->cell[i]; *p != '\0'; p++) {
            if (*p == '"')
                putc('"', to);
            putc(*p, to);
        }
        if (quote)
            putc('"', to);
        putc((i + 1) % g->ncolumns == 0 ? '\n' : ',', to);
    }
}

int grid_print(const grid *g, chunkcalc_format format, FILE *to, cm_error *err)
{
    if (g->failed)
        return cm_fail(err, CM_ENOMEM, "no memory for a table");
    if (format == FORMAT_CSV)
        print_csv(g, to);
    else
        print_aligned(g, format == FORMAT_MARKDOWN, to);
    return CM_OK;
}

void grid_release(grid *g)
{
    for (size_t i = 0; i < g->ncells; i++)
        free(g->cell[i]);
    free(g->cell);
    memset(g, 0, sizeof(*g));
}

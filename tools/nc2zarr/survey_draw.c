/* The coverage of a joined dimension as lines of text: a row for variables that are alike in it. */
#include <string.h>
#include <unistd.h>

#include "../common/say.h"
#include "../common/wrap.h"
#include "nc2zarr.h"

enum {
    COLUMNS_MOST = 200, /* as wrap.h counts them */
    INDENT = 4,
    LABEL_MOST = 28
};

/* Bits of a cell: it has steps that are in no file, in one, in several. */
enum {
    NONE = 1,
    ONE = 2,
    MORE = 4
};

static const struct {
    unsigned has;
    char mark;
    const char *means;
} MARK[] = {
    {ONE, '=', "in one file"},
    {NONE, '.', "missing"},
    {NONE | ONE, '-', "in part missing"},
    {MORE, '#', "in more than one file"},
    {MORE | ONE, '*', "in part in more than one file"},
    {MORE | NONE, '!', "in part missing, in part in more than one file"},
    {MORE | NONE | ONE, '!', ""}, /* as the one above */
};

/* "t2m, z", "t2m and 17 more" where all do not fit. */
static void format_label(const cm_coverage *c, char *buf, size_t size)
{
    size_t n = 0, all = 0;
    for (size_t i = 0; i < c->nvariables; i++)
        all += strlen(c->variable[i]) + 2;
    if (all > LABEL_MOST + 2 && c->nvariables > 1) {
        snprintf(buf, size, "%.*s and %zu more", LABEL_MOST - 12, c->variable[0],
                 c->nvariables - 1);
        return;
    }
    for (size_t i = 0; i < c->nvariables && n < size; i++)
        n += (size_t)snprintf(buf + n, size - n, "%s%.*s", i > 0 ? ", " : "", LABEL_MOST,
                              c->variable[i]);
}

static uint64_t length_of(const cm_coverage *c)
{
    uint64_t n = 0;
    for (size_t i = 0; i < c->nspans; i++)
        n += c->span[i].nsteps;
    return n;
}

/*
 * Of NCELLS cells for N steps, CELL[i] is what the steps say that lie in it, at least in part;
 * where there are more cells than steps, NCELLS is a multiple of N.
 */
static void fill_cells(const cm_coverage *c, uint64_t n, unsigned *cell, size_t ncells)
{
    static const unsigned HAS[] = {NONE, ONE, MORE};
    uint64_t begin = 0;
    memset(cell, 0, ncells * sizeof(*cell));
    for (size_t i = 0; i < c->nspans; i++) {
        uint64_t end = begin + c->span[i].nsteps;
        size_t first = (size_t)((double)begin / (double)n * (double)ncells);
        size_t last = (size_t)((double)(end - 1) / (double)n * (double)ncells);
        if (ncells >= n) {
            first = (size_t)(begin * (ncells / n));
            last = (size_t)(end * (ncells / n)) - 1;
        }
        for (size_t k = first; k <= last && k < ncells; k++)
            cell[k] |= HAS[c->span[i].nfiles];
        begin = end;
    }
}

static void print_row(const cm_coverage *c, uint64_t n, int width, size_t ncells, unsigned *seen)
{
    char label[128];
    unsigned cell[COLUMNS_MOST];
    format_label(c, label, sizeof(label));
    fill_cells(c, n, cell, ncells);
    cm_print(stdout, "%*s%-*.*s  ", INDENT, "", width, width, label);
    for (size_t i = 0; i < ncells; i++)
        for (size_t k = 0; k < sizeof(MARK) / sizeof(MARK[0]); k++)
            if (MARK[k].has == cell[i]) {
                putchar(MARK[k].mark);
                *seen |= 1U << (MARK[k].means[0] == '\0' ? k - 1 : k);
            }
    putchar('\n');
}

/* Below the rows: the first and the last step, where both fit. */
static void print_ends(const cm_archive_axis *a, int width, size_t ncells)
{
    if (a->first == NULL || a->last == NULL || strlen(a->first) + strlen(a->last) + 1 > ncells)
        return;
    cm_print(stdout, "%*s  %s%*s\n", INDENT + width, "", a->first, (int)(ncells - strlen(a->first)),
             a->last);
}

static void print_legend(unsigned seen)
{
    const char *comma = "";
    cm_print(stdout, "%*s", INDENT, "");
    for (size_t k = 0; k < sizeof(MARK) / sizeof(MARK[0]); k++)
        if ((seen >> k & 1) != 0) {
            cm_print(stdout, "%s%c %s", comma, MARK[k].mark, MARK[k].means);
            comma = ", ";
        }
    putchar('\n');
}

void nc2zarr_draw_coverage(const cm_archive_axis *a)
{
    char label[128];
    size_t width = 0, all = cm_wrap_columns(STDOUT_FILENO);
    unsigned seen = 0;
    uint64_t n = a->ncoverages > 0 ? length_of(&a->coverage[0]) : 0;
    if (n == 0)
        return;
    for (size_t i = 0; i < a->ncoverages; i++) {
        format_label(&a->coverage[i], label, sizeof(label));
        width = strlen(label) > width ? strlen(label) : width;
    }
    if (width > all / 2 - INDENT)
        width = all / 2 - INDENT;
    size_t ncells = all - INDENT - width - 2;
    if (n < ncells)
        ncells -= ncells % n;
    for (size_t i = 0; i < a->ncoverages; i++)
        print_row(&a->coverage[i], n, (int)width, ncells, &seen);
    print_ends(a, (int)width, ncells);
    print_legend(seen);
}

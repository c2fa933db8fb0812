/*
 * Times of many files on one axis, for the tests: files from standard input, the axis that
 * was chosen and all numbers on standard output.
 *
 *     time_cat [--units UNITS]
 *
 * A file is one line "TYPE CALENDAR FILL COUNT UNITS" (FILL is "-" for none), then COUNT
 * lines of one number each; floating point as C99 hexadecimal.  The answer is a line
 * "TYPE FILL LOST UNITS" ("-" where no file lost the first units), then the numbers.
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "model/rebase.h"

enum {
    MAX_FILES = 64,
    LINE = 512
};

typedef struct file {
    cm_time_coding coding;
    uint64_t nelem;
    uint8_t *values;
} file;

static void die(const cm_error *err)
{
    printf("%s: %s\n", cm_status_name(err->status), err->text);
    exit(0);
}

static void read_number(const cm_dtype *t, const char *text, void *out)
{
    const double d = strtod(text, NULL);
    const float f = (float)d;
    const int64_t i = strtoll(text, NULL, 10);
    if (t->kind != CM_KIND_FLOAT)
        memcpy(out, &i, t->nbytes);
    else if (t->nbytes == sizeof f)
        memcpy(out, &f, sizeof f);
    else
        memcpy(out, &d, sizeof d);
}

static void print_number(const cm_dtype *t, const void *value)
{
    double d;
    float f;
    uint64_t bits = 0;
    memcpy(&bits, value, t->nbytes);
    memcpy(&d, &bits, sizeof d);
    memcpy(&f, &bits, sizeof f);
    if (t->kind == CM_KIND_UINT)
        printf("%" PRIu64, bits);
    else if (t->kind == CM_KIND_INT)
        printf("%" PRId64, (int64_t)(bits << (64 - 8 * t->nbytes)) >> (64 - 8 * t->nbytes));
    else
        printf("%a", t->nbytes == sizeof f ? (double)f : d);
}

static bool read_file(file *f, char *units)
{
    char line[LINE], type[16], calendar[32], fill[64];
    int text = 0;
    cm_error err = {0};
    if (!fgets(line, sizeof line, stdin) ||
        sscanf(line, "%15s %31s %63s %" SCNu64 " %n", type, calendar, fill, &f->nelem, &text) != 4)
        return false;
    line[strcspn(line, "\n")] = 0;
    strcpy(units, line + text);
    if (cm_dtype_parse(type, &f->coding.dtype, &err) ||
        cm_time_axis_parse(units, calendar, &f->coding.axis, &err))
        die(&err);
    f->coding.has_fill = strcmp(fill, "-");
    read_number(&f->coding.dtype, fill, f->coding.fill);
    f->values = calloc(f->nelem + 1, 8);
    for (uint64_t i = 0; i < f->nelem && fgets(line, sizeof line, stdin); i++)
        read_number(&f->coding.dtype, line, f->values + i * f->coding.dtype.nbytes);
    return true;
}

static void print_file(const file *f, const cm_time_coding *to)
{
    uint8_t *out = calloc(f->nelem + 1, 8);
    uint64_t bad;
    cm_error err = {0};
    if (cm_time_rebase(&f->coding, to, f->values, out, f->nelem, &bad, &err))
        die(&err);
    for (uint64_t i = 0; i < f->nelem; i++) {
        print_number(&to->dtype, out + i * to->dtype.nbytes);
        putchar('\n');
    }
    free(out);
}

int main(int argc, char **argv)
{
    static file files[MAX_FILES];
    static char units[MAX_FILES][LINE];
    cm_error err = {0};
    cm_time_choice choice;
    cm_time_chosen chosen;
    cm_time_axis axis;
    uint64_t bad;
    size_t n = 0;
    while (n < MAX_FILES && read_file(&files[n], units[n]))
        n++;
    const char *first = argc == 3 ? argv[2] : units[0];
    if (cm_time_axis_parse(first, cm_calendar_name(files[0].coding.axis.calendar), &axis, &err))
        die(&err);
    cm_time_choice_begin(&choice, &axis, argc == 3);
    for (size_t i = 0; i < n; i++) {
        if (cm_time_choice_see(&choice, 0, &files[i].coding, files[i].values, files[i].nelem, i,
                               &bad, &err))
            die(&err);
    }
    if (cm_time_choice_end(&choice, first, &chosen, &err))
        die(&err);
    char type[32];
    printf("%s ", cm_dtype_name(&chosen.coding[0].dtype, type, sizeof type));
    if (chosen.coding[0].has_fill)
        print_number(&chosen.coding[0].dtype, chosen.coding[0].fill);
    else
        putchar('-');
    if (choice.any_lost)
        printf(" %" PRIu64, choice.lost);
    else
        printf(" -");
    printf(" %s\n", chosen.units);
    for (size_t i = 0; i < n; i++) {
        print_file(&files[i], &chosen.coding[0]);
        free(files[i].values);
    }
    return 0;
}

/* Options of nc2zarr's and rechunk's jobs from the lines of an input. */
#ifndef CM_TESTS_FUZZ_JOB_OPTIONS_H
#define CM_TESTS_FUZZ_JOB_OPTIONS_H

#include <chunkmill/transform.h>

#include "fuzz.h"

enum {
    FUZZ_MAX_VALUES = 3
};

/* Up to three lines for one option. */
typedef struct fuzz_values {
    char *text[FUZZ_MAX_VALUES];
    size_t n;
} fuzz_values;

static inline cm_texts fuzz_texts(const fuzz_values *v)
{
    return (cm_texts){(const char *const *)v->text, v->n};
}

/* Each line begins with a letter, 'a' for the first of N options; what follows is a value of it. */
static inline void fuzz_read_values(fuzz_input *in, fuzz_values *values, size_t n)
{
    while (in->nbytes > 0) {
        char *line = fuzz_line(in);
        const size_t which = (size_t)(unsigned char)line[0] - 'a';
        if (line[0] != '\0' && which < n && values[which].n < FUZZ_MAX_VALUES)
            values[which].text[values[which].n++] = fuzz_text(line + 1, strlen(line + 1));
        free(line);
    }
}

static inline void fuzz_release_values(fuzz_values *values, size_t n)
{
    for (size_t i = 0; i < n; i++)
        while (values[i].n > 0)
            free(values[i].text[--values[i].n]);
}

#endif

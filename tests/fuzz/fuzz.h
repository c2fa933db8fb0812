/*
 * Shared by the fuzzers.  Each checks one property of one parser: any bytes are read
 * or refused, and what was read keeps what the header promises.
 *
 * `make fuzz` runs them under libFuzzer, `make fuzz-replay` gives them the committed
 * inputs without it (replay.c).
 */
#ifndef CM_TESTS_FUZZ_H
#define CM_TESTS_FUZZ_H

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* An engine calls these; the second is there in some fuzzers only. */
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t nbytes);
int LLVMFuzzerInitialize(int *argc, char ***argv);

/* The property: a process that finds it broken dies, and the engine keeps the input. */
#define REQUIRE(condition)                                                                         \
    do {                                                                                           \
        if (!(condition)) {                                                                        \
            fprintf(stderr, "%s:%d: not so: %s\n", __FILE__, __LINE__, #condition);                \
            abort();                                                                               \
        }                                                                                          \
    } while (0)

/* Input that is taken from the front; past its end everything is 0 or empty. */
typedef struct fuzz_input {
    const uint8_t *data;
    size_t nbytes;
} fuzz_input;

static inline uint64_t fuzz_number(fuzz_input *in, size_t nbytes)
{
    uint64_t value = 0;
    size_t n = nbytes < in->nbytes ? nbytes : in->nbytes;
    memcpy(&value, in->data, n);
    in->data += n;
    in->nbytes -= n;
    return value;
}

/* A copy of just NBYTES, so that a sanitizer sees what lies beyond; free() releases it. */
static inline void *fuzz_copy(const void *data, size_t nbytes)
{
    void *copy = malloc(nbytes > 0 ? nbytes : 1);
    REQUIRE(copy != NULL);
    if (nbytes > 0)
        memcpy(copy, data, nbytes);
    return copy;
}

static inline char *fuzz_text(const void *data, size_t nbytes)
{
    char *text = malloc(nbytes + 1);
    REQUIRE(text != NULL);
    if (nbytes > 0)
        memcpy(text, data, nbytes);
    text[nbytes] = '\0';
    return text;
}

/* The text before the next newline; free() releases it. */
static inline char *fuzz_line(fuzz_input *in)
{
    const uint8_t *end = in->nbytes > 0 ? memchr(in->data, '\n', in->nbytes) : NULL;
    size_t n = end != NULL ? (size_t)(end - in->data) : in->nbytes;
    char *text = fuzz_text(in->data, n);
    n += end != NULL;
    in->data += n;
    in->nbytes -= n;
    return text;
}

#endif

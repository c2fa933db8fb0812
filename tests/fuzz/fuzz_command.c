/*
 * Command lines of any words: run, answered or refused with exit status 2, and the values
 * that are taken are within what the table of options allows.
 */
#include <math.h>

#include "../../tools/readbench/readbench.h"
#include "fuzz.h"

enum {
    MAX_WORDS = 24
};

static FILE *quiet;

int LLVMFuzzerInitialize(int *argc, char ***argv)
{
    (void)argc;
    (void)argv;
    quiet = fopen("/dev/null", "w");
    REQUIRE(quiet != NULL && freopen("/dev/null", "r", stdin) != NULL);
    return 0;
}

static void check_values(const readbench_values *v)
{
    readbench_values usual; /* what is not given may lie outside of what can be */
    const cm_option *o;
    bool common;
    readbench_values_init(&usual);
    for (size_t i = 0; (o = cm_tool_option(&READBENCH, i, &common)) != NULL && !common; i++) {
        const char *at = (const char *)v + o->field.offset,
                   *before = (const char *)&usual + o->field.offset;
        const char *word;
        size_t n, nwords = 0;
        if (o->kind == CM_OPTION_DOUBLE || o->kind == CM_OPTION_TIME || o->kind == CM_OPTION_RATE)
            REQUIRE(isfinite(*(const double *)at));
        if (o->kind == CM_OPTION_UINT && o->max > 0 && memcmp(at, before, sizeof(unsigned)) != 0)
            REQUIRE(*(const unsigned *)at >= o->min && *(const unsigned *)at <= o->max);
        if (o->kind == CM_OPTION_CHOICE) {
            while (cm_option_word(o->words, nwords, &word, &n))
                nwords++;
            REQUIRE(*(const int *)at < (int)nwords);
        }
    }
}

static int parse(char **word, int nwords)
{
    char *argv[MAX_WORDS + 2];
    readbench_values v;
    cm_common_options common;
    cm_texts paths;
    FILE *out = stdout, *err = stderr;
    memcpy(argv, word, (size_t)nwords * sizeof *argv);
    argv[nwords] = NULL;
    readbench_values_init(&v);
    stdout = stderr = quiet;
    const int status = cm_tool_parse(&READBENCH, nwords, argv, &v, &common, &paths);
    stdout = out;
    stderr = err;
    REQUIRE(status == CM_TOOL_RUN || status == CM_EXIT_DONE || status == CM_EXIT_USAGE);
    if (status == CM_TOOL_RUN) {
        check_values(&v);
        REQUIRE(paths.n < (size_t)nwords);
    }
    cm_tool_release(&READBENCH, &v, &paths);
    return status;
}

/* Each line is a word. */
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t nbytes)
{
    fuzz_input in = {data, nbytes};
    char *word[MAX_WORDS] = {(char *)"readbench"};
    int n = 1;
    while (in.nbytes > 0 && n < MAX_WORDS)
        word[n++] = fuzz_line(&in);
    REQUIRE(parse(word, n) == parse(word, n));
    while (n > 1)
        free(word[--n]);
    return 0;
}

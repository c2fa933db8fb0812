/*
 * readbench --compare of two summaries that nobody wrote: a table, a document that is JSON,
 * or a sentence; never a number that is none.
 */
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "../../tools/readbench/readbench.h"
#include "base/json.h"
#include "fuzz.h"

static char folder[2][64];
static int summary[2];
static FILE *quiet;

static void remove_folders(void)
{
    for (int i = 0; i < 2; i++) {
        char path[256];
        snprintf(path, sizeof path, "%s/summary.json", folder[i]);
        unlink(path);
        rmdir(folder[i]);
    }
}

int LLVMFuzzerInitialize(int *argc, char ***argv)
{
    (void)argc;
    (void)argv;
    for (int i = 0; i < 2; i++) {
        char path[256];
        struct stat st;
        const char *base = stat("/dev/shm", &st) == 0 ? "/dev/shm" : "/tmp";
        snprintf(folder[i], sizeof folder[i], "%s/fuzz-compare-XXXXXX", base);
        REQUIRE(mkdtemp(folder[i]) != NULL);
        snprintf(path, sizeof path, "%s/summary.json", folder[i]);
        summary[i] = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
        REQUIRE(summary[i] >= 0);
    }
    atexit(remove_folders);
    quiet = fopen("/dev/null", "w");
    REQUIRE(quiet != NULL);
    return 0;
}

static void put(int i, const uint8_t *data, size_t nbytes)
{
    REQUIRE(ftruncate(summary[i], 0) == 0);
    REQUIRE(pwrite(summary[i], data, nbytes, 0) == (ssize_t)nbytes);
}

static void compare(bool json)
{
    const char *paths[] = {folder[0], folder[1]};
    const cm_texts list = {paths, 2};
    cm_common_options common = {.json = json};
    char *text = NULL;
    size_t nbytes = 0;
    FILE *out = stdout, *err = stderr, *memory = open_memstream(&text, &nbytes);
    REQUIRE(memory != NULL);
    stdout = memory;
    stderr = quiet;
    const int status = readbench_compare(&common, &list);
    stdout = out;
    stderr = err;
    fclose(memory);
    REQUIRE(status == CM_EXIT_DONE || status == CM_EXIT_FAILED || status == CM_EXIT_USAGE);
    if (json && nbytes > 0) {
        cm_json *j;
        REQUIRE(cm_json_parse(text, nbytes, &j, NULL) == CM_OK);
        cm_json_free(j);
    }
    REQUIRE(status != CM_EXIT_DONE || nbytes > 0);
    /* A terminal takes orders from what is not printable. */
    for (size_t i = 0; i < nbytes; i++)
        REQUIRE((uint8_t)text[i] >= ' ' || text[i] == '\n');
    free(text);
}

/* The first line that is "---" parts the two; without it, both are the same. */
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t nbytes)
{
    const uint8_t *cut = nbytes > 0 ? memmem(data, nbytes, "\n---\n", 5) : NULL;
    const size_t n = cut != NULL ? (size_t)(cut - data) : nbytes;
    put(0, data, n);
    put(1, cut != NULL ? cut + 5 : data, cut != NULL ? nbytes - n - 5 : n);
    compare(false);
    compare(true);
    return 0;
}

/*
 * A log of accesses that somebody else wrote: it is read as a whole or refused with a sentence, and
 * every read that it gives lies in the array.
 */
#include "fuzz.h"
#include "watch/access.h"

enum {
    MAX_LINES = 1 << 16
};

static void check_reads(const cm_access_log *log, const cm_access_array *array)
{
    cm_access_reads reads;
    cm_error err = {0};
    if (cm_access_reads_find(log, array, &reads, &err) != CM_OK)
        REQUIRE(err.text[0] != '\0');
    for (size_t i = 0; i < reads.n; i++) {
        cm_box box;
        cm_access_box(&reads, i, &box);
        for (unsigned j = 0; j < box.rank; j++)
            REQUIRE(box.shape[j] > 0 && box.shape[j] <= array->shape[j] &&
                    box.start[j] <= array->shape[j] - box.shape[j]);
    }
    REQUIRE(reads.n == 0 || (reads.together >= 1 && reads.together <= reads.n));
    cm_access_reads_release(&reads);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t nbytes)
{
    static const uint64_t shape[] = {10, 20, 6}, chunk[] = {4, 10, 6}, none[] = {0, 0, 0};
    static const cm_access_array array[] = {
        {"t", 2, shape, chunk, NULL}, {"", 3, shape, chunk, NULL}, {"g/t", 1, shape, chunk, NULL},
        {"t", 0, shape, chunk, NULL}, {"t", 2, none, chunk, NULL}, {"t", 2, shape, none, NULL}};
    cm_access_log *log;
    cm_error err = {0};
    if (nbytes > MAX_LINES)
        return 0;
    char *text = fuzz_copy(data, nbytes);
    if (cm_access_log_parse("log", text, nbytes, &log, &err) != CM_OK) {
        REQUIRE(err.text[0] != '\0' && log == NULL);
    } else {
        for (size_t i = 0; i < sizeof array / sizeof *array; i++)
            check_reads(log, &array[i]);
        for (size_t i = 0; cm_access_log_array(log, i) != NULL; i++)
            REQUIRE(strlen(cm_access_log_array(log, i)) < nbytes);
        cm_access_log_free(log);
    }
    free(text);
    return 0;
}

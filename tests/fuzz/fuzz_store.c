/*
 * A whole small store of several documents and chunks: each line that begins with '@' is a
 * key, what follows up to the next one its object.
 */
#include "fuzz.h"
#include "store.h"

static const uint8_t *next_key(const uint8_t *p, const uint8_t *end)
{
    for (; p < end; p++)
        if (*p == '@' && (p[-1] == '\n'))
            return p;
    return end;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t nbytes)
{
    cm_store *store;
    cm_error err;
    const uint8_t *end = data + nbytes;
    REQUIRE(cm_store_open_memory(&store, NULL) == CM_OK);
    for (const uint8_t *p = data; p < end && *p == '@';) {
        const uint8_t *line = memchr(p, '\n', (size_t)(end - p));
        if (line == NULL)
            break;
        char *key = fuzz_text(p + 1, (size_t)(line - p - 1));
        p = next_key(line + 1, end);
        /* The newline in front of the next key is none of the object's. */
        const size_t n = (size_t)(p - line - 1);
        (void)cm_store_put(store, key, line + 1, n > 0 && p < end ? n - 1 : n, &err);
        free(key);
    }
    fuzz_read_store(store);
    cm_store_free(store);
    return 0;
}

/*
 * UTF-8 and base64: repairing leaves valid text only and keeps what was valid; base64 comes
 * back as it was.
 */
#include "base/base64.h"
#include "base/utf8.h"
#include "fuzz.h"

static void check_utf8(const uint8_t *text, size_t nbytes)
{
    cm_buf once = {0}, twice = {0};
    REQUIRE(cm_utf8_repair(text, nbytes, &once, NULL) == CM_OK);
    REQUIRE(cm_utf8_is_valid(once.data, once.nbytes) && once.nbytes <= 3 * nbytes);
    REQUIRE(cm_utf8_repair(once.data, once.nbytes, &twice, NULL) == CM_OK);
    REQUIRE(once.nbytes == twice.nbytes);
    REQUIRE(once.nbytes == 0 || memcmp(once.data, twice.data, once.nbytes) == 0);
    if (cm_utf8_is_valid(text, nbytes))
        REQUIRE(once.nbytes == nbytes && (nbytes == 0 || memcmp(once.data, text, nbytes) == 0));
    cm_buf_release(&once);
    cm_buf_release(&twice);
}

static void check_base64(const uint8_t *data, size_t nbytes)
{
    uint8_t *back;
    size_t back_nbytes;
    char *text = cm_base64_encode(data, nbytes, NULL);
    REQUIRE(text != NULL && cm_base64_decode(text, strlen(text), &back, &back_nbytes));
    REQUIRE(back_nbytes == nbytes && (nbytes == 0 || memcmp(back, data, nbytes) == 0));
    free(text);
    free(back);
    if (cm_base64_decode((const char *)data, nbytes, &back, &back_nbytes)) {
        REQUIRE(back_nbytes <= nbytes);
        free(back);
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t nbytes)
{
    uint8_t *copy = fuzz_copy(data, nbytes);
    check_utf8(copy, nbytes);
    check_base64(copy, nbytes);
    free(copy);
    return 0;
}

/*
 * JSON: any text is read or refused, and what is written reads back and is written the same
 * again.
 */
#include "base/json.h"
#include "fuzz.h"

static void write_text(const cm_json *j, bool pretty, cm_buf *out)
{
    out->nbytes = 0;
    REQUIRE(cm_json_write(j, pretty, out, NULL) == CM_OK);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t nbytes)
{
    uint8_t *copy = fuzz_copy(data, nbytes);
    cm_json *j, *again, *pretty;
    cm_buf text = {0}, text2 = {0};
    if (cm_json_parse(copy, nbytes, &j, NULL) == CM_OK) {
        write_text(j, false, &text);
        REQUIRE(cm_json_parse(text.data, text.nbytes, &again, NULL) == CM_OK);
        write_text(again, false, &text2);
        REQUIRE(text.nbytes == text2.nbytes && memcmp(text.data, text2.data, text.nbytes) == 0);
        write_text(j, true, &text2);
        REQUIRE(cm_json_parse(text2.data, text2.nbytes, &pretty, NULL) == CM_OK);
        REQUIRE(cm_json_equal(again, pretty));
        cm_json_free(pretty);
        cm_json *same = cm_json_copy(j);
        write_text(same, false, &text2);
        REQUIRE(text.nbytes == text2.nbytes && memcmp(text.data, text2.data, text.nbytes) == 0);
        cm_json_free(same);
        cm_json_free(again);
        cm_json_free(j);
    }
    cm_buf_release(&text);
    cm_buf_release(&text2);
    free(copy);
    return 0;
}

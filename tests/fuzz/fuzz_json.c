/*
 * JSON: any text is read or refused, and what is written reads back and is written the same
 * again.  The members of an object that a scan finds are those of its tree.
 */
#include "base/json.h"
#include "base/json_scan.h"
#include "fuzz.h"

static void write_text(const cm_json *j, bool pretty, cm_buf *out)
{
    out->nbytes = 0;
    REQUIRE(cm_json_write(j, pretty, out, NULL) == CM_OK);
}

/* OBJECT is the tree of TEXT: of several members of one name the last one counts. */
static void scan(const uint8_t *text, size_t nbytes, const cm_json *object)
{
    cm_json_scan s;
    cm_json_slice name, value;
    bool more = true;
    cm_json *found = cm_json_object(), *j, *k;
    REQUIRE(cm_json_scan_begin(&s, text, nbytes, NULL) == CM_OK);
    for (;;) {
        REQUIRE(cm_json_scan_next(&s, &name, &value, &more, NULL) == CM_OK);
        if (!more)
            break;
        REQUIRE(cm_json_parse(name.text, name.nbytes, &k, NULL) == CM_OK);
        REQUIRE(cm_json_parse(value.text, value.nbytes, &j, NULL) == CM_OK);
        const char *key = cm_json_text(k, NULL);
        if (cm_json_slice_is_plain(&name))
            REQUIRE(strlen(key) == name.nbytes - 2 && memcmp(key, name.text + 1, strlen(key)) == 0);
        REQUIRE(cm_json_set(found, key, j, NULL) == CM_OK);
        cm_json_free(k);
    }
    REQUIRE(cm_json_equal(found, object));
    cm_json_free(found);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t nbytes)
{
    uint8_t *copy = fuzz_copy(data, nbytes);
    cm_json *j, *again, *pretty;
    cm_buf text = {0}, text2 = {0};
    if (cm_json_parse(copy, nbytes, &j, NULL) == CM_OK) {
        if (cm_json_is(j, CM_JSON_OBJECT))
            scan(copy, nbytes, j);
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

/*
 * The lines of a journal: any bytes are read up to the first line that is not whole, what is
 * read is what was written, and a text that is cut or damaged gives the lines before that.
 */
#include "convert/beside/journal_line.h"
#include "fuzz.h"

enum {
    MAX_LINES = 64
};

/* The lines of TEXT written again; returns their number. */
static size_t copy_lines(const uint8_t *data, size_t nbytes, cm_buf *out)
{
    char *text = fuzz_copy(data, nbytes), *payload;
    size_t at = 0, n = 0;
    out->nbytes = 0;
    for (size_t before = 0; (payload = cm_journal_line_next(text, nbytes, &at)) != NULL; n++) {
        uint64_t item, chunk;
        const size_t length = strlen(payload);
        REQUIRE(at > before && at <= nbytes && payload + length + 1 == text + at);
        before = at;
        REQUIRE(cm_journal_line_append(out, payload, length, NULL) == CM_OK);
        if (cm_journal_line_skip(payload, &item, &chunk)) {
            char line[CM_JOURNAL_SKIP_SIZE];
            const size_t m = cm_journal_line_of_skip(line, item, chunk);
            REQUIRE(m <= sizeof line && m <= out->nbytes);
            REQUIRE(memcmp(line, out->data + out->nbytes - m, m) == 0);
        }
    }
    /* The part read is the beginning of the file. */
    REQUIRE(out->nbytes == at && (at == 0 || memcmp(out->data, data, at) == 0));
    free(text);
    return n;
}

/* The input's lines, each made whole; then cut after CUT bytes, and one bit turned. */
static void check_written(const uint8_t *data, size_t nbytes)
{
    fuzz_input in = {data, nbytes};
    const size_t cut = (size_t)fuzz_number(&in, 2), turn = (size_t)fuzz_number(&in, 2);
    cm_buf text = {0}, again = {0};
    size_t end[MAX_LINES], n = 0, whole = 0;
    while (in.nbytes > 0 && n < MAX_LINES) {
        char *payload = fuzz_line(&in);
        REQUIRE(cm_journal_line_append(&text, payload, strlen(payload), NULL) == CM_OK);
        end[n++] = text.nbytes;
        free(payload);
    }
    REQUIRE(copy_lines(text.data, text.nbytes, &again) == n && again.nbytes == text.nbytes);
    const size_t kept = n > 0 ? cut % (text.nbytes + 1) : 0;
    while (whole < n && end[whole] <= kept)
        whole++;
    REQUIRE(copy_lines(text.data, kept, &again) == whole);
    if (n > 0) {
        const size_t at = turn / 8 % text.nbytes;
        text.data[at] ^= (uint8_t)(1u << turn % 8);
        for (whole = 0; end[whole] <= at;)
            whole++;
        REQUIRE(copy_lines(text.data, text.nbytes, &again) == whole);
    }
    cm_buf_release(&text);
    cm_buf_release(&again);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t nbytes)
{
    cm_buf out = {0};
    (void)copy_lines(data, nbytes, &out);
    cm_buf_release(&out);
    check_written(data, nbytes);
    return 0;
}

/* The journal of a run: its lines, what damage leaves of them, and what a resuming run believes. */
#include <stdio.h>

#include "../fixtures/ok.h"
#include "convert/beside/journal.h"
#include "convert/beside/journal_line.h"
#include "format/zarr/writer.h"

/* ---- lines ---- */

/* CRC-32C bit by bit, as RFC 3720 defines it. */
static uint32_t crc32c(const void *data, size_t nbytes)
{
    const uint8_t *p = data;
    uint32_t crc = UINT32_MAX;
    for (size_t i = 0; i < nbytes; i++) {
        crc ^= p[i];
        for (int bit = 0; bit < 8; bit++)
            crc = (crc >> 1) ^ (crc & 1 ? UINT32_C(0x82f63b78) : 0);
    }
    return ~crc;
}

/* The line of PAYLOAD, made here. */
static size_t make_line(char *out, const char *payload)
{
    return (size_t)sprintf(out, "%08x %s\n", (unsigned)crc32c(payload, strlen(payload)), payload);
}

static const char *const PAYLOADS[] = {
    "{\"phase\":\"writing\",\"arrays\":[]}",     "0 12", "", "3 7",
    "18446744073709551615 18446744073709551615", "0 45"};

static void test_lines_are_checksum_and_payload(void **state)
{
    (void)state;
    char want[256], line[CM_JOURNAL_SKIP_SIZE];
    assert_int_equal(crc32c("123456789", 9), 0xe3069283);
    for (size_t i = 0; i < COUNT(PAYLOADS); i++) {
        cm_buf text = {0};
        uint64_t item, chunk;
        size_t at = 0, n = make_line(want, PAYLOADS[i]);
        OK(cm_journal_line_append(&text, PAYLOADS[i], strlen(PAYLOADS[i]), err));
        assert_int_equal(text.nbytes, n);
        assert_memory_equal(text.data, want, n);
        if (cm_journal_line_skip(PAYLOADS[i], &item, &chunk)) {
            assert_int_equal(cm_journal_line_of_skip(line, item, chunk), n);
            assert_memory_equal(line, want, n);
        }
        assert_string_equal(cm_journal_line_next((char *)text.data, n, &at), PAYLOADS[i]);
        assert_int_equal(at, n);
        assert_null(cm_journal_line_next((char *)text.data, n, &at));
        cm_buf_release(&text);
    }
}

/* All lines of PAYLOADS in OUT; END[i]: behind line i. */
static size_t make_text(char *out, size_t *end)
{
    size_t n = 0;
    for (size_t i = 0; i < COUNT(PAYLOADS); i++)
        end[i] = n += make_line(out + n, PAYLOADS[i]);
    return n;
}

/* Reads TEXT on and on: each line must be the one of PAYLOADS.  The number of lines. */
static size_t read_lines(const char *text, size_t nbytes, const size_t *end)
{
    char copy[1024];
    size_t n = 0, at = 0;
    const char *payload;
    memcpy(copy, text, nbytes);
    while ((payload = cm_journal_line_next(copy, nbytes, &at)) != NULL) {
        assert_true(n < COUNT(PAYLOADS));
        assert_string_equal(payload, PAYLOADS[n]);
        assert_int_equal(at, end[n++]);
    }
    assert_int_equal(at, n == 0 ? 0 : end[n - 1]);
    return n;
}

static void test_a_line_that_is_cut_is_none(void **state)
{
    (void)state;
    char text[1024];
    size_t end[COUNT(PAYLOADS)], n = make_text(text, end), whole = 0;
    for (size_t cut = 0; cut <= n; cut++) {
        whole += cut > 0 && text[cut - 1] == '\n';
        assert_int_equal(read_lines(text, cut, end), whole);
    }
    assert_int_equal(whole, COUNT(PAYLOADS));
}

static void test_a_line_that_is_changed_is_none(void **state)
{
    (void)state;
    char text[1024];
    size_t end[COUNT(PAYLOADS)], n = make_text(text, end), line = 0;
    for (size_t i = 0; i < n; i++) {
        line += i == end[line];
        for (int change = 1; change < 256; change++) {
            text[i] = (char)(text[i] ^ change);
            assert_int_equal(read_lines(text, n, end), line);
            text[i] = (char)(text[i] ^ change);
        }
    }
}

static void test_a_lost_byte_or_a_joined_line_is_none(void **state)
{
    (void)state;
    char text[1024], less[1024];
    size_t end[COUNT(PAYLOADS)], n = make_text(text, end), line = 0;
    for (size_t i = 0; i < n; i++) {
        line += i == end[line];
        memcpy(less, text, i);
        memcpy(less + i, text + i + 1, n - i - 1);
        assert_int_equal(read_lines(less, n - 1, end), line);
    }
    /* A line cut by a full disk, and continued: "0 1" and "0 45" are not "0 10 45". */
    n = (size_t)sprintf(text, "%08x 0 1%08x 0 45\n", crc32c("0 12", 4), crc32c("0 45", 4));
    assert_int_equal(read_lines(text, n, end), 0);
}

static void test_skips_are_two_plain_numbers(void **state)
{
    (void)state;
    static const struct {
        const char *payload;
        bool good;
        uint64_t item, chunk;
    } row[] = {
        {"0 12", true, 0, 12},
        {"18446744073709551615 18446744073709551615", true, UINT64_MAX, UINT64_MAX},
        {"7 0", true, 7, 0},
        {.payload = ""},
        {.payload = "0"},
        {.payload = "0 "},
        {.payload = " 0 1"},
        {.payload = "0  1"},
        {.payload = "0 1 "},
        {.payload = "0 1x"},
        {.payload = "0 1 2"},
        {.payload = "0\t1"},
        {.payload = "00 1"},
        {.payload = "0 012"},
        {.payload = "+0 1"},
        {.payload = "0 -1"},
        {.payload = "0x1 1"},
        {.payload = "18446744073709551616 0"},
        {.payload = "0 99999999999999999999"},
    };
    for (size_t i = 0; i < COUNT(row); i++) {
        uint64_t item = 0, chunk = 0;
        if (cm_journal_line_skip(row[i].payload, &item, &chunk) != row[i].good)
            fail_msg("\"%s\"", row[i].payload);
        assert_true(!row[i].good || (item == row[i].item && chunk == row[i].chunk));
    }
}

static void test_names(void **state)
{
    (void)state;
    static const char *const row[][2] = {{"", "journal"},
                                         {"tas", "journal-tas"},
                                         {"a/b", "journal-a%2Fb"},
                                         {"a%2Fb", "journal-a%252Fb"}};
    char node[2][400], *name[2];
    for (size_t i = 0; i < COUNT(row); i++) {
        char *found = cm_journal_name(row[i][0], NULL);
        assert_string_equal(found, row[i][1]);
        free(found);
    }
    for (size_t i = 0; i < 2; i++) { /* that differ at their end */
        memset(node[i], 'n', sizeof(node[i]));
        strcpy(node[i] + 390, i == 0 ? "one" : "two");
        assert_non_null(name[i] = cm_journal_name(node[i], NULL));
        assert_true(strlen(name[i]) < 255);
    }
    assert_string_not_equal(name[0], name[1]);
    free(name[0]);
    free(name[1]);
}

/* ---- a journal and a store ---- */

static char folder[64];
static cm_beside beside;
static cm_store *store;

static int make_folder(void **state)
{
    char out[80];
    (void)state;
    strcpy(folder, "/tmp/cm-journal-XXXXXX");
    if (mkdtemp(folder) == NULL)
        return -1;
    sprintf(out, "%s/out.zarr", folder);
    return cm_beside_find(out, NULL, &beside, NULL) != CM_OK ||
           cm_beside_open(&beside, true, NULL) != CM_OK ||
           cm_store_open_dir(out, true, &store, NULL) != CM_OK;
}

static int remove_folder(void **state)
{
    char command[80];
    (void)state;
    cm_store_free(store);
    cm_beside_release(&beside);
    sprintf(command, "rm -rf %s", folder);
    return system(command);
}

static void put_journal(const void *text, size_t nbytes)
{
    OK(cm_store_put(beside.in, "journal", text, nbytes, err));
}

static cm_journal_phase look(void)
{
    cm_journal_phase phase;
    OK(cm_journal_look(&beside, "journal", &phase, err));
    return phase;
}

static void test_phases(void **state)
{
    (void)state;
    static const struct {
        const char *text; /* the file */
        const char *head; /* or: the payload of its first line */
        cm_journal_phase is;
    } row[] = {
        {"", NULL, CM_JOURNAL_DAMAGED},
        {"\n", NULL, CM_JOURNAL_DAMAGED},
        {"{\"made\":true}\n", NULL, CM_JOURNAL_DAMAGED},
        {"{\"phase\":\"writing\",\"arrays\":[]}\n", NULL, CM_JOURNAL_DAMAGED},
        {"00000000 {\"phase\":\"writing\"}\n", NULL, CM_JOURNAL_DAMAGED},
        {"a letter to a friend", NULL, CM_JOURNAL_DAMAGED},
        {NULL, "", CM_JOURNAL_DAMAGED},
        {NULL, "0 12", CM_JOURNAL_DAMAGED},
        {NULL, "{\"phase\":\"wri", CM_JOURNAL_DAMAGED},
        {NULL, "[\"writing\"]", CM_JOURNAL_DAMAGED},
        {NULL, "{\"phase\":7}", CM_JOURNAL_DAMAGED},
        {NULL, "{\"phase\":\"other\"}", CM_JOURNAL_DAMAGED},
        {NULL, "{\"phase\":\"preparing\"}", CM_JOURNAL_PREPARING},
        {NULL, "{\"phase\":\"writing\"}", CM_JOURNAL_WRITING},
    };
    char line[256];
    assert_int_equal(look(), CM_JOURNAL_NONE);
    for (size_t i = 0; i < COUNT(row); i++) {
        if (row[i].text != NULL)
            strcpy(line, row[i].text);
        else
            make_line(line, row[i].head);
        put_journal(line, strlen(line));
        if (look() != row[i].is)
            fail_msg("%s", line);
    }
    for (size_t n = strlen(line); n-- > 0;) { /* the last one, cut */
        put_journal(line, n);
        assert_int_equal(look(), CM_JOURNAL_DAMAGED);
    }
    cm_beside_remove(&beside, "journal");
    assert_null(beside.stays);
    assert_int_equal(look(), CM_JOURNAL_NONE);
}

#define ARRAY(chunk, codecs)                                                                       \
    "{\"zarr_format\":3,\"node_type\":\"array\",\"shape\":[48],\"data_type\":\"int32\","           \
    "\"chunk_grid\":{\"name\":\"regular\",\"configuration\":{\"chunk_shape\":[" chunk "]}},"       \
    "\"chunk_key_encoding\":\"default\",\"fill_value\":0,\"codecs\":[" codecs "]}"
#define BYTES "{\"name\":\"bytes\",\"configuration\":{\"endian\":\"little\"}}"

static const char *const GROUP = "{\"zarr_format\":3,\"node_type\":\"group\"}";
static const char *const PLAIN = ARRAY("4", BYTES);
static const char *const SHARDS = ARRAY(
    "16", "{\"name\":\"sharding_indexed\",\"configuration\":{\"chunk_shape\":[4],\"codecs\":[" BYTES
          "],\"index_codecs\":[" BYTES ",\"crc32c\"]}}");
enum {
    NCHUNKS = 12, /* of 4 elements; 4 in a shard */
    NBYTES = 16
};

/* An array "a" and the group that holds it. */
typedef struct fixture {
    cm_zarr_meta meta;
    cm_zarr_writer *writer;
    cm_made_node node[2];
    cm_made made;
    cm_json *fingerprint;
    cm_journal *journal;
} fixture;

static void make_fixture(fixture *f, const char *text)
{
    cm_json *j;
    *f = (fixture){0};
    OK(cm_json_parse(text, strlen(text), &j, err));
    OK(cm_zarr_meta_from_v3(j, &f->meta, err));
    cm_json_free(j);
    OK(cm_zarr_writer_create(store, "a", &f->meta, &f->writer, err));
    f->node[0] = (cm_made_node){.path = ""};
    f->node[1] = (cm_made_node){.path = "a", .meta = &f->meta, .writer = f->writer};
    f->made = (cm_made){f->node, 2};
    f->fingerprint = cm_json_object();
    OK(cm_json_set(f->fingerprint, "source", cm_json_string("in.nc"), err));
}

static void release_fixture(fixture *f)
{
    cm_journal_close(f->journal);
    cm_zarr_writer_free(f->writer);
    cm_zarr_meta_release(&f->meta);
    cm_json_free(f->fingerprint);
}

static void put_chunk(fixture *f, uint64_t number)
{
    uint8_t data[NBYTES];
    memset(data, (int)number + 1, sizeof(data));
    OK(cm_zarr_writer_put(f->writer, number, data, sizeof(data), err));
}

/* Which chunks a resuming run of TEXT believes in, one bit each; *f goes on. */
static unsigned resume(fixture *f, const char *text)
{
    uint64_t nchunks;
    unsigned found = 0;
    make_fixture(f, text);
    OK(cm_journal_resume(&beside, "journal", f->fingerprint, &f->made, store, 2, 1 << 20,
                         &f->journal, &nchunks, err));
    for (uint64_t i = 0; i < NCHUNKS; i++)
        found |= (unsigned)cm_zarr_writer_is_delivered(f->writer, i) << i;
    return found;
}

static cm_buf journal_text(void)
{
    cm_buf text = {0};
    OK(cm_store_get(beside.in, "journal", 1 << 20, &text, err));
    return text;
}

/* Begins a run of TEXT, and leaves it; its journal. */
static cm_buf begin(const char *text)
{
    fixture f;
    make_fixture(&f, text);
    OK(cm_journal_begin(&beside, "journal", f.fingerprint, &f.made, &f.journal, err));
    release_fixture(&f);
    assert_int_equal(look(), CM_JOURNAL_WRITING);
    return journal_text();
}

static void test_skips_that_are_believed(void **state)
{
    (void)state;
    static const struct {
        const char *lines[4]; /* payloads; "!" in front: with a wrong checksum */
        unsigned delivered;
        size_t nwhole; /* lines that are kept in the file */
    } row[] = {
        {{NULL}, 0, 0},
        {{"1 3"}, 1 << 3, 1},
        {{"1 0", "1 11", "1 5"}, 1 << 0 | 1 << 11 | 1 << 5, 3},
        {{"1 3", "1 3"}, 1 << 3, 2},
        {{"1 3", "!1 4", "1 5"}, 1 << 3, 1},
        {{"1 3", "1 12", "1 5"}, 1 << 3, 1},                   /* no such chunk */
        {{"1 3", "0 0", "1 5"}, 1 << 3, 1},                    /* a group has none */
        {{"1 3", "2 0", "1 5"}, 1 << 3, 1},                    /* no such item */
        {{"1 3", "1 18446744073709551615", "1 5"}, 1 << 3, 1}, /* nor this chunk */
        {{"1 3", "{}", "1 5"}, 1 << 3, 1},
    };
    fixture f;
    cm_buf head = begin(PLAIN);
    for (size_t i = 0; i < COUNT(row); i++) {
        char text[4096];
        size_t n = head.nbytes, whole = n;
        memcpy(text, head.data, n);
        for (size_t k = 0; k < 4 && row[i].lines[k] != NULL; k++) {
            bool bad = row[i].lines[k][0] == '!';
            size_t at = n;
            n += make_line(text + n, row[i].lines[k] + bad);
            text[at] = (char)(text[at] ^ bad);
            if (k < row[i].nwhole)
                whole = n;
        }
        put_journal(text, n);
        if (resume(&f, PLAIN) != row[i].delivered)
            fail_msg("row %zu", i);
        /* New lines follow the last valid one. */
        OK(cm_journal_skip(f.journal, 1, 9, err));
        release_fixture(&f);
        cm_buf after = journal_text();
        n = whole + make_line(text + whole, "1 9");
        assert_int_equal(after.nbytes, n);
        assert_memory_equal(after.data, text, n);
        cm_buf_release(&after);
        assert_int_equal(resume(&f, PLAIN), row[i].delivered | 1 << 9);
        release_fixture(&f);
    }
    cm_buf_release(&head);
}

/* At each byte: what is cut is written again, and never becomes a part of the next line. */
static void test_a_cut_is_forgotten(void **state)
{
    (void)state;
    static const unsigned delivered[] = {0, 1 << 1, 1 << 1 | 1 << 10};
    char text[4096];
    fixture f;
    cm_buf head = begin(PLAIN);
    memcpy(text, head.data, head.nbytes);
    size_t n = head.nbytes + make_line(text + head.nbytes, "1 1"), whole = 0;
    n += make_line(text + n, "1 10");
    for (size_t cut = head.nbytes; cut <= n; cut++) {
        whole += cut > head.nbytes && text[cut - 1] == '\n';
        put_journal(text, cut);
        assert_int_equal(resume(&f, PLAIN), delivered[whole]);
        OK(cm_journal_skip(f.journal, 1, 6, err));
        release_fixture(&f);
        assert_int_equal(resume(&f, PLAIN), delivered[whole] | 1 << 6);
        release_fixture(&f);
    }
    assert_int_equal(whole, 2);
    cm_buf_release(&head);
}

static void test_objects_that_are_believed(void **state)
{
    (void)state;
    static const struct {
        const char *data;
        size_t nbytes;
        bool good;
    } row[] = {
        {"0123456789abcdef", NBYTES, true},
        {"0123456789abcde", NBYTES - 1, false},
        {"0123456789abcdefg", NBYTES + 1, false},
        {"", 0, false},
        {"\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0", NBYTES, false}, /* of a disk that lost power */
        {"0123456789abcdef", NBYTES, true},
    };
    char key[16];
    unsigned want = 0;
    fixture f;
    cm_buf head = begin(PLAIN);
    for (unsigned i = 0; i < COUNT(row); i++) {
        sprintf(key, "a/c/%u", i);
        OK(cm_store_put(store, key, row[i].data, row[i].nbytes, err));
        want |= (unsigned)row[i].good << i;
    }
    assert_int_equal(resume(&f, PLAIN), want);
    OK(cm_journal_skip(f.journal, 1, 0, err)); /* then what lies there is not of this run */
    release_fixture(&f);
    assert_int_equal(resume(&f, PLAIN), want);
    release_fixture(&f);
    assert_int_equal(cm_store_size(store, "a/c/0", NULL, NULL), CM_ENOTFOUND);
    cm_buf_release(&head);
}

static void test_shards_and_skips(void **state)
{
    (void)state;
    fixture f;
    make_fixture(&f, SHARDS);
    OK(cm_journal_begin(&beside, "journal", f.fingerprint, &f.made, &f.journal, err));
    for (uint64_t i = 0; i < 7; i++) { /* shard 0 is whole but for a chunk, shard 1 is not */
        bool skips = i == 2 || i == 5;
        if (skips)
            OK(cm_journal_skip(f.journal, 1, i, err));
        if (skips)
            OK(cm_zarr_writer_skip(f.writer, i, err));
        else
            put_chunk(&f, i);
    }
    release_fixture(&f);
    assert_int_equal(resume(&f, SHARDS), 0xf | 1 << 5);
    for (uint64_t i = 4; i < NCHUNKS; i++)
        if (i != 5)
            put_chunk(&f, i);
    OK(cm_zarr_writer_finish(f.writer, err));
    release_fixture(&f);
    OK(cm_store_put(store, "a/c/1", "cut", 3, err));
    assert_int_equal(resume(&f, SHARDS), 0xf | 0xf << 8 | 1 << 5);
    release_fixture(&f);
}

static void test_only_what_was_begun_is_resumed(void **state)
{
    (void)state;
    fixture f;
    uint64_t nchunks;
    cm_error err = {0};
    cm_buf head = begin(PLAIN);
    make_fixture(&f, PLAIN);
    assert_int_equal(cm_json_set(f.fingerprint, "source", cm_json_string("other.nc"), NULL), CM_OK);
    assert_int_equal(cm_journal_resume(&beside, "journal", f.fingerprint, &f.made, store, 1,
                                       1 << 20, &f.journal, &nchunks, &err),
                     CM_EEXIST);
    assert_non_null(strstr(err.text, "source"));
    cm_buf after = journal_text();
    assert_int_equal(after.nbytes, head.nbytes);
    put_journal("a letter\n", 9);
    assert_int_equal(cm_journal_resume(&beside, "journal", f.fingerprint, &f.made, store, 1,
                                       1 << 20, &f.journal, &nchunks, &err),
                     CM_EFORMAT);
    release_fixture(&f);
    cm_buf_release(&head);
    cm_buf_release(&after);
}

/* The head is no proof of ownership: it tells names of chunks, inside the store, and no others. */
static void test_what_a_journal_lets_go(void **state)
{
    (void)state;
    static const struct {
        const char *path, *key;
        bool goes;
    } row[] = {
        {"a", "a/c/0", true},        {"a", "a/c/3", true},       {"a", "a/c/4", false},
        {"a", "a/notes.txt", false}, {"a", "b/c/0", false},      {"..", "a/c/0", false},
        {"/a", "a/c/0", false},      {"a/../a", "a/c/0", false}, {"a/c", "a/c/0", false},
        {"", "c/0", true},
    };
    char payload[512], line[600];
    for (size_t i = 0; i < COUNT(row); i++) {
        sprintf(payload,
                "{\"phase\":\"preparing\",\"arrays\":[{\"path\":\"%s\",\"zarr_format\":3,\"keys of "
                "version 2\":false,\"separator\":\"/\",\"shape\":[16],\"chunk\":[4]}]}",
                row[i].path);
        put_journal(line, make_line(line, payload));
        OK(cm_store_put(store, row[i].key, "x", 1, err));
        OK(cm_journal_erase(&beside, "journal", store, err));
        int rc = cm_store_size(store, row[i].key, NULL, NULL);
        if (rc != (row[i].goes ? CM_ENOTFOUND : CM_OK))
            fail_msg("\"%s\", %s", row[i].path, row[i].key);
    }
}

static void test_preparing_tells_old_and_new_chunks(void **state)
{
    (void)state;
    fixture f;
    make_fixture(&f, SHARDS);
    OK(cm_store_put(store, "zarr.json", GROUP, strlen(GROUP), err));
    OK(cm_store_put(store, "old/zarr.json", PLAIN, strlen(PLAIN), err));
    OK(cm_journal_prepare(&beside, "journal", &f.made, store, err));
    release_fixture(&f);
    assert_int_equal(look(), CM_JOURNAL_PREPARING);
    static const struct {
        const char *key;
        bool goes;
    } row[] = {{"old/c/11", true}, {"a/c/2", true}, {"a/c/3", false}, {"old/c/12", false}};
    for (size_t i = 0; i < COUNT(row); i++)
        OK(cm_store_put(store, row[i].key, "x", 1, err));
    OK(cm_journal_erase(&beside, "journal", store, err));
    for (size_t i = 0; i < COUNT(row); i++)
        assert_int_equal(cm_store_size(store, row[i].key, NULL, NULL),
                         row[i].goes ? CM_ENOTFOUND : CM_OK);
}

#define ON_DISK(test) cmocka_unit_test_setup_teardown(test, make_folder, remove_folder)

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_lines_are_checksum_and_payload),
        cmocka_unit_test(test_a_line_that_is_cut_is_none),
        cmocka_unit_test(test_a_line_that_is_changed_is_none),
        cmocka_unit_test(test_a_lost_byte_or_a_joined_line_is_none),
        cmocka_unit_test(test_skips_are_two_plain_numbers),
        cmocka_unit_test(test_names),
        ON_DISK(test_phases),
        ON_DISK(test_skips_that_are_believed),
        ON_DISK(test_a_cut_is_forgotten),
        ON_DISK(test_objects_that_are_believed),
        ON_DISK(test_shards_and_skips),
        ON_DISK(test_only_what_was_begun_is_resumed),
        ON_DISK(test_what_a_journal_lets_go),
        ON_DISK(test_preparing_tells_old_and_new_chunks),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

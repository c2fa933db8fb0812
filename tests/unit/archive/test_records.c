/* Records of a survey: frames that are appended, found by digest, mapped, forgotten. */

#include "archive_fixture.h"

typedef struct recording {
    cm_paged *paged;
    cm_records *r;
} recording;

static void recording_begin(recording *t)
{
    t->paged = cm_paged_create(NULL, NULL);
    OK(cm_records_create(NULL, t->paged, &t->r, err));
}

static void recording_end(recording *t)
{
    cm_records_free(t->r);
    cm_paged_free(t->paged);
}

/* A shared frame of NBYTES that are all VALUE, named by their digest. */
static cm_digest append_shared(cm_records *r, uint8_t value, size_t nbytes, uint64_t *offset)
{
    uint8_t *payload = malloc(nbytes + sizeof(cm_digest));
    memset(payload + sizeof(cm_digest), value, nbytes);
    const cm_digest d = cm_wire_digest(payload + sizeof(cm_digest), nbytes);
    cm_store_le64(payload, d.lo);
    cm_store_le64(payload + 8, d.hi);
    const cm_frame f = {CM_FRAME_SHARED, 0, nbytes + sizeof(cm_digest)};
    OK(cm_records_append(r, &f, payload, offset, err));
    free(payload);
    return d;
}

static void append_file(cm_records *r, const char *text, uint64_t *offset)
{
    const cm_frame f = {CM_FRAME_FILE, 0, strlen(text)};
    OK(cm_records_append(r, &f, (const uint8_t *)text, offset, err));
}

/* ---- appended ---- */

static void appended(void **state)
{
    recording t;
    uint64_t offset[4], again;
    (void)state;
    recording_begin(&t);
    append_file(t.r, "one", &offset[0]);
    const cm_digest d = append_shared(t.r, 'x', 100, &offset[1]);
    append_file(t.r, "two", &offset[2]);
    assert_true(offset[0] < offset[1] && offset[1] < offset[2]);
    const uint64_t nbytes = t.r->nbytes;
    append_shared(t.r, 'x', 100, &again); /* a shared block is stored once */
    assert_int_equal(t.r->nbytes, nbytes);
    assert_int_equal(t.r->nshared, 1);
    append_file(t.r, "one", &offset[3]); /* records of files are not */
    assert_true(offset[3] > offset[2]);

    OK(cm_records_map(t.r, err));
    assert_memory_equal(t.r->map + offset[0], "one", 3);
    assert_memory_equal(t.r->map + offset[2], "two", 3);
    assert_memory_equal(t.r->map + offset[3], "one", 3);
    const cm_shared *s = cm_records_find(t.r, d);
    assert_non_null(s);
    assert_int_equal(s->nbytes, 100);
    for (size_t i = 0; i < 100; i++)
        assert_int_equal(t.r->map[s->offset + i], 'x');
    recording_end(&t);
}

/* Frames longer than what is written at once, between short ones, which come before and behind. */
static void long_frames(void **state)
{
    static const size_t LENGTHS[] = {1, (64 << 10) - 1, 64 << 10, (64 << 10) + 1, 300 << 10, 0, 7};
    recording t;
    uint64_t offset[COUNT(LENGTHS)];
    cm_digest digest[COUNT(LENGTHS)];
    (void)state;
    recording_begin(&t);
    for (size_t i = 0; i < COUNT(LENGTHS); i++)
        digest[i] = append_shared(t.r, (uint8_t)('a' + i), LENGTHS[i], &offset[i]);
    OK(cm_records_map(t.r, err));
    for (size_t i = 0; i < COUNT(LENGTHS); i++) {
        const cm_shared *s = cm_records_find(t.r, digest[i]);
        assert_ptr_equal(s, cm_records_shared(t.r, i));
        assert_int_equal(s->nbytes, LENGTHS[i]);
        for (size_t k = 0; k < LENGTHS[i]; k++)
            if (t.r->map[s->offset + k] != 'a' + i)
                fail_msg("byte %zu of %zu", k, i);
    }
    recording_end(&t);
}

/* Many, of which each is found and none that is not there; some digests share a half. */
static void many(void **state)
{
    enum {
        N = 3000
    };
    recording t;
    uint8_t payload[sizeof(cm_digest) + 8];
    const cm_frame f = {CM_FRAME_SHARED, 0, sizeof payload};
    (void)state;
    recording_begin(&t);
    assert_null(cm_records_find(t.r, (cm_digest){.lo = 1}));
    for (uint64_t i = 0; i < N; i++) {
        uint64_t offset;
        cm_store_le64(payload, i % 100 + ((i / 200) << 32)); /* many of one slot */
        cm_store_le64(payload + 8, i);
        cm_store_le64(payload + 16, i);
        OK(cm_records_append(t.r, &f, payload, &offset, err));
    }
    assert_int_equal(t.r->nshared, N);
    OK(cm_records_map(t.r, err));
    for (uint64_t i = 0; i < N; i++) {
        const cm_digest d = {.lo = i % 100 + ((i / 200) << 32), .hi = i},
                        none = {.lo = d.lo, .hi = i + N};
        const cm_shared *s = cm_records_find(t.r, d);
        if (s != cm_records_shared(t.r, i) || cm_load_le64(t.r->map + s->offset) != i)
            fail_msg("number %u", (unsigned)i);
        assert_null(cm_records_find(t.r, none));
        cm_records_touch(t.r, 4096); /* pages go, and come again */
    }
    cm_records_let_go(t.r);
    assert_int_equal(cm_load_le64(t.r->map + cm_records_shared(t.r, 9)->offset), 9);
    recording_end(&t);
}

static void cleared(void **state)
{
    recording t;
    uint64_t offset;
    (void)state;
    recording_begin(&t);
    const cm_digest d = append_shared(t.r, 'x', 10, &offset);
    OK(cm_records_map(t.r, err));
    cm_records_clear(t.r);
    assert_true(t.r->nbytes == 0 && t.r->nshared == 0);
    assert_null(cm_records_find(t.r, d));
    append_file(t.r, "after", &offset);
    OK(cm_records_map(t.r, err));
    assert_memory_equal(t.r->map + offset, "after", 5);
    cm_records_clear(t.r);
    append_shared(t.r, 'x', 10, &offset); /* which is new again */
    assert_int_equal(t.r->nshared, 1);
    assert_non_null(cm_records_find(t.r, d));
    recording_end(&t);
    cm_records_free(NULL);
}

/* ---- parsed ---- */

static const made_file TWO[] = {
    {"a", .var = {STEP(0), {"v", "int16", "t*=1 y=2", .attrs = "{'units': 'K'}"}}},
    {"b", .var = {STEP(1), {"v", "int16", "t*=1 y=2", .attrs = "{'units': 'K'}"}}},
    {NULL}};

/* A skeleton of two files is parsed once; forgotten, it is parsed again. */
static void skeletons(void **state)
{
    joined a = {0};
    (void)state;
    joined_survey(&a, TWO, 2);
    assert_ptr_equal(a.survey.file[0].skeleton, a.survey.file[1].skeleton);
    assert_int_equal(a.survey.nskeletons, 1);
    cm_skeleton *k = a.survey.file[0].skeleton;
    assert_int_equal(k->nvars, 2);
    const cm_described *v = k->var[1];
    assert_string_equal(v->name, "v");
    const cm_json *attrs = cm_described_attrs(v);
    assert_string_equal(cm_json_text(cm_json_member(attrs, "units"), NULL), "K");
    assert_ptr_equal(cm_described_attrs(v), attrs);
    cm_records_forget(a.survey.records);
    assert_int_equal(a.survey.records->nloaded, 0);
    joined_release(&a);
}

/* A digest that nothing has, or whose bytes are none of what is asked for. */
static void not_parsed(void **state)
{
    recording t;
    uint64_t offset;
    const cm_form *form;
    cm_skeleton *k;
    size_t n = 0;
    (void)state;
    recording_begin(&t);
    const cm_digest d = append_shared(t.r, 0xff, 40, &offset), none = {.lo = 1, .hi = 2};
    OK(cm_records_map(t.r, err));
    assert_int_not_equal(cm_records_form(t.r, none, &form, NULL), CM_OK);
    assert_int_not_equal(cm_records_form(t.r, d, &form, NULL), CM_OK);
    assert_int_not_equal(cm_records_skeleton(t.r, none, &n, &k, NULL), CM_OK);
    assert_int_not_equal(cm_records_skeleton(t.r, d, &n, &k, NULL), CM_OK);
    recording_end(&t);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(appended),  cmocka_unit_test(long_frames),
                                       cmocka_unit_test(many),      cmocka_unit_test(cleared),
                                       cmocka_unit_test(skeletons), cmocka_unit_test(not_parsed)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}

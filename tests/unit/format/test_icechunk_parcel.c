/* Parcels: written from records, read back, and refused when they are not as they were. */
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "../unit.h"
#include "base/paged.h"
#include "format/icechunk/parcel.h"

enum {
    NCHUNKS = 20000
};

static int made_files[3];

static void open_records(cm_ice_records *r)
{
    cm_error err = {0};
    for (int i = 0; i < 3; i++)
        assert_true((made_files[i] = cm_unnamed_file("/tmp")) >= 0);
    assert_true(cm_ice_records_open(r, made_files[0], made_files[1], made_files[2], &err) == CM_OK);
}

/* Every third chunk is small, every third stored, of the rest the odd ones empty. */
static void fill(cm_ice_records *r)
{
    for (uint64_t i = 0; i < NCHUNKS; i++) {
        uint8_t small[40];
        memset(small, (int)i, sizeof(small));
        cm_ice_record record = {.state = CM_ICE_STORED, .offset = i * 7, .nbytes = i + 600};
        memset(record.id, (int)(i / 64), CM_ICE_ID);
        if (i % 3 == 0) {
            assert_true(cm_ice_records_keep(r, i, small, i % 41, NULL) == CM_OK);
        } else if (i % 3 == 1) {
            assert_true(cm_ice_records_set(r, i, &record, NULL) == CM_OK);
        } else if (i % 2 == 1) {
            record = (cm_ice_record){.state = CM_ICE_EMPTY};
            assert_true(cm_ice_records_set(r, i, &record, NULL) == CM_OK);
        }
    }
}

static const cm_ice_span SPANS[] = {{10, 5000}, {5000, 5000}, {6001, NCHUNKS}};
static const size_t NSPANS = sizeof(SPANS) / sizeof(SPANS[0]);

typedef struct seen {
    uint64_t n, last, nsmall;
    uint64_t cancels_at; /* 0: never */
} seen;

static int see(void *context, uint64_t number, const cm_ice_record *r, const uint8_t *small,
               cm_error *err)
{
    seen *s = context;
    assert_true(s->n == 0 || number > s->last);
    assert_true((number >= 10 && number < 5000) || (number >= 6001 && number < NCHUNKS));
    s->last = number;
    if (++s->n == s->cancels_at)
        return cm_fail(err, CM_ECANCELED, "enough");
    if (number % 3 == 0) {
        assert_true(r->state == CM_ICE_SMALL && small != NULL && r->nbytes == number % 41);
        for (uint64_t i = 0; i < r->nbytes; i++)
            assert_true(small[i] == (uint8_t)number);
        s->nsmall++;
    } else if (number % 3 == 1) {
        assert_true(r->state == CM_ICE_STORED && r->offset == number * 7 &&
                    r->nbytes == number + 600);
        assert_true(r->id[0] == (uint8_t)(number / 64) && small == NULL);
    } else {
        assert_true(r->state == CM_ICE_EMPTY && number % 2 == 1);
    }
    return CM_OK;
}

static uint64_t count(void)
{
    uint64_t n = 0;
    for (size_t i = 0; i < NSPANS; i++)
        for (uint64_t k = SPANS[i].first; k < SPANS[i].end; k++)
            n += k % 3 != 2 || k % 2 == 1;
    return n;
}

static void check_round_trip(cm_store *store, cm_ice_records *r)
{
    cm_error err = {0};
    seen s = {0};
    assert_true(cm_ice_parcel_write(store, "a", r, SPANS, NSPANS, &err) == CM_OK);
    assert_true(cm_ice_parcel_read(store, "a", SPANS, NSPANS, see, &s, &err) == CM_OK);
    assert_true(s.n == count() && s.nsmall > 0);
    s = (seen){.cancels_at = 100};
    assert_true(cm_ice_parcel_read(store, "a", SPANS, NSPANS, see, &s, &err) == CM_ECANCELED);
    assert_true(s.n == 100);
    /* One without chunks. */
    s = (seen){0};
    assert_true(cm_ice_parcel_write(store, "b", r, SPANS, 0, &err) == CM_OK);
    assert_true(cm_ice_parcel_read(store, "b", SPANS, 0, see, &s, &err) == CM_OK && s.n == 0);
    assert_true(cm_ice_parcel_read(store, "c", SPANS, 0, see, &s, &err) == CM_ENOTFOUND);
    /* Of other spans it tells of chunks that are somebody else's. */
    assert_true(cm_ice_parcel_read(store, "a", SPANS, 1, see, &s, &err) == CM_EFORMAT);
    assert_true(strstr(err.text, "run that part again") != NULL);
}

static int ignore(void *context, uint64_t number, const cm_ice_record *r, const uint8_t *small,
                  cm_error *err)
{
    (void)context, (void)number, (void)r, (void)small, (void)err;
    return CM_OK;
}

/* Any bit that is changed, and any length, is found. */
static void check_damage(cm_store *store, cm_ice_records *r)
{
    const cm_ice_span few = {10, 40};
    cm_buf whole = {0};
    cm_error err = {0};
    assert_true(cm_ice_parcel_write(store, "a", r, &few, 1, &err) == CM_OK);
    assert_true(cm_store_get(store, "a", 1 << 20, &whole, &err) == CM_OK);
    for (size_t i = 0; i < whole.nbytes; i++) {
        whole.data[i] ^= (uint8_t)(1u << (i % 8));
        assert_true(cm_store_put(store, "d", whole.data, whole.nbytes, &err) == CM_OK);
        assert_true(cm_ice_parcel_read(store, "d", &few, 1, ignore, NULL, &err) == CM_EFORMAT);
        whole.data[i] ^= (uint8_t)(1u << (i % 8));
        assert_true(cm_store_put(store, "d", whole.data, i, &err) == CM_OK);
        assert_true(cm_ice_parcel_read(store, "d", &few, 1, ignore, NULL, &err) == CM_EFORMAT);
    }
    assert_true(cm_buf_append(&whole, "", 1, &err) == CM_OK);
    assert_true(cm_store_put(store, "d", whole.data, whole.nbytes, &err) == CM_OK);
    assert_true(cm_ice_parcel_read(store, "d", &few, 1, ignore, NULL, &err) == CM_EFORMAT);
    cm_buf_release(&whole);
}

static void test_parcels(void **state)
{
    cm_ice_records records;
    cm_store *store = NULL;
    (void)state;
    assert_true(cm_store_open_memory(&store, NULL) == CM_OK);
    open_records(&records);
    fill(&records);
    check_round_trip(store, &records);
    check_damage(store, &records);
    cm_store_free(store);
    for (int i = 0; i < 3; i++)
        close(made_files[i]);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_parcels)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}

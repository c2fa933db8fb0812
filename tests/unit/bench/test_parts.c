/*
 * The parts of a sample: several variables, lags, arrays that are read once, and
 * what is done to elements on the way; and several stores side by side.
 */
#include "../fixtures/readbench_fixture.h"

#include <math.h>

static const field fields[] = {
    {"v", "tyx", {15, 16, 18}, {4, 5, 7}, {0}, FIELD_INT16, 0, 5, 2, 0},
    {"u", "tyx", {15, 16, 18}, {2, 16, 9}, {0}, FIELD_FLOAT32, 0, 3, 0, 0},
    {"s", "yx", {16, 18}, {16, 18}, {0}, FIELD_INT32, 0, 0, 0, 0},
    {"m", "t", {15}, {4}, {0}, FIELD_FLOAT32, 0, 0, 0, 0},
    {"k", "k", {6}, {6}, {0}, FIELD_INT32, 0, 0, 0, 0}};
enum {
    NFIELDS = sizeof fields / sizeof fields[0]
};

static const struct {
    const char *name;
    container container;
} stores[] = {{"v3.zarr", ZARR_V3},
              {"v2.zarr", ZARR_V2},
              {"four.nc", NETCDF4},
              {"classic.nc", NETCDF_CLASSIC}};
enum {
    NSTORES = sizeof stores / sizeof stores[0]
};
static char *path[NSTORES];

static int make_stores(void **state)
{
    if (make_folder(state) != 0)
        return -1;
    for (int i = 0; i < NSTORES; i++)
        path[i] = make_store(stores[i].name, stores[i].container, fields, NFIELDS);
    return 0;
}

static int remove_stores(void **state)
{
    for (int i = 0; i < NSTORES; i++)
        free(path[i]);
    return remove_folder(state);
}

/* ---- variables and lags ---- */

static const struct part {
    const char *variable;
    uint64_t lag;
} parts[] = {{"u", 0}, {"u", 3}, {"s", 0}, {"m", 0},
             {"m", 3}, {"v", 0}, {"v", 3}}; /* large first */
enum {
    NPARTS = sizeof parts / sizeof parts[0]
};

static void check_parts(const cm_readbench_session *s)
{
    assert_int_equal(s->nparts, NPARTS + 1);
    for (size_t p = 0; p < NPARTS; p++) {
        assert_string_equal(s->part[p].variable, parts[p].variable);
        assert_int_equal(s->part[p].lag, parts[p].lag);
        assert_false(s->part[p].is_static);
    }
    assert_string_equal(s->part[NPARTS].variable, "k");
    assert_true(s->part[NPARTS].is_static);
}

/* All parts of a sample lie at one place, lags further along the first dimension. */
static void check_places(const cm_readbench_session *s)
{
    assert_int_equal(s->nlogged % NPARTS, 0);
    for (size_t i = 0; i < s->nlogged; i += NPARTS) {
        const cm_readbench_sample *x = &s->logged[i];
        for (size_t p = 0; p < NPARTS; p++) {
            assert_int_equal(x[p].part, p);
            assert_int_equal(x[p].number, x[0].number);
            const bool has_time = parts[p].variable[0] != 's';
            if (has_time)
                assert_int_equal(x[p].start[0], x[0].start[0] + parts[p].lag);
            for (unsigned j = 1; j < 3 && parts[p].variable[0] != 'm'; j++)
                assert_int_equal(x[p].start[has_time ? j : j - 1], x[0].start[j]);
        }
    }
}

static void test_variables_and_lags(void **state)
{
    static const char *const loaders[] = {"map", "planned"};
    static const char *const variables[] = {"v,u,s,m,k"};
    static const char *const order[] = {"random", "sequential", "chunks"};
    (void)state;
    for (int i = 0; i < NSTORES; i++)
        for (int l = 0; l < (i < 3 ? 2 : 1); l++)
            for (unsigned k = 0; k < 9; k++) {
                const char *const list[] = {path[i]};
                cm_readbench_options o = quick_options(list, 1);
                cm_readbench_report r;
                set_kind(&o, &kinds[k % 3]);
                o.variables = (cm_texts){variables, 1};
                o.sample = "t=2,y=6,x=8";
                o.order = order[k / 3];
                o.lags = "0,3";
                o.batches = 5;
                o.loader = loaders[l];
                o.worker_threads = l == 0 && k % 3 == 1 ? 3 : 1;
                o.log_samples = true;
                o.validate = CM_READBENCH_VALIDATE_FULL;
                run(&o, &r, stores[i].name);
                const cm_readbench_session *s = &r.session[0];
                check_bytes(s, fields, NFIELDS, stores[i].name);
                check_complete(s, 2, s->counts.samples / 2, stores[i].name);
                check_parts(s);
                check_places(s);
                assert_int_equal(s->device.mismatches, 0);
                if (l == 1)
                    assert_true(s->counts.decoded == s->counts.chunks && s->decodes_per_chunk >= 1);
                else if (i < 3) /* a file without chunks has nothing to predict */
                    assert_int_equal(s->counts.chunks, s->predicted.planned_chunks);
                cm_readbench_report_release(&r);
            }
}

/* ---- casting, unpacking, fill values ---- */

typedef struct feed_row {
    const char *variable, *cast;
    bool unpack, fill;
    const char *type;
} feed_row;

static const feed_row feeds[] = {
    {"v", "float32", false, false, "float32"}, {"v", "float32", true, true, "float32"},
    {"v", "float16", false, true, "float16"},  {"v", "float16", true, false, "float16"},
    {"v", "bfloat16", true, true, "bfloat16"}, {"v", "bfloat16", false, false, "bfloat16"},
    {"u", NULL, false, true, "float32"},       {"u", "float16", false, true, "float16"},
    {"u", "bfloat16", true, false, "bfloat16"}};

/*
 * X as the nearest number of so many BITS, ties to even; as the bits of a float32, and of a
 * float16.
 */
static uint32_t nearest_float(double x, int bits)
{
    const double unit = x != 0 ? ldexp(1, ilogb(x) - (bits - 1)) : 1;
    const float y = (float)(nearbyint(x / unit) * unit);
    uint32_t word;
    memcpy(&word, &y, 4);
    return word;
}

static uint16_t half_of(uint32_t word)
{
    const uint32_t sign = word >> 16 & 0x8000, exponent = word >> 23 & 0xff;
    if ((word & 0x7fffffff) == 0)
        return (uint16_t)sign;
    return (uint16_t)(sign | (exponent - 112) << 10 | (word >> 13 & 0x3ff));
}

/* Converts element AT of F as expected; returns its size. */
static size_t expected_element(const feed_row *row, const field *f, const uint64_t *at,
                               uint8_t *out)
{
    const int n = field_number(f, at);
    const int stored = row->unpack && f->packed == 2 && n < 0 ? n + 65536 : n;
    const double x = row->unpack && f->packed ? stored * 0.5 + 3 : n;
    const bool is_fill = row->fill && f->fill_of > 0 && n == FIELD_FILL;
    const bool is_half = row->cast != NULL && strcmp(row->cast, "float16") == 0;
    const bool is_brain = row->cast != NULL && strcmp(row->cast, "bfloat16") == 0;
    const uint32_t word = is_fill ? 0x7fc00000 : nearest_float(x, is_half ? 11 : is_brain ? 8 : 24);
    const uint16_t narrow = is_brain ? (uint16_t)(word >> 16) : is_fill ? 0x7e00 : half_of(word);
    memcpy(out, is_half || is_brain ? (const void *)&narrow : (const void *)&word,
           is_half || is_brain ? 2 : 4);
    return is_half || is_brain ? 2 : 4;
}

static void check_fed(const cm_readbench_session *s, const feed_row *row, const char *what)
{
    const field *f = field_named(fields, NFIELDS, row->variable);
    uint8_t *data = malloc(2 * 6 * 8 * 4);
    assert_true(s->nlogged > 0);
    assert_string_equal(s->part[0].type, row->type);
    for (size_t i = 0; i < s->nlogged; i++) {
        const cm_readbench_sample *x = &s->logged[i];
        size_t nbytes = 0;
        for (uint64_t k = 0; k < product(3, x->shape); k++) {
            uint64_t at[FIELD_RANK];
            place_in(3, x->start, x->shape, k, at);
            nbytes += expected_element(row, f, at, data + nbytes);
        }
        assert_int_equal(s->part[0].nbytes, nbytes);
        if (slow_crc32c(data, nbytes) != x->crc32c)
            fail_msg("%s, %s as %s%s%s: other bytes", what, row->variable, row->type,
                     row->unpack ? ", unpacked" : "", row->fill ? ", fill to NaN" : "");
    }
    free(data);
    assert_int_equal(s->counts.logical_nbytes, s->counts.samples * 96 * field_size(f));
}

static void test_feeds(void **state)
{
    (void)state;
    for (int i = 0; i < NSTORES; i++)
        for (size_t k = 0; k < sizeof feeds / sizeof feeds[0]; k++)
            for (int planned = 0; planned < (i < 3 ? 2 : 1); planned++) {
                const char *const list[] = {path[i]}, *const variable[] = {feeds[k].variable};
                cm_readbench_options o = quick_options(list, 1);
                cm_readbench_report r;
                o.variables = (cm_texts){variable, 1};
                o.sample = "t=2,y=6,x=8";
                o.batches = 5;
                o.cast = feeds[k].cast;
                o.unpack = feeds[k].unpack;
                o.fill_to_nan = feeds[k].fill;
                o.loader = planned ? "planned" : "map";
                o.log_samples = true;
                o.validate = CM_READBENCH_VALIDATE_FULL;
                run(&o, &r, stores[i].name);
                check_fed(&r.session[0], &feeds[k], stores[i].name);
                assert_int_equal(r.session[0].device.mismatches, 0);
                cm_readbench_report_release(&r);
            }
}

/* ---- stores side by side ---- */

static const cm_readbench_event *epoch_of(const cm_readbench_session *s, uint32_t epoch)
{
    for (size_t i = 0; i < s->nevents; i++)
        if (s->event[i].kind == CM_EVENT_EPOCH && s->event[i].epoch == epoch)
            return &s->event[i];
    fail_msg("there is no epoch %u", epoch);
    return NULL;
}

static void test_stores_in_turn(void **state)
{
    (void)state;
    for (size_t k = 0; k < 3; k++) {
        const char *const list[] = {path[0], path[2], path[0]}, *const variable[] = {"v"};
        cm_readbench_options o = quick_options(list, 3);
        cm_readbench_report r;
        uint64_t last = 0;
        set_kind(&o, &kinds[k]);
        o.variables = (cm_texts){variable, 1};
        o.sample = "t=2,y=6,x=8";
        o.batches = 5;
        o.epochs = 3;
        o.log_samples = true;
        run(&o, &r, kinds[k].name);
        assert_int_equal(r.nsessions, 3);
        for (uint32_t e = 0; e < 3; e++)
            for (size_t i = 0; i < 3; i++) {
                const cm_readbench_event *event = epoch_of(&r.session[i], e);
                assert_true(event->start_ns >= last && event->end_ns >= event->start_ns);
                last = event->end_ns;
            }
        for (size_t i = 0; i < 3; i++) {
            check_bytes(&r.session[i], fields, NFIELDS, list[i]);
            check_complete(&r.session[i], 3, 20, list[i]);
            assert_true(r.ratio[i] > 0 && isfinite(r.ratio[i]));
        }
        assert_true(r.ratio[0] == 1);
        assert_string_equal(r.session[0].label, "v3.zarr");
        assert_string_equal(r.session[1].label, "four.nc");
        assert_string_equal(r.session[2].label, "v3.zarr-2");
        cm_readbench_report_release(&r);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_variables_and_lags),
        cmocka_unit_test(test_feeds),
        cmocka_unit_test(test_stores_in_turn),
    };
    return cmocka_run_group_tests_name("readbench_parts", tests, make_stores, remove_stores);
}

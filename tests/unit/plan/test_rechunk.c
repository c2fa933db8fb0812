/*
 * The planner of rechunk: its counts against counting, its bound, and its bytes
 * against the published algorithm of rechunker.
 */

#include "../unit.h"
#include "base/number.h"
#include "plan/rechunk.h"

typedef struct geometry {
    const char *name;
    unsigned rank;
    uint64_t shape[4], source[4], target[4];
    uint64_t slots;
    uint64_t memory; /* elements */
    cm_route_kind kind;
    uint64_t reads;   /* source chunks */
    uint64_t spilled; /* elements */
    uint64_t bound;
} geometry;

static const geometry table[] = {
    {"nothing is cut", 2, {7, 5}, {10, 10}, {8, 9}, 1, 35, CM_ROUTE_SWEEP, 1, 0, 70},
    {"same chunks", 2, {6, 6}, {2, 3}, {2, 3}, 1, 6, CM_ROUTE_SWEEP, 6, 0, 72},
    {"rows to columns fit", 2, {8, 8}, {1, 8}, {8, 1}, 8, 80, CM_ROUTE_SWEEP, 8, 0, 128},
    /* Half of the 64 elements stay: 2 * 64 + 2 * 32, by scratch or by reading twice. */
    {"rows to columns in half", 2, {8, 8}, {1, 8}, {8, 1}, 4, 32, CM_ROUTE_REREAD, 16, 0, 192},
    {"rows to columns in 3 of 8", 2, {8, 8}, {1, 8}, {8, 1}, 3, 24, CM_ROUTE_SPILL, 8, 40, 208},
    /* Columns last: the stored order would hold all eight. */
    {"another order fits", 2, {8, 8}, {2, 8}, {8, 2}, 4, 64, CM_ROUTE_SWEEP, 4, 0, 128},
    /* Seams at 8 and 16 cut the source chunks 6..9 and 15..18. */
    {"coprime, cut twice", 1, {24}, {3}, {8}, 1, 8, CM_ROUTE_COLUMN, 10, 0, 48},
    {"coprime, held", 1, {24}, {3}, {8}, 2, 16, CM_ROUTE_SWEEP, 8, 0, 48},
    {"one large source chunk", 1, {100}, {100}, {10}, 10, 200, CM_ROUTE_SWEEP, 1, 0, 200},
    {"twice through a small memory", 2, {4, 4}, {1, 4}, {4, 1}, 3, 12, CM_ROUTE_SPILL, 4, 4, 40},
};

static uint64_t volume(unsigned rank, const uint64_t *shape)
{
    uint64_t v = 1;
    for (unsigned j = 0; j < rank; j++)
        v *= shape[j];
    return v;
}

/* Room for SLOTS whole target chunks. */
static void set_room(cm_route_request *r, uint64_t slots)
{
    r->slot_nbytes = volume(r->rank, r->target) * r->itemsize;
    r->room_nbytes = slots * r->slot_nbytes;
}

static void fill(const geometry *g, cm_route_request *r)
{
    *r = (cm_route_request){.rank = g->rank,
                            .itemsize = 4,
                            .may_spill = true,
                            .may_clip = true,
                            .scratch_nbytes = UINT64_MAX,
                            .memory_nelem = g->memory};
    memcpy(r->shape, g->shape, sizeof(g->shape));
    memcpy(r->source, g->source, sizeof(g->source));
    memcpy(r->target, g->target, sizeof(g->target));
    set_room(r, g->slots);
}

static void known_geometries(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof(table) / sizeof(table[0]); i++) {
        const geometry *g = &table[i];
        cm_route_request request;
        cm_route route;
        fill(g, &request);
        assert_int_equal(cm_route_plan(&request, &route, NULL), CM_OK);
        if (route.kind != g->kind || route.chunk_reads != g->reads ||
            route.nelem_spilled != g->spilled || route.bound != g->bound || route.slots > g->slots)
            fail_msg("%s: kind %d, %d reads, %d spilled, bound %d, %d slots", g->name, route.kind,
                     (int)route.chunk_reads, (int)route.nelem_spilled, (int)route.bound,
                     (int)route.slots);
    }
}

/* ---- random geometries ---- */

static uint64_t seed;

static uint64_t below(uint64_t n)
{
    seed = seed * UINT64_C(6364136223846793005) + 1442695040888963407;
    return (seed >> 33) % n;
}

static uint64_t min_u64(uint64_t a, uint64_t b)
{
    return a < b ? a : b;
}

static void random_request(cm_route_request *r)
{
    *r = (cm_route_request){.rank = 1 + (unsigned)below(3),
                            .itemsize = 1,
                            .may_spill = true,
                            .may_clip = true,
                            .scratch_nbytes = UINT64_MAX};
    for (unsigned j = 0; j < r->rank; j++) {
        r->shape[j] = 1 + below(r->rank == 1 ? 200 : r->rank == 2 ? 60 : 24);
        r->source[j] = 1 + below(r->shape[j]);
        r->target[j] = 1 + below(r->shape[j]);
    }
}

/* ---- counting ---- */

/* Counts the engine's work by ROUTE, piece by piece. */
static void count(const cm_route *route, uint64_t *reads, uint64_t *nelem, uint64_t *spilled)
{
    const cm_sweep *s = &route->sweep;
    cm_sweep_cursor c;
    *reads = *nelem = *spilled = 0;
    for (cm_sweep_begin(s, 0, &c); !c.done; cm_sweep_next(s, &c)) {
        uint64_t chunk = 1, piece = 1, resident = 1;
        for (unsigned j = 0; j < s->rank; j++) {
            const cm_axis *axis = &s->axis[j];
            cm_range span = cm_axis_piece_span(axis, c.span[j], c.piece[j]);
            uint64_t end = c.span[j].lo + route->tile[j] * axis->target;
            chunk *= min_u64(axis->n, (c.piece[j] + 1) * axis->source) - c.piece[j] * axis->source;
            piece *= span.hi - span.lo;
            resident *= span.lo >= end ? 0 : min_u64(span.hi, end) - span.lo;
        }
        ++*reads;
        *nelem += chunk;
        *spilled += route->spills ? piece - resident : 0;
    }
}

static void counts_are_exact(void **state)
{
    (void)state;
    seed = 7;
    for (int i = 0; i < 3000; i++) {
        cm_route_request r;
        cm_route route;
        uint64_t reads, nelem, spilled;
        random_request(&r);
        uint64_t all = 1;
        for (unsigned j = 0; j < r.rank; j++)
            all *= cm_div_ceil(r.shape[j], r.target[j]);
        set_room(&r, 1 + below(all));
        r.memory_nelem = r.room_nbytes;
        assert_int_equal(cm_route_plan(&r, &route, NULL), CM_OK);
        count(&route, &reads, &nelem, &spilled);
        assert_int_equal(reads, route.chunk_reads);
        assert_int_equal(nelem, route.nelem_read);
        assert_int_equal(spilled, route.nelem_spilled);
        assert_int_equal(volume(r.rank, r.shape), route.nelem_written);
        assert_true(route.held_nbytes <= r.room_nbytes);
        for (unsigned j = 0; j < r.rank; j++)
            if (route.sweep.block[j] % route.tile[j] != 0)
                assert_true(route.sweep.nblocks[j] == 1);
        /* Resident data fit the memory, and a plan is never below the bound. */
        r.memory_nelem += volume(r.rank, r.source);
        assert_true(route.traffic >= cm_route_bound(&r));
    }
}

/* ---- rechunker's algorithm ---- */

/*
 * From its published description (rechunker/algorithm.py): chunks are
 * consolidated along the last dimension first, by as many as the memory has
 * room for, up to LIMIT (0: not along this dimension).
 */
static void consolidate(unsigned rank, const uint64_t *shape, const uint64_t *chunk,
                        const uint64_t *limit, uint64_t memory, uint64_t *out)
{
    memcpy(out, chunk, rank * sizeof(chunk[0]));
    for (unsigned j = rank; j-- > 0;) {
        uint64_t headroom = memory / volume(rank, out), most = min_u64(shape[j], limit[j]);
        if (limit[j] > 0)
            out[j] = min_u64(chunk[j] * headroom, most);
        if (out[j] < chunk[j])
            out[j] = chunk[j];
    }
}

/* Elements of CHUNK-sized chunks that are met when the array is read in boxes of READ. */
static uint64_t read_by(unsigned rank, const uint64_t *shape, const uint64_t *chunk,
                        const uint64_t *read)
{
    uint64_t total = 1;
    for (unsigned j = 0; j < rank; j++) {
        uint64_t sum = 0;
        for (uint64_t lo = 0; lo < shape[j]; lo += read[j]) {
            uint64_t hi = min_u64(shape[j], lo + read[j]);
            sum +=
                min_u64(shape[j], cm_div_ceil(hi, chunk[j]) * chunk[j]) - lo / chunk[j] * chunk[j];
        }
        total *= sum;
    }
    return total;
}

/* Elements read and written, intermediate ones counted. */
static uint64_t rechunker_traffic(const cm_route_request *r, uint64_t memory)
{
    uint64_t write[CM_MAX_RANK], read[CM_MAX_RANK], between[CM_MAX_RANK], limit[CM_MAX_RANK];
    uint64_t nelem = volume(r->rank, r->shape);
    bool direct = true;
    consolidate(r->rank, r->shape, r->target, r->shape, memory, write);
    for (unsigned j = 0; j < r->rank; j++)
        limit[j] = r->source[j] < write[j] ? write[j] : 0;
    consolidate(r->rank, r->shape, r->source, limit, memory, read);
    for (unsigned j = 0; j < r->rank; j++) {
        between[j] = min_u64(read[j], write[j]);
        /* Two reads that share a chunk of the target cannot both write it. */
        direct = direct && (read[j] % write[j] == 0 || read[j] >= r->shape[j]);
    }
    uint64_t traffic = read_by(r->rank, r->shape, r->source, read) + nelem;
    if (!direct)
        traffic += nelem + read_by(r->rank, r->shape, between, write);
    return traffic;
}

static void never_more_than_rechunker(void **state)
{
    (void)state;
    uint64_t ours = 0, theirs = 0, worse = 0;
    seed = 11;
    for (int i = 0; i < 10000; i++) {
        cm_route_request r;
        cm_route route;
        random_request(&r);
        uint64_t source = volume(r.rank, r.source), target = volume(r.rank, r.target);
        uint64_t least = source > target ? source : target;
        uint64_t memory = least + below(volume(r.rank, r.shape));
        /* Both need one decoded source chunk and one encoded target chunk beside. */
        r.slot_nbytes = target;
        r.room_nbytes = r.memory_nelem = memory;
        assert_int_equal(cm_route_plan(&r, &route, NULL), CM_OK);
        uint64_t other = rechunker_traffic(&r, memory);
        worse += route.traffic > other;
        if (route.traffic > other)
            print_message(
                "case %d: %d against %d; rank %u, shape %d %d %d, source %d %d %d, target %d "
                "%d %d, memory %d: kind %d\n",
                i, (int)route.traffic, (int)other, r.rank, (int)r.shape[0], (int)r.shape[1],
                (int)r.shape[2], (int)r.source[0], (int)r.source[1], (int)r.source[2],
                (int)r.target[0], (int)r.target[1], (int)r.target[2], (int)memory, route.kind);
        ours += route.traffic;
        theirs += other;
    }
    print_message("traffic %.3f of rechunker's\n", (double)ours / (double)theirs);
    assert_int_equal(worse, 0);
}

static void scratch_is_bounded(void **state)
{
    (void)state;
    geometry g = {"", 2, {8, 8}, {1, 8}, {8, 1}, 4, 32, CM_ROUTE_SPILL, 8, 32, 192};
    cm_route_request r;
    cm_route route;
    fill(&g, &r);
    set_room(&r, 3);
    r.scratch_nbytes = 40 * 4;
    assert_int_equal(cm_route_plan(&r, &route, NULL), CM_OK);
    assert_true(route.kind == CM_ROUTE_SPILL);
    r.scratch_nbytes--;
    assert_int_equal(cm_route_plan(&r, &route, NULL), CM_OK);
    assert_true(route.scratch_nelem < 40 && route.traffic > 208);
    r.scratch_nbytes = 0;
    assert_int_equal(cm_route_plan(&r, &route, NULL), CM_OK);
    assert_true(route.kind == CM_ROUTE_REREAD);
    assert_int_equal(route.chunk_reads, 24);
    r.scratch_nbytes = UINT64_MAX;
    r.may_spill = false;
    assert_int_equal(cm_route_plan(&r, &route, NULL), CM_OK);
    assert_true(route.kind == CM_ROUTE_REREAD);
}

/*
 * Reading again costs less where reading is quick and scratch is slow, but four volumes are
 * the most.
 */
static void rates_decide(void **state)
{
    (void)state;
    geometry g = {"", 2, {8, 8}, {1, 8}, {8, 1}, 4, 32, CM_ROUTE_SPILL, 8, 32, 192};
    cm_route_request r;
    cm_route route;
    fill(&g, &r);
    r.rates = (cm_rates){.read = 1e9, .write = 1e9, .scratch = 1e8};
    assert_int_equal(cm_route_plan(&r, &route, NULL), CM_OK);
    assert_true(route.kind == CM_ROUTE_REREAD);
    r.rates = (cm_rates){.read = 1e8, .write = 1e9, .scratch = 1e9};
    assert_int_equal(cm_route_plan(&r, &route, NULL), CM_OK);
    assert_true(route.kind == CM_ROUTE_SPILL);
    set_room(&r, 1);
    r.rates = (cm_rates){.read = 1e12, .write = 1e9, .scratch = 1e6};
    assert_int_equal(cm_route_plan(&r, &route, NULL), CM_OK);
    assert_true(route.traffic <= 4 * 64);
}

/* Of routes that the noise of a probe does not tell apart, the one of the least traffic. */
static void noise_does_not_decide(void **state)
{
    (void)state;
    geometry g = {"", 2, {8, 8}, {1, 8}, {8, 1}, 4, 32, CM_ROUTE_SPILL, 8, 32, 192};
    cm_route_request r;
    cm_route route, least;
    unsigned nquicker = 0;
    fill(&g, &r);
    assert_int_equal(cm_route_plan(&r, &least, NULL), CM_OK);
    assert_int_equal(least.least, least.traffic);
    for (double scratch = 1e7; scratch < 1e11; scratch *= 1.01) {
        r.rates = (cm_rates){.read = 1e9, .write = 1e9, .scratch = scratch};
        double by_bytes = (double)least.nelem_read / 1e9 + (double)least.nelem_written / 1e9 +
                          2 * (double)least.nelem_spilled / scratch;
        by_bytes *= (double)r.itemsize;
        assert_int_equal(cm_route_plan(&r, &route, NULL), CM_OK);
        assert_int_equal(route.least, least.traffic);
        if (route.nelem_read == least.nelem_read && route.nelem_spilled == least.nelem_spilled)
            continue;
        nquicker++;
        assert_true(route.seconds * 1.0999 < by_bytes);
    }
    assert_true(nquicker > 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(known_geometries),
        cmocka_unit_test(counts_are_exact),
        cmocka_unit_test(never_more_than_rechunker),
        cmocka_unit_test(scratch_is_bounded),
        cmocka_unit_test(rates_decide),
        cmocka_unit_test(noise_does_not_decide),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

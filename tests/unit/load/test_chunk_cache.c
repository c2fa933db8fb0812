/* The cache of decoded chunks: which stay, which are evicted, and which thread decodes. */
#include <stdatomic.h>
#include <time.h>

#include "../unit.h"
#include "base/threads.h"
#include "load/reader/chunk_cache.h"

static const char array_a, array_b; /* addresses are all that the cache knows of arrays */

static cm_chunk_cache *new_cache(size_t nbytes, cm_cache_policy policy)
{
    cm_chunk_cache *cache = NULL;
    assert_int_equal(cm_chunk_cache_create(nbytes, policy, &cache, NULL), CM_OK);
    return cache;
}

/* Looks for a chunk of 1000 bytes, and puts it in when it is not there; true for a hit. */
static bool touch(cm_chunk_cache *cache, const void *array, uint64_t number, uint64_t *evicted)
{
    cm_cached_chunk *e;
    cm_cache_answer answer = cm_chunk_cache_lookup(cache, array, number, 1000, true, &e, evicted);
    if (answer == CM_CACHE_MINE) {
        memset(cm_cached_chunk_data(e), (int)number, 1000);
        cm_chunk_cache_publish(cache, e);
    }
    assert_int_equal(cm_cached_chunk_data(e)[999], number);
    cm_chunk_cache_unpin(cache, e);
    return answer == CM_CACHE_HIT;
}

/* Bytes for N chunks of 1000 and no more. */
static size_t room_for(unsigned n)
{
    cm_chunk_cache *cache = new_cache(8192, CM_CACHE_LRU);
    size_t empty = cm_chunk_cache_nbytes(cache);
    uint64_t evicted = 0;
    touch(cache, &array_a, 0, &evicted);
    size_t each = cm_chunk_cache_nbytes(cache) - empty;
    cm_chunk_cache_free(cache);
    return empty + n * each;
}

static void policies(void **state)
{
    (void)state;
    static const struct {
        const char *name;
        cm_cache_policy policy;
        const char *access; /* chunk numbers */
        const char *hits;   /* '+' where that was one */
        unsigned evicted;
    } table[] = {
        {"all fit", CM_CACHE_LRU, "012012", "---+++", 0},
        {"lru keeps what is used", CM_CACHE_LRU, "0120301", "---+-+-", 2},
        {"fifo does not", CM_CACHE_FIFO, "0120301", "---+---", 3},
        {"a cycle of one too many", CM_CACHE_LRU, "01230123", "--------", 5},
        {"the same in fifo", CM_CACHE_FIFO, "01230123", "--------", 5},
        {"the newest again", CM_CACHE_LRU, "0012210", "-+--+++", 0},
    };
    for (size_t k = 0; k < sizeof(table) / sizeof(table[0]); k++) {
        cm_chunk_cache *cache = new_cache(room_for(3), table[k].policy);
        uint64_t evicted = 0;
        for (size_t i = 0; table[k].access[i] != '\0'; i++) {
            bool hit = touch(cache, &array_a, (uint64_t)(table[k].access[i] - '0'), &evicted);
            if (hit != (table[k].hits[i] == '+'))
                fail_msg("%s: access %d", table[k].name, (int)i);
            assert_true(cm_chunk_cache_nbytes(cache) <= room_for(3));
        }
        assert_int_equal(evicted, table[k].evicted);
        cm_chunk_cache_free(cache);
    }
}

static void arrays_are_told_apart(void **state)
{
    (void)state;
    cm_chunk_cache *cache = new_cache(8192, CM_CACHE_LRU);
    uint64_t evicted = 0;
    assert_false(touch(cache, &array_a, 5, &evicted));
    assert_false(touch(cache, &array_b, 5, &evicted));
    assert_true(touch(cache, &array_a, 5, &evicted));
    cm_chunk_cache_free(cache);
}

static void pinned_entries_stay(void **state)
{
    (void)state;
    cm_chunk_cache *cache = new_cache(room_for(2), CM_CACHE_LRU);
    cm_cached_chunk *e[3];
    uint64_t evicted = 0;
    for (uint64_t i = 0; i < 2; i++)
        assert_int_equal(cm_chunk_cache_lookup(cache, &array_a, i, 1000, false, &e[i], &evicted),
                         CM_CACHE_MINE);
    assert_int_equal(cm_chunk_cache_lookup(cache, &array_a, 2, 1000, false, &e[2], &evicted),
                     CM_CACHE_NO_ROOM);
    assert_int_equal(cm_chunk_cache_lookup(cache, &array_a, 0, 1000, false, &e[2], &evicted),
                     CM_CACHE_BUSY);
    assert_int_equal(evicted, 0);
    cm_chunk_cache_abandon(cache, e[0]);
    cm_chunk_cache_publish(cache, e[1]);
    assert_int_equal(cm_chunk_cache_lookup(cache, &array_a, 0, 1000, false, &e[0], &evicted),
                     CM_CACHE_MINE);
    cm_chunk_cache_unpin(cache, e[1]);
    /* Without the pinned one there is room for no such chunk: nothing goes for it. */
    assert_int_equal(cm_chunk_cache_lookup(cache, &array_b, 0, 1500, false, &e[2], &evicted),
                     CM_CACHE_NO_ROOM);
    assert_int_equal(evicted, 0);
    assert_int_equal(cm_chunk_cache_lookup(cache, &array_a, 2, 1000, false, &e[2], &evicted),
                     CM_CACHE_MINE);
    assert_int_equal(evicted, 1);
    cm_chunk_cache_abandon(cache, e[2]);
    cm_chunk_cache_abandon(cache, e[0]);
    cm_chunk_cache_free(cache);
}

static void sizes(void **state)
{
    (void)state;
    cm_chunk_cache *cache = NULL;
    cm_error err;
    assert_int_equal(cm_chunk_cache_create(100, CM_CACHE_LRU, &cache, &err), CM_EINVAL);
    assert_string_equal(err.text, "a cache of 100 bytes holds no chunk");
    cache = new_cache(1 << 20, CM_CACHE_LRU);
    cm_cached_chunk *e;
    uint64_t evicted = 0;
    touch(cache, &array_a, 1, &evicted);
    static const size_t too_large[] = {1 << 20, SIZE_MAX, SIZE_MAX - 64};
    for (size_t i = 0; i < 3; i++)
        assert_int_equal(
            cm_chunk_cache_lookup(cache, &array_a, 2, too_large[i], false, &e, &evicted),
            CM_CACHE_NO_ROOM);
    assert_int_equal(evicted, 0);
    /* Chunks of several sizes, within the limit all the time. */
    for (uint64_t i = 10; i < 200; i++) {
        size_t nbytes = i * 7919 % 300000;
        if (cm_chunk_cache_lookup(cache, &array_b, i, nbytes, false, &e, &evicted) ==
            CM_CACHE_MINE) {
            memset(cm_cached_chunk_data(e), 1, nbytes);
            cm_chunk_cache_publish(cache, e);
            cm_chunk_cache_unpin(cache, e);
        }
        assert_true(cm_chunk_cache_nbytes(cache) <= 1 << 20);
    }
    assert_true(evicted > 0);
    cm_chunk_cache_free(cache);
}

typedef struct crowd {
    cm_chunk_cache *cache;
    _Atomic unsigned decoded, abandoned, wrong;
} crowd;

static void decode_once(void *context, unsigned worker)
{
    (void)worker;
    crowd *c = context;
    for (uint64_t number = 0; number < 50; number++) {
        cm_cached_chunk *e;
        uint64_t evicted = 0;
        cm_cache_answer answer =
            cm_chunk_cache_lookup(c->cache, &array_a, number, 64, true, &e, &evicted);
        if (answer == CM_CACHE_MINE && number % 5 == 0 && atomic_fetch_add(&c->abandoned, 1) < 8) {
            cm_chunk_cache_abandon(c->cache, e);
            number--; /* whoever gets it next decodes it */
            continue;
        }
        if (answer == CM_CACHE_MINE) {
            nanosleep(&(struct timespec){.tv_nsec = 100000}, NULL);
            memset(cm_cached_chunk_data(e), (int)number, 64);
            atomic_fetch_add(&c->decoded, 1);
            cm_chunk_cache_publish(c->cache, e);
        }
        if (cm_cached_chunk_data(e)[63] != number)
            atomic_fetch_add(&c->wrong, 1);
        cm_chunk_cache_unpin(c->cache, e);
    }
}

static void others_wait(void **state)
{
    (void)state;
    crowd c = {.cache = new_cache(1 << 20, CM_CACHE_LRU)};
    cm_threads_run(8, decode_once, &c);
    assert_int_equal(c.decoded, 50);
    assert_int_equal(c.wrong, 0);
    assert_true(c.abandoned >= 8);
    cm_chunk_cache_free(c.cache);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(policies),
        cmocka_unit_test(arrays_are_told_apart),
        cmocka_unit_test(pinned_entries_stay),
        cmocka_unit_test(sizes),
        cmocka_unit_test(others_wait),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

/* How often a request over a network is tried, and when; tests/cli/remote has servers that fail. */
#include "../unit.h"
#include "base/clock.h"
#include "store/net/loop.h"

#define SECOND UINT64_C(1000000000)

typedef struct row {
    const char *name;
    unsigned patience, last; /* LAST: the try behind which no other comes; 0: time ends it */
    bool doubtful, answered;
    long status;
} row;

static const row rows[] = {
    {"as long as time allows", .answered = true},
    {"patience", .patience = 8, .last = 8, .answered = true},
    {"patience for one try", .patience = 1, .last = 1, .answered = true, .status = 500},
    {"no sense", .doubtful = true, .answered = true, .last = CM_NET_PATIENCE_FIRST},
    {"no sense, and little patience", .patience = 2, .last = 2, .doubtful = true},
    {"nobody there", .last = CM_NET_PATIENCE_FIRST},
    {"the first answer is an error", .status = 503},
};

static void test_how_often(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        const row *r = &rows[i];
        cm_net net = {.timeout_ns = 3600 * SECOND, .random = 1, .answered = r->answered};
        cm_http request = {.patience = r->patience, .status = r->status};
        cm_transfer_state t = {
            .request = &request, .doubtful = r->doubtful, .progress_ns = cm_now_ns()};
        for (t.ntries = 1; cm_net_tries_again(&net, &t) && t.ntries < 20; t.ntries++)
            assert_true(t.due_ns >= t.failing_ns);
        if (t.ntries != (r->last > 0 ? r->last : 20))
            fail_msg("%s: %u tries", r->name, t.ntries);
    }
}

/* The last byte that came begins the time; whoever asks for a pause gets it. */
static void test_how_long(void **state)
{
    (void)state;
    cm_net net = {.timeout_ns = 3600 * SECOND, .random = 1, .answered = true};
    cm_http request = {.status = 503};
    const uint64_t now = cm_now_ns();
    cm_transfer_state t = {.request = &request, .ntries = 1, .progress_ns = now - 1800 * SECOND};
    t.retry_after_ns = 5 * SECOND;
    assert_true(cm_net_tries_again(&net, &t));
    assert_true(t.due_ns >= now + 5 * SECOND && t.due_ns <= now + 1800 * SECOND);
    t.retry_after_ns = 1800 * SECOND; /* behind the end */
    assert_false(cm_net_tries_again(&net, &t));
    t = (cm_transfer_state){.request = &request, .ntries = 1, .progress_ns = now - 3600 * SECOND};
    assert_false(cm_net_tries_again(&net, &t));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_how_often),
        cmocka_unit_test(test_how_long),
    };
    return cmocka_run_group_tests_name("tries", tests, NULL, NULL);
}

#include "kinds.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "gpu/stage.h"

enum {
    NSLOTS = 4,
    NBATCHES = 40,
    SLOT = 256 * 1024
};

static size_t batch_nbytes(uint64_t tag)
{
    return tag % 3 == 0 ? SLOT : SLOT - 1000 - tag;
}

typedef struct setting {
    cm_staging staging;
    bool synchronous;
    unsigned nbuffers;
    cm_validate validate;
    cm_step step;
    uint64_t step_ns;
} setting;

typedef struct outcome {
    cm_stage_report report;
    cm_lock_report locked;
    uint64_t ndiffer;
    cm_mismatch mismatches[NBATCHES];
    char sentence[1024]; /* of the first */
} outcome;

static const cm_stage_span SPANS[] = {{"t2m", 0, 100000}, {"u10", 100000, 50000}};

static cm_stage *open_stage(cm_device *d, const setting *set)
{
    cm_stage *s;
    const cm_stage_options options = {.device = d,
                                      .staging = set->staging,
                                      .synchronous = set->synchronous,
                                      .nbuffers = set->nbuffers,
                                      .batch_nbytes = SLOT,
                                      .step = set->step,
                                      .step_ns = set->step_ns};
    OK(cm_stage_open(&options, &s, why));
    return s;
}

static void take_one(cm_stage *s, const setting *set, uint64_t tag, outcome *out)
{
    cm_staged staged;
    OK(cm_stage_wait(s, &staged, why));
    assert_int_equal(staged.tag, tag);
    assert_int_equal(staged.nbytes, batch_nbytes(tag));
    assert_true(staged.copy_start_ns <= staged.copy_end_ns);
    assert_true(staged.copy_end_ns <= staged.ready_ns + 1000000);
    if (set->step_ns)
        OK(cm_stage_step(s, why));
    if (set->validate != CM_VALIDATE_NONE) {
        cm_error err = {0};
        const int rc = cm_stage_validate(s, SPANS, 2, &out->mismatches[out->ndiffer], &err);
        if (rc != CM_OK) {
            assert_int_equal(rc, CM_EDIFFER);
            if (out->ndiffer++ == 0)
                memcpy(out->sentence, err.text, sizeof err.text);
        }
    }
    OK(cm_stage_release(s, NULL, why));
}

/* As a consumer does: slots are filled again as soon as they may be. */
static outcome run_pass(cm_stage *s, const setting *set, uint8_t *arena)
{
    static outcome out;
    out = (outcome){0};
    uint64_t nfilled = 0, ntaken = 0;
    OK(cm_stage_begin(s, set->validate, why));
    while (ntaken < NBATCHES) {
        while (cm_stage_room(s) && nfilled < NBATCHES && nfilled < ntaken + NSLOTS) {
            uint8_t *slot = arena + nfilled % NSLOTS * SLOT;
            fill(slot, batch_nbytes(nfilled), nfilled);
            OK(cm_stage_submit(s, nfilled, slot, batch_nbytes(nfilled), why));
            nfilled++;
        }
        take_one(s, set, ntaken++, &out);
    }
    out.report = *cm_stage_get_report(s);
    out.locked = *cm_stage_locked(s);
    return out;
}

static outcome run_stage(cm_device *d, const setting *set)
{
    uint8_t *arena = aligned_alloc(4096, NSLOTS * SLOT);
    assert_non_null(arena);
    cm_stage *s = open_stage(d, set);
    OK(cm_stage_lock(s, arena, NSLOTS * SLOT, why));
    const outcome out = run_pass(s, set, arena);
    cm_stage_free(s);
    free(arena);
    return out;
}

static uint64_t all_nbytes(void)
{
    uint64_t sum = 0;
    for (uint64_t i = 0; i < NBATCHES; i++)
        sum += batch_nbytes(i);
    return sum;
}

static const setting SETTINGS[] = {
    {CM_STAGING_PINNED, false, 0, CM_VALIDATE_FULL, CM_STEP_TIME, 0},
    {CM_STAGING_PINNED, false, 2, CM_VALIDATE_CHECKSUM, CM_STEP_TIME, 100000},
    {CM_STAGING_PINNED, false, 3, CM_VALIDATE_FULL, CM_STEP_DEVICE, 100000},
    {CM_STAGING_PINNED, true, 0, CM_VALIDATE_FULL, CM_STEP_TIME, 0},
    {CM_STAGING_PAGEABLE, false, 2, CM_VALIDATE_FULL, CM_STEP_TIME, 0},
    {CM_STAGING_PAGEABLE, true, 1, CM_VALIDATE_CHECKSUM, CM_STEP_DEVICE, 100000},
    {CM_STAGING_PINNED, false, 4, CM_VALIDATE_NONE, CM_STEP_TIME, 100000},
};

static void test_stage_in_every_way(void **state)
{
    cm_device *d = open_kind(present_kind(state));
    for (size_t i = 0; i < sizeof SETTINGS / sizeof *SETTINGS; i++) {
        const setting *set = &SETTINGS[i];
        const outcome out = run_stage(d, set);
        const cm_stage_report *r = &out.report;
        assert_int_equal(out.ndiffer, 0);
        assert_int_equal(r->nmismatches, 0);
        assert_int_equal(r->nbatches, NBATCHES);
        assert_int_equal(r->nbytes, all_nbytes());
        assert_int_equal(r->validated_nbytes, set->validate == CM_VALIDATE_NONE ? 0 : all_nbytes());
        assert_true(r->hidden_ns <= r->copy_ns);
        assert_true(!set->synchronous || r->hidden_ns == 0);
        assert_int_equal(out.locked.nbytes, set->staging == CM_STAGING_PINNED ? NSLOTS * SLOT : 0);
    }
    cm_device_close(d);
}

static void test_every_flip_is_caught(void **state)
{
    const kind *k = present_kind(state);
    static const cm_device_fault faults[] = {
        {0, 0, 1},         {1, 99999, 0x80}, {2, 100000, 0x10},    {3, 149999, 1},
        {4, 150000, 0xff}, {9, SLOT - 1, 2}, {12, SLOT - 4, 0x40}, {39, SLOT - 1, 0x08},
        {7, 3, 4},
    };
    enum {
        N = sizeof faults / sizeof *faults
    };
    cm_device *d = open_with(k, (cm_device_hooks){.faults = faults, .nfaults = N});
    for (size_t i = 0; i < sizeof SETTINGS / sizeof *SETTINGS; i++) {
        if (SETTINGS[i].validate == CM_VALIDATE_NONE)
            continue;
        const outcome out = run_stage(d, &SETTINGS[i]);
        assert_int_equal(out.ndiffer, N);
        assert_int_equal(out.report.nmismatches, N);
        for (size_t m = 0; m < N; m++) {
            const cm_mismatch *found = &out.mismatches[m];
            const cm_device_fault *f = faults;
            while (f < faults + N && f->batch != found->tag)
                f++;
            assert_true(f < faults + N);
            assert_int_equal(found->offset, f->offset);
            assert_int_equal(found->expected ^ found->found, f->mask);
            assert_int_equal(found->nbytes, 1);
            if (f->offset >= 150000)
                assert_null(found->name);
            else {
                assert_string_equal(found->name, f->offset < 100000 ? "t2m" : "u10");
                assert_int_equal(found->span_offset, f->offset % 100000);
            }
        }
        char sentence[256];
        snprintf(sentence, sizeof sentence,
                 "batch 0, variable t2m, offset 0 (0 of the batch): 0x%02x was read and 0x%02x is "
                 "on %s; 1 bytes of the batch differ",
                 out.mismatches[0].expected, out.mismatches[0].found, cm_device_get_info(d)->text);
        assert_string_equal(out.sentence, sentence);
    }
    cm_device_close(d);
}

/* Nothing is copied, so nothing can be right: what an earlier batch left does not pass for it. */
static void test_buffers_are_poisoned(void **state)
{
    cm_device *d = open_with(present_kind(state), (cm_device_hooks){.free_copies = true});
    const outcome out = run_stage(d, &SETTINGS[0]);
    assert_int_equal(out.ndiffer, NBATCHES);
    assert_int_equal(out.mismatches[5].found, CM_STAGE_POISON);
    assert_non_null(strstr(out.sentence, "as if never written"));
    cm_device_close(d);
}

static void test_stage_out_of_order(void **state)
{
    cm_device *d = open_kind(present_kind(state));
    const setting set = {.nbuffers = 1};
    cm_stage *s = open_stage(d, &set);
    uint8_t *slot = aligned_alloc(4096, SLOT);
    assert_non_null(slot);
    memset(slot, 1, SLOT);
    cm_staged staged;
    cm_error err;
    assert_int_equal(cm_stage_wait(s, &staged, &err), CM_EINVAL);
    assert_int_equal(cm_stage_step(s, &err), CM_EINVAL);
    assert_int_equal(cm_stage_release(s, NULL, &err), CM_EINVAL);
    assert_int_equal(cm_stage_validate(s, NULL, 0, NULL, &err), CM_EINVAL);
    assert_int_equal(cm_stage_submit(s, 8, slot, SLOT, &err), CM_EINVAL);
    assert_string_equal(err.text, "batch 8 does not lie in page-locked memory");
    OK(cm_stage_lock(s, slot, SLOT, why));
    assert_int_equal(cm_stage_submit(s, 8, slot, SLOT + 1, &err), CM_EINVAL);
    assert_int_equal(cm_stage_submit(s, 8, slot + 1, SLOT, &err), CM_EINVAL);
    OK(cm_stage_submit(s, 8, slot, SLOT, why));
    assert_false(cm_stage_room(s));
    assert_int_equal(cm_stage_submit(s, 9, slot, SLOT, &err), CM_EINVAL);
    assert_string_equal(err.text, "batch 9: all 1 buffers of the device are in use");
    assert_int_equal(cm_stage_begin(s, CM_VALIDATE_FULL, &err), CM_EINVAL);
    OK(cm_stage_wait(s, &staged, why));
    assert_int_equal(cm_stage_wait(s, &staged, &err), CM_EINVAL);
    assert_int_equal(cm_stage_validate(s, NULL, 0, NULL, &err), CM_EINVAL);
    assert_string_equal(err.text, "this pass validates nothing");
    OK(cm_stage_step(s, why));
    assert_int_equal(cm_stage_step(s, &err), CM_EINVAL);
    OK(cm_stage_release(s, NULL, why));
    /* Freed with a batch under way. */
    OK(cm_stage_submit(s, 9, slot, SLOT, why));
    cm_stage_free(s);
    free(slot);
    const cm_stage_options bad[] = {{.device = d},
                                    {.device = d, .batch_nbytes = 1, .nbuffers = 65}};
    for (size_t i = 0; i < 2; i++)
        assert_int_equal(cm_stage_open(&bad[i], &s, &err), CM_EINVAL);
    cm_device_close(d);
}

enum {
    LARGE = 8 << 20, /* so that a copy takes longer than it takes to begin a step */
    NLARGE = 16
};

/* Runs NLARGE batches, the next submitted during each step where there is room. */
static cm_stage_report run_large(cm_device *d, cm_step step, bool synchronous, uint8_t *slot)
{
    cm_stage *s;
    cm_staged staged;
    const cm_stage_options options = {.device = d,
                                      .synchronous = synchronous,
                                      .batch_nbytes = LARGE,
                                      .step = step,
                                      .step_ns = 6000000};
    OK(cm_stage_open(&options, &s, why));
    OK(cm_stage_lock(s, slot, LARGE, why));
    OK(cm_stage_begin(s, CM_VALIDATE_NONE, why));
    OK(cm_stage_submit(s, 0, slot, LARGE, why));
    for (uint64_t nsubmitted = 1, n = 0; n < NLARGE; n++) {
        cm_stage_step_times times;
        OK(cm_stage_wait(s, &staged, why));
        OK(cm_stage_step(s, why));
        for (; cm_stage_room(s) && nsubmitted < NLARGE; nsubmitted++)
            OK(cm_stage_submit(s, nsubmitted, slot, LARGE, why));
        OK(cm_stage_release(s, &times, why));
        assert_in_range(times.end_ns - times.start_ns, 5900000, 1000000000);
        assert_true(times.start_ns + 1000000 > staged.ready_ns);
        if (nsubmitted == n + 1 && nsubmitted < NLARGE)
            OK(cm_stage_submit(s, nsubmitted++, slot, LARGE, why));
    }
    const cm_stage_report report = *cm_stage_get_report(s);
    cm_stage_free(s);
    return report;
}

/* Steps longer than copies: most of the copying is hidden, by the times of the events. */
static void test_overlap(void **state)
{
    const kind *k = present_kind(state);
    if (k->driver)
        return; /* a fake step takes no time */
    cm_device *d = open_kind(k);
    uint8_t *slot = aligned_alloc(4096, LARGE);
    assert_non_null(slot);
    memset(slot, 3, LARGE);
    for (cm_step step = CM_STEP_TIME; step <= CM_STEP_DEVICE; step++) {
        bool hidden = false;
        /*
         * On a busy machine the consumer may be kept from beginning a step until the copy is
         * done.  With ThreadSanitizer a copy takes longer than a step.
         */
#ifdef __SANITIZE_THREAD__
        const int rounds = 1;
#else
        const int rounds = 200;
#endif
        for (int i = 0; i < rounds && !hidden; i++) {
            const cm_stage_report r = run_large(d, step, false, slot);
            assert_true(r.step_ns >= NLARGE * UINT64_C(5900000));
            hidden = r.hidden_ns > r.copy_ns / 2;
        }
        assert_true(hidden || rounds == 1);
        /* Nothing is, but for the few microseconds to which the two clocks agree. */
        assert_true(run_large(d, step, true, slot).hidden_ns <= NLARGE * UINT64_C(10000));
    }
    free(slot);
    cm_device_close(d);
}

static void test_probe(void **state)
{
    cm_device *d = open_kind(present_kind(state));
    cm_link_rates r;
    OK(cm_probe_link(d, 100000, &r, why));
    assert_true(r.pinned > 1e6 && r.pageable > 1e6 && r.memory > 1e6);
    assert_int_equal(r.nbytes, 100000);
    assert_true(r.ncopies >= 2);
    assert_int_equal(cm_probe_link(d, 0, &r, NULL), CM_EINVAL);
    cm_device_close(d);
}

/* ---- nothing is left ------------------------------------------------------------------------ */

/* Kilobytes of NAME in a file of /proc; 0: it has none. */
static uint64_t kilobytes_of(const char *path, const char *name)
{
    char line[256];
    unsigned long long n = 0;
    FILE *f = fopen(path, "re");
    assert_non_null(f);
    while (fgets(line, sizeof line, f))
        if (strncmp(line, name, strlen(name)) == 0 && line[strlen(name)] == ':')
            sscanf(line + strlen(name) + 1, "%llu", &n);
    fclose(f);
    return n;
}

/*
 * Opened a thousand times with 4 MiB page-locked, and closed: the process has as much locked
 * memory as before, and the machine, where a driver of its own locks, as much that is free.
 */
static void test_a_thousand_opens(void **state)
{
    enum {
        OPENS = 1000,
        NLOCKED = 4 << 20
    };
    const kind *k = present_kind(state);
    const bool is_real = strcmp(k->label, "cuda") == 0;
    cm_device *keeper = open_kind(k); /* so that the driver keeps its context */
    const uint64_t locked = kilobytes_of("/proc/self/status", "VmLck");
    const uint64_t left = kilobytes_of("/proc/meminfo", "MemAvailable");
    for (int i = 0; i < OPENS; i++) {
        cm_device *d = open_kind(k);
        cm_stage *s;
        const cm_stage_options options = {.device = d, .batch_nbytes = 4096};
        void *memory =
            mmap(NULL, NLOCKED, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        assert_true(memory != MAP_FAILED);
        OK(cm_stage_open(&options, &s, why));
        OK(cm_stage_lock(s, memory, is_real ? NLOCKED : 4096, why));
        OK(cm_stage_begin(s, CM_VALIDATE_NONE, why));
        cm_stage_free(s);
        munmap(memory, NLOCKED);
        cm_device_close(d);
    }
    assert_int_equal(kilobytes_of("/proc/self/status", "VmLck"), locked);
    const uint64_t left_after = kilobytes_of("/proc/meminfo", "MemAvailable");
    if (is_real && left > left_after)
        assert_true(left - left_after < (uint64_t)OPENS * NLOCKED / 1024 / 4);
    cm_device_close(keeper);
}

static const device_test TESTS[] = {
    {"stage in every way", test_stage_in_every_way},
    {"every flip is caught", test_every_flip_is_caught},
    {"buffers are poisoned", test_buffers_are_poisoned},
    {"stage out of order", test_stage_out_of_order},
    {"overlap", test_overlap},
    {"probe", test_probe},
    {"a thousand opens", test_a_thousand_opens},
};

int main(int argc, char **argv)
{
    (void)argc;
    return run_with_each_kind("stage", TESTS, sizeof TESTS / sizeof *TESTS, argv[0]);
}

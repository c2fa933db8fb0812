/*
 * Parcels decoded: against the fake driver with a fake of each nvCOMP that is known, and
 * against a device with NVIDIA's own where both are present (CHUNKMILL_NVCOMP may name
 * the library's file).
 */
#include "kinds.h"

#include <dlfcn.h>
#include <libdeflate.h>
#include <lz4.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <zstd.h>

#include "../support/lib/fake_cuda.h"
#include "../support/lib/fake_nvcomp.h"
#include "gpu/decode.h"

enum {
    CHUNK = 96 * 1024,
    NCHUNKS = 24,
    SLOT = 4 << 20,
    SCRATCH = 8 << 20
};

/* A device and the library that decodes on it. */
typedef struct way {
    const char *label;
    kind kind;
    const char *library;
} way;

static char driver[4096], libraries[2][4096];
static fake_nvcomp_state *fake;
static fake_nvcomp_reset_fn *reset;

/* ---- parcels -------------------------------------------------------------------------------- */

typedef struct parcel {
    uint8_t *slot;
    size_t nbytes;
    uint8_t *expected;
    size_t batch_nbytes;
    cm_decoder_limits limits;
    cm_parcel_writer w;
    uint64_t damaged; /* the stream of this chunk is cut short; UINT64_MAX: none is */
} parcel;

/* Values that compress, and unlike each other. */
static void fill_chunk(uint8_t *p, uint64_t number)
{
    for (size_t i = 0; i < CHUNK; i++)
        p[i] = (uint8_t)(i % 4 == 3 ? number : i % 4 == 2 ? i / 512 : i / 4 * (number + 1) % 7);
}

static size_t compress(cm_parcel_codec codec, const uint8_t *src, size_t n, uint8_t *dst,
                       size_t room)
{
    size_t made = 0;
    if (codec == CM_PARCEL_ZSTD)
        made = ZSTD_compress(dst, room, src, n, 1);
    else if (codec == CM_PARCEL_LZ4)
        made = (size_t)LZ4_compress_default((const char *)src, (char *)dst, (int)n, (int)room);
    else {
        struct libdeflate_compressor *c = libdeflate_alloc_compressor(1);
        made = libdeflate_deflate_compress(c, src, n, dst, room);
        libdeflate_free_compressor(c);
    }
    assert_true(made > 0 && made <= room);
    return made;
}

static void add_stream(parcel *p, uint64_t number, cm_parcel_codec codec, const uint8_t *src,
                       size_t n, uint64_t dst)
{
    static uint8_t packed[2 * CHUNK];
    size_t nbytes = compress(codec, src, n, packed, sizeof packed);
    uint64_t place;
    if (p->damaged == number)
        nbytes -= nbytes / 2;
    OK(cm_parcel_put(&p->w, packed, nbytes, &place, why));
    OK(cm_parcel_add_stream(&p->w,
                            &(cm_parcel_stream){.codec = codec,
                                                .array = number % 2,
                                                .chunk = number,
                                                .src = place,
                                                .src_nbytes = nbytes,
                                                .dst = dst & ~CM_PARCEL_IN_SCRATCH,
                                                .dst_nbytes = n},
                            why));
    p->limits.nstreams[codec]++;
    if (p->limits.stream_nbytes[codec] < n)
        p->limits.stream_nbytes[codec] = n;
}

static void shuffle(uint8_t *dst, const uint8_t *src, size_t n, size_t typesize)
{
    const size_t nelem = n / typesize;
    for (size_t e = 0; e < nelem; e++)
        for (size_t j = 0; j < typesize; j++)
            dst[j * nelem + e] = src[e * typesize + j];
    memcpy(dst + nelem * typesize, src + nelem * typesize, n - nelem * typesize);
}

/* One chunk in one of the ways in which they are stored; the place where it will be. */
static uint64_t add_chunk(parcel *p, uint64_t number, const uint8_t *data)
{
    static uint8_t shuffled[CHUNK];
    static const uint32_t typesizes[] = {2, 4, 8, 7};
    const cm_parcel_codec codec = number % CM_PARCEL_NCODECS;
    const uint64_t out = cm_parcel_scratch(&p->w, CHUNK);
    uint64_t place;
    switch (number / CM_PARCEL_NCODECS % 4) {
    case 0:
        add_stream(p, number, codec, data, CHUNK, out);
        return out;
    case 1: /* as it is stored */
        OK(cm_parcel_put(&p->w, data, CHUNK, &place, why));
        return place;
    case 2: { /* shuffled as a whole */
        const uint32_t typesize = typesizes[number % 4];
        const uint64_t raw = cm_parcel_scratch(&p->w, CHUNK);
        shuffle(shuffled, data, CHUNK, typesize);
        add_stream(p, number, codec, shuffled, CHUNK, raw);
        OK(cm_parcel_add_shuffled(&p->w, raw, out & ~CM_PARCEL_IN_SCRATCH, typesize, CHUNK, why));
        return out;
    }
    default: { /* blocks of their own, some stored as they are */
        const size_t block = 40000;
        const uint64_t raw = cm_parcel_scratch(&p->w, CHUNK);
        for (size_t at = 0; at < CHUNK; at += block) {
            const size_t n = CHUNK - at < block ? CHUNK - at : block;
            shuffle(shuffled, data + at, n, 4);
            if (at == block) {
                OK(cm_parcel_put(&p->w, shuffled, n, &place, why));
                OK(cm_parcel_add_bytes(&p->w, place, (raw & ~CM_PARCEL_IN_SCRATCH) + at, n, why));
            } else
                add_stream(p, number, codec, shuffled, n, raw + at);
            OK(cm_parcel_add_shuffled(&p->w, raw + at, (out & ~CM_PARCEL_IN_SCRATCH) + at, 4, n,
                                      why));
        }
        return out;
    }
    }
}

/* Of each chunk a box of 32-bit elements, and the whole of every third. */
static void make_parcel(parcel *p, uint64_t damaged)
{
    static uint8_t data[CHUNK];
    static const uint64_t shape[] = {11, 13, 17}, stride[] = {70 * 128, 256, 4},
                          packed[] = {13 * 17 * 4, 17 * 4, 4};
    const size_t box_nbytes = 11 * 13 * 17 * 4;
    *p = (parcel){.damaged = damaged};
    p->slot = aligned_alloc(64, SLOT);
    p->expected = calloc(1, SLOT);
    cm_parcel_begin(&p->w, p->slot, SLOT);
    for (uint64_t i = 0; i < NCHUNKS; i++) {
        fill_chunk(data, i);
        const uint64_t place = add_chunk(p, i, data);
        if (i % 3 == 0) {
            const cm_parcel_box all = {.src = place, .dst = p->batch_nbytes, .run_nbytes = CHUNK};
            OK(cm_parcel_add_box(&p->w, &all, why));
            memcpy(p->expected + p->batch_nbytes, data, CHUNK);
            p->batch_nbytes += CHUNK;
            continue;
        }
        const cm_parcel_box box = {.src = place + 8,
                                   .dst = p->batch_nbytes,
                                   .rank = 3,
                                   .shape = shape,
                                   .src_stride = stride,
                                   .dst_stride = packed,
                                   .run_nbytes = 4};
        assert_true(8 + 10 * stride[0] + 12 * stride[1] + 17 * 4 <= CHUNK);
        OK(cm_parcel_add_box(&p->w, &box, why));
        for (size_t a = 0; a < 11; a++)
            for (size_t b = 0; b < 13; b++)
                memcpy(p->expected + p->batch_nbytes + a * packed[0] + b * packed[1],
                       data + 8 + a * stride[0] + b * stride[1], 17 * 4);
        p->batch_nbytes += box_nbytes;
    }
    OK(cm_parcel_end(&p->w, p->batch_nbytes, &p->nbytes, why));
    p->limits.parcel_nbytes = SLOT;
    p->limits.scratch_nbytes = SCRATCH;
}

static void free_parcel(parcel *p)
{
    cm_parcel_writer_release(&p->w);
    free(p->slot);
    free(p->expected);
}

/* ---- a device ------------------------------------------------------------------------------- */

typedef struct bench {
    cm_device *device;
    cm_stream *stream;
    cm_device_memory *parcel, *batch;
    cm_decoder *decoder;
    uint8_t *back;
} bench;

static const char *const names[] = {"t2m", "msl"};

static bench open_bench(const way *y, const parcel *p)
{
    bench b = {.device = open_kind(&y->kind)};
    void *back;
    const cm_decoder_options o = {.device = b.device,
                                  .library = y->library,
                                  .limits = p->limits,
                                  .nbuffers = 2,
                                  .array = names,
                                  .narrays = 2};
    OK(cm_stream_open(b.device, &b.stream, why));
    OK(cm_device_alloc(b.device, SLOT, &b.parcel, why));
    OK(cm_device_alloc(b.device, SLOT, &b.batch, why));
    OK(cm_device_alloc_locked(b.device, SLOT, &back, NULL, why));
    b.back = back;
    OK(cm_decoder_open(&o, &b.decoder, why));
    return b;
}

static void close_bench(bench *b)
{
    cm_decoder_free(b->decoder);
    cm_stream_close(b->stream);
    cm_device_free(b->parcel);
    cm_device_free(b->batch);
    cm_device_free_locked(b->device, b->back, SLOT);
    cm_device_close(b->device);
}

static int decode(bench *b, const parcel *p, unsigned buffer, cm_error *err)
{
    const cm_parcel *h = (const cm_parcel *)(const void *)p->slot;
    OK(cm_stream_poison(b->stream, b->batch, 0xa5, why));
    OK(cm_stream_copy_in(b->stream, 0, b->parcel, 0, p->slot, h->nbytes, why));
    int rc = cm_decoder_submit(b->decoder, b->stream, buffer, p->slot, p->nbytes, b->parcel,
                               b->batch, err);
    OK(cm_stream_copy_out(b->stream, b->back, b->batch, 0, p->batch_nbytes, why));
    OK(cm_stream_sync(b->stream, why));
    return rc == CM_OK ? cm_decoder_check(b->decoder, buffer, err) : rc;
}

static const way *present(void **state)
{
    const way *y = *state;
    if (!y->kind.present)
        skip();
    if (fake != NULL)
        reset();
    return y;
}

static bool is_fake(const way *y)
{
    return y->kind.driver != NULL;
}

static void find_fake(const way *y)
{
    fake = NULL;
    if (!is_fake(y))
        return;
    void *library = dlopen(y->library, RTLD_NOW | RTLD_LOCAL);
    assert_non_null(library);
    fake = dlsym(library, "fake_nvcomp");
    reset = (fake_nvcomp_reset_fn *)dlsym(library, "fake_nvcomp_reset");
    assert_non_null(fake);
    reset();
}

/* ---- tests ---------------------------------------------------------------------------------- */

static void test_batches(void **state)
{
    const way *y = present(state);
    parcel p;
    find_fake(y);
    make_parcel(&p, UINT64_MAX);
    bench b = open_bench(y, &p);
    assert_non_null(strstr(cm_decoder_library(b.decoder), "nvCOMP "));
    for (unsigned i = 0; i < 4; i++) {
        cm_error err = {0};
        if (decode(&b, &p, i % 2, &err) != CM_OK)
            fail_msg("%s", err.text);
        assert_memory_equal(b.back, p.expected, p.batch_nbytes);
    }
    if (fake != NULL)
        assert_int_equal(fake->nrefused, 0);
    close_bench(&b);
    free_parcel(&p);
}

/* Where temporary memory is short, streams are decoded in groups, with the same result. */
static void test_groups(void **state)
{
    const way *y = present(state);
    parcel p;
    cm_error err = {0};
    find_fake(y);
    if (fake == NULL)
        skip();
    fake->temp_nbytes = (size_t)700 << 20; /* of one stream: two at once */
    make_parcel(&p, UINT64_MAX);
    kind k = y->kind;
    bench b = {.device = open_kind(&k)};
    fake_cuda_state *cuda = dlsym(dlopen(driver, RTLD_NOW | RTLD_LOCAL), "fake_cuda");
    cuda->nbytes = (size_t)4 << 30;
    cm_device_close(b.device);
    b = open_bench(y, &p);
    assert_int_equal(decode(&b, &p, 0, &err), CM_OK);
    assert_memory_equal(b.back, p.expected, p.batch_nbytes);
    assert_true(fake->most_streams <= 2 && fake->ncalls > 3);
    close_bench(&b);
    free_parcel(&p);
    reset();
    cuda->nbytes = (size_t)1 << 30;
}

/* What nvCOMP says of a stream, and what it says nothing of but has not made. */
static void test_what_was_not_decoded(void **state)
{
    static const struct {
        int status;
        const char *says;
    } rows[] = {{12, "the stream cannot be decompressed (status 12)"},
                {15, "more bytes than there is room for"},
                {0, "bytes of a stream of"},
                {77, "an unknown error (status 77)"}};
    const way *y = present(state);
    parcel p;
    find_fake(y);
    if (fake == NULL)
        skip();
    make_parcel(&p, UINT64_MAX);
    for (uint64_t bad = 1; bad < 20; bad += 3)
        for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
            bench b = open_bench(y, &p);
            cm_error err = {0};
            fake->nstreams = 0;
            fake->bad_stream = bad;
            fake->bad_status = rows[i].status;
            assert_int_equal(decode(&b, &p, 1, &err), CM_EFORMAT);
            assert_int_equal(err.status, CM_EFORMAT);
            if (strstr(err.text, rows[i].says) == NULL ||
                strstr(err.text, "chunk number") == NULL ||
                (strstr(err.text, "t2m") == NULL && strstr(err.text, "msl") == NULL))
                fail_msg("%s", err.text);
            /* The next one is not blamed. */
            assert_int_equal(decode(&b, &p, 1, &err), CM_OK);
            close_bench(&b);
        }
    free_parcel(&p);
    reset();
}

/* A stream that is cut short is found by the decoder, and named. */
static void test_a_damaged_stream(void **state)
{
    const way *y = present(state);
    find_fake(y);
    if (fake == NULL)
        skip(); /* nvCOMP promises nothing for streams that are not whole */
    for (uint64_t chunk = 0; chunk < CM_PARCEL_NCODECS; chunk++) {
        parcel p;
        char says[64];
        cm_error err = {0};
        make_parcel(&p, chunk);
        bench b = open_bench(y, &p);
        assert_int_equal(decode(&b, &p, 0, &err), CM_EFORMAT);
        snprintf(says, sizeof says, "array %s: chunk number %d", names[chunk % 2], (int)chunk);
        if (strstr(err.text, says) == NULL)
            fail_msg("%s", err.text);
        close_bench(&b);
        free_parcel(&p);
    }
}

static void test_errors_of_the_library(void **state)
{
    const way *y = present(state);
    parcel p;
    cm_error err = {0};
    find_fake(y);
    if (fake == NULL)
        skip();
    make_parcel(&p, UINT64_MAX);
    bench b = open_bench(y, &p);
    fake->fail = 1000;
    assert_int_equal(decode(&b, &p, 0, &err), CM_EIO);
    assert_non_null(strstr(err.text, "decoding: an error of CUDA"));
    reset();
    close_bench(&b);
    free_parcel(&p);
}

/* Numbers that do not belong together never reach the device. */
static void test_parcels_that_lie(void **state)
{
    const way *y = present(state);
    parcel p;
    find_fake(y);
    make_parcel(&p, UINT64_MAX);
    bench b = open_bench(y, &p);
    cm_parcel *h = (cm_parcel *)(void *)p.slot;
    cm_parcel_stream *s = (cm_parcel_stream *)(void *)(p.slot + h->streams_at);
    const cm_parcel h_was = *h;
    const cm_parcel_stream s_was = *s;
    for (int i = 0; i < 11; i++) {
        cm_error err = {0};
        h->first_at += i == 0 ? 8 : 0;
        h->last_at += i == 1 ? h->nbytes : 0;
        h->ntiles += i == 2 ? 1 << 30 : 0;
        h->nstreams[1] += i == 3 ? 1000 : 0;
        h->scratch_nbytes += i == 4 ? SCRATCH : 0;
        h->batch_nbytes = i == 5 ? SLOT + 1 : h->batch_nbytes;
        s->src += i == 6 ? 1 : 0;
        s->src_nbytes += i == 7 ? SLOT : 0;
        s->dst += i == 8 ? h->scratch_nbytes : 0;
        s->dst_nbytes += i == 9 ? SCRATCH : 0;
        h->nbytes += i == 10 ? SLOT : 0;
        assert_int_equal(
            cm_decoder_submit(b.decoder, b.stream, 0, p.slot, p.nbytes, b.parcel, b.batch, &err),
            CM_EINTERNAL);
        *h = h_was;
        *s = s_was;
    }
    cm_error err = {0};
    assert_int_equal(decode(&b, &p, 0, &err), CM_OK);
    assert_memory_equal(b.back, p.expected, p.batch_nbytes);
    close_bench(&b);
    free_parcel(&p);
}

/* ---- what is refused ------------------------------------------------------------------------ */

static void check_refused(const way *y, const char *device, const char *library, int status,
                          const char *says)
{
    kind k = y->kind;
    if (device != NULL)
        k.text = device;
    cm_device *d = open_kind(&k);
    const cm_decoder_options o = {.device = d, .library = library, .nbuffers = 1};
    cm_decoder *decoder;
    cm_error err = {0};
    assert_int_equal(cm_decoder_open(&o, &decoder, &err), status);
    assert_null(decoder);
    if (strstr(err.text, says) == NULL)
        fail_msg("%s", err.text);
    cm_device_close(d);
}

static void test_refusals(void **state)
{
    const way *y = present(state);
    find_fake(y);
    check_refused(y, "host", y->library, CM_EUNSUPPORTED, "the device host does not decode");
    check_refused(y, NULL, "/nonexistent/libnvcomp.so", CM_ENOTFOUND, "nvCOMP");
    if (fake == NULL)
        return;
    check_refused(y, NULL, driver, CM_EUNSUPPORTED, "it is not nvCOMP");
    fake->version = 4210;
    check_refused(y, NULL, y->library, CM_EUNSUPPORTED, "nvCOMP 4.2.10 is not known here");
    fake->version = 7000;
    check_refused(y, NULL, y->library, CM_EUNSUPPORTED, "nvCOMP 7.0.0 is not known here");
    reset();
    /* The functions of the other version. */
    fake->version = strstr(y->library, "_5") ? 6000 : 5000;
    check_refused(y, NULL, y->library, CM_EUNSUPPORTED, "has not the functions of its version");
    reset();
    fake->input = 64;
    check_refused(y, NULL, y->library, CM_EUNSUPPORTED, "at multiples of 64");
    reset();
    fake->fail = 11;
    check_refused(y, NULL, y->library, CM_EUNSUPPORTED, "asking for alignments: not supported");
    reset();
}

/* The device has no room for the scratch; everything that was made is given back. */
static void test_no_room(void **state)
{
    const way *y = present(state);
    parcel p;
    cm_error err = {0};
    cm_decoder *decoder;
    find_fake(y);
    make_parcel(&p, UINT64_MAX);
    p.limits.scratch_nbytes = (size_t)1 << 45;
    cm_device *d = open_kind(&y->kind);
    const cm_decoder_options o = {
        .device = d, .library = y->library, .limits = p.limits, .nbuffers = 2};
    assert_int_equal(cm_decoder_open(&o, &decoder, &err), CM_ENOMEM);
    assert_non_null(strstr(err.text, "the device has no room"));
    cm_device_close(d);
    free_parcel(&p);
}

static void test_everything_is_given_back(void **state)
{
    const way *y = present(state);
    if (!is_fake(y))
        skip();
    const fake_cuda_state *cuda = dlsym(dlopen(driver, RTLD_NOW | RTLD_LOCAL), "fake_cuda");
    assert_int_equal(cuda->nallocated, 0);
    assert_int_equal(cuda->nregistered, 0);
    assert_int_equal(cuda->nmodules, 0);
    assert_int_equal(cuda->ncontexts, 0);
    assert_int_equal(cuda->nstreams, 0);
}

/* ---- ways ----------------------------------------------------------------------------------- */

static bool has_device_and_library(const char *library)
{
    cm_device *d;
    cm_decoder *decoder;
    cm_error err = {0};
    int rc = cm_device_open("cuda", NULL, &d, &err);
    if (rc == CM_OK) {
        const cm_decoder_options o = {.device = d, .library = library, .nbuffers = 1};
        rc = cm_decoder_open(&o, &decoder, &err);
        cm_decoder_free(decoder);
        cm_device_close(d);
    }
    if (rc != CM_OK)
        printf("# cuda: %s\n", err.text);
    return rc != CM_ENOTFOUND;
}

int main(int argc, char **argv)
{
    static const device_test tests[] = {
        {"batches", test_batches},
        {"groups", test_groups},
        {"what was not decoded", test_what_was_not_decoded},
        {"a damaged stream", test_a_damaged_stream},
        {"errors of the library", test_errors_of_the_library},
        {"parcels that lie", test_parcels_that_lie},
        {"refusals", test_refusals},
        {"no room", test_no_room},
        {"everything is given back", test_everything_is_given_back},
    };
    enum {
        NTESTS = sizeof tests / sizeof *tests,
        NWAYS = 3
    };
    static struct CMUnitTest all[NWAYS * NTESTS];
    static char labels[NWAYS * NTESTS][96];
    const char *slash = strrchr(argv[0], '/'), *own = getenv("CHUNKMILL_NVCOMP");
    const int folder = slash ? (int)(slash - argv[0]) : 1;
    const char *const from = slash ? argv[0] : ".";
    (void)argc;
    snprintf(driver, sizeof driver, "%.*s/../lib/fake_cuda_12.so", folder, from);
    for (int i = 0; i < 2; i++)
        snprintf(libraries[i], sizeof *libraries, "%.*s/../lib/fake_nvcomp_%d.so", folder, from,
                 5 + i);
    way ways[NWAYS] = {{"nvCOMP 5", {"fake cuda", "cuda", driver, true}, libraries[0]},
                       {"nvCOMP 6", {"fake cuda", "cuda", driver, true}, libraries[1]},
                       {"cuda", {"cuda", "cuda", NULL, false}, own}};
    ways[2].kind.present = has_device_and_library(own);
    for (size_t y = 0; y < NWAYS; y++)
        for (size_t t = 0; t < NTESTS; t++) {
            const size_t i = y * NTESTS + t;
            snprintf(labels[i], sizeof labels[i], "%s: %s", ways[y].label, tests[t].name);
            all[i] = (struct CMUnitTest){labels[i], tests[t].run, NULL, NULL, &ways[y]};
        }
    return _cmocka_run_group_tests("decode", all, NWAYS * NTESTS, NULL, NULL);
}

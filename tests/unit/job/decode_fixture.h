/*
 * What tests of decoding on a device share: stores of every codec, and the fakes of the driver and
 * of nvCOMP, which decode with the host's libraries.
 */
#ifndef TESTS_UNIT_JOB_DECODE_FIXTURE_H
#define TESTS_UNIT_JOB_DECODE_FIXTURE_H

#include "readbench_fixture.h"

#include <dlfcn.h>

#include "../../support/lib/fake_cuda.h"
#include "../../support/lib/fake_nvcomp.h"

static const field fields[] = {
    {"v", "tyx", {15, 16, 18}, {4, 5, 7}, {0}, FIELD_INT16, 0, 0, false, false},
    {"u", "tyx", {15, 16, 18}, {2, 16, 9}, {0}, FIELD_FLOAT32, 0, 0, 0, 0},
    {"s", "tyx", {15, 16, 18}, {3, 4, 6}, {6, 8, 12}, FIELD_INT32, 0, 0, 0, 0},
    {"holes", "tyx", {15, 16, 18}, {4, 5, 7}, {0}, FIELD_INT32, 3, 0, 0, 0},
    {"plain", "tyx", {15, 16, 18}, {5, 16, 18}, {0}, FIELD_FLOAT32, 0, 0, 0, true}};
enum {
    NFIELDS = 5,
    BATCHES = 6,
    BATCH = 4,
    SAMPLE = 2 * 6 * 8, /* elements */
    SAMPLE_NBYTES = SAMPLE * (2 + 4 + 4 + 4 + 4)
};

#define SHUFFLE                                                                                    \
    {                                                                                              \
        .id = CM_CODEC_SHUFFLE, .elementsize = 4                                                   \
    }
#define BLOSC(name, how)                                                                           \
    {                                                                                              \
        .id = CM_CODEC_BLOSC, .level = 5, .blosc = {.cname = name, .shuffle = how }                \
    }

/* Of the options O, MEMBER is set to V, and the status and the words of the error. */
typedef struct refusal {
    const char *says;
    int status;
    void *member;
    size_t nbytes;
    uint64_t value;
} refusal;
#define REFUSED(member, v, s, says)                                                                \
    {                                                                                              \
        says, s, &o.member, sizeof o.member, (uint64_t)(uintptr_t)(v)                              \
    }
#define REFUSED_BY_BOTH                                                                            \
    REFUSED(device, "host", CM_EINVAL, "the device host does not decode"),                         \
        REFUSED(device, NULL, CM_EINVAL, "needs `device` cuda"),                                   \
        REFUSED(worker_threads, 2, CM_EINVAL, "one thread"),                                       \
        REFUSED(cache_nbytes, 1 << 20, CM_EINVAL, "cache of decoded chunks"),                      \
        REFUSED(cast, "float16", CM_EINVAL, "not converted on the way"),                           \
        REFUSED(unpack, 1, CM_EINVAL, "not converted on the way"),                                 \
        REFUSED(fill_to_nan, 1, CM_EINVAL, "not converted on the way"),                            \
        REFUSED(decode, "gpu", CM_EINVAL, "`decode`"),                                             \
        REFUSED(nvcomp, "/nonexistent/libnvcomp.so.5", CM_ENOTFOUND, "nvCOMP")

static const struct {
    const char *name;
    cm_codec_spec codecs[3];
    bool v2, big_endian;
} chains[] = {
    {"gzip.zarr", {{.id = CM_CODEC_GZIP, .level = 1}}, false, false},
    {"zstd.zarr", {{.id = CM_CODEC_ZSTD, .level = 1}}, false, false},
    {"zstd-crc.zarr", {{.id = CM_CODEC_ZSTD, .level = 1}, {.id = CM_CODEC_CRC32C}}, false, false},
    {"blosc-zstd.zarr", {BLOSC("zstd", 1)}, false, false},
    {"blosc-lz4.zarr", {BLOSC("lz4", 1)}, false, false},
    {"blosc-zlib.zarr", {BLOSC("zlib", 1)}, false, false},
    {"blosc-plain.zarr", {BLOSC("lz4", 0)}, false, false},
    {"lz4.zarr", {{.id = CM_CODEC_LZ4, .level = 1}}, true, false},
    {"zlib.zarr", {{.id = CM_CODEC_ZLIB, .level = 1}}, true, true},
    {"raw.zarr", {{.id = CM_CODEC_NONE}}, false, true},
    {"big-zstd.zarr", {{.id = CM_CODEC_ZSTD, .level = 1}}, false, true},
    {"big-blosc.zarr", {BLOSC("lz4", 1)}, false, true},
};
enum {
    NCHAINS = sizeof chains / sizeof *chains,
    RAW = 9 /* nothing to decode */
};

static char *paths[NCHAINS + 1];
static char driver[4096], cufile[4096], libraries[2][4096];
static fake_nvcomp_state *fakes[2];
static fake_cuda_state *cuda;

/* A store of chain I. */
static char *make_chain(size_t i, const char *name)
{
    field list[NFIELDS];
    memcpy(list, fields, sizeof list);
    for (size_t f = 0; f < NFIELDS && chains[i].v2; f++)
        memset(list[f].shard, 0, sizeof list[f].shard);
    made_codecs = chains[i].codecs;
    made_big_endian = chains[i].big_endian;
    char *path = make_store(name, chains[i].v2 ? ZARR_V2 : ZARR_V3, list, NFIELDS);
    made_big_endian = false;
    return path;
}

static int make_stores(void **state)
{
    if (make_folder(state) != 0)
        return -1;
    for (size_t i = 0; i < NCHAINS; i++)
        paths[i] = make_chain(i, chains[i].name);
    made_codecs = chains[0].codecs;
    paths[NCHAINS] = make_store("file.nc", NETCDF4, fields, 2);
    for (int i = 0; i < 2; i++) {
        void *library = dlopen(libraries[i], RTLD_NOW | RTLD_LOCAL);
        fakes[i] = library != NULL ? dlsym(library, "fake_nvcomp") : NULL;
    }
    void *library = dlopen(driver, RTLD_NOW | RTLD_LOCAL);
    cuda = library != NULL ? dlsym(library, "fake_cuda") : NULL;
    return fakes[0] != NULL && fakes[1] != NULL && cuda != NULL ? 0 : -1;
}

static int remove_stores(void **state)
{
    for (size_t i = 0; i <= NCHAINS; i++)
        free(paths[i]);
    return remove_folder(state);
}

static void forget(int which)
{
    *fakes[which] = (fake_nvcomp_state){0};
}

static void check_given_back(void)
{
    assert_int_equal(cuda->ncontexts, 0);
    assert_int_equal(cuda->nmodules, 0);
    assert_int_equal(cuda->nstreams, 0);
    assert_int_equal(cuda->nevents, 0);
    assert_int_equal(cuda->nallocated, 0);
    assert_int_equal(cuda->nregistered, 0);
}

static const cm_device_hooks fake_device = {
    .cuda_driver = driver, .cufile = cufile, .sysfs = "/nonexistent"};
UNUSED static struct cm_readbench_hook fake_hook = {.device = &fake_device, .no_probe = true};

static void find_fakes(const char *program_path)
{
    const char *slash = strrchr(program_path, '/');
    const int nfolder = slash != NULL ? (int)(slash - program_path) : 1;
    const char *program = slash != NULL ? program_path : ".";
    snprintf(driver, sizeof driver, "%.*s/../../lib/fake_cuda_12.so", nfolder, program);
    for (int i = 0; i < 2; i++)
        snprintf(libraries[i], sizeof libraries[i], "%.*s/../../lib/fake_nvcomp_%d.so", nfolder,
                 program, 5 + i);
    snprintf(cufile, sizeof cufile, "%.*s/../../lib/fake_cufile.so", nfolder, program);
}

#endif

/*
 * nc2zarr's options in any words, planned for a small file: a plan whose chunks and shards
 * fit, or a sentence; nothing is written.
 */
#include <sys/mman.h>
#include <unistd.h>

#include "job_options.h"

enum {
    CHUNKS,
    SHARDS,
    CODEC,
    VARIABLE,
    EXCLUDE,
    RENAME,
    SUBSET,
    DTYPE,
    UNPACK,
    KEEPBITS,
    FILL_VALUE,
    SAMPLE,
    NOPTIONS
};

static char input[64];

/* A classic file: time (records), x; float tas(time, x), packed short pr(time, x), char name(x). */
static const uint8_t file[] =
    "CDF\1\0\0\0\4"
    "\0\0\0\12\0\0\0\2\0\0\0\4time\0\0\0\0\0\0\0\1x\0\0\0\0\0\0\6"
    "\0\0\0\0\0\0\0\0"
    "\0\0\0\13\0\0\0\4"
    "\0\0\0\4time\0\0\0\1\0\0\0\0\0\0\0\14\0\0\0\1\0\0\0\5units\0\0\0\0\0\0\2\0\0\0\25"
    "days since 2000-01-01\0\0\0\0\0\0\6\0\0\0\10\0\0\2\0"
    "\0\0\0\3tas\0\0\0\0\2\0\0\0\0\0\0\0\1\0\0\0\0\0\0\0\0\0\0\0\5\0\0\0\30\0\0\2\10"
    "\0\0\0\2pr\0\0\0\0\0\2\0\0\0\0\0\0\0\1\0\0\0\14\0\0\0\1\0\0\0\14scale_factor\0\0\0\5\0\0\0\1"
    "\77\0\0\0\0\0\0\3\0\0\0\14\0\0\2\40"
    "\0\0\0\4name\0\0\0\1\0\0\0\1\0\0\0\0\0\0\0\0\0\0\0\2\0\0\0\10\0\0\1\370";

int LLVMFuzzerInitialize(int *argc, char ***argv)
{
    (void)argc;
    (void)argv;
    int fd = memfd_create("input.nc", 0);
    REQUIRE(fd >= 0 && ftruncate(fd, 0x200 + 4 * (8 + 24 + 12)) == 0);
    REQUIRE(pwrite(fd, file, sizeof file - 1, 0) == (ssize_t)sizeof file - 1);
    snprintf(input, sizeof input, "/proc/self/fd/%d", fd);
    return 0;
}

static void check_report(const cm_transform_report *r)
{
    for (size_t i = 0; i < r->nvariables; i++) {
        const cm_transform_variable *v = &r->variable[i];
        REQUIRE(v->name[0] != '\0' && v->rank <= 32);
        for (unsigned j = 0; j < v->rank; j++) {
            REQUIRE(v->chunk[j] > 0);
            REQUIRE(v->shard[j] % v->chunk[j] == 0);
        }
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t nbytes)
{
    fuzz_input in = {data, nbytes};
    fuzz_values values[NOPTIONS] = {0};
    cm_transform_options o;
    cm_transform_report report;
    cm_error err = {0};
    const unsigned flags = (unsigned)fuzz_number(&in, 1);
    fuzz_read_values(&in, values, NOPTIONS);
    cm_transform_options_init(&o, CM_DEFAULTS_CHOOSE);
    o.source = input;
    o.target = "/nonexistent/out.zarr";
    o.dry_run = true;
    o.nthreads = 1;
    o.memory = 256 << 20;
    o.verify = CM_VERIFY_NONE;
    o.zarr_format = flags & 1 ? 2 : 3;
    o.char_mode = (cm_char_mode)(flags >> 1 & 3) % 3;
    o.chunks = fuzz_texts(&values[CHUNKS]);
    o.shards = fuzz_texts(&values[SHARDS]);
    o.codec = fuzz_texts(&values[CODEC]);
    o.variable = fuzz_texts(&values[VARIABLE]);
    o.exclude = fuzz_texts(&values[EXCLUDE]);
    o.rename = fuzz_texts(&values[RENAME]);
    o.subset = fuzz_texts(&values[SUBSET]);
    o.dtype = fuzz_texts(&values[DTYPE]);
    o.unpack = fuzz_texts(&values[UNPACK]);
    o.keepbits = fuzz_texts(&values[KEEPBITS]);
    o.fill_value = fuzz_texts(&values[FILL_VALUE]);
    o.sample = values[SAMPLE].n > 0 ? values[SAMPLE].text[0] : NULL;
    int rc = cm_transform(&o, &report, &err);
    if (rc == CM_OK)
        check_report(&report);
    else
        REQUIRE(rc != CM_EINTERNAL && err.text[0] != '\0');
    cm_transform_report_release(&report);
    fuzz_release_values(values, NOPTIONS);
    return 0;
}

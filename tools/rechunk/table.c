/* The option table of rechunk: parsing, --help, man page and completion follow from it. */
#include "../common/rows.h"
#include "rechunk.h"

#define VALUE(member) CM_FIELD(rechunk_values, member)

static const cm_option OPTIONS[] = {
    CM_ROW_CHUNKS(VALUE(o.chunks),
                  .section = "Layout of the target (unchanged unless an option names it)",
                  .unset = "source, the present chunks of each array"),
    CM_ROW_SAMPLE(VALUE(o.sample)),
    CM_ROW_SHARDS(VALUE(o.shards),
                  .unset = "the source's where the chunks stay; otherwise none up to 10,000 "
                           "objects per store, above that auto (256 MiB), and the summary says so"),
    CM_ROW_GRID(VALUE(o.grid), ""),
    {.name = "codec",
     .brief = true,
     .value = "[VAR:]SPEC",
     .kind = CM_OPTION_LIST,
     .field = VALUE(o.codec),
     .words = "same|none|zstd|gzip|blosc",
     .help = "Compression. SPEC is same, none, zstd[:LEVEL], gzip[:LEVEL] or "
             "blosc[:CNAME[:LEVEL[:shuffle|bitshuffle|noshuffle]]].",
     .unset = "same, the present codecs of each array"},
    CM_ROW_ZARR_FORMAT(VALUE(o.zarr_format), .unset = "the source's"),

    CM_ROW_VARIABLE(VALUE(o.variable), .section = "What is rechunked",
                    .help = "Take these arrays only. The groups that hold them come along.",
                    .unset = "everything"),
    CM_ROW_EXCLUDE(VALUE(o.exclude)),
    CM_ROW_RENAME(VALUE(o.rename)),
    CM_ROW_SUBSET(VALUE(o.subset)),
    CM_ROW_STACK(VALUE(o.stack)),
    CM_ROW_SKIP_UNSUPPORTED(VALUE(o.skip_unsupported)),
    {.name = "digest",
     .brief = true,
     .kind = CM_OPTION_FLAG,
     .field = VALUE(digest),
     .help = "Print the digest of every array of each STORE. Nothing is written. A STORE is Zarr "
             "or NetCDF; equal values have equal digests in any layout."},

    CM_ROW_DRY_RUN(VALUE(o.dry_run),
                   "For every array the exact reads, decodes and writes, the peak memory, the "
                   "least traffic possible in this memory, and the gap."),
    CM_ROW_OVERWRITE(VALUE(o.overwrite)),
    CM_ROW_RESUME(VALUE(o.resume)),
    CM_ROW_BREAK_LOCK(VALUE(o.break_lock)),
    CM_ROW_APPEND(VALUE(append),
                  "Add to TARGET what SOURCE has grown by along DIM. TARGET is a store that was "
                  "made of SOURCE; its chunks, shards and codecs stay."),
    CM_ROW_APPEND_REST(VALUE(append_rest), ""),
    CM_ROW_RECHECK(VALUE(recheck), "compare all elements that TARGET has already with SOURCE. "
                                   "Without it, coordinates and small arrays are, and of others "
                                   "the last step."),
    CM_ROW_SCRATCH(VALUE(o.scratch)),
    CM_ROW_DURABLE(VALUE(o.durable)),
    CM_ROW_TRACE(VALUE(o.trace)),
    CM_ROW_REPORT(VALUE(o.report), "Describe what is written."),

    CM_ROW_VERIFY(VALUE(o.verify),
                  "Compare the target with the source. full compares every element and "
                  "prints the digests."),

    CM_ROW_DTYPE(VALUE(o.dtype), ""),
    CM_ROW_OVERFLOW(VALUE(o.overflow)),
    CM_ROW_UNPACK(VALUE(o.unpack)),
    CM_ROW_KEEPBITS(VALUE(o.keepbits)),
    CM_ROW_FILL_VALUE(VALUE(o.fill_value)),
    CM_ROW_STATISTICS(VALUE(o.statistics)),
    CM_ROW_STATISTICS_RANGE(VALUE(o.statistics_range)),
    CM_ROW_STATISTICS_BY(VALUE(o.statistics_by)),

    CM_ROWS_PART(part),

    CM_ROW_BRANCH(VALUE(o.branch)),
    CM_ROW_MESSAGE(VALUE(o.message)),
    CM_ROW_OBJECT_SIZE(VALUE(o.object_nbytes)),

    CM_ROW_ANONYMOUS(VALUE(net.anonymous)),
    CM_ROW_CONCURRENCY(VALUE(net.concurrency)),
    CM_ROW_TIMEOUT(VALUE(net.timeout)),
    CM_ROW_ABSENT_403(VALUE(net.absent_403)),
    CM_ROW_ALLOW(VALUE(net.allow)),
    CM_ROW_CHECKSUM(VALUE(net.checksum)),
    {0},
};

static const char *const USAGE[] = {
    "[OPTIONS] SOURCE.zarr TARGET.zarr",
    "--append DIM [OPTIONS] SOURCE.zarr TARGET.zarr",
    "--digest STORE...",
    NULL,
};

static const cm_example EXAMPLES[] = {
    {"Preview, within 2 GiB",
     "rechunk --dry-run --memory 2GiB --chunks time=full,lat=16,lon=16 a.zarr b.zarr"},
    {"Maps to time series", "rechunk --memory 2GiB --chunks time=full,lat=16,lon=16 a.zarr b.zarr"},
    {"One array only, into shards",
     "rechunk --variable z --chunks time=4,lat=64,lon=64 --shards auto a.zarr z.zarr"},
    {"Another codec and Zarr version 2, same chunks",
     "rechunk --codec zstd:9 --zarr-format 2 a.zarr a-v2.zarr"},
    {"A part of the time, as plain values",
     "rechunk --subset time=0:240 --unpack all a.zarr part.zarr"},
    {"What was added to the source since", "rechunk --append time a.zarr b.zarr"},
    {"Compare a store with its source", "rechunk --digest a.zarr b.zarr"},
    {0},
};

const cm_tool RECHUNK = {
    .name = "rechunk",
    .summary = "rewrite a Zarr store in other chunks, shards or codecs, within a memory limit",
    .usage = USAGE,
    .options = OPTIONS,
    .example = EXAMPLES,
};

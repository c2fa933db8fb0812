/* The option table of rechunk: parsing, --help, man page and completion follow from it. */
#include "../common/rows.h"
#include "rechunk.h"

#define VALUE(field) offsetof(rechunk_values, field)

static const cm_option OPTIONS[] = {
    {.section = "Layout of the target (unchanged unless an option names it)",
     .name = "chunks",
     .value = "[VAR:]SHAPE",
     .kind = CM_OPTION_LIST,
     .offset = VALUE(chunks),
     .words = "auto|source",
     .help = "Chunk shape, auto, auto:SIZE or source. A shape goes by name "
             "(time=24,lat=64,lon=full) or in order (24x64x64); other dimensions "
             "are chosen. Default: source, the present chunks of each array. Repeatable, the later "
             "wins; VAR may be a pattern, and without it coordinates stay whole."},
    CM_ROW_SAMPLE(VALUE(sample)),
    {.name = "shards",
     .value = "[VAR:]SHAPE",
     .kind = CM_OPTION_LIST,
     .offset = VALUE(shards),
     .words = "auto|none",
     .help = "Shard shape, auto, auto:SIZE or none. Version 3 only. Default: the source's where "
             "the chunks stay, otherwise none."},
    {.name = "codec",
     .value = "[VAR:]SPEC",
     .kind = CM_OPTION_LIST,
     .offset = VALUE(codec),
     .words = "same|none|zstd|gzip|blosc",
     .help = "Compression. SPEC is same, none, zstd[:LEVEL], gzip[:LEVEL] or "
             "blosc[:CNAME[:LEVEL[:shuffle|bitshuffle|noshuffle]]]. Default: same, the present "
             "codecs of each array."},
    {.name = "zarr-format",
     .value = "3|2",
     .kind = CM_OPTION_CHOICE,
     .offset = VALUE(zarr_format),
     .words = "3|2",
     .help = "Write Zarr version 3 or 2. Default: the source's."},

    CM_ROW_VARIABLE("What is rechunked", VALUE(variable),
                    "Take these arrays and the groups that hold them only. Default: everything, "
                    "arrays that no option names included."),
    CM_ROW_EXCLUDE(VALUE(exclude)),
    CM_ROW_RENAME(VALUE(rename)),
    CM_ROW_SUBSET(VALUE(subset)),
    CM_ROW_SKIP_UNSUPPORTED(VALUE(skip_unsupported)),
    {.name = "digest",
     .kind = CM_OPTION_FLAG,
     .offset = VALUE(digest),
     .help = "Print the digest of every array of each STORE and write nothing. A STORE is Zarr or "
             "NetCDF; equal values have equal digests in any layout."},

    CM_ROW_DTYPE(VALUE(dtype)),
    CM_ROW_UNPACK(VALUE(unpack)),
    CM_ROW_KEEPBITS(VALUE(keepbits)),
    CM_ROW_FILL_VALUE(VALUE(fill_value)),

    {.section = "Output",
     .name = "dry-run",
     .kind = CM_OPTION_FLAG,
     .offset = VALUE(dry_run),
     .help = "Print the plan and write nothing. For every array the exact reads, decodes and "
             "writes, the peak memory, the least traffic possible in this memory, and the gap."},
    CM_ROW_OVERWRITE(VALUE(overwrite)),
    {.name = "resume",
     .kind = CM_OPTION_FLAG,
     .offset = VALUE(resume),
     .help = "Finish an interrupted run. Run the same command with this option; complete chunks "
             "are kept."},
    CM_ROW_BREAK_LOCK(VALUE(break_lock)),
    CM_ROW_SCRATCH(VALUE(scratch)),
    CM_ROW_DURABLE(VALUE(durable)),
    CM_ROW_TRACE(VALUE(trace)),

    CM_ROW_VERIFY(VALUE(verify),
                  "Compare the target with the source. full compares every element and "
                  "prints the digests. Default: sample."),
    {0},
};

static const char *const USAGE[] = {
    "[OPTIONS] SOURCE.zarr TARGET.zarr",
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
    {"Hold a store against the one that it was made from", "rechunk --digest a.zarr b.zarr"},
    {0},
};

const cm_tool RECHUNK = {
    .name = "rechunk",
    .summary = "rewrite a Zarr store in other chunks, shards or codecs, within a memory limit",
    .usage = USAGE,
    .options = OPTIONS,
    .example = EXAMPLES,
};

/* The option table of nc2zarr: parsing, --help, man page and completion follow from it. */
#include "../common/rows.h"
#include "nc2zarr.h"

#define VALUE(field) offsetof(nc2zarr_values, field)

static const cm_option OPTIONS[] = {
    {.section = "Layout of the store",
     .name = "zarr-format",
     .value = "3|2",
     .kind = CM_OPTION_CHOICE,
     .offset = VALUE(zarr_format),
     .words = "3|2",
     .help = "Write Zarr version 3 or 2. Default: 3."},
    {.name = "chunks",
     .value = "[VAR:]SHAPE",
     .kind = CM_OPTION_LIST,
     .offset = VALUE(chunks),
     .words = "auto|source",
     .help =
         "Chunk shape, auto, auto:SIZE or source. A shape goes by name (time=24,lat=64,lon=full) "
         "or in order (24x64x64); other dimensions are chosen. source keeps "
         "the chunks of the file. Default: auto, about 4 MiB decoded per chunk. Repeatable, the "
         "later "
         "wins; VAR may be a pattern, and without it coordinates stay whole."},
    CM_ROW_SAMPLE(VALUE(sample)),
    {.name = "shards",
     .value = "[VAR:]SHAPE",
     .kind = CM_OPTION_LIST,
     .offset = VALUE(shards),
     .words = "auto|none",
     .help = "Shard shape, auto, auto:SIZE or none. Version 3 only. Default: none up to 10,000 "
             "objects per store, above that auto (256 MiB), and the summary says so."},
    {.name = "codec",
     .value = "[VAR:]SPEC",
     .kind = CM_OPTION_LIST,
     .offset = VALUE(codec),
     .words = "none|zstd|gzip|blosc|keep",
     .help = "Compression. SPEC is none, zstd[:LEVEL], gzip[:LEVEL], "
             "blosc[:CNAME[:LEVEL[:shuffle|bitshuffle|noshuffle]]], or keep[:gzip], which copies "
             "the compressed chunks of the file unchanged. Default for numbers: "
             "blosc:zstd:2:shuffle."},
    {.name = "no-consolidate",
     .kind = CM_OPTION_FLAG,
     .offset = VALUE(no_consolidate),
     .help = "Write no consolidated metadata."},

    CM_ROW_VARIABLE("What is converted", VALUE(variable),
                    "Convert these variables only. What they need comes along: coordinates, "
                    "bounds, grid mappings."),
    CM_ROW_EXCLUDE(VALUE(exclude)),
    CM_ROW_RENAME(VALUE(rename)),
    CM_ROW_SUBSET(VALUE(subset)),
    CM_ROW_SKIP_UNSUPPORTED(VALUE(skip_unsupported)),

    CM_ROW_DTYPE(VALUE(dtype)),
    CM_ROW_UNPACK(VALUE(unpack)),
    CM_ROW_KEEPBITS(VALUE(keepbits)),
    CM_ROW_FILL_VALUE(VALUE(fill_value)),
    {.name = "char",
     .value = "keep|join|uint8",
     .kind = CM_OPTION_CHOICE,
     .offset = VALUE(char_mode),
     .words = "keep|join|uint8",
     .help = "How characters are stored. keep: one by one, as xarray expects them. join: the last "
             "dimension makes strings. uint8: numbers, for readers that support neither. Default: "
             "keep."},

    {.section = "Output",
     .name = "dry-run",
     .kind = CM_OPTION_FLAG,
     .offset = VALUE(dry_run),
     .help =
         "Print the plan and write nothing. For every variable: chunks, shards, codec, objects, "
         "bytes before and after, memory, and how often each source chunk is decoded."},
    CM_ROW_OVERWRITE(VALUE(overwrite)),
    {.name = "resume",
     .kind = CM_OPTION_FLAG,
     .offset = VALUE(resume),
     .help = "Finish an interrupted conversion. Run the same command with this option; complete "
             "chunks are kept."},
    CM_ROW_BREAK_LOCK(VALUE(break_lock)),
    {.name = "append",
     .value = "DIM",
     .kind = CM_OPTION_TEXT,
     .offset = VALUE(append),
     .help = "Add to a store along DIM. To come: refused until then."},
    CM_ROW_SCRATCH(VALUE(scratch)),
    CM_ROW_DURABLE(VALUE(durable)),
    CM_ROW_TRACE(VALUE(trace)),

    CM_ROW_VERIFY(VALUE(verify),
                  "Compare the result with the file as libnetcdf reads it. Default: sample."),
    {.name = "check",
     .kind = CM_OPTION_FLAG,
     .offset = VALUE(check),
     .help =
         "Compare INPUT with an existing OUTPUT in full, and write nothing. Pass the options of "
         "the conversion that select, rename or change variables."},
    {.name = "certificate",
     .value = "FILE",
     .kind = CM_OPTION_TEXT,
     .offset = VALUE(certificate),
     .operand = CM_OPERAND_FILE,
     .makes = CM_MAKES_CERTIFICATE,
     .help =
         "With --verify full or --check, write a record of the verification: digests, elements, "
         "versions, the command, and whether the original could be reproduced."},
    {0},
};

static const char *const USAGE[] = {
    "[OPTIONS] INPUT.nc OUTPUT.zarr",
    "[OPTIONS] INPUT.nc",
    "--check [OPTIONS] INPUT.nc OUTPUT.zarr",
    NULL,
};

static const cm_example EXAMPLES[] = {
    {"Convert a file", "nc2zarr tas.nc tas.zarr"},
    {"Preview", "nc2zarr --dry-run tas.nc tas.zarr"},
    {"Chunks for reading time series, one variable", "nc2zarr --variable tas --chunks "
                                                     "time=full,lat=16,lon=16 tas.nc tas.zarr"},
    {"Version 2, for older readers", "nc2zarr --zarr-format 2 --codec zstd tas.nc tas.zarr"},
    {0},
};

const cm_tool NC2ZARR = {
    .name = "nc2zarr",
    .summary = "convert a NetCDF file to a Zarr store that every reader opens",
    .usage = USAGE,
    .options = OPTIONS,
    .example = EXAMPLES,
};

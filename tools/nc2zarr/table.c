/* The option table of nc2zarr: parsing, --help, man page and completion follow from it. */
#include "../common/rows.h"
#include "nc2zarr.h"

#define VALUE(member) CM_FIELD(nc2zarr_values, member)

static const cm_option OPTIONS[] = {
    CM_ROW_ZARR_FORMAT(VALUE(o.zarr_format), .section = "Layout of the store", .preset = "3"),
    CM_ROW_CHUNKS(VALUE(o.chunks), .unset = "auto, about 4 MiB decoded per chunk"),
    CM_ROW_SAMPLE(VALUE(o.sample)),
    CM_ROW_SHARDS(VALUE(o.shards), .unset = "none up to 10,000 objects per store, above that auto "
                                            "(256 MiB), and the summary says so"),
    {.name = "codec",
     .value = "[VAR:]SPEC",
     .kind = CM_OPTION_LIST,
     .field = VALUE(o.codec),
     .words = "none|zstd|gzip|blosc|keep",
     .help = "Compression. SPEC is none, zstd[:LEVEL], gzip[:LEVEL], "
             "blosc[:CNAME[:LEVEL[:shuffle|bitshuffle|noshuffle]]], or keep[:gzip], which copies "
             "the compressed chunks of the file unchanged. Default for numbers: "
             "blosc:zstd:2:shuffle."},
    {.name = "no-consolidate",
     .kind = CM_OPTION_FLAG,
     .field = VALUE(o.no_consolidate),
     .help = "Write no consolidated metadata."},

    CM_ROW_VARIABLE(VALUE(o.variable), .section = "What is converted",
                    .help =
                        "Convert these variables only. What they need comes along: coordinates, "
                        "bounds, grid mappings."),
    CM_ROW_EXCLUDE(VALUE(o.exclude)),
    CM_ROW_RENAME(VALUE(o.rename)),
    CM_ROW_SUBSET(VALUE(o.subset)),
    CM_ROW_SKIP_UNSUPPORTED(VALUE(o.skip_unsupported)),

    CM_ROW_DTYPE(VALUE(o.dtype)),
    CM_ROW_UNPACK(VALUE(o.unpack)),
    CM_ROW_KEEPBITS(VALUE(o.keepbits)),
    CM_ROW_FILL_VALUE(VALUE(o.fill_value)),
    {.name = "char",
     .kind = CM_OPTION_CHOICE,
     .field = VALUE(o.char_mode),
     .words = "keep|join|uint8",
     .help = "How characters are stored. keep: one by one, as xarray expects them. join: the last "
             "dimension makes strings. uint8: numbers, for readers that support neither.",
     .preset = "keep"},

    CM_ROW_ANONYMOUS(VALUE(net.anonymous)),
    CM_ROW_CONCURRENCY(VALUE(net.concurrency)),
    CM_ROW_TIMEOUT(VALUE(net.timeout)),
    CM_ROW_ABSENT_403(VALUE(net.absent_403)),

    CM_ROW_DRY_RUN(VALUE(o.dry_run),
                   "For every variable: chunks, shards, codec, objects, bytes before and after, "
                   "memory, and how often each source chunk is decoded."),
    CM_ROW_OVERWRITE(VALUE(o.overwrite)),
    CM_ROW_RESUME(VALUE(o.resume)),
    CM_ROW_BREAK_LOCK(VALUE(o.break_lock)),
    {.name = "append",
     .value = "DIM",
     .kind = CM_OPTION_TEXT,
     .field = VALUE(append),
     .help = "Add to a store along DIM. To come: refused until then."},
    CM_ROW_SCRATCH(VALUE(o.scratch)),
    CM_ROW_DURABLE(VALUE(o.durable)),
    CM_ROW_TRACE(VALUE(o.trace)),

    CM_ROWS_PART(part),

    CM_ROW_VERIFY(VALUE(o.verify), "Compare the result with the file as libnetcdf reads it."),
    {.name = "check",
     .kind = CM_OPTION_FLAG,
     .field = VALUE(o.check),
     .help =
         "Compare INPUT with an existing OUTPUT in full, and write nothing. Pass the options of "
         "the conversion that select, rename or change variables."},
    {.name = "certificate",
     .value = "FILE",
     .kind = CM_OPTION_TEXT,
     .field = VALUE(o.certificate),
     .operand = CM_OPERAND_FILE,
     .makes = CM_MAKES_CERTIFICATE,
     .help =
         "With --verify full or --check, write a record of the verification: digests, elements, "
         "versions, the command, and whether the original could be reproduced."},
    {.section = "References instead of a copy",
     .name = "virtual",
     .value = "json",
     .kind = CM_OPTION_TEXT,
     .field = VALUE(o.refer),
     .words = "json",
     .help = "Write OUT.json, which says where every chunk lies in the files, for kerchunk's "
             "readers: xarray through fsspec, zarr-python, and this project's own tools."},
    {.name = "base-url",
     .value = "URL",
     .kind = CM_OPTION_TEXT,
     .field = VALUE(o.base_url),
     .help = "With --virtual, the URL of the folder that all files lie in, where the references "
             "will be read. Default: the paths of this machine."},
    {0},
};

static const char *const USAGE[] = {
    "[OPTIONS] INPUT.nc OUTPUT.zarr",
    "[OPTIONS] INPUT.nc",
    "--check [OPTIONS] INPUT.nc OUTPUT.zarr",
    "--virtual json [OPTIONS] INPUT.nc OUT.json",
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

/* The option table of nc2zarr: parsing, --help, man page and completion follow from it. */
#include "../common/rows.h"
#include "nc2zarr.h"

#define VALUE(member) CM_FIELD(nc2zarr_values, member)

static const cm_option OPTIONS[] = {
    CM_ROW_VARIABLE(VALUE(o.variable), .section = "What is converted",
                    .help =
                        "Convert these variables only. What they need comes along: coordinates, "
                        "bounds, grid mappings."),
    CM_ROW_EXCLUDE(VALUE(o.exclude)),
    CM_ROW_RENAME(VALUE(o.rename)),
    CM_ROW_SUBSET(VALUE(o.subset)),
    CM_ROW_STACK(VALUE(o.stack)),
    {.name = "merge-along",
     .value = "DIM=VALUE,VALUE",
     .kind = CM_OPTION_LIST,
     .field = VALUE(o.merge_along),
     .help = "Take the dimension DIM out: each element is the first that is not missing, in the "
             "order of these values of DIM's coordinate. expver=1,5 makes one field of the final "
             "and provisional data of ERA5; files may lack the dimension."},
    CM_ROW_SKIP_UNSUPPORTED(VALUE(o.skip_unsupported)),

    {.section = "Many files as one dataset",
     .name = "survey",
     .brief = true,
     .kind = CM_OPTION_FLAG,
     .field = VALUE(survey),
     .help = "Show what all inputs hold and write nothing. Also how they join and where they "
             "disagree; the exit status is 4 when something needs a decision."},
    {.name = "survey-cache",
     .value = "FILE",
     .kind = CM_OPTION_TEXT,
     .field = VALUE(a.cache),
     .operand = CM_OPERAND_FILE,
     .makes = CM_MAKES_CACHE,
     .help = "Keep the survey of each input file in FILE. The next run opens only files whose "
             "inode, size or times changed."},
    {.letter = '0',
     .name = "null",
     .kind = CM_OPTION_FLAG,
     .field = VALUE(a.zero),
     .help = "Paths in a list (@LIST, @-) end with NUL, not with a newline."},
    {.name = "along",
     .value = "DIM",
     .kind = CM_OPTION_TEXT,
     .field = VALUE(a.along),
     .help = "Join the files along DIM.",
     .unset = "the dimension whose coordinate differs"},
    {.name = "new-dim",
     .value = "NAME=PATTERN",
     .kind = CM_OPTION_LIST,
     .field = VALUE(a.new_dim),
     .help = "Join files that lack a dimension, one step each. PATTERN finds its coordinate in the "
             "name of the file (time=%Y%m%d_%H, member=r*i1p1), in an attribute "
             "(member=@realization_index), or in a scalar variable (time=@t), which becomes the "
             "coordinate. A store made so grows by files with the same option."},
    {.name = "order",
     .kind = CM_OPTION_CHOICE,
     .field = VALUE(a.order),
     .words = "coordinate|name|given",
     .help = "The order in which files are joined. With --overlap first or last it only says which "
             "of two that have the same step is the first: the one whose name sorts first, or with "
             "given the one given first.",
     .preset = "coordinate"},
    {.name = "store-per",
     .value = "PATTERN",
     .kind = CM_OPTION_TEXT,
     .field = VALUE(a.store_per),
     .help = "Make many stores, in the folder OUTPUT: one for each {dir}, each {variable}, or each "
             "text that * stands for in the file's name (r*i1p1). Each is committed by itself, and "
             "--resume makes those that are missing."},
    {.name = "promote",
     .value = "A,B",
     .kind = CM_OPTION_LIST,
     .field = VALUE(a.promote),
     .help =
         "Give these variables the joined dimension. In files where one lacks another dimension "
         "that it has elsewhere, its values are repeated along it. With --append and --replace the "
         "store has them along it."},
    {.name = "file-attr",
     .value = "NAME",
     .kind = CM_OPTION_LIST,
     .field = VALUE(a.file_attr),
     .help = "Make a global attribute a coordinate along the joined dimension."},

    CM_ROW_ZARR_FORMAT(VALUE(o.zarr_format), .section = "Layout of the store", .preset = "3"),
    CM_ROW_CHUNKS(VALUE(o.chunks), .unset = "auto, about 4 MiB decoded per chunk"),
    CM_ROW_SAMPLE(VALUE(o.sample)),
    CM_ROW_SHARDS(VALUE(o.shards), .unset = "none up to 10,000 objects per store, above that auto "
                                            "(256 MiB), and the summary says so"),
    CM_ROW_GRID(VALUE(o.grid), ", such as months of 28 to 31 days with --codec keep"),
    {.name = "codec",
     .brief = true,
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

    CM_ROW_DRY_RUN(VALUE(o.dry_run),
                   "For every variable: chunks, shards, codec, objects, bytes before and after, "
                   "memory, and how often each source chunk is decoded."),
    CM_ROW_OVERWRITE(VALUE(o.overwrite)),
    CM_ROW_RESUME(VALUE(o.resume)),
    CM_ROW_BREAK_LOCK(VALUE(o.break_lock)),
    CM_ROW_APPEND(VALUE(append), "Add files along DIM to the existing store OUTPUT. Files that it "
                                 "has already, by the ledger beside it, are not read."),
    CM_ROW_APPEND_REST(VALUE(append_rest), "; the files that hold them are read again then"),
    CM_ROW_RECHECK(VALUE(recheck),
                   "also read the files that the store has already, and compare them with it."),
    {.name = "consolidate",
     .kind = CM_OPTION_FLAG,
     .field = VALUE(consolidate),
     .help =
         "Renew the consolidated metadata of STORE, whoever wrote it, from the documents of its "
         "arrays and groups, word by word. Nothing else is changed."},
    {.name = "replace",
     .value = "DIM=RANGE",
     .kind = CM_OPTION_TEXT,
     .field = VALUE(replace),
     .help =
         "Rewrite a part of the existing store OUTPUT: FROM..TO or START:STOP along DIM, as with "
         "--subset. The files must hold all steps of it and no others. Changes are counted first. "
         "--variable and --exclude leave the other variables as they are."},
    CM_ROW_SCRATCH(VALUE(o.scratch)),
    {.name = "scratch-size",
     .value = "SIZE",
     .kind = CM_OPTION_SIZE,
     .field = VALUE(a.fetched_nbytes),
     .min = 1,
     .help = "Keep at most SIZE bytes of fetched inputs in the scratch folder at once. Several "
             "inputs behind a network are fetched ahead of their use, and again where they did "
             "not fit.",
     .unset = "half of what is free there"},
    CM_ROW_DURABLE(VALUE(o.durable)),
    CM_ROW_TRACE(VALUE(o.trace)),
    CM_ROW_REPORT(VALUE(o.report), "Describe what is written."),

    CM_ROW_VERIFY(VALUE(o.verify), "Compare the store with what libnetcdf reads."),
    {.name = "check",
     .brief = true,
     .kind = CM_OPTION_FLAG,
     .field = VALUE(o.check),
     .help = "Compare INPUT with an existing OUTPUT in full. Nothing is written. Pass the options "
             "of the conversion that select, rename or change variables. Of a store that has "
             "grown, --subset names the part that INPUT is compared with."},
    {.name = "certificate",
     .value = "FILE",
     .kind = CM_OPTION_TEXT,
     .field = VALUE(o.certificate),
     .operand = CM_OPERAND_FILE,
     .makes = CM_MAKES_CERTIFICATE,
     .help =
         "With --verify full or --check, write a record of the verification: digests, elements, "
         "versions, the command, and whether the original could be reproduced."},

    {.section = "Where files disagree",
     .name = "time-units",
     .value = "UNITS",
     .kind = CM_OPTION_TEXT,
     .field = VALUE(a.time_units),
     .help = "Store times as UNITS (days since 2000-01-01).",
     .unset = "those of the first file"},
    {.name = "packing",
     .kind = CM_OPTION_CHOICE,
     .field = VALUE(a.unpack),
     .words = "error|unpack",
     .help = "scale_factor or add_offset differ. unpack: store plain values, of the type "
             "that xarray decodes them to.",
     .preset = "error"},
    {.name = "missing",
     .kind = CM_OPTION_CHOICE,
     .field = VALUE(a.fill_missing),
     .words = "error|fill",
     .help = "Some files lack a variable. fill: with its fill value.",
     .preset = "error"},
    {.name = "static",
     .value = "[VAR:]first",
     .kind = CM_OPTION_LIST,
     .field = VALUE(a.statics),
     .help = "A variable without the joined dimension differs. first: take that of the first file. "
             "What is dropped is listed, with the largest difference.",
     .unset = "error"},
    {.name = "tolerance",
     .value = "X",
     .kind = CM_OPTION_DOUBLE,
     .field = VALUE(a.tolerance),
     .help = "Other coordinates, and their bounds, that differ by at most X are the same; those of "
             "the first file are taken.",
     .preset = "0"},
    {.name = "overlap",
     .kind = CM_OPTION_CHOICE,
     .field = VALUE(a.overlap),
     .words = "error|first|last",
     .help = "Two files have the same step, with other data. first, last: by "
             "the names of the files, or as they are given with --order given.",
     .preset = "error"},
    {.name = "gaps",
     .kind = CM_OPTION_CHOICE,
     .field = VALUE(a.gaps),
     .words = "keep|fill|error",
     .help = "Steps are missing. keep: warn. fill: add them, with fill values.",
     .preset = "keep"},
    {.name = "bad-file",
     .kind = CM_OPTION_CHOICE,
     .field = VALUE(a.skip_bad),
     .words = "error|skip",
     .help = "A file cannot be read. skip: leave it out.",
     .preset = "error"},
    {.name = "offline",
     .kind = CM_OPTION_CHOICE,
     .field = VALUE(a.skip_offline),
     .words = "error|skip",
     .help = "A tape system has moved a file away. skip: leave it out.",
     .preset = "error"},
    {.name = "attrs",
     .kind = CM_OPTION_CHOICE,
     .field = VALUE(a.first_attrs),
     .words = "error|first",
     .help = "Files disagree on attributes that give numbers their meaning. first: take all "
             "attributes of the first file, but leave valid_min, valid_max and valid_range out "
             "where files differ: readers take what lies outside for missing.",
     .preset = "error"},
    {.name = "strict",
     .kind = CM_OPTION_FLAG,
     .field = VALUE(a.strict),
     .help = "Refuse files whose chunks or codecs differ."},

    CM_ROW_DTYPE(VALUE(o.dtype),
                 " Files whose types no type holds both (int64, float32) are joined in "
                 "it; a number that it does not hold exactly stops the run."),
    CM_ROW_OVERFLOW(VALUE(o.overflow)),
    CM_ROW_UNPACK(VALUE(o.unpack)),
    CM_ROW_KEEPBITS(VALUE(o.keepbits)),
    CM_ROW_FILL_VALUE(VALUE(o.fill_value)),
    CM_ROW_STATISTICS(VALUE(o.statistics)),
    CM_ROW_STATISTICS_RANGE(VALUE(o.statistics_range)),
    CM_ROW_STATISTICS_BY(VALUE(o.statistics_by)),
    {.name = "char",
     .kind = CM_OPTION_CHOICE,
     .field = VALUE(o.char_mode),
     .words = "keep|join|uint8",
     .help = "How characters are stored. keep: one by one, as xarray expects them. join: the last "
             "dimension makes strings, but for coordinates of single characters. uint8: numbers, "
             "for readers that support neither.",
     .preset = "keep"},

    CM_ROWS_PART(part),

    CM_ROW_BRANCH(VALUE(o.branch)),
    CM_ROW_MESSAGE(VALUE(o.message)),
    CM_ROW_OBJECT_SIZE(VALUE(o.object_nbytes)),

    {.section = "References instead of a copy",
     .name = "virtual",
     .value = "json|icechunk",
     .kind = CM_OPTION_WORD,
     .field = VALUE(o.refer),
     .words = "json|icechunk",
     .help = "json: write OUT.json, which says where every chunk lies in the files, for kerchunk's "
             "readers: xarray through fsspec, zarr-python, and this project's own tools. icechunk: "
             "commit such references to the repository icechunk:PATH; with --append, of the new "
             "files."},
    {.name = "base-url",
     .value = "URL",
     .kind = CM_OPTION_TEXT,
     .field = VALUE(o.base_url),
     .help = "With --virtual, the URL of the folder that all INPUTs lie in, where the references "
             "will be read.",
     .unset = "the paths of this machine"},

    CM_ROW_ANONYMOUS(VALUE(net.anonymous)),
    CM_ROW_CONCURRENCY(VALUE(net.concurrency)),
    CM_ROW_TIMEOUT(VALUE(net.timeout)),
    CM_ROW_ABSENT_403(VALUE(net.absent_403)),
    CM_ROW_ALLOW(VALUE(net.allow)),
    CM_ROW_CHECKSUM(VALUE(net.checksum)),
    {0},
};

static const char *const USAGE[] = {
    "[OPTIONS] INPUT... OUTPUT.zarr",
    "[OPTIONS] INPUT.nc",
    "--virtual json [OPTIONS] INPUT.nc OUT.json",
    "--virtual icechunk [--append DIM] [OPTIONS] INPUT... icechunk:PATH",
    "--survey [OPTIONS] INPUT...",
    "--check [OPTIONS] INPUT... OUTPUT.zarr",
    "--consolidate STORE",
    NULL,
};

static const cm_example EXAMPLES[] = {
    {"Convert a file", "nc2zarr tas.nc tas.zarr"},
    {"Many files", "nc2zarr 'archive/**/tas_*.nc' tas.zarr"},
    {"What they hold", "nc2zarr --survey archive"},
    {"Preview", "nc2zarr --dry-run tas.nc tas.zarr"},
    {"Chunks for reading time series, one variable", "nc2zarr --variable tas --chunks "
                                                     "time=full,lat=16,lon=16 tas.nc tas.zarr"},
    {"Version 2, for older readers", "nc2zarr --zarr-format 2 --codec zstd tas.nc tas.zarr"},
    {0},
};

const cm_tool NC2ZARR = {
    .name = "nc2zarr",
    .summary = "convert NetCDF files to a Zarr store that every reader opens",
    .usage = USAGE,
    .options = OPTIONS,
    .example = EXAMPLES,
};

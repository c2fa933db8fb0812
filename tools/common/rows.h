/*
 * Rows of option tables that mean the same in every program that has them.  AT is the
 * field, a CM_FIELD; what a program adds of its own (section, default) follows as fields of
 * cm_option.
 */
#ifndef CM_TOOLS_ROWS_H
#define CM_TOOLS_ROWS_H

#include "options.h"

/* ---- the layout of a store ---- */

#define CM_ROW_ZARR_FORMAT(at, ...)                                                                \
    {                                                                                              \
        .name = "zarr-format", .kind = CM_OPTION_CHOICE, .field = at, .words = "2|3", .number = 2, \
        .help = "Write Zarr version 2 or 3.", __VA_ARGS__                                          \
    }

#define CM_ROW_CHUNKS(at, ...)                                                                     \
    {                                                                                              \
        .brief = true, .name = "chunks", .value = "[VAR:]SHAPE", .kind = CM_OPTION_LIST,           \
        .field = at, .words = "auto|source",                                                       \
        .help = "Chunk shape, auto, auto:SIZE or source. A shape goes by name "                    \
                "(time=24,lat=64,lon=full) or in order (24x64x64); other dimensions are chosen. "  \
                "source keeps the chunks of the source. Repeatable, the later wins; VAR may be a " \
                "pattern, and without it coordinates stay whole.",                                 \
        __VA_ARGS__                                                                                \
    }

#define CM_ROW_GRID(at, text)                                                                      \
    {                                                                                              \
        .name = "grid", .kind = CM_OPTION_CHOICE, .field = at, .words = "regular|rectilinear",     \
        .help = "The chunk grid. regular: all chunks of an array have one shape. rectilinear: "    \
                "where chunks of the source differ in length along a dimension, they stay as "     \
                "they are" text "; version 3, read by zarr-python 3.2 and later with "             \
                "array.rectilinear_chunks set.",                                                   \
        .preset = "regular"                                                                        \
    }

#define CM_ROW_SHARDS(at, ...)                                                                     \
    {                                                                                              \
        .brief = true, .name = "shards", .value = "[VAR:]SHAPE", .kind = CM_OPTION_LIST,           \
        .field = at, .words = "auto|none",                                                         \
        .help = "Shard shape, auto, auto:SIZE or none. Version 3 only.", __VA_ARGS__               \
    }

/* ---- what the target holds of the source ---- */

/* Section and help are the program's. */
#define CM_ROW_VARIABLE(at, ...)                                                                   \
    {                                                                                              \
        .brief = true, .name = "variable", .alias = "variables", .value = "A,B",                   \
        .kind = CM_OPTION_LIST, .field = at, __VA_ARGS__                                           \
    }

#define CM_ROW_EXCLUDE(at)                                                                         \
    {                                                                                              \
        .name = "exclude", .value = "A,B", .kind = CM_OPTION_LIST, .field = at,                    \
        .help = "Leave these variables out."                                                       \
    }

#define CM_ROW_RENAME(at)                                                                          \
    {                                                                                              \
        .name = "rename", .value = "OLD=NEW", .kind = CM_OPTION_LIST, .field = at,                 \
        .help = "Give a variable another name in the store."                                       \
    }

#define CM_ROW_SUBSET(at)                                                                          \
    {                                                                                              \
        .brief = true, .name = "subset", .value = "DIM=START:STOP[:STEP]", .kind = CM_OPTION_LIST, \
        .field = at,                                                                               \
        .help = "Take a part of a dimension. By index (time=0:12) or by the value of its "         \
                "coordinate (time=2000-01-01..2009-12-31, dates by its own calendar; packed "      \
                "coordinates are unpacked first)."                                                 \
    }

#define CM_ROW_STACK(at)                                                                           \
    {                                                                                              \
        .name = "stack", .value = "NAME=A,B,C@DIM", .kind = CM_OPTION_LIST, .field = at,           \
        .help = "Make one array of several variables, with a dimension of channels and their "     \
                "labels. C@level takes each level of C for a channel, C@level=500/850 these two. " \
                "Values that are packed differently need --unpack."                                \
    }

#define CM_ROW_STATISTICS(at)                                                                      \
    {                                                                                              \
        .name = "statistics", .kind = CM_OPTION_FLAG, .field = at,                                 \
        .help =                                                                                    \
            "Count while writing: of each variable of numbers, and each of its levels, count, "    \
            "missing, minimum, maximum, mean and standard deviation of the values that "           \
            "readers show. They go to the Zarr group OUTPUT.statistics.zarr and, as JSON, "        \
            "into its attributes; of a repository, to the group statistics of the same commit."    \
    }

#define CM_ROW_STATISTICS_RANGE(at)                                                                \
    {                                                                                              \
        .name = "statistics-range", .value = "DIM=FROM..TO", .kind = CM_OPTION_LIST, .field = at,  \
        .help = "Count only this range of a coordinate (time=1979..2015). Variables without the "  \
                "dimension are counted whole."                                                     \
    }

#define CM_ROW_STATISTICS_BY(at)                                                                   \
    {                                                                                              \
        .name = "statistics-by", .value = "DIM", .kind = CM_OPTION_TEXT, .field = at,              \
        .help = "Count each place along DIM by itself, as the levels are that are found by their " \
                "coordinate or their name. Variables without DIM are counted as otherwise."        \
    }

#define CM_ROW_REPORT(at, text)                                                                    \
    {                                                                                              \
        .name = "report", .value = "FILE.html", .kind = CM_OPTION_TEXT, .field = at,               \
        .operand = CM_OPERAND_FILE, .makes = CM_MAKES_PAGE,                                        \
        .help = text " One page that needs nothing else: what the dataset is, maps, statistics "   \
                     "of each step, and steps whose values are out of line."                       \
    }

#define CM_ROW_SKIP_UNSUPPORTED(at)                                                                \
    {                                                                                              \
        .name = "skip-unsupported", .kind = CM_OPTION_FLAG, .field = at,                           \
        .help = "Leave out variables of types that Zarr readers do not share. Those are "          \
                "compound, opaque and variable-length; they are listed. Otherwise the conversion " \
                "stops before it writes."                                                          \
    }

#define CM_ROW_SAMPLE(at)                                                                          \
    {                                                                                              \
        .brief = true, .name = "sample", .value = "SHAPE", .kind = CM_OPTION_TEXT, .field = at,    \
        .help = "What training reads at once. Automatic chunks are chosen for it."                 \
    }

/* With the section of all that changes data. */
/* MORE: what it means to this program besides. */
#define CM_ROW_DTYPE(at, more)                                                                     \
    {                                                                                              \
        .section = "Changes to the data (none by default)", .name = "dtype",                       \
        .value = "[VAR:]TYPE", .kind = CM_OPTION_LIST, .field = at,                                \
        .help = "Cast to TYPE, as in float32." more                                                \
    }

#define CM_ROW_OVERFLOW(at)                                                                        \
    {                                                                                              \
        .name = "overflow", .kind = CM_OPTION_CHOICE, .field = at, .words = "error|saturate",      \
        .help = "Numbers out of TYPE's range, such as 70000 in float16. error: stop and say "      \
                "where. saturate: store the end of the range.",                                    \
        .preset = "error"                                                                          \
    }

#define CM_ROW_UNPACK(at)                                                                          \
    {                                                                                              \
        .name = "unpack", .value = "VAR|all", .kind = CM_OPTION_LIST, .field = at,                 \
        .help = "Apply scale_factor and add_offset. The store then holds plain values, of the "    \
                "type that xarray decodes them to; with --dtype they are computed in double "      \
                "precision."                                                                       \
    }

#define CM_ROW_KEEPBITS(at)                                                                        \
    {                                                                                              \
        .name = "keepbits", .value = "[VAR:]N", .kind = CM_OPTION_LIST, .field = at,               \
        .help = "Round floats to N bits of mantissa. They compress better."                        \
    }

#define CM_ROW_FILL_VALUE(at)                                                                      \
    {                                                                                              \
        .name = "fill-value", .value = "VAR:X", .kind = CM_OPTION_LIST, .field = at,               \
        .help = "The store's fill value for VAR. Stored data stay as they are."                    \
    }

#define CM_ROW_SCRATCH(at)                                                                         \
    {                                                                                              \
        .name = "scratch", .value = "DIR", .kind = CM_OPTION_TEXT, .field = at,                    \
        .operand = CM_OPERAND_FOLDER, .makes = CM_MAKES_FOLDER,                                    \
        .help = "Folder for intermediate bytes, where a plan needs them.",                         \
        .unset = "beside the target"                                                               \
    }

/* ---- stores behind a network ---- */

/* With its section. */
#define CM_ROW_ANONYMOUS(at)                                                                       \
    {                                                                                              \
        .section = "Buckets and web servers (s3://, https://, http://)", .name = "anonymous",      \
        .kind = CM_OPTION_FLAG, .field = at,                                                       \
        .help = "Sign no request and look for no credentials, as public buckets allow."            \
    }

#define CM_ROW_CONCURRENCY(at)                                                                     \
    {                                                                                              \
        .name = "concurrency", .value = "N", .kind = CM_OPTION_UINT, .field = at, .min = 1,        \
        .max = 1024, .help = "Have at most N requests under way.",                                 \
        .unset = "found by their speed, up to 128"                                                 \
    }

#define CM_ROW_TIMEOUT(at)                                                                         \
    {                                                                                              \
        .name = "timeout", .value = "TIME", .kind = CM_OPTION_TIME, .field = at,                   \
        .help = "Give up on a request that has failed for TIME. Until then it is repeated.",       \
        .unset = "5 minutes"                                                                       \
    }

#define CM_ROW_ALLOW(at)                                                                           \
    {                                                                                              \
        .name = "allow", .value = "URL-PREFIX", .kind = CM_OPTION_LIST, .field = at,               \
        .help = "Let documents of references and Icechunk repositories point to what lies there. " \
                "That is a folder, bucket, server or a path of one; of itself a document refers "  \
                "to what lies in its own folder or below, one behind a network to its own server " \
                "or bucket, and a repository to its own files."                                    \
    }

#define CM_ROW_ABSENT_403(at)                                                                      \
    {                                                                                              \
        .name = "absent-403", .kind = CM_OPTION_FLAG, .field = at,                                 \
        .help = "Take an object that may not be read (403) for absent. Servers that do not let "   \
                "you list say so of absent objects."                                               \
    }

#define CM_ROW_CHECKSUM(at)                                                                        \
    {                                                                                              \
        .name = "checksum", .kind = CM_OPTION_CHOICE, .field = at,                                 \
        .words = "auto|none|crc32c|md5",                                                           \
        .help =                                                                                    \
            "Send a checksum with each object that is written to a bucket: the server refuses "    \
            "what was damaged on its way, and what it says of the object is compared, also of "    \
            "objects that are read whole. auto: crc32c where the endpoint is AWS's, else "         \
            "none. Some other servers refuse crc32c.",                                             \
        .preset = "auto"                                                                           \
    }

/* ---- output ---- */

/* With its section. */
#define CM_ROW_DRY_RUN(at, text)                                                                   \
    {                                                                                              \
        .section = "Output", .brief = true, .name = "dry-run", .kind = CM_OPTION_FLAG,             \
        .field = at, .help = "Print the plan and write nothing. " text                             \
    }

#define CM_ROW_RESUME(at)                                                                          \
    {                                                                                              \
        .brief = true, .name = "resume", .kind = CM_OPTION_FLAG, .field = at,                      \
        .help = "Finish an interrupted run. Run the same command with this option; complete "      \
                "chunks are kept."                                                                 \
    }

#define CM_ROW_OVERWRITE(at)                                                                       \
    {                                                                                              \
        .brief = true, .name = "overwrite", .kind = CM_OPTION_FLAG, .field = at,                   \
        .help = "Replace an existing store. Output files of other options, too; files in the "     \
                "folder that do not belong to the store stay."                                     \
    }

#define CM_ROW_BREAK_LOCK(at)                                                                      \
    {                                                                                              \
        .name = "break-lock", .kind = CM_OPTION_FLAG, .field = at,                                 \
        .help = "Take over the lock of a run on another host, or of an unknown run. Only when "    \
                "that run has ended: two runs at once mix their chunks."                           \
    }

/* Of a target icechunk:PATH. */
#define CM_ROW_BRANCH(at)                                                                          \
    {                                                                                              \
        .section = "Icechunk repositories (icechunk:PATH)", .name = "branch", .value = "NAME",     \
        .kind = CM_OPTION_TEXT, .field = at,                                                       \
        .help = "Commit to this branch. One that is not there begins at the tip of main.",         \
        .unset = "main"                                                                            \
    }
#define CM_ROW_MESSAGE(at)                                                                         \
    {                                                                                              \
        .name = "message", .value = "TEXT", .kind = CM_OPTION_TEXT, .field = at,                   \
        .help = "The message of the commit.", .unset = "the command"                               \
    }
#define CM_ROW_OBJECT_SIZE(at)                                                                     \
    {                                                                                              \
        .name = "object-size", .value = "SIZE", .kind = CM_OPTION_SIZE, .field = at, .min = 1,     \
        .max = UINT64_C(1) << 40, .help = "Put chunks into files of up to this size.",             \
        .unset = "16 MiB"                                                                          \
    }
#define CM_ROW_APPEND(at, text)                                                                    \
    {                                                                                              \
        .brief = true, .name = "append", .value = "DIM", .kind = CM_OPTION_TEXT, .field = at,      \
        .help = text                                                                               \
    }

#define CM_ROW_APPEND_REST(at, text)                                                               \
    {                                                                                              \
        .name = "append-rest", .kind = CM_OPTION_CHOICE, .field = at, .words = "write|hold",       \
        .help = "With --append, what to do with new steps that do not fill a chunk, or shard. "    \
                "hold: leave them for a later append" text ".",                                    \
        .preset = "write"                                                                          \
    }

#define CM_ROW_RECHECK(at, text)                                                                   \
    {                                                                                              \
        .name = "recheck", .kind = CM_OPTION_FLAG, .field = at, .help = "With --append, " text     \
    }

#define CM_ROW_DURABLE(at)                                                                         \
    {                                                                                              \
        .name = "durable", .kind = CM_OPTION_FLAG, .field = at,                                    \
        .help = "Sync to disk before metadata is written. The store then survives a crash of the " \
                "machine, not only of the process."                                                \
    }

#define CM_ROW_TRACE(at)                                                                           \
    {                                                                                              \
        .name = "trace", .value = "FILE", .kind = CM_OPTION_TEXT, .field = at,                     \
        .operand = CM_OPERAND_FILE, .makes = CM_MAKES_TRACE,                                       \
        .help = "Write a timeline of all threads, as a Chrome trace."                              \
    }

/* Rows with their section; AT is a cm_part_values of the program's. */
#define CM_ROWS_PART(at)                                                                           \
    {.section = "More than one process",                                                           \
     .name = "part",                                                                               \
     .value = "K/N|auto|none",                                                                     \
     .kind = CM_OPTION_TEXT,                                                                       \
     .field = VALUE(at.part),                                                                      \
     .words = "auto|none",                                                                         \
     .help = "Do part K of N, from 1 to N. N processes with the same command then make one "       \
             "store; whichever comes last finishes it, and any part may be run again. auto takes " \
             "the index of an array job; none does everything in this process.",                   \
     .unset = "under srun and mpirun each task is a part"},                                        \
        {.name = "parts",                                                                          \
         .value = "N",                                                                             \
         .kind = CM_OPTION_UINT,                                                                   \
         .field = VALUE(at.nparts),                                                                \
         .min = 1,                                                                                 \
         .help =                                                                                   \
             "How many parts there are, where the launcher gives an index and no count. So do "    \
             "PBS, Kubernetes and AWS Batch."},                                                    \
    {                                                                                              \
        .name = "parts-status", .kind = CM_OPTION_FLAG, .field = VALUE(at.status),                 \
        .help = "Say of the store OUTPUT, the only path, which parts are done, running, stale or " \
                "missing. With the command that runs them again."                                  \
    }

/* With its section; TEXT says with what the result is compared. */
#define CM_ROW_VERIFY(at, text)                                                                    \
    {                                                                                              \
        .section = "Verification", .brief = true, .name = "verify", .kind = CM_OPTION_CHOICE,      \
        .field = at, .words = "none|sample|full", .preset = "sample", .help = text                 \
    }

#endif

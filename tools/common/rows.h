/*
 * Rows of option tables that mean the same in every program that has them; AT is the field's
 * offset.
 */
#ifndef CM_TOOLS_ROWS_H
#define CM_TOOLS_ROWS_H

#include "options.h"

#define CM_ROW_OVERWRITE(at)                                                                       \
    {                                                                                              \
        .name = "overwrite", .kind = CM_OPTION_FLAG, .offset = (at),                               \
        .help = "Replace a store that is there, and files that other options name for output. Of " \
                "a store only what it itself holds is removed."                                    \
    }

#define CM_ROW_BREAK_LOCK(at)                                                                      \
    {                                                                                              \
        .name = "break-lock", .kind = CM_OPTION_FLAG, .offset = (at),                              \
        .help = "Take over the lock of a run on another host, or of one that nothing is known "    \
                "of. Only when that run has ended: two that write mix their chunks."               \
    }

#define CM_ROW_DURABLE(at)                                                                         \
    {                                                                                              \
        .name = "durable", .kind = CM_OPTION_FLAG, .offset = (at),                                 \
        .help = "Sync to disk before metadata is written. The store then survives a crash of the " \
                "machine, not only of the process."                                                \
    }

#define CM_ROW_TRACE(at)                                                                           \
    {                                                                                              \
        .name = "trace", .value = "FILE", .kind = CM_OPTION_TEXT, .offset = (at),                  \
        .operand = CM_OPERAND_FILE, .makes = CM_MAKES_TRACE,                                       \
        .help = "Write what each thread did when, as a Chrome trace."                              \
    }

/* With its section; TEXT says with what the result is compared. */
#define CM_ROW_VERIFY(at, text)                                                                    \
    {                                                                                              \
        .section = "Verification", .name = "verify", .value = "none|sample|full",                  \
        .kind = CM_OPTION_CHOICE, .offset = (at), .words = "none|sample|full", .help = text        \
    }

#endif

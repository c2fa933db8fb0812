/*
 * The command line: one table per tool drives parsing, -h, --help, the OPTIONS of
 * the man page and the completion of three shells.
 *
 * A tool describes itself in a constant cm_tool.  Each option is one row: its name, its
 * argument, the type and bounds of the value, the default, the help text, and the field
 * that it sets, as a place in the tool's struct of values.  That struct holds the
 * options of the library's verb, so a row writes straight into what the library is asked
 * for.  The rows that all tools share are added by this file and fill a cm_common_options.
 *
 *     typedef struct values {
 *         cm_transform_options o;
 *         bool stats;
 *     } values;
 *
 *     static const cm_option OPTIONS[] = {
 *         {.section = "Layout", .name = "chunks", .value = "SHAPE", .kind = CM_OPTION_LIST,
 *          .field = CM_FIELD(values, o.chunks), .words = "auto|source", .help = "...",
 *          .unset = "auto"},
 *         {.name = "verify", .kind = CM_OPTION_CHOICE, .words = "none|sample|full",
 *          .field = CM_FIELD(values, o.verify), .preset = "sample", .help = "..."},
 *         {0}};
 *
 *     int main(int argc, char **argv)
 *     {
 *         values v = {0};
 *         cm_transform_options_init(&v.o, CM_DEFAULTS_CHOOSE);
 *         cm_common_options common;
 *         cm_texts paths;
 *         int status = cm_tool_parse(&TOOL, argc, argv, &v, &common, &paths);
 *         if (status == CM_TOOL_RUN)
 *             status = run(&v, &common, &paths);
 *         cm_tool_release(&TOOL, &v, &paths);
 *         return cm_tool_finish(&TOOL, status);
 *     }
 *
 * Grammar: --name VALUE and --name=VALUE; -j N and -jN; flags may be bundled
 * (-vq).  Long names are given in full.  Options may stand anywhere, "--" ends
 * them, and "-" alone is a path.  An option that takes a value always takes the
 * next argument, whatever it looks like; a CM_OPTION_LEVEL only if it is one of
 * its words.  Where an option is given twice, the later wins; a CM_OPTION_LIST keeps
 * all, in order.
 */
#ifndef CM_TOOLS_OPTIONS_H
#define CM_TOOLS_OPTIONS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include <chunkmill/error.h>
#include <chunkmill/texts.h>

typedef enum cm_option_kind {
    CM_OPTION_FLAG,   /* bool, set to true; takes no value */
    CM_OPTION_SET,    /* int, set to the row's number; takes no value */
    CM_OPTION_LEVEL,  /* int, 1; or 2 plus the position of the word in words that follows */
    CM_OPTION_TEXT,   /* const char *, into argv */
    CM_OPTION_LIST,   /* cm_texts, the texts in the order given */
    CM_OPTION_UINT,   /* unsigned, min to max */
    CM_OPTION_U64,    /* uint64_t, min to max */
    CM_OPTION_DOUBLE, /* double, finite, not negative */
    CM_OPTION_SIZE,   /* uint64_t bytes, min to max: "512MiB" */
    CM_OPTION_TIME,   /* double seconds: "30ms" */
    CM_OPTION_RATE,   /* double bytes a second: "1.2GB/s" */
    CM_OPTION_CHOICE, /* int, number plus the position of the value in words */
    CM_OPTION_WORD,   /* const char *, one of words, into argv */
    CM_OPTION_ACTION  /* of this file: --help and the like */
} cm_option_kind;

typedef enum cm_operand { /* what a shell completes after an option */
    CM_OPERAND_ANY,
    CM_OPERAND_FILE,
    CM_OPERAND_FOLDER
} cm_operand;

/* The kind of output that an option's value names; see outputs.h. */
typedef enum cm_makes {
    CM_MAKES_NOTHING,
    CM_MAKES_TRACE,
    CM_MAKES_CERTIFICATE,
    CM_MAKES_PLOT,
    CM_MAKES_PAGE,
    CM_MAKES_CACHE,
    CM_MAKES_FOLDER /* files in a folder */
} cm_makes;

typedef struct cm_field {
    const char *name; /* as messages of the library have it, see naming.h */
    size_t offset, nbytes;
} cm_field;

#define CM_FIELD(type, member)                                                                     \
    {                                                                                              \
#member, offsetof(type, member), sizeof(((type *)NULL)->member)                            \
    }

typedef struct cm_option {
    const char *section; /* a heading that starts here; NULL: the section goes on */
    char letter;         /* the short form, or 0 */
    const char *name;    /* the long form without dashes; NULL ends the table */
    const char *alias;   /* another long form with the same meaning, or NULL */
    const char *value;   /* placeholder of the argument; NULL: WORDS, or it takes none */
    cm_option_kind kind;
    cm_field field;    /* of the struct of values */
    const char *words; /* "a|b|c": all values of a CHOICE; suggestions for other kinds */
    cm_operand operand;
    cm_makes makes;     /* of a TEXT */
    int number;         /* what SET stores; what the first word of a CHOICE stands for */
    uint64_t min, max;  /* of UINT, U64 and SIZE; max 0: no upper limit */
    bool hidden;        /* parsed, but shown nowhere */
    bool brief;         /* among the most used: -h shows it */
    bool swept;         /* a sweep may give it several values; for programs that have one */
    const char *help;   /* sentences; the first one alone is what completion shows */
    const char *preset; /* the default, as one would type it; not for LIST */
    const char *unset; /* in words: what happens where the option is not given and no preset says */
} cm_option;

typedef struct cm_example {
    const char *what;
    const char *command;
} cm_example;

typedef struct cm_tool {
    const char *name;
    const char *summary;       /* one line without a full stop */
    const char *const *usage;  /* what follows the name, one line each; NULL ends */
    const cm_option *options;  /* a row without a name ends */
    const cm_example *example; /* a row without a command ends; or NULL */
} cm_tool;

typedef enum cm_progress_mode {
    CM_PROGRESS_AUTO,
    CM_PROGRESS_ALWAYS,
    CM_PROGRESS_NEVER
} cm_progress_mode;

enum {
    CM_MOST_OPTIONS = 128 /* of one tool */
};

typedef struct cm_common_options {
    unsigned nthreads; /* 0: not given */
    uint64_t memory;   /* bytes; 0: not given */
    int progress;      /* cm_progress_mode */
    int verbosity;     /* 1 after -v, -1 after -q */
    bool json;
    bool given[CM_MOST_OPTIONS]; /* row I of the tool's own options was on the command line */
} cm_common_options;

enum {
    CM_TOOL_RUN = -1,
    CM_EXIT_DONE = 0,
    CM_EXIT_FAILED = 1,
    CM_EXIT_USAGE = 2,
    CM_EXIT_DIFFER = 3,
    CM_EXIT_DECISION = 4 /* nothing done: something needs a decision */
};

/*
 * Stores the presets, then parses ARGV into VALUES, COMMON and PATHS, which is whatever is
 * no option.
 * Returns CM_TOOL_RUN when the tool has work to do, otherwise the exit status to
 * end with: --help, --version and --generate were answered on standard output,
 * or a sentence about the command line was printed to standard error.
 */
int cm_tool_parse(const cm_tool *tool, int argc, char **argv, void *values,
                  cm_common_options *common, cm_texts *paths);

/* Releases what parsing allocated: the lists in VALUES, and PATHS. */
void cm_tool_release(const cm_tool *tool, void *values, cm_texts *paths);

/*
 * Flushes standard output.  Returns STATUS, or CM_EXIT_FAILED, with a sentence, when that
 * failed.
 */
int cm_tool_finish(const cm_tool *tool, int status);

/* The sentence of a wrong command line, pointing to --help.  Returns CM_EXIT_USAGE. */
int cm_tool_usage_error(const cm_tool *tool, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

/* The exit status for a cm_status; CM_ECANCELED gives CM_EXIT_FAILED, see signals.h. */
int cm_tool_exit_status(int status);

/* Whether the tool's own option NAME was on the command line. */
bool cm_tool_given(const cm_tool *tool, const cm_common_options *common, const char *name);
/*
 * Refuses options that are given and are not in ALLOWED, which NULL ends; ALLOWED[0] is the
 * option that excludes them.  Returns CM_TOOL_RUN when there is nothing to refuse.
 */
int cm_tool_refuse_others(const cm_tool *tool, const cm_common_options *common,
                          const char *const *allowed);

/*
 * Row I of the tool's own options and, after those, of the common ones; NULL past
 * the end.  *COMMON, which may be NULL, says to which they belong.
 */
const cm_option *cm_tool_option(const cm_tool *tool, size_t i, bool *common);
/* The row of --NAME, which has NBYTES; the row of -LETTER; NULL: there is none. */
const cm_option *cm_tool_option_named(const cm_tool *tool, const char *name, size_t nbytes,
                                      bool *common);
const cm_option *cm_tool_option_lettered(const cm_tool *tool, char letter, bool *common);

/*
 * Stores TEXT, the value of option O, in VALUES (for a common option a
 * cm_common_options); for one that takes no value TEXT is not looked at.  CM_EINVAL,
 * with a sentence that names the option, for a value that it does not take.  Not for
 * LIST and ACTION.
 */
int cm_option_store(const cm_option *o, const char *text, void *values, cm_error *err);
/* The placeholder of O's argument in help texts; NULL: O takes none, or need not take one. */
const char *cm_option_argument(const cm_option *o);
/* The words that may follow O, a CM_OPTION_LEVEL; NULL for any other. */
const char *cm_option_words_after(const cm_option *o);
/* The text after "Default: " in the help of O; NULL: none. */
const char *cm_option_default(const cm_option *o);
/* Bytes of the field that O fills; 0 for ACTION. */
size_t cm_option_nbytes(const cm_option *o);

/* Word I of "a|b|c" as a pointer and a length; false past the end.  NULL has no words. */
bool cm_option_word(const char *words, size_t i, const char **word, size_t *nbytes);

/* Where the first sentence of HELP ends, its full stop not counted. */
size_t cm_option_first_sentence(const char *help);

void cm_tool_print_help(const cm_tool *tool, FILE *to);
/* Prints the screen of -h: examples, and the first sentence of the rows that are brief. */
void cm_tool_print_brief(const cm_tool *tool, FILE *to);

/*
 * The man page: NAME, SYNOPSIS and EXAMPLES, then PROSE (roff text, read to its end) in
 * which the line ".OPTIONS" stands for that section; it comes last where there is no such line.
 */
void cm_tool_print_man(const cm_tool *tool, FILE *prose, FILE *to);

/* Completion for SHELL, which is "bash", "zsh" or "fish"; false for another. */
bool cm_tool_print_completion(const cm_tool *tool, const char *shell, FILE *to);

#endif

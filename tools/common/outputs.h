/*
 * Places that options name for output, beside what a tool is for: a trace, a certificate,
 * a plot, folders.  Which options these are stands in their rows (makes), so that one
 * call looks at all of them before anything is done.
 */
#ifndef CM_TOOLS_OUTPUTS_H
#define CM_TOOLS_OUTPUTS_H

#include "base/outfile.h"
#include "options.h"

typedef struct cm_outputs {
    const cm_texts *read; /* what the command reads, as it was typed */
    const char *made;     /* the store that it makes, as it was typed; or NULL */
    bool references;      /* MADE is a document of references instead */
    bool overwrite;       /* --overwrite was given */
} cm_outputs;

/*
 * Whether MADE may be called so: a name that ends as files of another format do (.nc, .tar) is
 * refused, unless such a folder is there.  And whether every place that TOOL's options in VALUES
 * name may be written: none is what the command reads or makes, none is named twice, and a file
 * that is there is a document of this project of the same kind, unless --overwrite was given.
 * Returns CM_TOOL_RUN, or the exit status after a sentence.
 */
int cm_outputs_check(const cm_tool *tool, const void *values, const cm_outputs *outputs);

/* Claims one file, which the tool then writes; to be released. */
int cm_outputs_claim(const cm_tool *tool, const char *path, const cm_document_kind *kind,
                     const cm_outputs *outputs, cm_outfile *out);

/*
 * The first N bytes of NAME, with "-2", "-3", ... where FROM and what is there ask for it, and
 * ENDING: an output that a printed command may have.  Nothing is known of places behind a network.
 * NULL: no memory.
 */
char *cm_outputs_free_name(const char *name, size_t n, const char *ending, unsigned from);

#endif

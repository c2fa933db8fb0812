/* report.html: self-contained pages, one for a session, one that compares several. */
#ifndef CM_TOOLS_READBENCH_PAGE_H
#define CM_TOOLS_READBENCH_PAGE_H

#include <stdio.h>

#include "../common/page.h"
#include "plot.h"
#include "readbench.h"

typedef struct readbench_page {
    const readbench_run *run;
    size_t session; /* of a page of one */
    bool alone;     /* no page above it */
} readbench_page;

/* CONTEXT is a readbench_page. */
int readbench_session_page(const void *context, FILE *to, cm_error *err);
int readbench_index_page(const void *context, FILE *to, cm_error *err);

/* ---- pieces --------------------------------------------------------------------------------- */

/* The last component of the folder of a session below the report's. */
char *page_folder(const char *label, char *buf, size_t size);

/* Tables with a heading.  The first column names the rows. */
void page_items(const cm_readbench_report *r, size_t first, size_t n, FILE *to);
void page_predicted(const cm_readbench_session *s, FILE *to);
void page_sample(const cm_readbench_session *s, FILE *to);
void page_settings(const cm_readbench_session *s, FILE *to);
int page_batches(const cm_readbench_session *s, FILE *to, cm_error *err);
void page_breakdown(const char *const *name, const readbench_breakdown *b, size_t n, FILE *to);

#endif

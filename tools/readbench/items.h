/* The items of the closing summary: one line each, the same in text and page. */
#ifndef CM_TOOLS_READBENCH_ITEMS_H
#define CM_TOOLS_READBENCH_ITEMS_H

#include "readbench.h"

enum {
    READBENCH_ITEM = 192 /* bytes that a value takes at most */
};

/* False where a session has no such value. */
typedef bool readbench_item_value(const cm_readbench_session *s, char *buf, size_t size);

typedef struct readbench_item {
    const char *group; /* a heading that begins here, or NULL */
    const char *label;
    readbench_item_value *value;
    bool brief; /* also where many sessions are rows of a table */
    const char *column;
    const char *note; /* in the pages: the label's words explained; or NULL */
    bool zero;        /* 0 is a result: pages show it, too, where all sessions have it */
} readbench_item;

extern const readbench_item READBENCH_ITEMS[]; /* a row without a label ends */

/* Whether any of the report's sessions has it. */
bool readbench_item_any(const readbench_item *item, const cm_readbench_report *report);

/* "feeds 1 of 2 accelerators at 90 %: needs 1.2 GB/s, got 0.6 GB/s" into BUF, which is returned. */
char *readbench_feeds(const cm_readbench_session *s, char *buf, size_t size);
/* "zarr v3, native engine, mmap, random order, map loader, 4 workers in threads" */
char *readbench_how(const cm_readbench_session *s, char *buf, size_t size);

#endif

/* Pages: their style, and text in them. */
#ifndef CM_TOOLS_PAGE_H
#define CM_TOOLS_PAGE_H

#include <stdio.h>

/* TEXT as it may stand in an element or an attribute. */
void page_text(const char *text, FILE *to);
/* The same for a sentence, in which names of options are not broken at their dashes. */
void page_prose(const char *text, FILE *to);
/* TEXT, if there is any, as a paragraph of KIND. */
void page_line(const char *kind, const char *text, FILE *to);

/* A number at the head of a page, within dl.tiles; KIND is "", " good" or " bad". */
void page_tile(const char *label, const char *kind, const char *value, const char *note, FILE *to);

/* page_style.c: on a screen by day and night, on a phone, and printed. */
extern const char PAGE_STYLE[], PAGE_SCRIPT[];
/* Rules for the colours of a canvas (palette.h) by day and night. */
void page_colours(FILE *to);

#endif

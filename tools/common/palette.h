/*
 * Colours of all plots: the palette of Okabe and Ito (Color Universal Design, 2008),
 * which colour-blind eyes tell apart, and greys.  page_style.c has their dark counterparts.
 */
#ifndef CM_TOOLS_PALETTE_H
#define CM_TOOLS_PALETTE_H

#define BLUE      0x0072b2u
#define ORANGE    0xe69f00u
#define GREEN     0x009e73u
#define PURPLE    0xcc79a7u
#define SKY       0x56b4e9u
#define VERMILION 0xd55e00u
#define STEEL     0x8c9bb0u
#define INK       0x222222u
#define GREY      0x666666u
#define PALE      0xd9d9d9u
#define PAPER     0xffffffu

/* Colours have the same meaning in every plot. */
#define COLOUR_STORAGE  BLUE
#define COLOUR_DECODE   ORANGE
#define COLOUR_ASSEMBLE GREEN
#define COLOUR_CONVERT  PURPLE
#define COLOUR_COPY     SKY
#define COLOUR_WAIT     VERMILION
#define COLOUR_STEP     STEEL

#endif

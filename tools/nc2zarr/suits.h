/* The reads that chunks suit which no option asked for. */
#ifndef CM_TOOLS_NC2ZARR_SUITS_H
#define CM_TOOLS_NC2ZARR_SUITS_H

#include "nc2zarr.h"

typedef struct nc2zarr_suits {
    const cm_transform_variable *variable; /* that with most elements */
    char *reads;                           /* "whole maps", "series along time", ... */
    char *sample;                          /* of a usual window, as --sample takes it; */
    char *command; /* the run again with that; NULL: one of several stores */
} nc2zarr_suits;

/*
 * Reads and the command of a run, made or planned, that chose chunks by itself.  False: there is
 * nothing to say, or no memory to say it; OUT is zeroed then.
 */
bool nc2zarr_suits_find(const cm_transform_options *options, const cm_transform_report *r,
                        const nc2zarr_typed *typed, nc2zarr_suits *out);
/* The line of the summary. */
void nc2zarr_suits_print(const nc2zarr_suits *s);
/* Member "chunks_suit": S, or null where nothing was found. */
void nc2zarr_suits_document(cm_document *doc, cm_json *o, const nc2zarr_suits *s);
void nc2zarr_suits_release(nc2zarr_suits *s);

#endif

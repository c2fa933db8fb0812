/*
 * A snapshot of a repository as a read-only store: documents of its nodes, chunks by its manifests.
 *
 * "icechunk:PATH", "...@BRANCH", "...@tag:NAME", "...@SNAPSHOT", or the plain
 * path of a repository, which means its branch main.  What is neither goes to cm_store_open.
 */
#ifndef CM_FORMAT_ICECHUNK_READ_STORE_H
#define CM_FORMAT_ICECHUNK_READ_STORE_H

#include "store/open.h"

int cm_ice_store_open(const char *url, const cm_store_options *options, cm_store **out,
                      cm_error *err);

#endif

/* --report of a conversion: the page is claimed before, and written when the target is complete. */
#ifndef CM_TOOLS_PASSPORT_RUN_H
#define CM_TOOLS_PASSPORT_RUN_H

#include <chunkmill/passport.h>
#include <chunkmill/transform.h>

#include "base/outfile.h"
#include "document.h"
#include "options.h"

/* Claims the page that OPTIONS name, if any; to be released in any case. */
int passport_claim(const cm_transform_options *options, cm_outfile *file, cm_error *err);
/*
 * RC is what the conversion returned.  Writes the page where there is a target and one was asked
 * for, and returns RC or what failed.
 */
int passport_finish(const cm_tool *tool, const cm_transform_options *options,
                    const cm_transform_report *report, cm_outfile *file, int rc, cm_error *err);

/* Member "report": the page PATH, its findings, and the statistics of variables; null unless P. */
void passport_document(cm_document *doc, cm_json *o, const char *path, const cm_passport *p);

#endif

/* Shared by the programs: options and reports for stores behind a network. */
#ifndef CM_TOOLS_REMOTE_H
#define CM_TOOLS_REMOTE_H

#include <chunkmill/monitor.h>
#include <chunkmill/net.h>

#include "document.h"
#include "options.h"

/*
 * A net by SETTINGS where one of PATHS, or OUTPUT if it is not NULL, lies behind one; *out is NULL
 * otherwise.  MONITOR may be NULL.
 */
int cm_remote_open(const cm_net_settings *settings, const cm_texts *paths, const char *output,
                   cm_monitor *monitor, cm_net **out, cm_error *err);

/* Under -v: what was asked of servers, on standard error.  NET may be NULL. */
void cm_remote_say(const cm_tool *tool, cm_net *net, const cm_common_options *common);

/* Adds the member "network" to O; nothing if NET is NULL. */
void cm_remote_document(cm_document *doc, cm_json *o, cm_net *net);

#endif

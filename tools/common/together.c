/* Which options of a command line go together. */
#include <string.h>

#include "options.h"

static bool among(const char *name, const char *const *names)
{
    for (; *names; names++)
        if (strcmp(*names, name) == 0)
            return true;
    return false;
}

bool cm_tool_given(const cm_tool *tool, const cm_common_options *common, const char *name)
{
    for (size_t i = 0; tool->options[i].name; i++)
        if (common->given[i] && strcmp(tool->options[i].name, name) == 0)
            return true;
    return false;
}

int cm_tool_refuse_others(const cm_tool *tool, const cm_common_options *common,
                          const char *const *allowed)
{
    for (size_t i = 0; tool->options[i].name; i++)
        if (common->given[i] && !among(tool->options[i].name, allowed))
            return cm_tool_usage_error(tool, "--%s has no place beside --%s", tool->options[i].name,
                                       allowed[0]);
    return CM_TOOL_RUN;
}

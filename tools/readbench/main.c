/* readbench: options, then measuring, advising or comparing. */
#include <stdlib.h>

#include "../common/launcher.h"
#include "../common/naming.h"
#include "../common/run.h"
#include "../common/say.h"
#include "readbench.h"

static int run(readbench_values *v, const cm_common_options *common, const cm_texts *paths,
               int argc, char **argv)
{
    if (v->advise)
        return readbench_advise(v, common, paths);
    if (v->compare)
        return readbench_compare(common, paths);
    int status = cm_run_refuse_remote(&READBENCH, paths);
    if (status != CM_TOOL_RUN)
        return status;
    const readbench_typed typed = {argc, argv, v->overwrite};
    char *command = cm_run_command_line(argc, argv);
    status = readbench_measure(v, common, paths, command, &typed);
    free(command);
    return status;
}

/* Under srun and mpirun each task is a rank, unless the options say which. */
static int take_rank(readbench_values *v, const cm_common_options *common)
{
    cm_launcher l;
    cm_error err = {0};
    if (cm_tool_given(&READBENCH, common, "world-size") ||
        cm_tool_given(&READBENCH, common, "rank"))
        return CM_TOOL_RUN;
    if (cm_launcher_find(cm_launcher_getenv, false, &l, &err) != CM_OK)
        return cm_tool_usage_error(&READBENCH, "%s; name --world-size and --rank", err.text);
    if (l.kind != CM_LAUNCHER_STEP || l.count < 2)
        return CM_TOOL_RUN;
    v->o.world_size = l.count;
    v->o.rank = l.index;
    v->launched = true;
    if (common->verbosity >= 0)
        cm_say(READBENCH.name, "rank %llu of %llu, by %s%s", (unsigned long long)l.index,
               (unsigned long long)l.count, l.name,
               v->out != NULL ? ""
                              : "; with --out, in a folder that all see, epochs begin together");
    return CM_TOOL_RUN;
}

int main(int argc, char **argv)
{
    cm_run_prepare();

    readbench_values v;
    cm_common_options common;
    cm_texts paths;
    readbench_values_init(&v);
    int status = cm_tool_parse(&READBENCH, argc, argv, &v, &common, &paths);
    if (status == CM_TOOL_RUN)
        status = take_rank(&v, &common);
    if (status == CM_TOOL_RUN)
        status = run(&v, &common, &paths, argc, argv);
    cm_tool_release(&READBENCH, &v, &paths);
    return cm_tool_finish(&READBENCH, status);
}

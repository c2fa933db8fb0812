/* readbench: options, then measuring, advising, comparing, or working for another readbench. */
#include <stdlib.h>

#include "../common/naming.h"
#include "../common/run.h"
#include "../common/say.h"
#include "readbench.h"

static int serve(int fd)
{
    cm_error err = {0};
    int rc = cm_readbench_serve(fd, &err);
    cm_tool_name_error(&READBENCH, &err);
    if (rc != CM_OK)
        cm_say(READBENCH.name, "worker: %s", err.text);
    return cm_tool_exit_status(rc);
}

static int run(readbench_values *v, const cm_common_options *common, const cm_texts *paths,
               int argc, char **argv)
{
    if (v->worker_fd != READBENCH_NO_FD)
        return serve((int)v->worker_fd);
    if (v->advise)
        return readbench_advise(v, common, paths);
    if (v->compare)
        return readbench_compare(common, paths);
    int status = cm_run_refuse_remote(&READBENCH, paths);
    if (status != CM_TOOL_RUN)
        return status;
    char *command = cm_run_command_line(argc, argv);
    status = readbench_measure(v, common, paths, command);
    free(command);
    return status;
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
        status = run(&v, &common, &paths, argc, argv);
    cm_tool_release(&READBENCH, &v, &paths);
    return cm_tool_finish(&READBENCH, status);
}

/*
 * The answers of a loader: each line is a batch or a failure with a sentence, and after a
 * failure that is not the loader's own word it is begun anew.  The child is this file's:
 * its lines are those of the input.
 */
#include "fuzz.h"
#include "load/workers/child.h"
#include "load/workers/load_exec.h"

static fuzz_input answers;
static char *answer;
static unsigned nbegun, nended;

int cm_child_begin(cm_child *child, const char *command, cm_error *err)
{
    (void)command;
    (void)err;
    child->pid = 1;
    nbegun++;
    return CM_OK;
}

void cm_child_end(cm_child *child, bool patient)
{
    (void)patient;
    nended += child->pid != 0;
    child->pid = 0;
}

int cm_child_write(cm_child *child, const void *data, size_t nbytes,
                   const cm_child_patience *patience, cm_error *err)
{
    (void)patience;
    (void)err;
    REQUIRE(child->pid != 0 && nbytes > 0 && ((const char *)data)[nbytes - 1] == '\n');
    REQUIRE(memchr(data, '\n', nbytes - 1) == NULL);
    return CM_OK;
}

int cm_child_read_line(cm_child *child, const cm_child_patience *patience, const char **line,
                       size_t *nbytes, cm_error *err)
{
    (void)patience;
    REQUIRE(child->pid != 0);
    if (answers.nbytes == 0)
        return cm_fail(err, CM_EIO, "the loader ended with status 0");
    const uint8_t *end = memchr(answers.data, '\n', answers.nbytes);
    *nbytes = end != NULL ? (size_t)(end - answers.data) : answers.nbytes;
    free(answer);
    *line = answer = fuzz_text(answers.data, *nbytes);
    answers.data += *nbytes + (end != NULL);
    answers.nbytes -= *nbytes + (end != NULL);
    return CM_OK;
}

uint64_t cm_child_cpu_ns(const cm_child *child)
{
    (void)child;
    return 0;
}

static void load_all(cm_load_source *source)
{
    cm_load_task *task = calloc(1, sizeof *task + sizeof task->piece[0]);
    cm_error err;
    void *state;
    REQUIRE(task != NULL);
    *task = (cm_load_task){.kind = CM_LOAD_BATCH, .nbatch = 1, .npieces = 1};
    if (source->open(source->context, 0, &state, &err) == CM_OK) {
        while (answers.nbytes > 0) {
            cm_load_result result = {0};
            const unsigned begun = nbegun;
            err.text[0] = '\0';
            int rc = source->load(state, task, NULL, &result, &err);
            REQUIRE(nbegun <= begun + 1);
            if (rc == CM_OK)
                REQUIRE(result.nbytes > 0 && result.counts.logical_nbytes == result.nbytes);
            else
                REQUIRE(err.text[0] != '\0');
            task->number++;
        }
        source->close(state);
    }
    free(task);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t nbytes)
{
    static const char *const variable[] = {"t"};
    cm_sample_space space = {
        .rank = 1, .length = {10}, .sample = {2}, .order = CM_ORDER_SEQUENTIAL, .parameter = 1};
    const cm_sample_part part = {.rank = 1, .axis = {0}, .shape = {10}};
    cm_load_source source;
    cm_error err;
    REQUIRE(cm_sample_space_init(&space, (char *[1]){NULL}, NULL) == CM_OK);
    answers = (fuzz_input){data, nbytes};
    nbegun = nended = 0;
    const cm_load_exec_options options = {.command = "loader",
                                          .store = "s",
                                          .batch = 1,
                                          .space = &space,
                                          .part = &part,
                                          .variable = variable,
                                          .nparts = 1};
    REQUIRE(cm_load_exec_create(&options, &source, &err) == CM_OK);
    load_all(&source);
    REQUIRE(nbegun == nended);
    cm_load_exec_release(&source);
    free(answer);
    answer = NULL;
    return 0;
}

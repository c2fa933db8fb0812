/* A program of the user as a source: what it is told, and what becomes of what it answers. */
#include <poll.h>
#include <stdio.h>
#include <unistd.h>

#include "../unit.h"
#include "base/clock.h"
#include "load/workers/load_exec.h"

typedef struct fixture {
    cm_sample_space space;
    cm_sample_part part[2];
    cm_load_exec_options options;
    cm_load_source source;
    void *state;
    cm_load_result result;
    cm_error err;
} fixture;

static const char *const variables[] = {"t", "mask"};

/* Samples of 2 x 3 of an array of 4 x 6, and of one that has its last dimension alone. */
static void begin(fixture *f, const char *command)
{
    memset(f, 0, sizeof(*f));
    f->space = (cm_sample_space){.rank = 2,
                                 .length = {4, 6},
                                 .sample = {2, 3},
                                 .order = CM_ORDER_SEQUENTIAL,
                                 .parameter = 1};
    assert_int_equal(cm_sample_space_init(&f->space, (char *[2]){NULL, NULL}, NULL), CM_OK);
    f->part[0] = (cm_sample_part){.rank = 2, .axis = {0, 1}, .shape = {4, 6}};
    f->part[1] = (cm_sample_part){.array = 1, .rank = 1, .axis = {1}, .shape = {6}};
    f->options = (cm_load_exec_options){.command = command,
                                        .store = "a \"store\"",
                                        .batch = 2,
                                        .space = &f->space,
                                        .part = f->part,
                                        .variable = variables,
                                        .nparts = 2,
                                        .ready_timeout_ns = UINT64_C(20000000000),
                                        .batch_timeout_ns = UINT64_C(20000000000)};
    assert_int_equal(cm_load_exec_create(&f->options, &f->source, NULL), CM_OK);
}

static int open_source(fixture *f)
{
    return f->source.open(f->source.context, 3, &f->state, &f->err);
}

static int load(fixture *f, uint64_t batch)
{
    cm_load_task *task = calloc(1, sizeof(*task) + 2 * sizeof(cm_load_piece));
    task->number = batch;
    task->epoch = 1;
    task->nbatch = task->npieces = 2;
    task->piece[0].sample = 1;
    task->piece[1].sample = 2;
    task->piece[1].place = 1;
    memset(&f->result, 0, sizeof(f->result));
    int rc = f->source.load(f->state, task, NULL, &f->result, &f->err);
    free(task);
    return rc;
}

static void end(fixture *f)
{
    f->source.close(f->state);
    cm_load_exec_release(&f->source);
}

/* The messages sent, as in the description of the protocol. */
static void what_it_is_told(void **state)
{
    (void)state;
    char name[] = "/tmp/chunkmill-exec-XXXXXX", command[256], text[2048] = "";
    int fd = mkstemp(name);
    assert_true(fd >= 0);
    snprintf(command, sizeof(command),
             "read -r l; echo \"$l\" >%s; echo '{\"ready\":true}'; read -r l; echo \"$l\" >>%s; "
             "echo '{\"batch\":7,\"nbytes\":36,\"crc32c\":4294967295,\"seconds\":0}'; read -r l",
             name, name);
    fixture f;
    begin(&f, command);
    assert_int_equal(open_source(&f), CM_OK);
    if (load(&f, 7) != CM_OK)
        fail_msg("%s", f.err.text);
    assert_int_equal(f.result.nbytes, 36);
    assert_int_equal(f.result.crc32c, UINT32_MAX);
    assert_int_equal(f.result.counts.logical_nbytes, 36);
    assert_int_equal(f.result.counts.stage_ns[CM_LOAD_STORAGE], 0);
    assert_true(f.result.counts.stage_ns[CM_LOAD_ASSEMBLE] > 0);
    end(&f);
    assert_true(read(fd, text, sizeof(text) - 1) > 0);
    assert_string_equal(
        text,
        "{\"protocol\":1,\"store\":\"a \\\"store\\\"\",\"variables\":[\"t\",\"mask\"],\"worker\":3,"
        "\"sample\":[[2,3],[3]],\"batch\":2}\n"
        "{\"epoch\":1,\"batch\":7,\"samples\":[[0,3],[2,0]],"
        "\"parts\":[{\"variable\":\"t\",\"start\":[[0,3],[2,0]],\"shape\":[[2,3],[2,3]]},"
        "{\"variable\":\"mask\",\"start\":[[3],[0]],\"shape\":[[3],[3]]}]}\n");
    close(fd);
    unlink(name);
}

#define READY "read -r l; echo '{\"ready\":true}'; read -r l; "

static void answers(void **state)
{
    (void)state;
    static const struct {
        const char *name, *command;
        int rc;
        const char *sentence; /* a part of it */
    } table[] = {
        {"an error", READY "echo '{\"error\":\"no such place\"}'; read -r l", CM_EIO,
         "batch 0: the loader: no such place"},
        {"not JSON", READY "echo hello; read -r l", CM_EFORMAT,
         "the loader answers 'hello', which is not a JSON object"},
        {"an array", READY "echo '[1]'; read -r l", CM_EFORMAT, "answers '[1]'"},
        {"another batch", READY "echo '{\"batch\":1,\"nbytes\":8}'; read -r l", CM_EFORMAT,
         "the loader does not answer for batch 0"},
        {"no bytes", READY "echo '{\"batch\":0}'; read -r l", CM_EFORMAT, "how many bytes"},
        {"zero bytes", READY "echo '{\"batch\":0,\"nbytes\":0}'; read -r l", CM_EFORMAT,
         "how many bytes"},
        {"a long crc", READY "echo '{\"batch\":0,\"nbytes\":8,\"crc32c\":4294967296}'; read -r l",
         CM_EFORMAT, "crc32c"},
        {"negative seconds", READY "echo '{\"batch\":0,\"nbytes\":8,\"seconds\":-1}'; read -r l",
         CM_EFORMAT, "seconds"},
        {"it ends", READY "exit 3", CM_EIO, "the loader ended with status 3"},
        {"it is killed", READY "kill -9 $$", CM_EIO, "the loader was killed by signal 9"},
        {"it closes its output", READY "exec >&-; sleep 30", CM_EIO,
         "the loader closed its output"},
        {"a line without end", READY "exec tr '\\0' x </dev/zero", CM_EFORMAT,
         "longer than 1048576 bytes"},
        {"fine", READY "echo '{\"batch\":0,\"nbytes\":8}'; read -r l", CM_OK, ""},
    };
    for (size_t k = 0; k < sizeof(table) / sizeof(table[0]); k++) {
        fixture f;
        begin(&f, table[k].command);
        if (open_source(&f) != CM_OK)
            fail_msg("%s: %s", table[k].name, f.err.text);
        int rc = load(&f, 0);
        if (rc != table[k].rc || (rc != CM_OK && strstr(f.err.text, table[k].sentence) == NULL))
            fail_msg("%s: %d, %s", table[k].name, rc, f.err.text);
        end(&f);
    }
}

static void it_does_not_begin(void **state)
{
    (void)state;
    static const struct {
        const char *command, *sentence;
    } table[] = {
        {"exit 1", "exit 1: the loader ended with status 1"},
        {"read -r l; echo '{\"error\":\"torch is not there\"}'",
         "the loader cannot begin: torch is not there"},
        {"read -r l; echo '{\"ready\":false}'; sleep 5",
         "the loader's first answer is not {\"ready\":true}"},
        {"/nonexistent/loader 2>/dev/null", "the loader ended with status 127"},
    };
    for (size_t k = 0; k < sizeof(table) / sizeof(table[0]); k++) {
        fixture f;
        begin(&f, table[k].command);
        assert_int_not_equal(open_source(&f), CM_OK);
        if (strstr(f.err.text, table[k].sentence) == NULL)
            fail_msg("%s", f.err.text);
        assert_null(f.state);
        end(&f);
    }
}

static void too_slow(void **state)
{
    (void)state;
    fixture f;
    begin(&f, READY "sleep 3600");
    f.options.batch_timeout_ns = 50000000;
    cm_load_exec_release(&f.source);
    assert_int_equal(cm_load_exec_create(&f.options, &f.source, NULL), CM_OK);
    assert_int_equal(open_source(&f), CM_OK);
    assert_int_equal(load(&f, 0), CM_EIO);
    assert_non_null(strstr(f.err.text, "batch 0: the loader does not answer in time"));
    end(&f); /* the sleep is not waited for */
}

/* It dies at every second batch, and is begun anew for the next one. */
static void begun_anew(void **state)
{
    (void)state;
    fixture f;
    begin(&f, READY "echo '{\"batch\":0,\"nbytes\":8}'; read -r l; exit 9");
    assert_int_equal(open_source(&f), CM_OK);
    for (int turn = 0; turn < 3; turn++) {
        if (load(&f, 0) != CM_OK)
            fail_msg("%s", f.err.text);
        assert_int_equal(load(&f, 1), CM_EIO);
        assert_non_null(strstr(f.err.text, "ended with status 9"));
    }
    end(&f);
}

static void an_error_is_no_end(void **state)
{
    (void)state;
    fixture f;
    begin(&f, READY
          "echo '{\"error\":\"once\"}'; read -r l; echo '{\"batch\":1,\"nbytes\":8}'; read -r l");
    assert_int_equal(open_source(&f), CM_OK);
    assert_int_equal(load(&f, 0), CM_EIO);
    assert_int_equal(load(&f, 1), CM_OK);
    end(&f);
}

static void chunks_are_refused(void **state)
{
    (void)state;
    fixture f;
    begin(&f, READY "read -r l");
    assert_int_equal(open_source(&f), CM_OK);
    cm_load_task task = {.kind = CM_LOAD_CHUNK};
    assert_int_equal(f.source.load(f.state, &task, NULL, &f.result, &f.err), CM_EINVAL);
    assert_string_equal(f.err.text, "a loader of the user reads batches, not chunks");
    end(&f);
}

/* A pool of processes ends, and with it commands that do not heed the end of their input. */
static void the_pool_leaves_no_command(void **state)
{
    (void)state;
    fixture f;
    cm_arena arena;
    cm_pool *pool;
    int alive[2];
    /* Workers and commands inherit the writing end: its reader sees the end of the last of them. */
    assert_int_equal(pipe(alive), 0);
    begin(&f, READY "read -r l; sleep 3600");
    const cm_pool_options options = {.mode = CM_POOL_PROCESSES,
                                     .nworkers = 2,
                                     .nclients = 1,
                                     .max_pieces = 2,
                                     .grace_ns = CM_LOAD_EXEC_GRACE_NS};
    assert_int_equal(cm_arena_create(1, true, true, &arena, NULL), CM_OK);
    assert_int_equal(cm_pool_create(&options, &f.source, &arena, &pool, &f.err), CM_OK);
    close(alive[1]);
    cm_pool_free(pool);
    struct pollfd wait = {.fd = alive[0], .events = POLLIN};
    assert_int_equal(poll(&wait, 1, -1), 1);
    close(alive[0]);
    cm_arena_release(&arena);
    cm_load_exec_release(&f.source);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_it_is_told),    cmocka_unit_test(answers),
        cmocka_unit_test(it_does_not_begin),  cmocka_unit_test(too_slow),
        cmocka_unit_test(begun_anew),         cmocka_unit_test(an_error_is_no_end),
        cmocka_unit_test(chunks_are_refused), cmocka_unit_test(the_pool_leaves_no_command),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

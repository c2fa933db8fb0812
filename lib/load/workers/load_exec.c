#include "load/workers/load_exec.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/json.h"
#include "load/workers/child.h"

enum {
    QUOTED = 120 /* characters of an answer that a message shows */
};

typedef struct worker {
    const cm_load_exec_options *options;
    unsigned index;
    pid_t parent;
    cm_child child;
    cm_buf text; /* of a line to it */
} worker;

/* ---- what we say ---- */

static cm_json *numbers(const uint64_t *value, unsigned n, cm_error *err)
{
    cm_json *list = cm_json_array();
    for (unsigned j = 0; j < n && list != NULL; j++)
        if (cm_json_append(list, cm_json_u64(value[j]), err) != CM_OK) {
            cm_json_free(list);
            return NULL;
        }
    return list;
}

/* Members of objects that are made one after the other: the first error is kept. */
static void set(int *rc, cm_json *object, const char *name, cm_json *value, cm_error *err)
{
    int set_rc = cm_json_set(object, name, value, err);
    *rc = *rc != CM_OK ? *rc : set_rc;
}

static void append(int *rc, cm_json *array, cm_json *value, cm_error *err)
{
    int append_rc = cm_json_append(array, value, err);
    *rc = *rc != CM_OK ? *rc : append_rc;
}

/* Writes J, which is freed, as a line into w->text. */
static int make_line(worker *w, cm_json *j, cm_error *err)
{
    w->text.nbytes = 0;
    int rc = cm_json_write(j, false, &w->text, err);
    cm_json_free(j);
    return rc == CM_OK ? cm_buf_append(&w->text, "\n", 1, err) : rc;
}

static int make_greeting(worker *w, cm_error *err)
{
    const cm_load_exec_options *o = w->options;
    cm_json *j = cm_json_object(), *variables = cm_json_array(), *shapes = cm_json_array();
    cm_box whole = {.rank = o->space->rank}, part;
    int rc = CM_OK;
    memcpy(whole.shape, o->space->sample, sizeof(whole.shape));
    for (size_t p = 0; p < o->nparts; p++) {
        cm_sample_part_box(&o->part[p], &whole, &part);
        append(&rc, variables, cm_json_string(o->variable[p]), err);
        append(&rc, shapes, numbers(part.shape, part.rank, err), err);
    }
    set(&rc, j, "protocol", cm_json_u64(1), err);
    set(&rc, j, "store", cm_json_string(o->store), err);
    set(&rc, j, "variables", variables, err);
    set(&rc, j, "worker", cm_json_u64(w->index), err);
    set(&rc, j, "sample", shapes, err);
    set(&rc, j, "batch", cm_json_u64(o->batch), err);
    if (rc == CM_OK)
        return make_line(w, j, err);
    cm_json_free(j);
    return rc;
}

/* Variable, start and shape of part P in each sample. */
static cm_json *part_json(const worker *w, const cm_load_task *task, size_t p, int *rc,
                          cm_error *err)
{
    const cm_load_exec_options *o = w->options;
    cm_json *j = cm_json_object(), *starts = cm_json_array(), *shapes = cm_json_array();
    for (uint32_t i = 0; i < task->npieces && *rc == CM_OK; i++) {
        cm_box sample, box;
        cm_sample_at(o->space, task->epoch, task->piece[i].sample, &sample);
        cm_sample_part_box(&o->part[p], &sample, &box);
        append(rc, starts, numbers(box.start, box.rank, err), err);
        append(rc, shapes, numbers(box.shape, box.rank, err), err);
    }
    set(rc, j, "variable", cm_json_string(o->variable[p]), err);
    set(rc, j, "start", starts, err);
    set(rc, j, "shape", shapes, err);
    return j;
}

static int make_request(worker *w, const cm_load_task *task, cm_error *err)
{
    const cm_load_exec_options *o = w->options;
    cm_json *j = cm_json_object(), *samples = cm_json_array(), *parts = cm_json_array();
    int rc = CM_OK;
    for (uint32_t i = 0; i < task->npieces && rc == CM_OK; i++) {
        cm_box sample;
        cm_sample_at(o->space, task->epoch, task->piece[i].sample, &sample);
        append(&rc, samples, numbers(sample.start, sample.rank, err), err);
    }
    for (size_t p = 0; p < o->nparts && rc == CM_OK; p++)
        append(&rc, parts, part_json(w, task, p, &rc, err), err);
    set(&rc, j, "epoch", cm_json_u64(task->epoch), err);
    set(&rc, j, "batch", cm_json_u64(task->number), err);
    set(&rc, j, "samples", samples, err);
    set(&rc, j, "parts", parts, err);
    if (rc == CM_OK)
        return make_line(w, j, err);
    cm_json_free(j);
    return rc;
}

/* ---- what it answers ---- */

static bool is_canceled(void *context)
{
    const worker *w = context;
    const cm_load_exec_options *o = w->options;
    return (o->canceled != NULL && o->canceled(o->canceled_context)) ||
           (o->processes && (getppid() != w->parent || cm_pool_worker_is_unwanted()));
}

/* Sends w->text and parses the line that comes back: an object. */
static int ask(worker *w, uint64_t timeout_ns, cm_json **answer, cm_error *err)
{
    const cm_child_patience patience = {cm_now_ns() + timeout_ns, is_canceled, w};
    const char *line;
    size_t nbytes;
    *answer = NULL;
    int rc = cm_child_write(&w->child, w->text.data, w->text.nbytes, &patience, err);
    if (rc == CM_OK)
        rc = cm_child_read_line(&w->child, &patience, &line, &nbytes, err);
    if (rc != CM_OK)
        return rc;
    if (cm_json_parse(line, nbytes, answer, NULL) == CM_OK && cm_json_is(*answer, CM_JSON_OBJECT))
        return CM_OK;
    cm_json_free(*answer);
    *answer = NULL;
    return cm_fail(err, CM_EFORMAT, "the loader answers '%.*s', which is not a JSON object", QUOTED,
                   line);
}

static int begin(worker *w, cm_error *err)
{
    const cm_load_exec_options *o = w->options;
    cm_json *answer = NULL;
    bool ready = false;
    int rc = cm_child_begin(&w->child, o->command, err);
    if (rc != CM_OK)
        return rc;
    rc = make_greeting(w, err);
    if (rc == CM_OK)
        rc = ask(w, o->ready_timeout_ns > 0 ? o->ready_timeout_ns : CM_LOAD_EXEC_READY_NS, &answer,
                 err);
    const char *text = cm_json_text(cm_json_member(answer, "error"), NULL);
    if (rc == CM_OK && text != NULL)
        rc = cm_fail(err, CM_EIO, "the loader cannot begin: %s", text);
    else if (rc == CM_OK && !(cm_json_get_bool(cm_json_member(answer, "ready"), &ready) && ready))
        rc = cm_fail(err, CM_EFORMAT, "the loader's first answer is not {\"ready\":true}");
    cm_json_free(answer);
    if (rc == CM_OK)
        return CM_OK;
    cm_child_end(&w->child, false);
    cm_error_prefix(err, "%s", o->command);
    return rc;
}

/* The members of ANSWER that a batch needs. */
static int take_answer(const cm_json *answer, uint64_t batch, uint64_t elapsed_ns,
                       cm_load_result *result, cm_error *err)
{
    uint64_t number, crc = 0;
    double seconds = 0;
    if (!cm_json_get_u64(cm_json_member(answer, "batch"), &number) || number != batch)
        return cm_fail(err, CM_EFORMAT, "the loader does not answer for batch %llu",
                       (unsigned long long)batch);
    if (!cm_json_get_u64(cm_json_member(answer, "nbytes"), &result->nbytes) || result->nbytes == 0)
        return cm_fail(err, CM_EFORMAT, "the loader does not say how many bytes batch %llu has",
                       (unsigned long long)batch);
    result->has_crc32c = cm_json_has(answer, "crc32c");
    if (result->has_crc32c &&
        (!cm_json_get_u64(cm_json_member(answer, "crc32c"), &crc) || crc > UINT32_MAX))
        return cm_fail(err, CM_EFORMAT, "the loader's crc32c is not a number of 32 bits");
    if (cm_json_has(answer, "seconds") &&
        (!cm_json_get_double(cm_json_member(answer, "seconds"), &seconds) || !isfinite(seconds) ||
         seconds < 0))
        return cm_fail(err, CM_EFORMAT, "the loader's \"seconds\" must be a number of at least 0");
    result->crc32c = (uint32_t)crc;
    result->counts.logical_nbytes = result->nbytes;
    uint64_t reading = elapsed_ns;
    if (cm_json_has(answer, "seconds") && seconds * 1e9 < (double)elapsed_ns)
        reading = (uint64_t)(seconds * 1e9);
    result->counts.stage_ns[CM_LOAD_STORAGE] += reading;
    result->counts.stage_calls[CM_LOAD_STORAGE]++;
    result->counts.stage_ns[CM_LOAD_ASSEMBLE] += elapsed_ns - reading;
    result->counts.stage_calls[CM_LOAD_ASSEMBLE]++;
    return CM_OK;
}

/* ---- the source ---- */

static void close_worker(void *state)
{
    worker *w = state;
    if (w == NULL)
        return;
    cm_child_end(&w->child, true);
    cm_buf_release(&w->text);
    free(w);
}

static int open_worker(void *context, unsigned index, void **state, cm_error *err)
{
    worker *w = cm_calloc(1, sizeof(*w), err);
    if (w == NULL)
        return CM_ENOMEM;
    w->options = context;
    w->index = index;
    w->parent = getppid();
    int rc = begin(w, err);
    if (rc != CM_OK) {
        close_worker(w);
        return rc;
    }
    *state = w;
    return CM_OK;
}

static int load(void *state, const cm_load_task *task, uint8_t *arena, cm_load_result *result,
                cm_error *err)
{
    worker *w = state;
    const cm_load_exec_options *o = w->options;
    (void)arena;
    if (task->kind != CM_LOAD_BATCH)
        return cm_fail(err, CM_EINVAL, "a loader of the user reads batches, not chunks");
    int rc = w->child.pid != 0 ? CM_OK : begin(w, err);
    if (rc != CM_OK)
        return rc;
    if ((rc = make_request(w, task, err)) != CM_OK)
        return rc;
    cm_json *answer;
    const uint64_t cpu_ns = cm_child_cpu_ns(&w->child), start_ns = cm_now_ns();
    rc =
        ask(w, o->batch_timeout_ns > 0 ? o->batch_timeout_ns : CM_LOAD_EXEC_BATCH_NS, &answer, err);
    const uint64_t elapsed_ns = cm_now_ns() - start_ns;
    const char *text = cm_json_text(cm_json_member(answer, "error"), NULL);
    if (text != NULL)
        rc = cm_fail(err, CM_EIO, "the loader: %s", text); /* it goes on with the next batch */
    else {
        if (rc == CM_OK)
            rc = take_answer(answer, task->number, elapsed_ns, result, err);
        if (rc != CM_OK)
            cm_child_end(&w->child, false);
    }
    const uint64_t cpu_end_ns = cm_child_cpu_ns(&w->child);
    result->counts.cpu_ns += cpu_end_ns > cpu_ns ? cpu_end_ns - cpu_ns : 0;
    cm_json_free(answer);
    if (rc != CM_OK)
        cm_error_prefix(err, "%s: batch %llu", o->command, (unsigned long long)task->number);
    return rc;
}

int cm_load_exec_create(const cm_load_exec_options *options, cm_load_source *out, cm_error *err)
{
    if (options->nparts == 0)
        return cm_fail(err, CM_EINVAL, "a sample without variables");
    cm_load_exec_options *own = cm_calloc(1, sizeof(*own), err);
    if (own == NULL)
        return CM_ENOMEM;
    *own = *options;
    *out = (cm_load_source){.context = own,
                            .open = open_worker,
                            .load = load,
                            .close = close_worker,
                            .sees_its_end = true}; /* it must live to kill what it began */
    return CM_OK;
}

void cm_load_exec_release(cm_load_source *source)
{
    free(source->context);
    *source = (cm_load_source){0};
}

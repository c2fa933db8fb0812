#include "job/transform/parts_status.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

typedef enum part_state {
    MISSING,
    RUNNING,
    DONE
} part_state;

static int state_of(const cm_beside *b, const cm_parts_plan *plan, uint64_t number, part_state *out,
                    cm_error *err)
{
    char *done = cm_part_file(number, "done", err), *lock = cm_part_file(number, "lock", err);
    cm_lock_holder who = {.state = CM_LOCK_FREE};
    cm_json *note = NULL;
    int rc = done == NULL || lock == NULL ? CM_ENOMEM : CM_OK;
    if (rc == CM_OK)
        rc = cm_part_noted(b, done, plan->hash, &note, err);
    if (rc == CM_OK && note == NULL)
        rc = cm_lock_look(b, lock, &who, err);
    *out = note != NULL ? DONE : who.state != CM_LOCK_FREE ? RUNNING : MISSING;
    cm_json_free(note);
    free(done);
    free(lock);
    return rc;
}

/* Adds the numbers FIRST to LAST, from 0, to a list for people. */
static int add_range(cm_buf *list, uint64_t first, uint64_t last, cm_error *err)
{
    const char *comma = list->nbytes > 0 ? "," : "";
    if (first == last)
        return cm_buf_printf(list, err, "%s%" PRIu64, comma, first + 1);
    return cm_buf_printf(list, err, "%s%" PRIu64 "-%" PRIu64, comma, first + 1, last + 1);
}

int cm_parts_count_all(const cm_beside *b, const cm_parts_plan *plan, cm_parts_count *out,
                       cm_error *err)
{
    cm_buf missing = {0};
    uint64_t first = UINT64_MAX;
    int rc = CM_OK;
    *out = (cm_parts_count){0};
    for (uint64_t k = 0; rc == CM_OK && k < plan->nparts; k++) {
        part_state state;
        rc = state_of(b, plan, k, &state, err);
        out->ndone += rc == CM_OK && state == DONE;
        out->nrunning += rc == CM_OK && state == RUNNING;
        if (rc == CM_OK && state == MISSING && first == UINT64_MAX)
            first = k;
        if (rc == CM_OK && state != MISSING && first != UINT64_MAX) {
            rc = add_range(&missing, first, k - 1, err);
            first = UINT64_MAX;
        }
    }
    if (rc == CM_OK && first != UINT64_MAX)
        rc = add_range(&missing, first, plan->nparts - 1, err);
    if (rc == CM_OK)
        rc = cm_buf_append(&missing, "", 1, err);
    if (rc != CM_OK) {
        cm_buf_release(&missing);
        return rc;
    }
    out->missing = (char *)missing.data;
    return CM_OK;
}

int cm_part_complete(const cm_beside *b, const char *hash, cm_error *err)
{
    int rc = cm_part_note(b, "complete", hash, NULL, err);
    return rc == CM_OK ? cm_store_sync(b->in, err) : rc;
}

static cm_verdict judge_part(void *context, const char *below, cm_entry_kind kind)
{
    size_t n = strlen(below);
    (void)context;
    bool of_part = kind == CM_ENTRY_FILE && strncmp(below, "part-", 5) == 0;
    bool lock = n >= 5 && strcmp(below + n - 5, ".lock") == 0;
    return of_part && !lock ? CM_REMOVE : CM_KEEP;
}

void cm_parts_tidy(const cm_beside *b)
{
    if (b->in != NULL)
        cm_store_sweep(b->in, "", judge_part, NULL, NULL);
}

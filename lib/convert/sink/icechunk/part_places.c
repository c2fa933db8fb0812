#include "convert/sink/icechunk/part_places.h"

#include <stdlib.h>
#include <string.h>

#include "convert/plan/part_cut.h"
#include "format/icechunk/key.h"
#include "format/icechunk/parcel.h"
#include "format/icechunk/session.h"

enum {
    MOST_FILES = 64 /* of the repository that are remembered: each thread of a part fills one */
};

/* ---- the chunks of a part ---- */

typedef struct spans {
    cm_ice_span *item;
    size_t n, capacity;
} spans;

/* One that goes on where the last one ends is the same. */
static int add_span(spans *s, uint64_t first, uint64_t end, cm_error *err)
{
    if (s->n > 0 && s->item[s->n - 1].end == first) {
        s->item[s->n - 1].end = end;
        return CM_OK;
    }
    cm_ice_span *room = cm_make_room(s->item, s->n, &s->capacity, sizeof(s->item[0]), 16);
    if (room == NULL)
        return cm_fail(err, CM_ENOMEM, "no memory for the chunks of a part");
    s->item = room;
    s->item[s->n++] = (cm_ice_span){first, end};
    return CM_OK;
}

/* The chunks in BOX of an array of SHAPE chunks, which are numbered from FIRST on. */
static int add_box(spans *s, uint64_t first, const uint64_t *shape, const cm_box *box,
                   cm_error *err)
{
    uint64_t at[CM_MAX_RANK] = {0}, length = 1, nspans = 1;
    unsigned inner = box->rank; /* from this dimension on one span has all */
    int rc = CM_OK;
    while (inner > 0 && box->shape[inner - 1] == shape[inner - 1])
        length *= shape[--inner];
    if (inner > 0)
        length *= box->shape[--inner];
    for (unsigned j = 0; j < inner; j++)
        nspans *= box->shape[j];
    for (uint64_t i = 0; rc == CM_OK && i < nspans && length > 0; i++) {
        uint64_t number = 0;
        for (unsigned j = 0; j < box->rank; j++)
            number = number * shape[j] + box->start[j] + at[j];
        rc = add_span(s, first + number, first + number + length, err);
        for (unsigned j = inner; j-- > 0 && ++at[j] == box->shape[j];)
            at[j] = 0;
    }
    return rc;
}

/* The chunks of V, or of a window of an array, that RUN has. */
static int add_run(spans *s, const cm_job_var *v, cm_store *session, cm_part_run run, cm_error *err)
{
    cm_box box[CM_PART_MAX_BOXES];
    cm_ice_places all;
    cm_grid grid;
    size_t index;
    if (run.first == run.end)
        return CM_OK;
    if (!cm_ice_session_find(session, v->name, &index))
        return cm_fail(err, CM_EINTERNAL, "%s: is no array of the commit", v->name);
    cm_ice_session_places(session, index, &all);
    int rc = cm_zarr_meta_outer_grid(&v->doc.meta, &grid, err);
    const unsigned n = rc == CM_OK ? cm_part_boxes(grid.count, grid.rank, run, box) : 0;
    for (unsigned i = 0; rc == CM_OK && i < n; i++) {
        for (unsigned j = 0; j < grid.rank; j++)
            box[i].start[j] += v->window.first_object[j];
        rc = add_box(s, cm_ice_session_first(session, index), all.shape, &box[i], err);
    }
    return rc;
}

static int by_first(const void *a, const void *b)
{
    const cm_ice_span *x = a, *y = b;
    return x->first < y->first ? -1 : x->first > y->first;
}

/* The chunks of part NUMBER, in their order; S is zeroed, and its items are to be freed. */
static int find_spans(const cm_job *job, cm_store *session, uint64_t number, spans *s,
                      cm_error *err)
{
    const cm_parts_plan *plan = &job->parts->plan;
    cm_part_run *run = cm_calloc(job->nvars + 1, sizeof(run[0]), err);
    int rc = run == NULL
                 ? CM_ENOMEM
                 : cm_parts_runs(job, cm_parts_weights(plan), plan->nparts, number, 1, run, err);
    for (size_t i = 0; rc == CM_OK && i < job->nvars; i++)
        rc = add_run(s, &job->var[i], session, run[i], err);
    if (rc == CM_OK && s->n > 0)
        qsort(s->item, s->n, sizeof(s->item[0]), by_first);
    free(run);
    return rc;
}

int cm_part_places_write(cm_job *job, cm_store *session, cm_repository *r, cm_error *err)
{
    const uint64_t number = job->parts->number;
    spans own = {0};
    char *name = cm_part_file(number, CM_PART_PLACES, err);
    int rc = name == NULL ? CM_ENOMEM : find_spans(job, session, number, &own, err);
    if (rc == CM_OK)
        rc = cm_ice_parcel_write(r->beside->in, name, &r->journal.records, own.item, own.n, err);
    if (rc == CM_OK)
        rc = cm_store_sync(r->beside->in, err);
    free(own.item);
    free(name);
    return rc;
}

/* Calls VISIT with each record of part NUMBER. */
static int read_part(cm_job *job, cm_store *session, const cm_repository *r, uint64_t number,
                     cm_ice_parcel_visit *visit, void *context, cm_error *err)
{
    spans own = {0};
    char *name = cm_part_file(number, CM_PART_PLACES, err);
    int rc = name == NULL ? CM_ENOMEM : find_spans(job, session, number, &own, err);
    if (rc == CM_OK)
        rc = cm_ice_parcel_read(r->beside->in, name, own.item, own.n, visit, context, err);
    free(own.item);
    free(name);
    return rc;
}

/* ---- the claim ---- */

typedef struct file {
    uint8_t id[CM_ICE_ID];
    bool known, there;
    uint64_t nbytes;
} file;

typedef struct seeing {
    cm_job *job;
    cm_store *root;
    cm_part_claim *claim;
    cm_digest digest;
    file file[MOST_FILES];
    unsigned next;
    uint64_t nseen;
} seeing;

static int find_file(seeing *s, const uint8_t *id, const file **out, cm_error *err)
{
    char key[CM_ICE_KEY_SIZE];
    for (unsigned i = 0; i < MOST_FILES; i++)
        if (s->file[i].known && memcmp(s->file[i].id, id, CM_ICE_ID) == 0) {
            *out = &s->file[i];
            return CM_OK;
        }
    file *f = &s->file[s->next++ % MOST_FILES];
    *f = (file){.known = true};
    memcpy(f->id, id, CM_ICE_ID);
    cm_ice_key("chunks", id, key);
    int rc = cm_store_size(s->root, key, &f->nbytes, err);
    f->there = rc == CM_OK;
    *out = f;
    return rc == CM_ENOTFOUND ? CM_OK : rc;
}

static int see_record(void *context, uint64_t number, const cm_ice_record *record,
                      const uint8_t *small, cm_error *err)
{
    seeing *s = context;
    uint8_t bytes[CM_ICE_RECORD_NBYTES];
    const file *f = NULL;
    (void)small;
    if (s->nseen++ % 1024 == 0 && cm_monitor_canceled(s->job->options->monitor))
        return cm_fail(err, CM_ECANCELED, "stopped by request");
    int rc = record->state == CM_ICE_STORED ? find_file(s, record->id, &f, err) : CM_OK;
    const bool lost = f != NULL && (!f->there || record->nbytes > f->nbytes ||
                                    record->offset > f->nbytes - record->nbytes);
    if (rc != CM_OK || lost)
        return rc;
    s->claim->nobjects += record->state != CM_ICE_EMPTY;
    s->claim->nbytes += record->nbytes;
    cm_ice_record_pack(record, number, bytes);
    cm_digest_element(&s->digest, number, bytes, sizeof(bytes));
    return CM_OK;
}

int cm_part_places_see(cm_job *job, cm_store *session, const cm_repository *r, uint64_t number,
                       cm_part_claim *out, cm_error *err)
{
    cm_error why = {0};
    seeing s = {.job = job, .root = r->root, .claim = out};
    *out = (cm_part_claim){.there = true};
    int rc = read_part(job, session, r, number, see_record, &s, &why);
    cm_digest_text(&s.digest, out->digest);
    if (rc == CM_ENOTFOUND || rc == CM_EFORMAT) { /* claims of nobody */
        *out = (cm_part_claim){.there = true};
        return CM_OK;
    }
    return rc == CM_OK ? rc : cm_fail(err, rc, "%s", why.text);
}

/* ---- the commit ---- */

static int take_record(void *context, uint64_t number, const cm_ice_record *record,
                       const uint8_t *small, cm_error *err)
{
    cm_ice_records *own = context;
    return small != NULL ? cm_ice_records_keep(own, number, small, (size_t)record->nbytes, err)
                         : cm_ice_records_set(own, number, record, err);
}

int cm_part_places_take(cm_job *job, cm_store *session, cm_repository *r, cm_error *err)
{
    int rc = CM_OK;
    for (uint64_t k = 0; rc == CM_OK && k < job->parts->plan.nparts; k++)
        rc = read_part(job, session, r, k, take_record, &r->journal.records, err);
    return rc;
}

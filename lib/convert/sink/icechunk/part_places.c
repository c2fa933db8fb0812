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

/* One span for each variable; to be freed. */
static int find_spans(const cm_job *job, cm_store *session, uint64_t number, cm_ice_span **out,
                      cm_error *err)
{
    const cm_parts_plan *plan = &job->parts->plan;
    cm_part_run *run = cm_calloc(job->nvars + 1, sizeof(run[0]), err);
    cm_ice_span *span = *out = cm_calloc(job->nvars + 1, sizeof(span[0]), err);
    int rc = run == NULL || span == NULL
                 ? CM_ENOMEM
                 : cm_parts_runs(job, cm_parts_weights(plan), plan->nparts, number, 1, run, err);
    for (size_t i = 0; rc == CM_OK && i < job->nvars; i++) {
        const uint64_t first = cm_ice_session_first(session, i);
        span[i] = (cm_ice_span){first + run[i].first, first + run[i].end};
    }
    free(run);
    return rc;
}

int cm_part_places_write(cm_job *job, cm_store *session, cm_repository *r, cm_error *err)
{
    const uint64_t number = job->parts->number;
    cm_ice_span *span = NULL;
    char *name = cm_part_file(number, CM_PART_PLACES, err);
    int rc = name == NULL ? CM_ENOMEM : find_spans(job, session, number, &span, err);
    if (rc == CM_OK)
        rc = cm_ice_parcel_write(r->beside->in, name, &r->journal.records, span, job->nvars, err);
    if (rc == CM_OK)
        rc = cm_store_sync(r->beside->in, err);
    free(span);
    free(name);
    return rc;
}

/* Calls VISIT with each record of part NUMBER. */
static int read_part(cm_job *job, cm_store *session, const cm_repository *r, uint64_t number,
                     cm_ice_parcel_visit *visit, void *context, cm_error *err)
{
    cm_ice_span *span = NULL;
    char *name = cm_part_file(number, CM_PART_PLACES, err);
    int rc = name == NULL ? CM_ENOMEM : find_spans(job, session, number, &span, err);
    if (rc == CM_OK)
        rc = cm_ice_parcel_read(r->beside->in, name, span, job->nvars, visit, context, err);
    free(span);
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

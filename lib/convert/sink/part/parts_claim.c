#include "convert/sink/part/parts_claim.h"

#include <inttypes.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "base/threads.h"
#include "convert/plan/part_cut.h"
#include "convert/sink/part/parts_counted.h"
#include "convert/sink/part/parts_status.h"
#include "convert/source/listing.h"

enum {
    SHARE = 1024, /* objects that a thread looks at before it asks for more */
    PAGE = 1000   /* objects that one request lists */
};

bool cm_part_claims_agree(const cm_part_claim *a, const cm_part_claim *b)
{
    return a->nobjects == b->nobjects && a->nbytes == b->nbytes &&
           strcmp(a->digest, b->digest) == 0 && strcmp(a->counted, b->counted) == 0;
}

/* ---- what is there ---- */

typedef struct sum {
    uint64_t nobjects, nbytes;
    cm_digest digest;
} sum;

/* All threads'. */
typedef struct look {
    const cm_job *job;
    cm_store *store;
    uint64_t nparts;        /* that are looked at */
    const cm_part_run *run; /* of variable i and part k: i * nparts + k */
    cm_listing *list;       /* of each variable, where that is fewer requests; or NULL */
    sum *sum;               /* of each part */
    pthread_mutex_t lock;   /* guards the sums and what follows */
    uint64_t part, at;      /* where the next share begins */
    size_t var;
    int status;
    cm_error *err;
} look;

/* A run of objects of one variable. */
typedef struct share {
    uint64_t part;
    size_t var;
    cm_part_run run;
} share;

static bool next_share(look *l, share *out)
{
    bool found = false;
    pthread_mutex_lock(&l->lock);
    while (!found && l->status == CM_OK && l->part < l->nparts) {
        const cm_part_run *run = &l->run[l->var * l->nparts + l->part];
        uint64_t first = l->at > run->first ? l->at : run->first;
        found = l->var < l->job->nvars && first < run->end;
        if (found) {
            uint64_t end = run->end - first > SHARE ? first + SHARE : run->end;
            *out = (share){l->part, l->var, {first, end}};
            l->at = end;
            continue;
        }
        l->at = 0;
        if (++l->var >= l->job->nvars) {
            l->var = 0;
            l->part++;
        }
    }
    pthread_mutex_unlock(&l->lock);
    return found;
}

static void add_object(sum *s, size_t var, uint64_t number, uint64_t nbytes)
{
    uint64_t words[2] = {var, nbytes};
    s->nobjects++;
    s->nbytes += nbytes;
    cm_digest_element(&s->digest, number, words, sizeof(words));
}

/* Objects that are copied have any names. */
typedef struct walk {
    const look *look;
    const char *path;
    size_t var;
    sum *sum;
    int status;
    cm_error *err;
} walk;

static bool is_document(const char *below)
{
    return strcmp(below, "zarr.json") == 0 || strcmp(below, ".zarray") == 0 ||
           strcmp(below, ".zattrs") == 0 || strcmp(below, ".zgroup") == 0 ||
           strcmp(below, ".zmetadata") == 0;
}

static cm_verdict add_copied(void *context, const char *below, cm_entry_kind kind)
{
    walk *w = context;
    uint64_t nbytes = 0;
    if (kind == CM_ENTRY_FOLDER)
        return *below == '\0' ? CM_KEEP : CM_ENTER;
    if (kind != CM_ENTRY_FILE || is_document(below) || w->status != CM_OK)
        return CM_KEEP;
    char *key = cm_asprintf(w->err, "%s%s%s", w->path, *w->path != '\0' ? "/" : "", below);
    w->status = key == NULL ? CM_ENOMEM : cm_store_size(w->look->store, key, &nbytes, w->err);
    free(key);
    if (w->status == CM_OK) {
        uint64_t words[2] = {w->var, nbytes};
        add_object(w->sum, w->var, 0, nbytes);
        cm_digest_element(&w->sum->digest, 1, below, strlen(below));
        cm_digest_element(&w->sum->digest, 2, words, sizeof(words));
    }
    return CM_KEEP;
}

static int see_copied(const look *l, size_t var, sum *out, cm_error *err)
{
    walk w = {.look = l, .path = l->job->var[var].name, .var = var, .sum = out, .err = err};
    int rc = cm_store_sweep(l->store, w.path, add_copied, &w, err);
    return rc == CM_OK ? w.status : rc;
}

static int ask_size(cm_store *store, const char *path, const char *name, cm_buf *key,
                    uint64_t *nbytes, cm_error *err)
{
    key->nbytes = 0;
    int rc = cm_buf_printf(key, err, "%s%s%s", path, *path != '\0' ? "/" : "", name);
    if (rc == CM_OK)
        rc = cm_buf_append(key, "", 1, err);
    return rc == CM_OK ? cm_store_size(store, (const char *)key->data, nbytes, err) : rc;
}

static int see_share(const look *l, const share *s, sum *out, cm_error *err)
{
    const cm_job_var *v = &l->job->var[s->var];
    uint64_t coord[CM_MAX_RANK], nbytes = 0;
    char name[CM_CHUNK_KEY_SIZE];
    cm_grid grid;
    cm_buf key = {0};
    if (v->stored.as_objects)
        return see_copied(l, s->var, out, err);
    int rc = cm_zarr_meta_outer_grid(&v->doc.meta, &grid, err);
    for (uint64_t i = s->run.first; rc == CM_OK && i < s->run.end; i++) {
        cm_grid_coord(&grid, i, coord);
        for (unsigned j = 0; j < grid.rank; j++)
            coord[j] += v->window.first_object[j];
        cm_zarr_chunk_key(&v->doc.meta, coord, name, sizeof(name));
        if (l->list != NULL && l->list[s->var].read)
            rc = cm_listing_find(&l->list[s->var], name, &nbytes);
        else
            rc = ask_size(l->store, v->name, name, &key, &nbytes, err);
        if (rc == CM_OK)
            add_object(out, s->var, i, nbytes);
        rc = rc == CM_ENOTFOUND ? CM_OK : rc;
    }
    cm_buf_release(&key);
    return rc;
}

static void see_main(void *context, unsigned index)
{
    look *l = context;
    share s;
    (void)index;
    while (next_share(l, &s)) {
        cm_error err = {0};
        sum seen = {0};
        int rc = see_share(l, &s, &seen, &err);
        if (rc == CM_OK && cm_monitor_canceled(l->job->options->monitor))
            rc = cm_fail(&err, CM_ECANCELED, "stopped by request");
        pthread_mutex_lock(&l->lock);
        l->sum[s.part].nobjects += seen.nobjects;
        l->sum[s.part].nbytes += seen.nbytes;
        cm_digest_add(&l->sum[s.part].digest, &seen.digest);
        if (rc != CM_OK && l->status == CM_OK) {
            l->status = rc;
            if (l->err != NULL)
                *l->err = err;
        }
        pthread_mutex_unlock(&l->lock);
    }
}

/* Behind a network: lists the variables of which so much is looked at that it is worth it. */
static int list_objects(look *l, cm_error *err)
{
    const cm_job *job = l->job;
    const cm_stop stop = {cm_monitor_cancels, job->options->monitor};
    int rc = CM_OK;
    if (!cm_store_is_remote(l->store))
        return CM_OK;
    if ((l->list = cm_calloc(job->nvars + 1, sizeof(l->list[0]), err)) == NULL)
        return CM_ENOMEM;
    for (size_t i = 0; rc == CM_OK && i < job->nvars; i++) {
        const cm_job_var *v = &job->var[i];
        uint64_t wanted = 0;
        cm_grid grid;
        for (uint64_t k = 0; k < l->nparts; k++)
            wanted += l->run[i * l->nparts + k].end - l->run[i * l->nparts + k].first;
        if (v->stored.as_objects || wanted == 0)
            continue;
        rc = cm_grid_init(&grid, v->doc.meta.rank, v->doc.meta.shape, v->doc.meta.chunk, err);
        bool lists = grid.nchunks <= CM_LISTING_MOST && grid.nchunks / PAGE < wanted;
        if (rc == CM_OK && lists)
            rc = cm_listing_read(l->store, v->name, &stop, &l->list[i], err);
    }
    return rc;
}

/* Objects of the output. */
static int see_objects(cm_job *job, const cm_output *output, uint64_t first, uint64_t n,
                       cm_part_claim *out, cm_error *err)
{
    cm_part_run *run = cm_calloc((job->nvars + 1) * n, sizeof(run[0]), err);
    sum *sums = cm_calloc(n, sizeof(sums[0]), err);
    look l = {.job = job, .store = output->store, .nparts = n, .run = run, .sum = sums, .err = err};
    int rc = run == NULL || sums == NULL ? CM_ENOMEM : CM_OK;
    if (rc == CM_OK)
        rc = cm_parts_runs(job, cm_parts_weights(&job->parts->plan), job->parts->plan.nparts, first,
                           n, run, err);
    if (rc == CM_OK)
        rc = list_objects(&l, err);
    if (rc == CM_OK) {
        pthread_mutex_init(&l.lock, NULL);
        cm_threads_run(cm_job_threads(job), see_main, &l);
        pthread_mutex_destroy(&l.lock);
        rc = l.status;
    }
    for (uint64_t k = 0; rc == CM_OK && k < n; k++) {
        out[k] =
            (cm_part_claim){.there = true, .nobjects = sums[k].nobjects, .nbytes = sums[k].nbytes};
        cm_digest_text(&sums[k].digest, out[k].digest);
    }
    for (size_t i = 0; l.list != NULL && i < job->nvars; i++)
        cm_listing_release(&l.list[i]);
    free(l.list);
    free(run);
    free(sums);
    return rc;
}

int cm_part_claims_see(cm_job *job, const cm_output *output, uint64_t first, uint64_t n,
                       cm_part_claim *out, cm_error *err)
{
    const cm_parts_hooks *hooks = job->parts->hooks;
    cm_monitor_at(job->options->monitor, "part", first + 1, "looking at its objects");
    int rc = hooks != NULL && hooks->chunks != NULL
                 ? hooks->chunks->see(hooks->context, first, n, out, err)
                 : see_objects(job, output, first, n, out, err);
    for (uint64_t k = 0; rc == CM_OK && k < n && job->options->statistics; k++)
        rc = cm_part_counted_digest(&output->beside, first + k, out[k].counted, err);
    return rc;
}

int cm_parts_join(cm_job *job, cm_output *out, cm_error *err)
{
    const cm_parts_hooks *hooks = job->parts->hooks;
    return hooks != NULL && hooks->chunks != NULL ? hooks->chunks->open(hooks->context, err)
                                                  : cm_output_join(out, err);
}

/* ---- on the disk ---- */

cm_json *cm_part_claim_json(const cm_part_claim *claim)
{
    cm_json *j = cm_json_object();
    if (cm_json_set(j, "objects", cm_json_u64(claim->nobjects), NULL) == CM_OK &&
        cm_json_set(j, "nbytes", cm_json_u64(claim->nbytes), NULL) == CM_OK &&
        cm_json_set(j, "digest", cm_json_string(claim->digest), NULL) == CM_OK &&
        (claim->counted[0] == '\0' ||
         cm_json_set(j, "counted", cm_json_string(claim->counted), NULL) == CM_OK))
        return j;
    cm_json_free(j);
    return NULL;
}

static void parse_claim(const cm_json *json, cm_part_claim *out)
{
    const char *digest = cm_json_text(cm_json_member(json, "digest"), NULL);
    const char *counted = cm_json_text(cm_json_member(json, "counted"), NULL);
    *out = (cm_part_claim){0};
    out->there = digest != NULL && strlen(digest) + 1 == sizeof(out->digest) &&
                 cm_json_get_u64(cm_json_member(json, "objects"), &out->nobjects) &&
                 cm_json_get_u64(cm_json_member(json, "nbytes"), &out->nbytes);
    if (out->there)
        memcpy(out->digest, digest, sizeof(out->digest));
    if (counted != NULL && strlen(counted) + 1 == sizeof(out->counted))
        memcpy(out->counted, counted, sizeof(out->counted));
}

int cm_part_claim_read(const cm_job *job, const cm_beside *b, uint64_t number, bool *complete,
                       cm_part_claim *out, cm_error *err)
{
    const char *hash = job->parts->plan.hash;
    cm_json *all = NULL, *note = NULL;
    char *name = cm_part_file(number, "done", err);
    *out = (cm_part_claim){0};
    int rc = name == NULL ? CM_ENOMEM : cm_part_noted(b, CM_PARTS_COMPLETE, hash, &all, err);
    *complete = all != NULL;
    if (rc == CM_OK && all != NULL)
        parse_claim(cm_json_at(cm_json_member(all, "parts"), number), out);
    else if (rc == CM_OK)
        rc = cm_part_noted(b, name, hash, &note, err);
    if (note != NULL)
        parse_claim(cm_json_member(note, "made"), out);
    cm_json_free(all);
    cm_json_free(note);
    free(name);
    return rc;
}

/* ---- proving, and taking back ---- */

/* Nobody else is at part NUMBER while its file goes; who is makes it anew anyway. */
static int take_back_one(cm_job *job, cm_output *out, uint64_t number, const cm_part_claim *claim,
                         cm_error *err)
{
    char *lock_name = cm_part_file(number, "lock", err), *done = cm_part_file(number, "done", err);
    const cm_lock_request request = {.name = lock_name, .of_part = true};
    cm_lock *lock = NULL;
    cm_part_claim now;
    cm_error busy = {0};
    char *note = NULL;
    bool complete;
    int rc = lock_name == NULL || done == NULL ? CM_ENOMEM : CM_OK;
    if (rc == CM_OK && (rc = cm_lock_take_as(&out->beside, &request, &lock, &note, &busy)) != CM_OK)
        rc = rc == CM_EEXIST ? CM_OK : cm_fail(err, (cm_status)rc, "%s", busy.text);
    if (rc == CM_OK && lock != NULL) {
        rc = cm_part_claim_read(job, &out->beside, number, &complete, &now, err);
        if (rc == CM_OK && !complete && cm_part_claims_agree(&now, claim))
            rc = cm_store_delete(out->beside.in, done, err);
    }
    cm_lock_release(lock, &out->beside);
    free(note);
    free(lock_name);
    free(done);
    return rc;
}

/* The store is complete no more: parts that are not WRONG have files of their own again. */
static int reopen(cm_job *job, cm_output *out, const cm_parts_report *wrong, cm_error *err)
{
    const char *hash = job->parts->plan.hash;
    int rc = CM_OK;
    for (uint64_t k = 0; rc == CM_OK && k < wrong->nparts; k++) {
        cm_part_claim claim;
        bool complete;
        if (wrong->part[k].state != CM_PART_DONE)
            continue;
        char *name = cm_part_file(k, "done", err);
        cm_json *note = cm_json_object();
        rc = name == NULL ? CM_ENOMEM
                          : cm_part_claim_read(job, &out->beside, k, &complete, &claim, err);
        if (rc == CM_OK)
            rc = cm_json_set(note, "made", cm_part_claim_json(&claim), err);
        if (rc == CM_OK) {
            rc = cm_part_note(&out->beside, name, hash, note, err);
            note = NULL;
        }
        cm_json_free(note);
        free(name);
    }
    if (rc == CM_OK)
        rc = cm_store_sync(out->beside.in, err);
    return rc == CM_OK ? cm_store_delete(out->beside.in, CM_PARTS_COMPLETE, err) : rc;
}

int cm_part_claims_prove(cm_job *job, cm_output *out, uint64_t first, uint64_t n, char **wrong,
                         cm_part_lack *example, cm_error *err)
{
    uint64_t nparts = job->parts->plan.nparts, nwrong = 0;
    cm_part_claim *seen = cm_calloc(n, sizeof(seen[0]), err);
    cm_parts_report all = {.nparts = nparts, .part = cm_calloc(nparts, sizeof(all.part[0]), err)};
    bool complete = false;
    int rc = seen == NULL || all.part == NULL ? CM_ENOMEM : CM_OK;
    *wrong = NULL;
    if (rc == CM_OK && out->store == NULL)
        rc = cm_parts_join(job, out, err);
    if (rc == CM_OK)
        rc = cm_part_claims_see(job, out, first, n, seen, err);
    for (uint64_t k = 0; rc == CM_OK && k < nparts; k++)
        all.part[k].state = CM_PART_DONE;
    for (uint64_t k = 0; rc == CM_OK && k < n; k++) {
        cm_part_claim claim;
        rc = cm_part_claim_read(job, &out->beside, first + k, &complete, &claim, err);
        /* Of a store that an older version completed nothing is known. */
        if (rc != CM_OK || cm_part_claims_agree(&claim, &seen[k]) || (complete && !claim.there))
            continue;
        all.part[first + k].state = CM_PART_MISSING;
        if (nwrong++ == 0)
            *example = (cm_part_lack){first + k, claim, seen[k]};
        if (!complete)
            rc = take_back_one(job, out, first + k, &claim, err);
    }
    if (rc == CM_OK && nwrong > 0 && complete)
        rc = reopen(job, out, &all, err);
    if (rc == CM_OK && nwrong > 0 &&
        (*wrong = cm_parts_list(&all, 1 << CM_PART_MISSING, err)) == NULL)
        rc = CM_ENOMEM;
    cm_parts_report_release(&all);
    free(seen);
    return rc;
}

int cm_part_claims_close(cm_job *job, cm_output *out, cm_error *err)
{
    cm_json *note = cm_json_object(), *list = cm_json_array();
    int rc = CM_OK;
    for (uint64_t k = 0; rc == CM_OK && k < job->parts->plan.nparts; k++) {
        cm_part_claim claim;
        bool complete;
        rc = cm_part_claim_read(job, &out->beside, k, &complete, &claim, err);
        if (rc == CM_OK)
            rc = cm_json_append(list, cm_part_claim_json(&claim), err);
    }
    if (rc == CM_OK) {
        rc = cm_json_set(note, "parts", list, err);
        list = NULL;
    }
    if (rc == CM_OK && job->report->snapshot != NULL)
        rc = cm_json_set(note, CM_PARTS_SNAPSHOT, cm_json_string(job->report->snapshot), err);
    if (rc == CM_OK) {
        rc = cm_part_note(&out->beside, CM_PARTS_COMPLETE, job->parts->plan.hash, note, err);
        note = NULL;
    }
    cm_json_free(list);
    cm_json_free(note);
    return rc == CM_OK ? cm_store_sync(out->beside.in, err) : rc;
}

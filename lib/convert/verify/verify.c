/*
 * Verification that is not circular: the file is read through libnetcdf, never
 * through this project's decoders, and compared with what a reader of the store
 * gets, bit for bit.
 *
 * A sample compares a few boxes of every variable and costs a few milliseconds; full
 * compares all (verify_boxes.h), and sums the digest of every variable on the way.
 */
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "base/cpu.h"
#include "base/number.h"
#include "base/threads.h"
#include "convert/plan/part_cut.h"
#include "convert/plan/verify_memory.h"
#include "convert/verify/compare.h"
#include "convert/verify/verify_boxes.h"
#include "convert/verify/verify_said.h"
#include "convert/verify/witness.h"
#include "format/zarr/conflict_text.h"

enum {
    SAMPLE_BOXES = 3,
    MAX_DIFFERENCES = 10, /* told of one variable */
    INDEX_CACHE = 4 << 20
};

/* One variable, or a box of it, cut into boxes. */
typedef struct subject {
    cm_job_var *var;
    cm_array *array;   /* of the store */
    bool shares_array; /* with the subject before */
    cm_box area;       /* what is compared of the variable */
    cm_grid boxes;
    uint64_t nboxes; /* to be compared: all, or a sample */
    uint64_t first;  /* number of its first task */
    unsigned told;
    cm_digest digest;
} subject;

typedef struct verification {
    cm_job *job;
    subject *subject;
    size_t nsubjects;
    bool full;
    cm_witnesses *witnesses; /* FULL, of many files: these are asked; or NULL */
    unsigned nthreads;
    double share; /* bytes that the boxes of one thread may take */
    uint64_t ntasks;
    _Atomic uint64_t next;
    _Atomic uint64_t nverified;
    pthread_mutex_t lock; /* guards the report, the digests and the errors */
    cm_error error;
    cm_error unreadable; /* FULL: of the first variable that libnetcdf cannot read */
} verification;

static int cut(verification *ver, subject *s, cm_error *err)
{
    const cm_verify_area a = {.var = s->var, .target = &s->array->grid, .area = s->area};
    const bool sample = !ver->full && !cm_verify_is_small(&a);
    uint64_t shape[CM_MAX_RANK];
    cm_verify_box_shape(&a, sample, ver->share, shape);
    int rc = cm_grid_init(&s->boxes, s->var->view.rank, s->area.shape, shape, err);
    s->nboxes = s->boxes.nchunks;
    if (sample && s->nboxes > SAMPLE_BOXES)
        s->nboxes = SAMPLE_BOXES;
    s->first = ver->ntasks;
    ver->ntasks += s->nboxes;
    return rc;
}

/*
 * Where no limit was given, verification may take more than the conversion did, up to half of
 * what is there.
 */
static uint64_t limit_of(const cm_job *job, const cm_verify_memory *memory)
{
    double want = cm_verify_memory_least(memory, cm_job_threads(job));
    uint64_t most = cm_memory_available() / 2 + job->budget.held_nbytes;
    if (job->options->memory > 0 || want <= (double)job->budget.limit_nbytes)
        return job->budget.limit_nbytes;
    most = most > job->budget.limit_nbytes ? most : job->budget.limit_nbytes;
    return want < (double)most ? (uint64_t)want + 1 : most;
}

static int share_memory(verification *ver, cm_error *err)
{
    cm_job *job = ver->job;
    char limit[32], least[32];
    cm_verify_memory memory = {.held = job->budget.held_nbytes};
    for (size_t i = 0; i < ver->nsubjects; i++) {
        const cm_array *a = ver->subject[i].array;
        cm_verify_memory_add(&memory, ver->subject[i].var, a->chunked ? a->chain : NULL,
                             a->grid.chunk_nelem);
    }
    job->budget.limit_nbytes = limit_of(job, &memory);
    ver->nthreads = cm_verify_memory_threads(&memory, job->budget.limit_nbytes, cm_job_threads(job),
                                             &ver->share);
    if (ver->nthreads > 0)
        return CM_OK;
    return cm_fail(
        err, CM_EBUDGET,
        "not enough memory to compare: the limit is %s, the store's chunks need at least %s; "
        "raise `memory`",
        cm_format_size(job->budget.limit_nbytes, limit, sizeof(limit)),
        cm_format_size((uint64_t)cm_verify_memory_least(&memory, 1) + (1 << 20), least,
                       sizeof(least)));
}

/* compare_meta.c has reported a variable whose array is missing or differs. */
static bool comparable(const subject *s, const cm_zarr_node *node)
{
    const cm_job_var *v = s->var;
    bool same = node != NULL && !node->meta.is_group && node->meta.rank == v->view.rank &&
                cm_dtype_equal(&node->meta.dtype, &v->view.type);
    for (unsigned j = 0; same && j < v->view.rank; j++)
        same = v->window.is_part ? v->window.at[j] + v->view.shape[j] <= node->meta.shape[j]
                                 : v->view.shape[j] == node->meta.shape[j];
    return same;
}

static int add_subjects(verification *ver, cm_job_var *v, const cm_zarr_tree *tree, cm_error *err)
{
    cm_box area[CM_PART_MAX_BOXES];
    unsigned n = cm_parts_areas(v, area);
    subject *s = &ver->subject[ver->nsubjects];
    const cm_zarr_node *node = cm_zarr_find(tree, v->name);
    *s = (subject){.var = v};
    /* References are compared by whoever allows the place that they point to. */
    if (n == 0 || v->layout.refer != NULL)
        return CM_OK;
    if (v->stored.as_objects)
        return cm_compare_skip_copied(ver->job, v, err);
    if (!comparable(s, node))
        return CM_OK;
    int rc = cm_zarr_array_open(tree, node, INDEX_CACHE, &s->array, err);
    for (unsigned i = 0; i < n; i++) {
        s[i] = (subject){.var = v, .array = s->array, .shares_array = i > 0, .area = area[i]};
        ver->nsubjects++;
    }
    return rc;
}

static int make_subjects(verification *ver, const cm_zarr_tree *tree, cm_error *err)
{
    cm_job *job = ver->job;
    cm_box area[CM_PART_MAX_BOXES];
    size_t most = 1;
    int rc = CM_OK;
    for (size_t i = 0; i < job->nvars; i++)
        most += 1 + cm_parts_areas(&job->var[i], area);
    if ((ver->subject = cm_calloc(most, sizeof(subject), err)) == NULL)
        return CM_ENOMEM;
    for (size_t i = 0; rc == CM_OK && i < job->nvars; i++)
        rc = add_subjects(ver, &job->var[i], tree, err);
    return rc;
}

/* True when the store has nothing for the chunk that position AT lies in. */
static bool chunk_is_missing(const subject *s, const uint64_t *at, cm_compare_buffers *b,
                             uint64_t *coord)
{
    cm_array *a = s->array;
    cm_fetch fetch = {0};
    if (!a->chunked)
        return false;
    for (unsigned j = 0; j < a->rank; j++)
        coord[j] = cm_grid_find(&a->grid, j, at[j]);
    return a->ops->fetch(a, cm_grid_number(&a->grid, coord), &b->dense, &fetch, NULL) == CM_OK &&
           !fetch.present;
}

/* No memory to note a difference is an error: the store must not pass. */
static int tell(verification *ver, subject *s, const cm_box *box, const cm_comparison *c,
                cm_compare_buffers *b, cm_error *err)
{
    int rc = CM_OK;
    uint64_t at[CM_MAX_RANK], coord[CM_MAX_RANK], rest = c->first;
    char text[CM_MAX_RANK * 21], chunk[CM_MAX_RANK * 21];
    for (unsigned j = box->rank; j-- > 0;) {
        at[j] = s->var->window.at[j] + box->start[j] + rest % box->shape[j];
        rest /= box->shape[j];
    }
    cm_coord_text(box->rank, at, text, sizeof(text));
    bool missing = chunk_is_missing(s, at, b, coord);
    pthread_mutex_lock(&ver->lock);
    if (s->told++ < MAX_DIFFERENCES && missing)
        rc = cm_job_differ(ver->job, err, "%s: chunk %s is missing: element %s is %s in the file",
                           s->var->name, cm_coord_text(box->rank, coord, chunk, sizeof(chunk)),
                           text, c->want);
    else if (s->told <= MAX_DIFFERENCES)
        rc = cm_job_differ(
            ver->job, err, "%s: element %s: %s became %s%s%s; %llu of %llu around it differ",
            s->var->name, text, c->want, c->got, c->file != NULL ? ", and comes from " : "",
            c->file != NULL ? c->file : "", (unsigned long long)c->ndiffer,
            (unsigned long long)cm_box_nelem(box));
    pthread_mutex_unlock(&ver->lock);
    return rc;
}

/*
 * libnetcdf lacks a filter that this project decodes: a sample notes it once for each variable, a
 * full comparison fails when it has compared the others.
 */
static int tell_unverified(verification *ver, subject *s, cm_error *err)
{
    int rc = CM_OK;
    while (s->shares_array)
        s--;
    pthread_mutex_lock(&ver->lock);
    if (ver->full && ver->unreadable.status == CM_OK && err != NULL)
        ver->unreadable = *err;
    else if (!ver->full && s->told++ == 0) {
        ver->job->report->not_compared = true;
        rc = cm_job_warn(ver->job, err, "variable %s is not verified: %s", s->var->name,
                         err == NULL ? "" : err->text);
    }
    pthread_mutex_unlock(&ver->lock);
    return rc;
}

/* A place that can be read in the file and not in the store is a difference like others. */
static int tell_damaged(verification *ver, subject *s, cm_error *err)
{
    int rc = CM_OK;
    pthread_mutex_lock(&ver->lock);
    if (s->told++ < MAX_DIFFERENCES)
        rc = cm_job_differ(ver->job, err, "%s: cannot be read from the store: %s", s->var->name,
                           err->text);
    pthread_mutex_unlock(&ver->lock);
    return rc;
}

static int compare(const verification *ver, const subject *s, const cm_box *box,
                   cm_compare_buffers *b, cm_digest *digest, cm_comparison *out, cm_error *err)
{
    *digest = (cm_digest){0};
    cm_digest *sum = ver->full ? digest : NULL;
    return cm_witnesses_know(ver->witnesses, s->var)
               ? cm_witness_box(ver->witnesses, s->var, s->array, box, b, sum, out, err)
               : cm_compare_box(ver->job, s->var, s->array, box, b, sum, out, err);
}

static int run_task(verification *ver, uint64_t task, cm_compare_buffers *b, cm_error *err)
{
    size_t i = 0;
    while (i + 1 < ver->nsubjects && ver->subject[i + 1].first <= task)
        i++;
    subject *s = &ver->subject[i];
    uint64_t coord[CM_MAX_RANK];
    cm_digest digest;
    cm_comparison found;
    cm_box box;
    cm_grid_coord(&s->boxes, cm_verify_box_number(s->boxes.nchunks, s->nboxes, task - s->first),
                  coord);
    cm_grid_box(&s->boxes, coord, &box);
    for (unsigned j = 0; j < box.rank; j++)
        box.start[j] += s->area.start[j];
    cm_monitor_at(ver->job->options->monitor, s->var->name, task - s->first, "comparing");
    int rc = compare(ver, s, &box, b, &digest, &found, err);
    /* Tries twice more: an answer cut short by the network looks like a damaged object. */
    for (int again = 0; again < 2 && rc == CM_EFORMAT && found.store_failed; again++)
        rc = compare(ver, s, &box, b, &digest, &found, err);
    if (rc == CM_EUNSUPPORTED)
        return tell_unverified(ver, s, err);
    if (rc == CM_EFORMAT && found.store_failed)
        rc = tell_damaged(ver, s, err);
    if (rc == CM_OK && found.ndiffer > 0)
        rc = tell(ver, s, &box, &found, b, err);
    if (rc != CM_OK)
        return rc;
    pthread_mutex_lock(&ver->lock);
    cm_digest_add(&s->digest, &digest);
    pthread_mutex_unlock(&ver->lock);
    if (!found.store_failed)
        atomic_fetch_add(&ver->nverified, cm_box_nelem(&box));
    cm_monitor_add(ver->job->options->monitor, cm_box_nelem(&box) * cm_verify_itemsize(s->var));
    return CM_OK;
}

static void worker_main(void *context, unsigned index)
{
    verification *ver = context;
    cm_compare_buffers b = {0};
    cm_error err = {0};
    (void)index;
    int rc = (b.ctx = cm_codec_ctx_create(&err)) == NULL ? CM_ENOMEM : CM_OK;
    while (rc == CM_OK) {
        uint64_t task = atomic_fetch_add(&ver->next, 1);
        if (task >= ver->ntasks)
            break;
        if (cm_monitor_canceled(ver->job->options->monitor))
            rc = cm_fail(&err, CM_ECANCELED, "stopped by request");
        else
            rc = run_task(ver, task, &b, &err);
    }
    if (rc != CM_OK) {
        pthread_mutex_lock(&ver->lock);
        if (ver->error.status == CM_OK)
            ver->error = err;
        pthread_mutex_unlock(&ver->lock);
        atomic_store(&ver->next, ver->ntasks);
    }
    cm_compare_buffers_release(&b);
}

static uint64_t work_nbytes(const verification *ver)
{
    uint64_t total = 0;
    for (size_t i = 0; i < ver->nsubjects; i++) {
        const subject *s = &ver->subject[i];
        bool all = s->nboxes == s->boxes.nchunks;
        uint64_t nbytes = cm_verify_itemsize(s->var);
        for (unsigned j = 0; j < s->var->view.rank; j++)
            nbytes *= all ? s->area.shape[j] : s->boxes.chunk[j];
        total += all ? nbytes : nbytes * s->nboxes;
    }
    return total;
}

static int keep_digests(const verification *ver, cm_error *err)
{
    char text[33];
    cm_digest sum = {0};
    for (size_t i = 0; i < ver->nsubjects; i++) {
        const subject *s = &ver->subject[i];
        cm_transform_variable *v = &ver->job->report->variable[s->var - ver->job->var];
        if (!s->shares_array)
            sum = (cm_digest){0};
        cm_digest_add(&sum, &s->digest);
        free(v->digest);
        if ((v->digest = cm_strdup(cm_digest_text(&sum, text), err)) == NULL)
            return CM_ENOMEM;
    }
    return CM_OK;
}

static int compare_data(verification *ver, const cm_zarr_tree *tree, cm_error *err)
{
    cm_job *job = ver->job;
    int rc = make_subjects(ver, tree, err);
    if (rc != CM_OK)
        return rc;
    rc = share_memory(ver, err);
    for (size_t i = 0; rc == CM_OK && i < ver->nsubjects; i++)
        rc = cut(ver, &ver->subject[i], err);
    if (rc == CM_OK && ver->full)
        rc = cm_witnesses_open(job, tree, ver->share, &ver->witnesses, err);
    if (rc != CM_OK || ver->ntasks == 0)
        return rc;
    cm_monitor_phase(job->options->monitor, CM_PHASE_VERIFYING, work_nbytes(ver));
    cm_threads_run(ver->nthreads, worker_main, ver);
    if (ver->error.status != CM_OK && err != NULL)
        *err = ver->error;
    rc = ver->error.status;
    for (size_t i = 0; rc == CM_OK && i < ver->nsubjects; i++)
        if (!ver->subject[i].shares_array &&
            !cm_witnesses_know(ver->witnesses, ver->subject[i].var))
            rc = cm_job_verify_said(job, ver->subject[i].var, tree, ver->subject[i].array,
                                    ver->full, err);
    return rc;
}

/*
 * Conflicts between readers of the store are differences, whichever of them agrees with the file.
 */
static int differ_of(cm_job *job, const cm_zarr_conflicts *conflicts, int zarr_format,
                     cm_error *err)
{
    int rc = CM_OK;
    for (size_t i = 0; rc == CM_OK && i < conflicts->n; i++) {
        char *text = cm_conflict_text(&conflicts->item[i], zarr_format, err);
        rc = text == NULL ? CM_ENOMEM : cm_job_differ(job, err, "%s", text);
        free(text);
    }
    return rc;
}

/* Windows of arrays that grow are described as those arrays will be. */
static void lengthen(cm_job *job, bool longer)
{
    for (size_t i = 0; i < job->nvars; i++) {
        cm_job_var *v = &job->var[i];
        if (!v->window.is_part)
            continue;
        v->doc.keeps_words = !longer; /* those are not the source's */
        for (unsigned j = 0; j < v->view.rank; j++)
            v->doc.meta.shape[j] = longer ? v->window.whole[j] : v->view.shape[j];
    }
}

static int describe_to_be(cm_job *job, cm_store **documents, cm_error *err)
{
    const int format = job->zarr_format;
    if (job->nvars > 0 && job->var[0].window.is_part)
        job->zarr_format = job->var[0].doc.meta.zarr_format;
    lengthen(job, true);
    int rc = cm_job_describe_in_memory(job, documents, err);
    lengthen(job, false);
    job->zarr_format = format;
    return rc;
}

/*
 * The tree of STORE; of a part, whose store has no metadata yet, by those that it will
 * have, which *DOCUMENTS then holds.
 */
static int open_tree(verification *ver, cm_store *store, cm_store **documents, cm_zarr_tree *tree,
                     cm_error *err)
{
    cm_job *job = ver->job;
    cm_zarr_conflicts conflicts = {0};
    cm_store *from = store;
    int rc = CM_OK;
    if (job->terms.in_part && (rc = describe_to_be(job, documents, err)) == CM_OK)
        from = *documents;
    if (rc == CM_OK)
        rc = ver->full ? cm_zarr_open_whole(from, tree, &conflicts, err)
                       : cm_zarr_open(from, tree, err);
    tree->store = store;
    if (rc != CM_OK)
        cm_error_place(err, cm_store_name(store));
    if (rc == CM_OK)
        rc = differ_of(job, &conflicts, tree->zarr_format, err);
    cm_zarr_conflicts_release(&conflicts);
    return rc;
}

/* After all that can be compared was. */
static int fail_unreadable(const verification *ver, cm_error *err)
{
    const cm_transform_report *r = ver->job->report;
    if (r->ndifferences > 0)
        return cm_fail(err, CM_EUNSUPPORTED, "%s; another variable differs: %s",
                       ver->unreadable.text, r->difference[0]);
    if (ver->nverified > 0)
        return cm_fail(err, CM_EUNSUPPORTED, "%s; what libnetcdf reads (%llu %s) is equal",
                       ver->unreadable.text, (unsigned long long)ver->nverified,
                       cm_of_count(ver->nverified, "element", "elements"));
    return cm_fail(err, CM_EUNSUPPORTED, "%s", ver->unreadable.text);
}

static int compare_boxes(cm_job *job, cm_store *store, cm_error *err)
{
    verification ver = {.job = job};
    cm_zarr_tree tree = {0};
    cm_store *documents = NULL;
    ver.full = job->options->verify == CM_VERIFY_FULL;
    pthread_mutex_init(&ver.lock, NULL);
    int rc = open_tree(&ver, store, &documents, &tree, err);
    /* A complete store that is to be resumed may be of another source. */
    const bool metadata = ver.full || job->report->finished;
    if (rc == CM_OK && metadata && !job->terms.grows)
        rc = cm_job_compare_meta(job, &tree, err);
    if (rc == CM_OK)
        rc = compare_data(&ver, &tree, err);
    if (rc == CM_OK && ver.unreadable.status != CM_OK)
        rc = fail_unreadable(&ver, err);
    if (rc == CM_OK && ver.full)
        rc = keep_digests(&ver, err);
    job->report->nverified = ver.nverified;
    job->evidence.witnessed =
        rc == CM_OK && ver.witnesses != NULL && job->report->ndifferences == 0;
    for (size_t i = 0; i < ver.nsubjects; i++)
        if (!ver.subject[i].shares_array)
            cm_array_free(ver.subject[i].array);
    cm_witnesses_free(ver.witnesses);
    free(ver.subject);
    cm_zarr_tree_release(&tree);
    cm_store_free(documents);
    pthread_mutex_destroy(&ver.lock);
    if (rc == CM_OK && job->report->ndifferences > 0)
        rc = cm_fail(err, CM_EDIFFER, "the store differs from the %s: %s",
                     job->source->kind == CM_DATASET_ZARR ? "source" : "file",
                     job->report->difference[0]);
    return rc;
}

int cm_job_verify(cm_job *job, cm_store *store, cm_error *err)
{
    return cm_job_compares_digests(job) ? cm_job_verify_digests(job, store, err)
                                        : compare_boxes(job, store, err);
}

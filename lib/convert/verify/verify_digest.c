/*
 * After the run: every chunk that must be there is there, and source and target
 * hold the same elements, bit for bit.  In full this is told by the digests of
 * both, for which each chunk is decoded once; only where they differ are the
 * elements compared side by side, to say which.
 */
#include <stdlib.h>
#include <string.h>

#include "base/number.h"
#include "convert/verify/compare.h"
#include "digest/pairs.h"
#include "format/missing.h"
#include "format/zarr/dataset.h"

enum {
    INDEX_CACHE = 1 << 20
};

typedef struct verification {
    cm_job *job;
    cm_zarr_tree tree; /* of the target */
    cm_pair *pair;
    cm_job_var **of; /* the variable of each pair */
    size_t n;
    size_t cache_nbytes; /* of the shard indices of one array */
    size_t caches;       /* of all */
} verification;

/*
 * Chunks that are absent must have been left out on purpose.  Which ones were
 * inside shards that an earlier run finished is not known; the comparison of
 * elements tells there.
 */
static int check_complete(verification *v, cm_job_var *s, const cm_zarr_node *node, cm_error *err)
{
    cm_presence there;
    const cm_stop stop = {cm_monitor_cancels, v->job->options->monitor};
    cm_zarr_written counts = cm_zarr_writer_counts(s->move.writer);
    int rc = cm_presence_find(v->tree.store, node->path, &node->meta, cm_job_threads(v->job), &stop,
                              NULL, &there, err);
    if (rc != CM_OK)
        return rc;
    uint64_t expected = there.nchunks - counts.nskipped;
    bool counted = there.bit != NULL && (counts.nkept == 0 || !s->layout.sharded);
    if (counted && there.npresent != expected)
        rc = cm_job_differ(v->job, err, "%s: %llu %s there where %llu should be", cm_job_name(s),
                           (unsigned long long)there.npresent,
                           cm_of_count(there.npresent, "chunk is", "chunks are"),
                           (unsigned long long)expected);
    cm_presence_release(&there);
    return rc;
}

/*
 * ATTRS as a file has them, where NaN is text, without the names of dimensions where only version 2
 * has those among them, and without the missing value where only version 3 has that.
 */
static int as_stored(const cm_json *attrs, bool names, bool missing, cm_json **out, cm_error *err)
{
    cm_buf text = {0};
    int rc = cm_json_write(attrs, false, &text, err);
    if (rc == CM_OK)
        rc = cm_json_parse(text.data, text.nbytes, out, err);
    cm_buf_release(&text);
    if (rc == CM_OK && !names)
        cm_json_remove(*out, CM_ZARR_V2_DIMENSIONS);
    if (rc == CM_OK && !missing)
        cm_json_remove(*out, "_FillValue");
    return rc;
}

/* Whether readers of both mask the same number; NaN is missing whatever is said. */
static bool same_missing(const cm_zarr_meta *was, const cm_zarr_meta *is)
{
    uint8_t a[8] = {0}, b[8] = {0};
    bool masks = cm_zarr_missing(was, a) && !cm_missing_is_nan(&was->dtype, a);
    bool masked = cm_zarr_missing(is, b) && !cm_missing_is_nan(&is->dtype, b);
    return !was->has_dim_names || (masks == masked && (!masks || memcmp(a, b, sizeof(a)) == 0));
}

/* A new name or fill value changes what is said, too: then META is what was to be written. */
static int compare_attrs(verification *v, const cm_job_var *s, const cm_zarr_meta *is,
                         cm_error *err)
{
    const cm_zarr_meta *was = s->source->words;
    bool stay = s->doc.keeps_words && v->job->options->rename.n == 0;
    bool names = s->doc.keeps_words && was->zarr_format == is->zarr_format;
    bool missing = names || !s->doc.keeps_words;
    cm_json *want = NULL, *got = NULL;
    int rc = as_stored(stay ? was->attrs : s->doc.meta.attrs, names, missing, &want, err);
    if (rc == CM_OK)
        rc = as_stored(is->attrs, names, missing, &got, err);
    if (rc == CM_OK && !cm_json_equal(want, got))
        rc = cm_job_differ(v->job, err, "%s: its attributes differ", cm_job_name(s));
    if (rc == CM_OK && s->doc.keeps_words && !same_missing(was, is))
        rc = cm_job_differ(v->job, err, "%s: its missing value differs", cm_job_name(s));
    cm_json_free(want);
    cm_json_free(got);
    return rc;
}

/* Bytes that the workers may hold beside those of the process. */
static uint64_t room(const cm_job *job)
{
    uint64_t left = cm_budget_free(&job->budget);
    return left > 1 << 20 ? left : 1 << 20;
}

/* A quarter of the room at most goes to the shard indices of all arrays. */
static void share_caches(verification *v)
{
    size_t n = 0, quarter = (size_t)(room(v->job) / 4);
    for (size_t i = 0; i < v->job->nvars; i++)
        n += v->job->var[i].layout.sharded;
    v->cache_nbytes = n > 0 && quarter / n < INDEX_CACHE ? quarter / n : INDEX_CACHE;
    v->caches = n * v->cache_nbytes;
}

static int add_pair(verification *v, cm_job_var *s, cm_error *err)
{
    const cm_zarr_node *node = cm_zarr_find(&v->tree, s->name);
    if (node == NULL || node->meta.is_group)
        return cm_job_differ(v->job, err, "%s: is missing in the target", cm_job_name(s));
    if (s->stored.as_objects)
        return cm_compare_skip_copied(v->job, s, err);
    if (node->meta.rank != s->doc.meta.rank ||
        !cm_dtype_equal(&node->meta.dtype, &s->doc.meta.dtype) ||
        memcmp(node->meta.shape, s->doc.meta.shape,
               s->doc.meta.rank * sizeof(s->doc.meta.shape[0])) != 0)
        return cm_job_differ(v->job, err, "%s: has another type or shape", cm_job_name(s));
    int rc = compare_attrs(v, s, &node->meta, err);
    if (rc == CM_OK)
        rc = check_complete(v, s, node, err);
    cm_pair *p = &v->pair[v->n];
    if (rc == CM_OK)
        rc = cm_zarr_array_open(&v->tree, node, v->cache_nbytes, &p->got, err);
    if (rc != CM_OK)
        return rc;
    p->want = s->source->array;
    p->sample = true;
    v->of[v->n++] = s;
    return CM_OK;
}

static int tell(verification *v, size_t i, cm_error *err)
{
    const cm_pair *p = &v->pair[i];
    int rc = CM_OK;
    for (unsigned k = 0; rc == CM_OK && k < p->ndifferences; k++)
        rc = cm_job_differ(v->job, err, "%s: %s", cm_job_name(v->of[i]), p->difference[k]);
    return rc;
}

/*
 * Strings are there as their chunk has them and as the box has them, in buffers that double as
 * they grow.
 */
static unsigned choose_threads(const cm_job *job)
{
    unsigned n = cm_job_threads(job);
    while (n > 1 && room(job) / n < 4 * (uint64_t)job->budget.text_nbytes)
        n--;
    return n;
}

/*
 * Retries with fewer threads if the memory share of each was too small: as many as planned, which
 * is enough for chunks, then one, for text.
 */
static int run(verification *v, cm_pair *pair, size_t n, cm_error *err)
{
    unsigned nthreads = choose_threads(v->job);
    cm_monitor *monitor = v->job->options->monitor;
    if (n == 0)
        return CM_OK;
    for (;;) {
        int rc = cm_pairs_run(pair, n, nthreads, room(v->job) - v->caches, monitor, err);
        if (rc != CM_EBUDGET || nthreads == 1)
            return rc;
        for (size_t i = 0; i < n; i++) {
            cm_pair_release(&pair[i]);
            pair[i] = (cm_pair){.want = pair[i].want, .got = pair[i].got, .sample = pair[i].sample};
        }
        nthreads = nthreads > v->job->budget.nthreads ? v->job->budget.nthreads : 1;
    }
}

static int verify_sample(verification *v, cm_error *err)
{
    int rc = run(v, v->pair, v->n, err);
    for (size_t i = 0; rc == CM_OK && i < v->n; i++) {
        v->job->report->nverified += v->pair[i].nverified;
        rc = tell(v, i, err);
    }
    return rc;
}

/* Source and target of pair I have other digests: which elements? */
static int find_difference(verification *v, size_t i, const char *want, const char *got,
                           cm_error *err)
{
    cm_pair *p = &v->pair[i];
    p->sample = false;
    int rc =
        cm_job_differ(v->job, err, "%s: digest %s became %s", cm_job_name(v->of[i]), want, got);
    if (rc == CM_OK)
        rc = run(v, p, 1, err);
    return rc == CM_OK ? tell(v, i, err) : rc;
}

static int verify_full(verification *v, cm_error *err)
{
    cm_pair *side = cm_calloc(2 * v->n + 1, sizeof(side[0]), err);
    if (side == NULL)
        return CM_ENOMEM;
    for (size_t i = 0; i < v->n; i++) {
        side[2 * i].want = v->pair[i].want;
        side[2 * i + 1].want = v->pair[i].got;
    }
    int rc = run(v, side, 2 * v->n, err);
    for (size_t i = 0; rc == CM_OK && i < v->n; i++) {
        char want[33], got[33];
        char **digest = &v->job->report->variable[v->of[i]->index].digest;
        cm_digest_text(&side[2 * i].digest, want);
        cm_digest_text(&side[2 * i + 1].digest, got);
        v->job->report->nverified += side[2 * i].nverified;
        if ((*digest = cm_strdup(got, err)) == NULL)
            rc = CM_ENOMEM;
        else if (strcmp(want, got) != 0)
            rc = find_difference(v, i, want, got, err);
    }
    free(side);
    return rc;
}

int cm_job_verify_digests(cm_job *job, cm_store *store, cm_error *err)
{
    verification v = {.job = job};
    share_caches(&v);
    int rc = cm_zarr_open(store, &v.tree, err);
    if (rc != CM_OK)
        cm_error_place(err, cm_store_name(store));
    v.pair = cm_calloc(job->nvars + 1, sizeof(v.pair[0]), err);
    v.of = cm_calloc(job->nvars + 1, sizeof(v.of[0]), err);
    if (rc == CM_OK && (v.pair == NULL || v.of == NULL))
        rc = CM_ENOMEM;
    for (size_t i = 0; rc == CM_OK && i < job->nvars; i++)
        rc = add_pair(&v, &job->var[i], err);
    if (rc == CM_OK)
        rc = job->options->verify == CM_VERIFY_FULL ? verify_full(&v, err) : verify_sample(&v, err);
    for (size_t i = 0; i < v.n; i++) {
        cm_array_free(v.pair[i].got);
        cm_pair_release(&v.pair[i]);
    }
    free(v.pair);
    free(v.of);
    cm_zarr_tree_release(&v.tree);
    if (rc == CM_OK && job->report->ndifferences > 0)
        rc = cm_fail(err, CM_EDIFFER, "the target differs from the source: %s",
                     job->report->difference[0]);
    return rc;
}

#include "convert/plan/inodes.h"

#include <stdio.h>
#include <sys/statvfs.h>

#include "base/number.h"
#include "chunkcalc/recommend.h"
#include "plan/autochunk.h"
#include "plan/meetings.h"

enum {
    SHARD = 256 << 20,   /* bytes, and */
    STRING_ESTIMATE = 64 /* of an element of text: as layout.c has them */
};

/* "c/0/1/2": a folder for "c", and for each number but the last. */
static uint64_t folders_of(const cm_job_var *v)
{
    const cm_zarr_meta *m = &v->doc.meta;
    const cm_grid *grid = cm_zarr_writer_outer_grid(v->move.writer);
    uint64_t all = 1, each = 1;
    if (m->separator != '/' || grid->rank == 0)
        return all;
    all += m->zarr_format == 3 && !m->key_v2;
    for (unsigned j = 0; j + 1 < grid->rank; j++) {
        each = cm_mul_sat(each, grid->count[j]);
        all = cm_add_sat(all, each);
    }
    return all;
}

/* Files of V were it stored in shards. */
static int count_in_shards(const cm_job_var *v, uint64_t *files, cm_error *err)
{
    const cm_grid *grid = cm_zarr_writer_grid(v->move.writer);
    const uint64_t outer = cm_zarr_writer_outer_grid(v->move.writer)->nchunks;
    const uint32_t itemsize = v->view.as_strings ? STRING_ESTIMATE : v->view.type.nbytes;
    uint64_t n = outer;
    int rc = CM_OK;
    if (outer == grid->nchunks && outer > 1 && !v->layout.rectilinear)
        rc = cm_autoshard_count(grid->rank, grid->shape, itemsize, grid->chunk, SHARD, &n, err);
    *files = cm_add_sat(*files, n);
    return rc;
}

static bool has_writer(const cm_job_var *v)
{
    return v->move.writer != NULL && !v->move.absent;
}

/* Files of metadata, about: those of groups are few. */
static uint64_t count_documents(const cm_job *job)
{
    return (job->nvars + 1) * (job->zarr_format == 2 ? 2 : 1);
}

static int count_all(const cm_job *job, bool local, cm_transform_inodes *out, cm_error *err)
{
    uint64_t in_shards = count_documents(job);
    int rc = CM_OK;
    out->nfiles = in_shards;
    out->nfolders = local;
    for (size_t i = 0; i < job->nvars && rc == CM_OK; i++) {
        const cm_job_var *v = &job->var[i];
        if (v->stored.as_objects) {
            out->nfiles = cm_add_sat(out->nfiles, v->plan.counts.chunk_writes);
            in_shards = cm_add_sat(in_shards, v->plan.counts.chunk_writes);
        }
        if (!has_writer(v))
            continue;
        out->nfiles = cm_add_sat(out->nfiles, cm_zarr_writer_outer_grid(v->move.writer)->nchunks);
        if (local)
            out->nfolders = cm_add_sat(out->nfolders, folders_of(v));
        rc = count_in_shards(v, &in_shards, err);
    }
    out->nin_shards = in_shards;
    return rc;
}

/* File systems that make inodes as they need them say nothing. */
static bool find_free(const char *folder, uint64_t *nfree)
{
    struct statvfs fs;
    if (statvfs(folder, &fs) != 0 || fs.f_files == 0)
        return false;
    *nfree = fs.f_favail;
    return true;
}

static int warn_of_shortage(cm_job *job, const cm_transform_inodes *n, cm_error *err)
{
    char instead[96] = "; larger `chunks` make fewer";
    if (n->nin_shards < n->nfiles && job->zarr_format == 3)
        snprintf(instead, sizeof instead, "; `shards` auto makes %llu files",
                 (unsigned long long)n->nin_shards);
    int rc = cm_job_warn(job, err,
                         "up to %llu files and %llu %s are to be written, and the file system has "
                         "inodes for %llu%s",
                         (unsigned long long)n->nfiles, (unsigned long long)n->nfolders,
                         cm_of_count(n->nfolders, "folder", "folders"),
                         (unsigned long long)n->nfree, instead);
    /* A run that fails for this reason says no others. */
    cm_job_tell_warnings(job);
    return rc;
}

int cm_job_count_inodes(cm_job *job, bool local, const char *folder, cm_error *err)
{
    cm_transform_inodes *n = &job->report->inodes;
    int rc = count_all(job, local, n, err);
    if (rc != CM_OK)
        return rc;
    n->knows_free = folder != NULL && find_free(folder, &n->nfree);
    n->short_of = n->knows_free && cm_add_sat(n->nfiles, n->nfolders) > n->nfree;
    n->many = n->nfiles > CM_MANY_OBJECTS;
    return n->short_of ? warn_of_shortage(job, n, err) : CM_OK;
}

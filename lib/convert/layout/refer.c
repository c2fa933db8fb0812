/* Chooses the variables that are referred to, and their chunks. */
#include "convert/layout/refer.h"

#include <stdlib.h>
#include <string.h>

#include "base/number.h"
#include "convert/layout/keep.h"
#include "format/multi/multi.h"
#include "plan/meetings.h"

#define COORDINATE_NBYTES (UINT64_C(4) << 20)  /* coordinates too, up to here */
#define MOST_INLINE       (UINT64_C(64) << 20) /* and what cannot be referred to */
#define SLAB_CHUNK_NBYTES (UINT64_C(4) << 20)  /* of contiguous data, where it may be chosen */

int cm_refer_create(size_t n, cm_refer **out, cm_error *err)
{
    cm_refer *r = *out = cm_calloc(1, sizeof(*r), err);
    if (r != NULL && (r->part = cm_calloc(n + 1, sizeof(r->part[0]), err)) != NULL)
        return CM_OK;
    free(r);
    *out = NULL;
    return CM_ENOMEM;
}

void cm_refer_free(cm_refer *r)
{
    if (r == NULL)
        return;
    cm_located_release(&r->own);
    free(r->part);
    free(r);
}

uint64_t cm_refer_nbytes(const cm_job_var *v)
{
    uint64_t n = v->view.type.nbytes;
    for (unsigned j = 0; j < v->view.rank; j++)
        n = cm_mul_sat(n, v->view.shape[j]);
    return n;
}

/* ---- the parts ---- */

static int add_whole(cm_job *job, const cm_job_var *v, cm_refer *r, cm_error *err)
{
    cm_refer_part *p = &r->part[r->nparts];
    int rc = cm_dataset_locate(job->source, v->source, &r->own, err);
    if (rc != CM_OK)
        return rc;
    p->path = job->source->path;
    p->located = &r->own;
    for (unsigned j = 0; j < v->view.rank; j++)
        p->count[j] = p->length[j] = v->source->shape[j];
    r->nparts++;
    return CM_OK;
}

void cm_refer_add(cm_refer *r, const cm_multi_spec *spec, const cm_multi_var *m,
                  const cm_multi_part *from, const cm_located *l)
{
    cm_refer_part *p = &r->part[r->nparts++];
    p->path = spec->file[from->file].path;
    p->located = l;
    for (unsigned j = 0; j < m->rank; j++)
        p->count[j] = p->length[j] = m->shape[j];
    for (unsigned k = 0; k < m->naxes; k++) {
        const unsigned j = m->axis[k];
        p->origin[j] = from->origin[k];
        p->first[j] = from->first[k];
        p->count[j] = from->count[k];
        p->length[j] = from->length[k];
    }
}

/* *WHY: why the parts of a joined variable are no places of its own chunks. */
static int add_joined(cm_job *job, const cm_job_var *v, const cm_multi_spec *spec, cm_refer *r,
                      const char **why, cm_error *err)
{
    const cm_multi_var *m = &spec->var[v->source->index];
    *why = m->values != NULL || m->texts != NULL ? "it is made while files are joined" : NULL;
    for (size_t i = 0; i < m->nparts && *why == NULL; i++) {
        const cm_multi_part *from = &m->part[i];
        const cm_located *located;
        if (from->how != NULL) {
            *why = from->how->pads ? "its texts are shorter in some files"
                                   : "some files store it otherwise";
            break;
        }
        int rc = cm_multi_part_located(job->source, v->source, i, &located, err);
        if (rc != CM_OK)
            return rc;
        cm_refer_add(r, spec, m, from, located);
    }
    return CM_OK;
}

/* ---- what readers can undo ---- */

static const char *form_obstacle(const cm_job_var *v, const cm_form *form)
{
    if (form->kind == CM_LOCATED_NOT)
        return "its bytes have no addresses that other readers could use";
    if (form->kind != CM_LOCATED_CHUNKS)
        return NULL;
    size_t nbytes = v->view.type.nbytes;
    for (unsigned j = 0; j < v->view.rank; j++)
        nbytes *= form->chunk[j];
    return cm_job_codecs_obstacle(form->codecs, form->ncodecs, nbytes);
}

/* All parts that store anything store it alike; *WHY otherwise. */
static const char *common_form(const cm_job_var *v, cm_refer *r)
{
    for (size_t i = 0; i < r->nparts; i++) {
        const cm_form *form = r->part[i].located->form;
        if (form->kind == CM_LOCATED_UNWRITTEN)
            continue;
        if (r->form != NULL && !cm_form_decodes_alike(r->form, form))
            return "files store it in different chunks, or with different codecs";
        r->form = form;
    }
    return r->form == NULL ? NULL : form_obstacle(v, r->form);
}

static const char *find_mask(const cm_refer *r)
{
    for (size_t i = 0; i < r->nparts; i++) {
        const cm_located *l = r->part[i].located;
        for (uint64_t k = 0; l->place != NULL && k < l->nplaces; k++)
            if (l->place[k].nbytes > 0 && l->place[k].mask != 0)
                return "filters were left out for some of its chunks, which Zarr cannot say";
    }
    return NULL;
}

/* ---- chunks ---- */

/*
 * Of contiguous data a chunk is some whole rows: as many as divide what each part has, so that no
 * chunk ends behind the data, and about SLAB_CHUNK_NBYTES; one row where rows have gaps between.
 */
static void slab_chunk(const cm_refer *r, const cm_job_var *v, cm_layout *out)
{
    uint64_t row = v->view.type.nbytes, common = 0, most = 0;
    bool gaps = false;
    for (unsigned j = 0; j < v->view.rank; j++)
        out->chunk[j] = v->view.shape[j];
    if (v->view.rank == 0)
        return;
    for (unsigned j = 1; j < v->view.rank; j++)
        row = cm_mul_sat(row, v->view.shape[j]);
    for (size_t i = 0; i < r->nparts; i++) {
        common = cm_gcd_u64(common, r->part[i].count[0]);
        gaps |= r->part[i].located->form->kind == CM_LOCATED_SLAB &&
                r->part[i].located->row_stride != row;
    }
    for (uint64_t k = 1; k <= common && !gaps && k * row <= SLAB_CHUNK_NBYTES; k++)
        if (common % k == 0)
            most = k;
    out->chunk[0] = most > 0 ? most : 1;
}

const char *cm_refer_cut_obstacle(const cm_refer *r, const cm_job_var *v)
{
    static const char reason[] = "its files are not joined where chunks begin";
    for (size_t i = 0; i < r->nparts; i++) {
        const cm_refer_part *p = &r->part[i];
        bool slab = p->located->form->kind != CM_LOCATED_CHUNKS;
        for (unsigned j = 0; j < v->view.rank; j++) {
            bool last = p->origin[j] + p->count[j] == v->view.shape[j];
            if (p->origin[j] % v->layout.chunk[j] != 0 ||
                (!slab && p->first[j] % v->layout.chunk[j] != 0) ||
                (p->count[j] % v->layout.chunk[j] != 0 && !last))
                return reason;
            /* A slab is contiguous only in whole rows. */
            if (slab && j > 0 && (p->count[j] != p->length[j] || p->count[j] != v->view.shape[j]))
                return reason;
        }
    }
    return NULL;
}

static void count_missing(const cm_job_var *v, cm_refer *r)
{
    uint64_t there = 0, all = 1;
    for (unsigned j = 0; j < v->view.rank; j++)
        all = cm_mul_sat(all, cm_div_ceil(v->view.shape[j], v->layout.chunk[j]));
    for (size_t i = 0; i < r->nparts; i++) {
        const cm_refer_part *p = &r->part[i];
        uint64_t n = 1;
        for (unsigned j = 0; j < v->view.rank; j++)
            n *= cm_div_ceil(p->count[j], v->layout.chunk[j]);
        if (p->located->form->kind == CM_LOCATED_SLAB)
            there += n;
        for (uint64_t k = 0; p->located->place != NULL && k < p->located->nplaces; k++)
            there += p->located->place[k].nbytes > 0;
    }
    r->nmissing = all > there ? all - there : 0;
}

const char *cm_refer_form_obstacle(const cm_job_var *v, cm_refer *r)
{
    const char *why = common_form(v, r);
    return why != NULL ? why : find_mask(r);
}

/* NULL: V is referred to. */
static int examine(cm_job *job, const cm_job_var *v, cm_layout *out, const char **why,
                   cm_error *err)
{
    const cm_multi_spec *spec = cm_multi_spec_of(job->source);
    size_t n = spec != NULL ? spec->var[v->source->index].nparts : 1;
    *why = NULL;
    int rc = cm_refer_create(n, &out->refer, err);
    if (rc != CM_OK)
        return rc;
    cm_refer *r = out->refer;
    rc = spec != NULL ? add_joined(job, v, spec, r, why, err) : add_whole(job, v, r, err);
    if (rc != CM_OK || *why != NULL)
        return rc;
    if ((*why = cm_refer_form_obstacle(v, r)) != NULL)
        return CM_OK;
    if (r->form != NULL && r->form->kind == CM_LOCATED_CHUNKS)
        memcpy(out->chunk, r->form->chunk, sizeof(out->chunk));
    else
        slab_chunk(r, v, out);
    *why = cm_refer_cut_obstacle(r, v);
    count_missing(v, r);
    return CM_OK;
}

/* ---- choosing ---- */

static bool belongs_inline(const cm_job_var *v)
{
    uint64_t nbytes = cm_refer_nbytes(v);
    return v->view.as_strings || v->view.rank == 0 || nbytes <= CM_REFER_INLINE_NBYTES ||
           (v->source->is_coordinate && nbytes <= COORDINATE_NBYTES);
}

static int put_inline(cm_job *job, const cm_job_var *v, cm_layout *out, const char *why,
                      cm_error *err)
{
    cm_refer_free(out->refer);
    out->refer = NULL;
    out->pass = CM_PASS_NOTHING;
    out->codec = (cm_codec_choice){.compressor = {.id = CM_CODEC_NONE}};
    for (unsigned j = 0; j < v->view.rank; j++)
        out->chunk[j] = v->view.shape[j] > 0 ? v->view.shape[j] : 1;
    if (cm_refer_nbytes(v) <= MOST_INLINE)
        return CM_OK;
    char size[32];
    cm_format_size(cm_refer_nbytes(v), size, sizeof(size));
    return cm_fail(err, CM_EUNSUPPORTED,
                   "%s %s: no references can be made: %s, and its %s are too many to stand in the "
                   "document; convert it, or leave it out with `exclude`",
                   cm_job_noun(job), cm_job_name(v), why, size);
}

static int choose(cm_job *job, const cm_job_var *v, cm_layout *out, cm_error *err)
{
    const char *why = NULL;
    if (belongs_inline(v))
        return put_inline(job, v, out, "it is text", err);
    if (v->view.converts)
        why = "its values would be changed";
    else if (!v->view.whole)
        why = "only a part of it is chosen";
    int rc = why == NULL ? examine(job, v, out, &why, err) : CM_OK;
    if (rc != CM_OK)
        return rc;
    if (why != NULL)
        return put_inline(job, v, out, why, err);
    out->pass = CM_PASS_BYTES;
    return CM_OK;
}

int cm_job_refer_layout(cm_job *job, cm_error *err)
{
    int rc = CM_OK;
    if (job->source->kind != CM_DATASET_NETCDF)
        return cm_fail(err, CM_EUNSUPPORTED, "references are made of NetCDF and HDF5 files");
    for (size_t i = 0; rc == CM_OK && i < job->nvars; i++)
        rc = choose(job, &job->var[i], &job->var[i].layout, err);
    return rc;
}

int cm_job_refer_codecs(const cm_job_var *v, cm_codec_spec **out, size_t *n, cm_error *err)
{
    const cm_form *form = v->layout.refer->form;
    const cm_codec_spec bytes = {.id = CM_CODEC_BYTES,
                                 .big_endian = form != NULL && form->kind == CM_LOCATED_SLAB &&
                                               form->swap > 1};
    const bool chunks = form != NULL && form->kind == CM_LOCATED_CHUNKS;
    *n = chunks ? form->ncodecs : 1;
    return cm_codec_specs_copy(chunks ? form->codecs : &bytes, *n, out, err);
}

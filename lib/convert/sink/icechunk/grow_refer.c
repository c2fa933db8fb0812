#include "convert/sink/icechunk/grow_refer.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/fileurl.h"
#include "convert/layout/refer.h"
#include "convert/sink/growth/append_repository.h"
#include "format/icechunk/containers.h"
#include "format/icechunk/kept.h"
#include "format/icechunk/snapshot_write.h"
#include "plan/meetings.h"
#include "store/allow.h"
#include "store/net/url.h"

/* ---- where readers will look ---- */

/* Whether the options allow the place of URL, which the user then vouches for. */
static bool is_allowed(const cm_texts *allow, const char *url)
{
    char *path = NULL;
    cm_url parts = {0};
    bool allowed = false;
    if (strncmp(url, "file:", 5) == 0) {
        allowed = cm_fileurl_path(url, &path, NULL) == CM_OK && cm_allow_has_path(allow, path);
    } else if (cm_url_scheme(url) != CM_URL_LOCAL && cm_url_parse(url, &parts, NULL) == CM_OK) {
        cm_url_decode(parts.path);
        allowed = cm_allow_has_object(allow, parts.origin, parts.path);
    }
    cm_url_release(&parts);
    free(path);
    return allowed;
}

/* Icechunk reads virtual chunks from containers that CONFIG names, which stays. */
static int check_container(const cm_buf *config, const cm_texts *allow, const char *url,
                           cm_error *err)
{
    if (cm_ice_config_has(config, url) || is_allowed(allow, url))
        return CM_OK;
    return cm_fail(err, CM_EINVAL,
                   "%s: lies in no container of virtual chunks that the repository names, so that "
                   "Icechunk would not read it; its Repository.save_config adds one, and `allow` "
                   "%.*s refers to the file as it is",
                   url, (int)(strrchr(url, '/') - url), url);
}

/* The files of all boxes of P, of which those that are CHECKED already are left out. */
static int check_files(const cm_refer_places *p, const cm_buf *config, const cm_texts *allow,
                       bool *checked, cm_error *err)
{
    int rc = CM_OK;
    for (size_t i = 0; rc == CM_OK && i < p->nboxes; i++) {
        uint32_t number = 0;
        rc = cm_refer_urls_find(p->urls, p->box[i].part->path, &number, err);
        if (rc != CM_OK || checked[number])
            continue;
        checked[number] = true;
        rc = check_container(config, allow, p->urls->item[number].url, err);
    }
    return rc;
}

static int check_containers(const cm_grow_refer *r, const cm_job *job, cm_error *err)
{
    const cm_net *net = job->options->net;
    const cm_texts *allow = net != NULL ? cm_net_allow(net) : NULL;
    cm_buf config = {0};
    bool *checked = cm_calloc(r->urls.n + 1, sizeof(checked[0]), err);
    int rc =
        checked == NULL ? CM_ENOMEM : cm_ice_config_read(job->options->append->store, &config, err);
    for (size_t i = 0; rc == CM_OK && i < r->n; i++)
        if (r->array[i].refers)
            rc = check_files(&r->array[i].places, &config, allow, checked, err);
    cm_buf_release(&config);
    free(checked);
    return rc;
}

int cm_grow_refer_begin(cm_grow_refer *r, cm_job *job, cm_error *err)
{
    return cm_refer_urls_list(&r->urls, job, err);
}

/* ---- the arrays ---- */

const cm_fb_table *cm_grow_refer_node(const cm_append *a, const char *name)
{
    const char *group = a->repository->node;
    char *path = cm_asprintf(NULL, "/%s%s%s", group, *group != '\0' ? "/" : "", name);
    const cm_fb_table *found =
        path != NULL ? cm_ice_snapshot_find(a->repository->base.snapshot.tree.root, path) : NULL;
    free(path);
    return found;
}

int cm_grow_refer_whole(const cm_variable *t, unsigned axis, uint64_t length, size_t nparts,
                        cm_job_var *out, cm_error *err)
{
    *out = (cm_job_var){.view = {.rank = t->rank, .type = t->dtype, .whole = true}};
    memcpy(out->view.shape, t->shape, sizeof(out->view.shape));
    if (axis < t->rank)
        out->view.shape[axis] = length;
    return cm_refer_create(nparts, &out->layout.refer, err);
}

/* CM_EUNSUPPORTED where elements of FILE become those of M by HOW; NULL: they are taken as such. */
static int check_how(const cm_multi_var *m, const cm_multi_how *how, const char *file,
                     cm_error *err)
{
    char here[32], there[32];
    if (how == NULL)
        return CM_OK;
    if (!cm_dtype_equal(&how->dtype, &m->dtype))
        return cm_fail(err, CM_EUNSUPPORTED, "its elements are %s in %s, and %s in the repository",
                       cm_dtype_name(&how->dtype, here, sizeof(here)), file,
                       cm_dtype_name(&m->dtype, there, sizeof(there)));
    const char *what = how->unpacks || how->other_sign ? "its packing"
                       : how->replaces_fill || how->checks_fill || how->refuses_fill
                           ? "its fill value"
                       : how->pads ? "the length of its texts"
                                   : "the number or order of its dimensions";
    return cm_fail(err, CM_EUNSUPPORTED, "%s in %s is not that in the repository", what, file);
}

/* Part FROM of M without elements from END on. */
static cm_multi_part clip(const cm_multi_var *m, const cm_multi_part *from, unsigned axis,
                          uint64_t end)
{
    cm_multi_part p = *from;
    for (unsigned k = 0; k < m->naxes; k++)
        if (m->axis[k] == axis && p.origin[k] + p.count[k] > end)
            p.count[k] = p.origin[k] < end ? end - p.origin[k] : 0;
    return p;
}

/* The parts of V's source that files have, up to the end of WHOLE. */
static int add_parts(cm_job *job, const cm_job_var *v, unsigned axis, cm_job_var *whole,
                     cm_error *err)
{
    const cm_multi_spec *spec = cm_multi_spec_of(job->source);
    const cm_multi_var *m = &spec->var[v->source->index];
    if (m->values != NULL || m->texts != NULL)
        return cm_fail(err, CM_EUNSUPPORTED, "its elements are made while files are joined");
    for (size_t i = 0; i < m->nparts; i++) {
        const cm_multi_part *from = &m->part[i];
        const cm_multi_file *file = &spec->file[from->file];
        const cm_located *located;
        if (file->open != NULL)
            continue;
        int rc = check_how(m, from->how, file->path, err);
        if (rc == CM_OK)
            rc = cm_multi_part_located(job->source, v->source, i, &located, err);
        if (rc != CM_OK)
            return rc;
        const cm_multi_part p = clip(m, from, axis, whole->view.shape[axis]);
        cm_refer_add(whole->layout.refer, spec, m, &p, located);
    }
    return CM_OK;
}

/* ---- choosing ---- */

int cm_grow_refer_fills(const cm_append_state *s, const cm_variable *t, bool *out, cm_error *err)
{
    const cm_fb_table *node = cm_grow_refer_node(s->append, t->name);
    cm_ice_holds holds = CM_ICE_HOLDS_NOTHING;
    int rc = node != NULL ? cm_ice_node_holds(s->append->store, node, &holds, err) : CM_OK;
    *out = holds == CM_ICE_HOLDS_REFERENCES;
    return rc;
}

/* The chunks of window W, the only one of G, an array T, lie behind the old end. */
static int check_window(const cm_grown *g, const cm_variable *t, const cm_job_var *w,
                        const char *dimension, cm_error *err)
{
    const uint64_t chunk = t->words->chunk[g->growth.axis];
    if (g->growth.was % chunk != 0)
        return cm_fail(err, CM_EUNSUPPORTED,
                       "it has %" PRIu64 " elements along %s, in chunks of %" PRIu64
                       ", of which its end cuts the last",
                       g->growth.was, dimension, chunk);
    if (g->nwindows != 1 || !w->window.is_beyond)
        return cm_fail(err, CM_EUNSUPPORTED, "files have steps that it has, with other elements");
    return CM_OK;
}

/* The chunks of grown array I, of which W is a window, stay where they are. */
static int refer(cm_grow_refer *r, size_t i, cm_job *job, const cm_append_state *s,
                 const cm_variable *t, cm_job_var *w, cm_error *err)
{
    const cm_grown *g = &s->grown[i];
    const unsigned axis = g->growth.axis;
    const cm_multi_spec *spec = cm_multi_spec_of(job->source);
    cm_grown_refer *one = &r->array[i];
    int rc = spec == NULL ? cm_fail(err, CM_EUNSUPPORTED, "a dimension of the files is taken out")
                          : check_window(g, t, w, s->append->dimension, err);
    if (rc == CM_OK)
        rc = cm_grow_refer_whole(t, axis, g->growth.length, spec->var[w->source->index].nparts,
                                 &one->whole, err);
    if (rc != CM_OK)
        return rc;
    rc = add_parts(job, w, axis, &one->whole, err);
    if (rc == CM_OK)
        rc = cm_refer_match(&one->whole, t->words, err);
    if (rc == CM_OK)
        rc = cm_refer_places_create(&one->whole, &r->urls, &one->places, err);
    if (rc != CM_OK) {
        cm_refer_free(one->whole.layout.refer);
        return rc;
    }
    one->places.axis = axis;
    one->places.nkept = g->growth.was / t->words->chunk[axis];
    w->layout.refer = one->whole.layout.refer;
    w->layout.pass = w->doc.pass = CM_PASS_BYTES;
    one->refers = true;
    return CM_OK;
}

/* Steps of an array that somebody converted, and which is no small one. */
static int tell_converted(cm_job *job, const cm_job_var *w, cm_error *err)
{
    return cm_refer_nbytes(w) <= CM_REFER_INLINE_NBYTES
               ? CM_OK
               : cm_job_note(job, err,
                             "array %s: the repository has its chunks, not references to them, and "
                             "so its new chunks are converted",
                             w->name);
}

static int choose(cm_grow_refer *r, size_t i, cm_job *job, const cm_append_state *s, cm_error *err)
{
    const cm_grown *g = &s->grown[i];
    const cm_variable *t = cm_dataset_find(s->target, g->growth.path);
    const cm_fb_table *node = cm_grow_refer_node(s->append, g->growth.path);
    cm_ice_holds holds;
    cm_error why = {0};
    if (g->nwindows == 0 || t->is_coordinate || cm_dtype_is_vlen(&t->dtype))
        return CM_OK;
    if (node == NULL)
        return cm_fail(err, CM_EINTERNAL, "%s: is not in the snapshot", g->growth.path);
    cm_job_var *w = &job->var[g->first];
    int rc = cm_ice_node_holds(s->append->store, node, &holds, err);
    if (rc != CM_OK || holds == CM_ICE_HOLDS_CHUNKS)
        return rc == CM_OK ? tell_converted(job, w, err) : rc;
    rc = refer(r, i, job, s, t, w, &why);
    if (rc == CM_EUNSUPPORTED && holds == CM_ICE_HOLDS_NOTHING)
        return CM_OK;
    if (rc == CM_EUNSUPPORTED)
        return cm_fail(err, rc,
                       "array %s: its new chunks cannot be referred to: %s; without `refer` they "
                       "are converted",
                       t->name, why.text);
    if (rc != CM_OK && err != NULL)
        *err = why;
    return rc;
}

int cm_grow_refer_choose(cm_grow_refer *r, cm_job *job, const cm_append_state *s, cm_error *err)
{
    int rc = CM_OK;
    if ((r->array = cm_calloc(s->ngrown + 1, sizeof(r->array[0]), err)) == NULL)
        return CM_ENOMEM;
    r->n = s->ngrown;
    for (size_t i = 0; rc == CM_OK && i < s->ngrown; i++)
        rc = choose(r, i, job, s, err);
    return rc == CM_OK ? check_containers(r, job, err) : rc;
}

bool cm_grow_refer_places(cm_grow_refer *r, size_t i, cm_ice_places *out)
{
    if (i >= r->n || !r->array[i].refers)
        return false;
    cm_refer_places_get(&r->array[i].places, out);
    return true;
}

void cm_grow_refer_release(cm_grow_refer *r)
{
    for (size_t i = 0; i < r->n; i++)
        cm_refer_places_release(&r->array[i].places);
    free(r->array);
    cm_refer_urls_release(&r->urls);
    *r = (cm_grow_refer){0};
}

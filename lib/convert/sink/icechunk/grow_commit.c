#include "convert/sink/icechunk/grow.h"

#include <stdlib.h>
#include <string.h>

#include "base/number.h"
#include "convert/sink/growth/append_repository.h"
#include "format/icechunk/read_store.h"
#include "format/icechunk/session.h"
#include "format/zarr/meta.h"

#define OBJECT_NBYTES (UINT64_C(16) << 20)

void cm_ice_grow_set_keys(cm_job *job)
{
    for (size_t i = 0; i < job->nvars; i++) {
        job->var[i].doc.meta.separator = '/';
        job->var[i].doc.meta.key_v2 = false;
    }
}

static bool changes(const cm_grown *g)
{
    return g->nwindows > 0 || !g->growth.in_place;
}

char *cm_ice_grow_path(const cm_ice_growing *g, const char *name, cm_error *err)
{
    const char *node = g->append.append->repository->node;
    return cm_asprintf(err, "/%s%s%s", node, *node != '\0' ? "/" : "", name);
}

static const cm_fb_table *node_of(const cm_ice_growing *g, const cm_repository *r, const char *name)
{
    char *path = cm_ice_grow_path(g, name, NULL);
    const cm_fb_table *found =
        path != NULL ? cm_ice_snapshot_find(r->base->snapshot.tree.root, path) : NULL;
    free(path);
    return found;
}

/* ---- what the commit stands on ---- */

static bool is_changed(const cm_ice_growing *g, const char *name)
{
    for (size_t i = 0; i < g->append.ngrown; i++)
        if (changes(&g->append.grown[i]) && strcmp(g->append.grown[i].growth.path, name) == 0)
            return true;
    return false;
}

int cm_ice_grow_rely(cm_ice_growing *g, const cm_job *job, cm_error *err)
{
    const cm_dataset *target = g->append.target;
    if (g->relied != NULL)
        return CM_OK;
    g->relied = cm_calloc(target->nvars + 1, sizeof(g->relied[0]), err);
    if (g->relied == NULL)
        return CM_ENOMEM;
    for (size_t i = 0; i < target->nvars; i++) {
        const cm_variable *t = &target->var[i];
        if (is_changed(g, t->name) || cm_dataset_find(job->source, t->name) == NULL)
            continue;
        if ((g->relied[g->nrelied] = cm_ice_grow_path(g, t->name, err)) == NULL)
            return CM_ENOMEM;
        g->nrelied++;
    }
    return CM_OK;
}

const char *cm_ice_grow_dimension(const cm_ice_growing *g)
{
    for (size_t i = 0; i < g->append.ngrown; i++)
        if (!g->append.grown[i].growth.in_place)
            return g->append.append->dimension;
    return NULL;
}

/* ---- the session ---- */

static int add_array(const cm_ice_growing *g, cm_ice_writing *w, const cm_grown *grown,
                     cm_error *err)
{
    const cm_variable *t = cm_dataset_find(g->append.target, grown->growth.path);
    uint64_t shape[CM_MAX_RANK];
    size_t index;
    for (unsigned j = 0; j < t->rank; j++) {
        const uint64_t n = j == grown->growth.axis ? grown->growth.length : t->shape[j];
        shape[j] = cm_div_ceil(n, t->words->chunk[j]);
    }
    int rc = cm_ice_session_add(w->session, t->name, t->rank, shape, &index, err);
    w->narrays += rc == CM_OK;
    return rc;
}

/* Whether PATH, N bytes, is that of the group that grows, or of a node in it. */
static bool is_below(const char *path, size_t n, const char *group)
{
    const size_t most = strlen(group);
    return n >= most && memcmp(path, group, most) == 0 &&
           (most == 0 || n == most || path[most] == '/');
}

/* Documents of the snapshot, a few of which will be changed. */
static int take_documents(const cm_ice_growing *g, cm_ice_writing *w, cm_error *err)
{
    const char *group = g->append.append->repository->node;
    const size_t skip = strlen(group);
    const cm_fb_value *nodes =
        &w->repository.base->snapshot.tree.root->value[CM_ICE_SNAPSHOT_NODES];
    cm_store *documents = cm_ice_session_documents(w->session);
    int rc = CM_OK;
    for (size_t i = 0; rc == CM_OK && i < nodes->n; i++) {
        const cm_fb_value *v = nodes->item[i]->value;
        const char *path = (const char *)v[CM_ICE_NODE_PATH].bytes + 1;
        size_t n = v[CM_ICE_NODE_PATH].n - 1;
        if (!is_below(path, n, group))
            continue;
        path += skip + (n > skip && skip > 0);
        n -= skip + (n > skip && skip > 0);
        char *key = cm_asprintf(err, "%.*s%szarr.json", (int)n, path, n > 0 ? "/" : "");
        rc = key == NULL ? CM_ENOMEM
                         : cm_store_put(documents, key, v[CM_ICE_NODE_DOCUMENT].bytes,
                                        v[CM_ICE_NODE_DOCUMENT].n, err);
        free(key);
    }
    return rc;
}

int cm_ice_grow_open(cm_ice_growing *g, cm_ice_writing *w, cm_sink *s, cm_error *err)
{
    cm_append *a = g->append.append;
    const cm_store_options options = {.net = a->beside.net, .memory = s->options->memory};
    const uint64_t most = s->options->object_nbytes;
    int rc = g->before == NULL ? cm_ice_store_open(a->opens, &options, &g->before, err) : CM_OK;
    if (rc == CM_OK)
        rc = cm_ice_session_open(w->repository.root, &w->repository.journal.records,
                                 most > 0 ? most : OBJECT_NBYTES, &w->session, err);
    s->store = w->session;
    if (rc == CM_OK)
        rc = take_documents(g, w, err);
    for (size_t i = 0; rc == CM_OK && i < g->append.ngrown; i++)
        if (changes(&g->append.grown[i]))
            rc = add_array(g, w, &g->append.grown[i], err);
    return rc;
}

void cm_ice_grow_keep(const cm_ice_growing *g, cm_ice_writing *w)
{
    for (size_t i = 0; i < w->narrays; i++)
        cm_ice_session_keep(w->session, i, g->before);
}

/* ---- documents ---- */

static int make_commit(const cm_ice_growing *g, cm_ice_writing *w, cm_commit *out, cm_error *err)
{
    const cm_append_state *a = &g->append;
    cm_growth *growth = cm_calloc(a->ngrown + 1, sizeof(*growth), err);
    if (growth == NULL)
        return CM_ENOMEM;
    for (size_t i = 0; i < a->ngrown; i++)
        growth[i] = a->grown[i].growth;
    int rc = cm_commit_make(w->session, 3, growth, a->ngrown, NULL, out, err);
    free(growth);
    return rc;
}

int cm_ice_grow_try(const cm_ice_growing *g, cm_ice_writing *w, cm_error *err)
{
    cm_commit trial = {0};
    int rc = make_commit(g, w, &trial, err);
    cm_commit_release(&trial);
    return rc;
}

static int put_documents(cm_ice_writing *w, const cm_commit *c, cm_error *err)
{
    const cm_json *objects = cm_json_member(c->record, "objects");
    int rc = CM_OK;
    for (size_t i = 0; rc == CM_OK && i < cm_json_length(objects); i++) {
        const cm_json *one = cm_json_at(objects, i);
        size_t n;
        const char *key = cm_json_text(cm_json_member(one, "key"), NULL);
        const char *text = cm_json_text(cm_json_member(one, "text"), &n);
        rc = cm_store_put(w->session, key, text, n, err);
    }
    return rc;
}

int cm_ice_grow_complete(const cm_ice_growing *g, cm_ice_writing *w, cm_error *err)
{
    cm_commit c = {0};
    int rc = cm_ice_session_finish(w->session, err);
    if (rc == CM_OK)
        rc = make_commit(g, w, &c, err);
    if (rc == CM_OK)
        rc = put_documents(w, &c, err);
    cm_commit_release(&c);
    return rc;
}

/* ---- the commit ---- */

static int list_arrays(cm_ice_growing *g, cm_ice_writing *w, cm_repository_array *array,
                       cm_error *err)
{
    size_t n = 0;
    for (size_t i = 0; i < g->append.ngrown; i++) {
        const cm_grown *one = &g->append.grown[i];
        if (!changes(one))
            continue;
        array[n].name = one->growth.path;
        array[n].was = node_of(g, &w->repository, one->growth.path);
        if (array[n].was == NULL)
            return cm_fail(err, CM_EINTERNAL, "%s: is not in the snapshot", one->growth.path);
        if (!cm_grow_refer_places(&g->refer, i, &array[n].places))
            cm_ice_session_places(w->session, n, &array[n].places);
        n++;
    }
    return CM_OK;
}

int cm_ice_grow_publish(cm_ice_growing *g, cm_ice_writing *w, cm_sink *s, cm_job *job,
                        cm_error *err)
{
    cm_repository_array *array = cm_calloc(w->narrays + 1, sizeof(array[0]), err);
    int rc = array == NULL ? CM_ENOMEM : list_arrays(g, w, array, err);
    if (rc == CM_OK)
        rc = cm_ice_grow_rely(g, job, err);
    w->repository.relied = g->relied;
    w->repository.nrelied = g->nrelied;
    w->repository.grown = cm_ice_grow_dimension(g);
    if (rc == CM_OK)
        rc = cm_repository_commit(&w->repository, s, job, w->session, array, w->narrays, err);
    free(array);
    return rc;
}

void cm_ice_grow_release(cm_ice_growing *g)
{
    cm_store_free(g->before);
    g->before = NULL;
    for (size_t i = 0; i < g->nrelied; i++)
        free(g->relied[i]);
    free(g->relied);
    g->relied = NULL;
    g->nrelied = 0;
    cm_grow_refer_release(&g->refer);
}

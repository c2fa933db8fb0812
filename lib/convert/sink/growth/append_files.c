#include "convert/sink/growth/append_files.h"

#include <stdlib.h>
#include <string.h>

struct cm_append_files {
    cm_multi_spec spec;
    cm_multi_group root;
    cm_multi_var *var;
    cm_multi_part *part; /* of all of them */
    size_t *of;          /* of each variable of the joined dataset, from 1; 0: it has none */
    cm_dataset *ds;
};

unsigned cm_append_joined_axis(const cm_append_state *s, const cm_multi_var *v)
{
    unsigned k = 0;
    while (k < v->naxes && strcmp(v->dim_name[v->axis[k]], s->append->dimension) != 0)
        k++;
    return k;
}

const cm_multi_var *cm_append_joined_var(const cm_job *job, const cm_variable *v)
{
    const cm_multi_spec *spec = cm_multi_spec_of(job->source);
    const cm_multi_var *of = spec != NULL && job->from.grown == NULL ? cm_multi_var_of(v) : NULL;
    return of != NULL && of >= spec->var && of < spec->var + spec->nvars ? of : NULL;
}

static bool is_new(const cm_append_state *s, const cm_multi_spec *spec, const cm_multi_part *p,
                   unsigned k)
{
    return spec->file[p->file].open == NULL && p->origin[k] >= s->was;
}

static void add_variable(cm_append_files *f, const cm_append_state *s, const cm_multi_spec *spec,
                         size_t i, cm_multi_part **room)
{
    const cm_multi_var *from = &spec->var[i];
    const unsigned k = cm_append_joined_axis(s, from);
    if (k == from->naxes || from->nparts == 0 || from->shape[from->axis[k]] <= s->was)
        return;
    cm_multi_var *v = &f->var[f->spec.nvars];
    cm_multi_part *part = *room;
    *v = *from;
    v->shape[v->axis[k]] -= s->was;
    v->part = part;
    v->nparts = 0;
    for (size_t p = 0; p < from->nparts; p++) {
        const cm_multi_part *one = cm_multi_part_at(spec, from, p);
        if (!is_new(s, spec, one, k))
            continue;
        part[v->nparts] = *one;
        part[v->nparts++].origin[k] -= s->was;
    }
    *room += v->nparts;
    f->of[i] = ++f->spec.nvars;
}

static int make_spec(cm_append_files *f, const cm_append_state *s, const cm_multi_spec *spec,
                     cm_error *err)
{
    size_t nparts = 0;
    for (size_t i = 0; i < spec->nvars; i++)
        nparts += spec->var[i].nparts;
    f->var = cm_calloc(spec->nvars + 1, sizeof(f->var[0]), err);
    f->of = cm_calloc(spec->nvars + 1, sizeof(f->of[0]), err);
    f->part = cm_calloc(nparts + 1, sizeof(f->part[0]), err);
    if (f->var == NULL || f->of == NULL || f->part == NULL)
        return CM_ENOMEM;
    f->root = spec->group[0];
    f->spec = (cm_multi_spec){.name = spec->name,
                              .format_name = spec->format_name,
                              .file = spec->file,
                              .nfiles = spec->nfiles,
                              .group = &f->root,
                              .ngroups = 1,
                              .var = f->var,
                              .paged = spec->paged};
    cm_multi_part *room = f->part;
    for (size_t i = 0; i < spec->nvars; i++)
        add_variable(f, s, spec, i, &room);
    return CM_OK;
}

static int open_files(cm_job *job, cm_append_state *s, const cm_multi_spec *spec, cm_error *err)
{
    const cm_dataset_options options = {.canceled = cm_monitor_cancels,
                                        .canceled_context = job->options->monitor,
                                        .net = job->options->net,
                                        .memory = job->options->memory};
    cm_append_files *f = s->files = cm_calloc(1, sizeof(*f), err);
    int rc = f == NULL ? CM_ENOMEM : make_spec(f, s, spec, err);
    return rc == CM_OK ? cm_multi_dataset_open(&f->spec, &options, &f->ds, err) : rc;
}

int cm_append_files_find(cm_job *job, cm_append_state *s, const cm_variable *v, cm_variable **out,
                         cm_error *err)
{
    const cm_multi_spec *spec = cm_multi_spec_of(job->source);
    const cm_multi_var *of = cm_append_joined_var(job, v);
    *out = NULL;
    if (of == NULL)
        return CM_OK;
    int rc = s->files == NULL ? open_files(job, s, spec, err) : CM_OK;
    const size_t at = rc == CM_OK ? s->files->of[of - spec->var] : 0;
    if (at == 0)
        return rc;
    *out = &s->files->ds->var[at - 1];
    rc = cm_dataset_prepare(s->files->ds, *out, err);
    if (rc == CM_EUNSUPPORTED) /* told of where the joined variable is prepared */
        *out = NULL;
    return rc == CM_EUNSUPPORTED ? CM_OK : rc;
}

cm_dataset *cm_append_files_dataset(const cm_append_files *f)
{
    return f->ds;
}

void cm_append_files_free(cm_append_files *f)
{
    if (f == NULL)
        return;
    cm_dataset_close(f->ds);
    free(f->var);
    free(f->part);
    free(f->of);
    free(f);
}

#include "convert/stack/stack.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/number.h"
#include "base/path.h"
#include "format/overlay.h"
#include "plan/meetings.h"

enum {
    MOST_PIECE = 64 << 20 /* bytes that the chunks of several variables may make together */
};

char *cm_stack_path(const cm_job *job, const char *name, cm_error *err)
{
    return cm_asprintf(err, "%s%s%s", job->from.group, *job->from.group != '\0' ? "/" : "", name);
}

bool cm_stack_same_name(const char *a, const char *b)
{
    return a == NULL || b == NULL ? a == b : strcmp(a, b) == 0;
}

/* ---- labels ---- */

static int add_label(cm_stack *s, const cm_stack_member *m, size_t k, size_t at, cm_error *err)
{
    const char *name = cm_path_last(m->item->name);
    char number[32], *text;
    if (m->item->dim == NULL)
        return cm_strings_set(&s->label, at, name, strlen(name), err);
    const double x = m->coordinate != NULL ? m->coordinate[k] : (double)m->index[k];
    if (x == rint(x) && fabs(x) < 1e15)
        snprintf(number, sizeof(number), "%.0f", x);
    else
        cm_format_double(x, number, sizeof(number));
    if ((text = cm_asprintf(err, "%s_%s", name, number)) == NULL)
        return CM_ENOMEM;
    int rc = cm_strings_set(&s->label, at, text, strlen(text), err);
    free(text);
    return rc;
}

static int by_text(const void *a, const void *b)
{
    return strcmp(*(char *const *)a, *(char *const *)b);
}

/* A channel is found by its label. */
static int check_labels(const cm_stack *s, cm_error *err)
{
    char **sorted = cm_calloc(s->nchannels, sizeof(sorted[0]), err);
    int rc = sorted == NULL ? CM_ENOMEM : CM_OK;
    for (size_t i = 0; rc == CM_OK && i < s->nchannels; i++) {
        size_t n;
        const char *text = cm_strings_get(&s->label, i, &n);
        if ((sorted[i] = cm_asprintf(err, "%.*s", (int)n, text)) == NULL)
            rc = CM_ENOMEM;
    }
    if (rc == CM_OK)
        qsort(sorted, s->nchannels, sizeof(sorted[0]), by_text);
    for (size_t i = 1; rc == CM_OK && i < s->nchannels; i++)
        if (strcmp(sorted[i - 1], sorted[i]) == 0)
            rc = cm_fail(err, CM_EINVAL, "`stack` %s: two channels would be labelled %s",
                         s->text.text, sorted[i]);
    for (size_t i = 0; sorted != NULL && i < s->nchannels; i++)
        free(sorted[i]);
    free(sorted);
    return rc;
}

static int make_labels(cm_stack *s, cm_error *err)
{
    int rc = cm_strings_reset(&s->label, s->nchannels, err);
    for (size_t i = 0, at = 0; rc == CM_OK && i < s->nmembers; i++)
        for (size_t k = 0; rc == CM_OK && k < s->member[i].nchannels; k++)
            rc = add_label(s, &s->member[i], k, at++, err);
    return rc == CM_OK ? check_labels(s, err) : rc;
}

/* ---- parts ---- */

/*
 * Pieces in which no variable's chunk is read twice, where these are not too large: as long as
 * the longest chunk along each dimension.
 */
static void choose_pieces(cm_stack *s, const cm_multi_var *out)
{
    uint64_t most[CM_MAX_RANK] = {0}, nbytes = out->dtype.nbytes;
    for (size_t i = 0; i < s->nmembers; i++) {
        const cm_stack_member *m = &s->member[i];
        for (unsigned j = 0; j < out->rank && m->var->has_source_chunks; j++) {
            uint64_t chunk =
                m->how.lacks_axis[0] && j == s->channel ? 1 : m->var->source_chunk[m->how.order[j]];
            most[j] = chunk > most[j] ? chunk : most[j];
        }
    }
    for (unsigned j = 0; j < out->rank; j++)
        nbytes = cm_mul_sat(nbytes, most[j]);
    for (size_t i = 0; i < s->nmembers; i++) {
        cm_stack_member *m = &s->member[i];
        m->form = (cm_form){.kind = CM_LOCATED_NOT, .dtype = m->var->dtype, .rank = m->var->rank};
        m->located = (cm_located){.form = &m->form};
        for (unsigned j = 0; j < out->rank && m->var->has_source_chunks; j++) {
            const unsigned i_dim = m->how.order[j];
            if (j == s->channel && m->how.lacks_axis[0])
                continue;
            m->form.chunk[i_dim] =
                j == s->channel || nbytes > MOST_PIECE ? m->var->source_chunk[i_dim] : most[j];
        }
    }
}

static void add_part(cm_stack *s, const cm_stack_member *m, size_t at, size_t k, size_t count)
{
    s->part[s->nparts++] =
        (cm_multi_part){.origin = {at + k},
                        .first = {m->index == NULL ? 0 : m->index[k]},
                        .count = {count},
                        .length = {m->index == NULL ? 1 : m->var->shape[m->level]},
                        .name = m->var->name,
                        .located = &m->located,
                        .how = m->converts ? &m->how : NULL};
}

/* Levels that follow one another are read together. */
static int make_parts(cm_stack *s, cm_multi_var *out, cm_error *err)
{
    if ((s->part = cm_calloc(s->nchannels, sizeof(s->part[0]), err)) == NULL)
        return CM_ENOMEM;
    for (size_t i = 0, at = 0; i < s->nmembers; at += s->member[i++].nchannels) {
        cm_stack_member *m = &s->member[i];
        m->converts = m->how.lacks_axis[0] || m->how.transposed || m->how.unpacks ||
                      m->how.other_sign || m->how.replaces_fill || m->how.checks_fill ||
                      !cm_dtype_equal(&m->var->dtype, &out->dtype);
        for (size_t k = 0, n; k < m->nchannels; k += n) {
            for (n = 1; k + n < m->nchannels && m->index[k + n] == m->index[k] + n;)
                n++;
            add_part(s, m, at, k, n);
        }
    }
    out->part = s->part;
    out->nparts = s->nparts;
    return CM_OK;
}

/* ---- one array ---- */

static bool name_is_free(const cm_job *job, const cm_stack *s, const char *path)
{
    const cm_dataset *ds = job->source;
    if (cm_dataset_find(ds, path) != NULL)
        return false;
    for (size_t i = 0; i < ds->ngroups; i++)
        if (strcmp(ds->group[i].path, path) == 0)
            return false;
    for (size_t i = 0; i < s->nmembers; i++)
        for (unsigned j = 0; j < s->member[i].var->rank; j++)
            if (cm_stack_same_name(s->member[i].var->dim_name[j], cm_path_last(path)))
                return false;
    return true;
}

/* The dimension is "channel" where it is the only one and nothing else is called so. */
static int name_all(const cm_job *job, cm_stack *s, cm_error *err)
{
    s->path = cm_stack_path(job, s->text.name, err);
    if (s->path == NULL)
        return CM_ENOMEM;
    const int above = (int)(cm_path_last(s->path) - s->path);
    bool has_group = above == 0;
    for (size_t i = 0; i < job->source->ngroups; i++)
        has_group = has_group || (strlen(job->source->group[i].path) + 1 == (size_t)above &&
                                  strncmp(job->source->group[i].path, s->path, above - 1) == 0);
    if (!has_group)
        return cm_fail(err, CM_EINVAL, "`stack` %s: there is no group %.*s", s->text.text,
                       above - 1, s->path);
    if (!name_is_free(job, s, s->path))
        return cm_fail(err, CM_EINVAL, "`stack` %s: the name %s is taken; choose another",
                       s->text.text, s->text.name);
    for (unsigned k = job->options->stack.n > 1; k < 2; k++) {
        free(s->label_path);
        s->label_path = k == 0 ? cm_asprintf(err, "%.*schannel", above, s->path)
                               : cm_asprintf(err, "%s_channel", s->path);
        if (s->label_path == NULL)
            return CM_ENOMEM;
        if (!name_is_free(job, s, s->label_path))
            continue;
        s->dim = s->label_path + above;
        return CM_OK;
    }
    return cm_fail(err, CM_EINVAL, "`stack` %s: the name %s, for its channels, is taken",
                   s->text.text, s->label_path);
}

/* A dimension that has become channels is none that a part could be taken of. */
static int check_subset(const cm_job *job, const cm_stack *s, cm_error *err)
{
    const cm_texts *subset = &job->options->subset;
    for (size_t i = 0; i < s->nmembers; i++) {
        const char *dim = s->member[i].item->dim;
        for (size_t k = 0; dim != NULL && k < subset->n; k++)
            if (strncmp(subset->text[k], dim, strlen(dim)) == 0 &&
                subset->text[k][strlen(dim)] == '=')
                return cm_fail(err, CM_EINVAL,
                               "`subset` %s: %s becomes channels of %s; `stack` takes some of them "
                               "as %s@%s=VALUE/VALUE",
                               subset->text[k], dim, s->text.name, s->member[i].item->name, dim);
    }
    return CM_OK;
}

static int make_stack(cm_job *job, cm_stack *s, cm_multi_var *out, cm_error *err)
{
    int rc = CM_OK;
    s->nmembers = s->text.nitems;
    if ((s->member = cm_calloc(s->nmembers, sizeof(s->member[0]), err)) == NULL)
        return CM_ENOMEM;
    for (size_t i = 0; rc == CM_OK && i < s->nmembers; i++)
        rc = cm_stack_find_member(job, s, i, err);
    if (rc == CM_OK)
        rc = check_subset(job, s, err);
    if (rc == CM_OK)
        rc = name_all(job, s, err);
    for (size_t i = 0; rc == CM_OK && i < s->nmembers; i++) {
        rc = cm_stack_find_levels(job, s, &s->member[i], err);
        s->nchannels += s->member[i].nchannels;
    }
    if (rc == CM_OK && s->nchannels > CM_STACK_MOST_CHANNELS)
        rc = cm_fail(err, CM_EINVAL, "`stack` %s: more than %d channels", s->text.text,
                     CM_STACK_MOST_CHANNELS);
    *out = (cm_multi_var){.name = s->path};
    if (rc == CM_OK)
        rc = make_labels(s, err);
    if (rc == CM_OK)
        rc = cm_stack_set_dimensions(job, s, out, err);
    if (rc == CM_OK)
        rc = cm_stack_choose_values(job, s, err);
    if (rc == CM_OK)
        rc = cm_stack_choose_type(job, s, out, err);
    if (rc == CM_OK)
        rc = cm_stack_check_missing(s, out, err);
    if (rc == CM_OK)
        rc = cm_stack_describe(s, err);
    out->attrs = s->attrs;
    return rc;
}

/* Completes a stack by what is known only when its variables are prepared. */
static int finish_stack(cm_job *job, cm_stack *s, cm_multi_var *out, cm_error *err)
{
    int rc = CM_OK;
    for (size_t i = 0; rc == CM_OK && i < s->nmembers; i++)
        rc = cm_dataset_prepare(job->source, s->member[i].var, err);
    if (rc == CM_OK)
        rc = cm_stack_choose_fill(job, s, out, err);
    if (rc != CM_OK)
        return rc;
    choose_pieces(s, out);
    return make_parts(s, out, err);
}

static void describe_labels(const cm_stack *s, cm_multi_var *out)
{
    *out = (cm_multi_var){.name = s->label_path,
                          .dtype = cm_dtype_make(CM_KIND_STRING, 0),
                          .rank = 1,
                          .shape = {s->nchannels},
                          .dim_name = {s->dim},
                          .attrs = s->label_attrs,
                          .is_coordinate = true,
                          .texts = &s->label};
}

/* ---- all ---- */

/* Bytes that reading a box takes besides: a chunk of a variable, stored and decoded. */
static void add_memory(const cm_stack *s, cm_array *out)
{
    size_t most = 0;
    for (size_t i = 0; i < s->nmembers; i++) {
        const cm_array *a = s->member[i].var->array;
        size_t n = a->box_nbytes;
        if (a->chunked)
            n = cm_array_decoded_nbytes(a) + cm_array_decode_memory(a) +
                (a->max_stored_nbytes > 0 ? a->max_stored_nbytes
                                          : cm_chain_encoded_bound(a->chain));
        most = n > most ? n : most;
        out->serial = out->serial || a->serial;
    }
    out->box_nbytes += most;
}

/* The bytes that the channels take below; of what is not known, as many as they have. */
static uint64_t stored_nbytes(const cm_stack *s)
{
    uint64_t sum = 0;
    for (size_t i = 0; i < s->nmembers; i++) {
        const cm_stack_member *m = &s->member[i];
        const double levels = m->index == NULL ? 1 : (double)m->var->shape[m->level];
        double nbytes = m->var->dtype.nbytes;
        for (unsigned j = 0; j < m->var->rank; j++)
            nbytes *= (double)m->var->shape[j];
        if (m->var->stored_nbytes > 0)
            nbytes = (double)m->var->stored_nbytes;
        sum += 1 + (uint64_t)(nbytes * (double)m->nchannels / levels);
    }
    return sum;
}

static int lay_over(cm_job *job, cm_stacks *all, const cm_dataset_options *options, cm_error *err)
{
    cm_dataset *over;
    all->file = (cm_multi_file){.path = all->below->path, .open = all->below};
    all->spec = (cm_multi_spec){.name = all->below->path,
                                .file = &all->file,
                                .nfiles = 1,
                                .var = all->var,
                                .nvars = 2 * all->n};
    int rc = cm_overlay_open(all->below, &all->spec, options, &over, err);
    if (rc != CM_OK)
        return rc;
    job->source = over;
    for (size_t i = 0; rc == CM_OK && i < all->n; i++) {
        const cm_stack *s = &all->stack[i];
        cm_variable *v = &over->var[all->below->nvars + 2 * i];
        v->is_stack = true;
        v->channel = s->channel;
        v->stored_nbytes = stored_nbytes(s);
        for (size_t k = 0; k < s->nmembers; k++)
            over->var[s->member[k].var->index].is_taken = true;
        rc = cm_dataset_prepare(over, v, err);
        if (rc == CM_OK)
            add_memory(s, v->array);
    }
    return rc;
}

int cm_job_stack(cm_job *job, const cm_dataset_options *options, cm_error *err)
{
    const cm_texts *texts = &job->options->stack;
    int rc = CM_OK;
    if (texts->n == 0)
        return CM_OK;
    cm_stacks *all = cm_calloc(1, sizeof(*all), err);
    if (all == NULL)
        return CM_ENOMEM;
    job->stacks = all;
    all->below = job->source;
    all->stack = cm_calloc(texts->n, sizeof(all->stack[0]), err);
    all->var = cm_calloc(2 * texts->n, sizeof(all->var[0]), err);
    if (all->stack == NULL || all->var == NULL)
        return CM_ENOMEM;
    for (; rc == CM_OK && all->n < texts->n; all->n++)
        rc = cm_stack_text_parse(texts->text[all->n], &all->stack[all->n].text, err);
    for (size_t i = 0; rc == CM_OK && i < all->n; i++) {
        cm_stack *s = &all->stack[i];
        rc = make_stack(job, s, &all->var[2 * i], err);
        for (size_t k = 0; rc == CM_OK && k < i; k++)
            if (strcmp(all->stack[k].path, s->path) == 0)
                rc = cm_fail(err, CM_EINVAL, "`stack` %s: the name %s is taken; choose another",
                             s->text.text, s->text.name);
    }
    for (size_t i = 0; rc == CM_OK && i < all->n; i++)
        for (size_t k = 0; k < all->stack[i].nmembers; k++)
            all->stack[i].member[k].var->wanted = true;
    for (size_t i = 0; rc == CM_OK && i < all->n; i++) {
        rc = finish_stack(job, &all->stack[i], &all->var[2 * i], err);
        describe_labels(&all->stack[i], &all->var[2 * i + 1]);
    }
    return rc == CM_OK ? lay_over(job, all, options, err) : rc;
}

static void release_stack(cm_stack *s)
{
    for (size_t i = 0; s->member != NULL && i < s->nmembers; i++) {
        free(s->member[i].index);
        free(s->member[i].coordinate);
    }
    cm_stack_text_release(&s->text);
    cm_strings_release(&s->label);
    cm_json_free(s->attrs);
    cm_json_free(s->label_attrs);
    free(s->member);
    free(s->path);
    free(s->label_path);
    free(s->part);
}

void cm_job_unstack(cm_job *job)
{
    cm_stacks *all = job->stacks;
    if (all == NULL)
        return;
    if (job->source != all->below)
        cm_dataset_close(job->source);
    job->source = all->below;
    for (size_t i = 0; all->stack != NULL && i < all->n; i++)
        release_stack(&all->stack[i]);
    free(all->stack);
    free(all->var);
    free(all);
    job->stacks = NULL;
}

int cm_job_tell_stacks(cm_job *job, cm_error *err)
{
    int rc = CM_OK;
    for (size_t i = 0; rc == CM_OK && job->stacks != NULL && i < job->stacks->n; i++) {
        const cm_stack *s = &job->stacks->stack[i];
        const cm_job_var *v = NULL;
        for (size_t k = 0; k < job->nvars && v == NULL; k++)
            if (strcmp(job->var[k].source->name, s->path) == 0)
                v = &job->var[k];
        if (v == NULL)
            return cm_fail(err, CM_EINVAL, "`exclude`: %s is stacked, and left out", s->text.name);
        size_t nfirst, nlast;
        const char *first = cm_strings_get(&s->label, 0, &nfirst);
        const char *last = cm_strings_get(&s->label, s->nchannels - 1, &nlast);
        rc = cm_job_note(job, err, "%s %s: %zu channels along dimension %s, from %.*s to %.*s",
                         cm_job_noun(job), cm_job_name(v), s->nchannels, s->dim, (int)nfirst, first,
                         (int)nlast, last);
    }
    return rc;
}

/*
 * Stores that are much larger than what they are made of: packed numbers that become plain ones
 * take two to eight times the bytes, and a variable that gets a dimension has all its steps.
 * Bytes are those of elements, uncompressed: they are known before anything is written.
 */
#include <stdlib.h>
#include <string.h>

#include "base/number.h"
#include "convert/job.h"
#include "format/multi/multi.h"

/* A store that grows by less than half, or by less than this, is not worth a warning. */
#define MATERIAL_FACTOR 1.5
#define MATERIAL_NBYTES (16 << 20)

typedef struct growth {
    bool unpacked, widened; /* packed numbers are plain; a dimension is there that files lack */
    double before, after;   /* bytes */
} growth;

static double nelem(unsigned rank, const uint64_t *shape)
{
    double n = 1;
    for (unsigned i = 0; i < rank; i++)
        n *= (double)shape[i];
    return n;
}

/* Adds the bytes of part P of V in its file. */
static void add_part(const cm_multi_var *v, const cm_multi_part *p, growth *g)
{
    const cm_multi_how *how = p->how;
    double nbytes = how != NULL ? how->dtype.nbytes : v->dtype.nbytes;
    for (unsigned i = 0; i < v->rank; i++) {
        unsigned axis = 0;
        while (axis < v->naxes && v->axis[axis] != i)
            axis++;
        bool joined = axis < v->naxes;
        bool lacks =
            how != NULL && (joined ? how->lacks_axis[axis] : how->transposed && how->repeats[i]);
        g->widened |= lacks;
        nbytes *= lacks ? 1 : (double)(joined ? p->count[axis] : v->shape[i]);
    }
    g->unpacked |= how != NULL && how->unpacks;
    g->before += nbytes;
}

/* Nothing grows where the user chose the type, or no numbers of files exist to compare with. */
static growth growth_of(const cm_job *job, const cm_job_var *v)
{
    const cm_multi_spec *spec = cm_multi_spec_of(job->source);
    const cm_variable *s = v->source;
    const double all = nelem(s->rank, s->shape);
    growth g = {.unpacked = v->view.conversion.unpack, .before = all * s->dtype.nbytes};
    if (v->view.typed || v->stored.as_objects || v->view.as_strings || !cm_job_is_own(v) ||
        cm_dtype_is_vlen(&v->view.type) || all == 0)
        return (growth){0};
    if (spec != NULL) {
        const cm_multi_var *m = &spec->var[s->index];
        g.before = 0;
        for (size_t i = 0; i < m->nparts; i++)
            add_part(m, cm_multi_part_at(spec, m, i), &g);
    }
    const double kept = nelem(v->view.rank, v->view.shape); /* of a subset */
    g.before *= kept / all;
    g.after = kept * v->view.type.nbytes;
    return g;
}

/* NBYTES as they are shown: more than 64 bits count are as many as these do. */
static uint64_t shown(double nbytes)
{
    return nbytes < 0x1p64 ? (uint64_t)nbytes : UINT64_MAX;
}

int cm_job_notice_growth(cm_job *job, cm_error *err)
{
    growth sum = {0};
    const char *first = NULL;
    unsigned long long n = 0;
    char before[32], after[32];
    for (size_t i = 0; i < job->nvars; i++) {
        const growth g = growth_of(job, &job->var[i]);
        if ((!g.unpacked && !g.widened) || g.after < MATERIAL_FACTOR * g.before)
            continue;
        sum.unpacked |= g.unpacked;
        sum.widened |= g.widened;
        sum.before += g.before;
        sum.after += g.after;
        first = n++ == 0 ? cm_job_name(&job->var[i]) : first;
    }
    if (sum.after - sum.before < MATERIAL_NBYTES)
        return CM_OK;
    return cm_job_warn(job, err,
                       "%llu variable%s (%s%s): %s of elements in the inputs become %s in the "
                       "store, before compression, as %s%s%s; `dtype` names a smaller type",
                       n, n > 1 ? "s" : "", first, n > 1 ? ", ..." : "",
                       cm_format_size(shown(sum.before), before, sizeof(before)),
                       cm_format_size(shown(sum.after), after, sizeof(after)),
                       sum.unpacked ? "packed numbers are unpacked" : "",
                       sum.unpacked && sum.widened ? " and " : "",
                       sum.widened ? "they get a dimension that files lack" : "");
}

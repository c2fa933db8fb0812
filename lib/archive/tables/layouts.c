/* Compares the codecs of files, and their chunks, variable by variable. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "archive/join.h"

typedef struct layout {
    bool seen;
    cm_digest form;
    uint32_t file;
    size_t finding; /* its number, + 1 */
} layout;

static int print_codecs(const cm_form *f, cm_buf *out, cm_error *err)
{
    int rc = CM_OK;
    if (f->kind != CM_LOCATED_CHUNKS || f->ncodecs == 0)
        return cm_buf_printf(out, err, "none");
    for (size_t i = 0; rc == CM_OK && i < f->ncodecs; i++) {
        const cm_codec_spec *c = &f->codecs[i];
        const char *plus = i > 0 ? "+" : "";
        rc = c->id == CM_CODEC_BYTES
                 ? cm_buf_printf(out, err, "%s%s", plus, c->big_endian ? "big-endian" : "bytes")
             : c->level > 0
                 ? cm_buf_printf(out, err, "%s%s:%d", plus, cm_codec_name(c->id), c->level)
                 : cm_buf_printf(out, err, "%s%s", plus, cm_codec_name(c->id));
    }
    return rc;
}

static bool same_codecs(const cm_form *a, const cm_form *b)
{
    bool chunks = a->kind == CM_LOCATED_CHUNKS;
    /* A variable that was never written has none. */
    if (a->kind == CM_LOCATED_UNWRITTEN || b->kind == CM_LOCATED_UNWRITTEN)
        return true;
    if (chunks != (b->kind == CM_LOCATED_CHUNKS))
        return false;
    return !chunks || (a->ncodecs == b->ncodecs &&
                       memcmp(a->codecs, b->codecs, a->ncodecs * sizeof(a->codecs[0])) == 0);
}

static int compare(const cm_join_input *in, cm_join_findings *findings, layout *l,
                   const cm_join_var *v, const cm_surveyed_var *s, uint32_t file, cm_error *err)
{
    const cm_form *a, *b;
    cm_buf here = {0}, there = {0};
    if (!l->seen) {
        *l = (layout){.seen = true, .form = s->form, .file = file};
        return CM_OK;
    }
    if (cm_wire_same(l->form, s->form))
        return CM_OK;
    int rc = cm_survey_form(in->survey, l->form, &a, err);
    if (rc == CM_OK)
        rc = cm_survey_form(in->survey, s->form, &b, err);
    if (rc != CM_OK || same_codecs(a, b))
        return rc;
    if (l->finding > 0)
        return cm_join_found_in(findings, &findings->report->finding[l->finding - 1], file, err);
    rc = print_codecs(b, &here, err);
    if (rc == CM_OK)
        rc = print_codecs(a, &there, err);
    if (rc == CM_OK &&
        cm_join_find(findings, CM_FINDING_LAYOUT,
                     in->options->strict ? CM_WEIGHT_DECISION : CM_WEIGHT_NOTE, false, v->name,
                     file, err, "its codecs are %.*s, and %.*s in %s", (int)here.nbytes,
                     (const char *)here.data, (int)there.nbytes, (const char *)there.data,
                     in->file[l->file]->path) == NULL)
        rc = CM_ENOMEM;
    l->finding = findings->report->nfindings;
    cm_buf_release(&here);
    cm_buf_release(&there);
    return rc;
}

int cm_join_layouts(const cm_join_input *in, const cm_join_tables *tables,
                    cm_join_findings *findings, cm_error *err)
{
    layout *of = cm_calloc(tables->nvars + 1, sizeof(*of), err);
    int rc = of == NULL ? CM_ENOMEM : CM_OK;
    for (size_t i = 0; rc == CM_OK && i < in->nfiles; i++) {
        cm_surveyed_var s;
        cm_surveyed_iter it = cm_surveyed_begin(in->file[i]);
        const uint32_t *to = tables->to_var[cm_join_skeleton(in, (uint32_t)i)->index];
        for (size_t k = 0; rc == CM_OK && cm_surveyed_next(&it, &s); k++)
            if (tables->var[to[k]].wanted && s.is_located)
                rc = compare(in, findings, &of[to[k]], &tables->var[to[k]], &s, (uint32_t)i, err);
    }
    free(of);
    return rc;
}

#include <chunkmill/passport.h>

#include <stdlib.h>

#include "base/sentences.h"

static void release_variable(cm_passport_variable *v)
{
    free(v->name);
    free(v->long_name);
    free(v->standard_name);
    free(v->units);
    free(v->type);
    free(v->digest);
    free(v->unread);
    free(v->codec);
    free(v->step);
    free(v->first_label);
    free(v->last_label);
    for (unsigned j = 0; j < v->rank; j++)
        free(v->dim_name[j]);
    for (unsigned i = 0; i < v->npictures; i++) {
        free(v->picture[i].label);
        free(v->picture[i].value);
    }
}

static void release_finding(cm_passport_finding *f)
{
    free(f->variable);
    free(f->from);
    free(f->to);
    free(f->sentence);
}

void cm_passport_free(cm_passport *p)
{
    if (p == NULL)
        return;
    for (size_t i = 0; i < p->nattributes; i++) {
        free(p->attribute[i].name);
        free(p->attribute[i].text);
    }
    for (size_t i = 0; i < p->nvariables; i++)
        release_variable(&p->variable[i]);
    for (size_t i = 0; i < p->nfindings; i++)
        release_finding(&p->finding[i]);
    free(p->attribute);
    free(p->variable);
    free(p->finding);
    free(p->first_time);
    free(p->last_time);
    cm_sentences_free(p->warning, p->nwarnings);
    free(p);
}

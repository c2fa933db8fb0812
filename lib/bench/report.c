/* The report's memory. */
#include <stdlib.h>
#include <string.h>

#include "base/sentences.h"
#include "bench/readbench.h"

static void release_parts(cm_readbench_session *s)
{
    for (size_t i = 0; i < s->nparts; i++) {
        cm_readbench_part *p = &s->part[i];
        for (unsigned d = 0; d < 32; d++)
            free(p->dim_name[d]);
        free(p->variable);
        free(p->type);
        free(p->stored_type);
    }
    free(s->part);
}

void cm_bench_session_release(cm_readbench_session *s)
{
    char *const texts[] = {
        s->label,         s->store,      s->format,        s->engine,      s->io,
        s->order,         s->loader,     s->mode,          s->pool,        s->emulation,
        s->temperature,   s->sentence,   s->first_failure, s->device.kind, s->device.name,
        s->device.driver, s->device.link};
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++)
        free(texts[i]);
    cm_census_release(&s->census);
    for (size_t i = 0; i < s->nsettings; i++) {
        free(s->setting[i].name);
        free(s->setting[i].value);
    }
    for (size_t i = 0; i < s->nfindings; i++) {
        free(s->finding[i].rule);
        free(s->finding[i].sentence);
    }
    for (size_t i = 0; i < s->nlooks; i++)
        free(s->look[i].cpu);
    release_parts(s);
    free(s->predicted.costs);
    free(s->setting);
    free(s->finding);
    free(s->look);
    free(s->record);
    free(s->event);
    free(s->logged);
    memset(s, 0, sizeof *s);
}

void cm_readbench_report_release(cm_readbench_report *r)
{
    for (size_t i = 0; i < r->nsessions; i++)
        cm_bench_session_release(&r->session[i]);
    free(r->session);
    free(r->ratio);
    free(r->least_ratio);
    free(r->most_ratio);
    cm_readbench_advice_release(&r->advice);
    free(r->reason);
    free(r->data_loader);
    cm_sentences_free(r->warning, r->nwarnings);
    cm_sentences_free(r->note, r->nnotes);
    memset(r, 0, sizeof *r);
}

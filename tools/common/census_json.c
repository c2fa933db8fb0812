#include "census_json.h"

#include <stdlib.h>

#include "base/mem.h"

static const char *const KIND[CM_CENSUS_HOLES] = {
    [CM_CENSUS_ABSENT] = "absent",
    [CM_CENSUS_LEFT_OUT] = "left_out",
    [CM_CENSUS_EMPTY] = "empty",
    [CM_CENSUS_TRUNCATED] = "truncated",
    [CM_CENSUS_UNDECODABLE] = "undecodable",
};

static cm_json *count_json(cm_document *d, const cm_census_count *c)
{
    cm_json *o = cm_json_object();
    cm_document_u64(d, o, "nchunks", c->n);
    cm_document_texts(d, o, "chunks", c->name, c->nnames);
    cm_document_text(d, o, "why", c->why);
    return o;
}

/* "==-.=": a mark for each cell. */
static void put_strip(cm_document *d, cm_json *o, const cm_census_array *a)
{
    char *strip = cm_calloc(a->ncells + 1, 1, d->err);
    if (strip == NULL && d->status == CM_OK)
        d->status = CM_ENOMEM;
    for (size_t i = 0; strip != NULL && i < a->ncells; i++) {
        const cm_census_cell *cell = &a->cell[i];
        strip[i] = cell->nholes == 0 ? '=' : cell->nholes < cell->nchunks ? '-' : '.';
    }
    cm_document_text(d, o, "strip", strip != NULL ? strip : "");
    free(strip);
}

static cm_json *array_json(cm_document *d, const cm_census_array *a)
{
    cm_json *o = cm_json_object();
    cm_document_text(d, o, "name", a->name);
    cm_document_text(d, o, "not_counted", a->unclear);
    cm_document_text(d, o, "not_decoded", a->undecoded);
    cm_document_u64(d, o, "nchunks", a->nchunks);
    cm_document_u64(d, o, "present", a->npresent);
    for (int k = 0; k < CM_CENSUS_HOLES; k++)
        cm_document_put(d, o, KIND[k], count_json(d, &a->hole[k]));
    cm_document_text(d, o, "absent_reads_as", a->no_fill ? "zeros" : "fill");
    put_strip(d, o, a);
    return o;
}

static cm_json *places_json(cm_document *d, const cm_census_places *p)
{
    cm_json *o = cm_json_object();
    cm_document_u64(d, o, "inline", p->ninline);
    cm_document_u64(d, o, "virtual", p->noutside);
    return o;
}

static cm_json *foreign_json(cm_document *d, const cm_census *c)
{
    cm_json *o = cm_json_object(), *list = cm_json_array();
    cm_document_u64(d, o, "nobjects", c->nforeign);
    for (size_t i = 0; i < c->nnamed; i++) {
        cm_json *object = cm_json_object();
        cm_document_text(d, object, "key", c->foreign[i].key);
        cm_document_text(d, object, "why", c->foreign[i].why);
        cm_document_append(d, list, object);
    }
    cm_document_put(d, o, "objects", list);
    return o;
}

void cm_document_census(cm_document *d, cm_json *object, const char *name, const cm_census *c)
{
    cm_json *arrays = cm_json_array();
    cm_json *o = cm_document_object(d, object, name, c != NULL);
    if (c == NULL) {
        cm_json_free(arrays);
        return;
    }
    cm_document_text(d, o, "depth", c->decoded ? "decode" : c->sized ? "sizes" : "names");
    cm_document_text(d, o, "not_listed", c->unlisted);
    for (size_t i = 0; i < c->narrays; i++)
        cm_document_append(d, arrays, array_json(d, &c->array[i]));
    cm_document_put(d, o, "arrays", arrays);
    if (c->places.known)
        cm_document_put(d, o, "repository", places_json(d, &c->places));
    if (c->whole)
        cm_document_put(d, o, "foreign", foreign_json(d, c));
    else
        cm_document_null(d, o, "foreign");
}

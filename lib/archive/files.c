/* The files of a join, and memory that lives as long as they do. */
#include "archive/join.h"

void *cm_join_alloc(const cm_join_input *in, size_t count, size_t size, cm_error *err)
{
    return cm_paged_calloc(in->survey->paged, count, size, err);
}

const cm_surveyed *cm_join_file(const cm_join_input *in, size_t file)
{
    cm_paged_touch(in->survey->paged, &in->file[file], sizeof(in->file[file]));
    return cm_survey_file(in->survey, (size_t)(in->file[file] - in->survey->file));
}

int cm_join_by_rank(const void *a, const void *b, void *rank)
{
    const size_t *of = rank;
    const size_t x = of[*(const uint32_t *)a], y = of[*(const uint32_t *)b];
    return (x > y) - (x < y);
}

const cm_skeleton *cm_join_skeleton(const cm_join_input *in, uint32_t file)
{
    cm_survey_touch(in->survey);
    return in->file[file]->skeleton;
}

uint64_t cm_join_length(const cm_join_var *v, const cm_join_dim *d)
{
    if (d->joined >= 0 || d->is_text)
        return d->n;
    for (size_t i = 0; i < v->nfiles; i++)
        if (cm_file_has(d->length[v->file[i]]))
            return cm_file_count(d->length[v->file[i]]);
    return 0;
}

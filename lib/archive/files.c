/* The files of a join, and memory that lives as long as they do. */
#include "archive/join.h"

void *cm_join_alloc(const cm_join *j, size_t count, size_t size, cm_error *err)
{
    return cm_paged_calloc(j->survey->paged, count, size, err);
}

const cm_surveyed *cm_join_file(const cm_join *j, size_t file)
{
    cm_paged_touch(j->survey->paged, &j->file[file], sizeof(j->file[file]));
    return cm_survey_file(j->survey, (size_t)(j->file[file] - j->survey->file));
}

const cm_skeleton *cm_join_skeleton(const cm_join *j, uint32_t file)
{
    cm_survey_touch(j->survey);
    return j->file[file]->skeleton;
}

#include "launcher.h"

#include <stdlib.h>
#include <string.h>

/* Launchers that give rank and count.  mpirun starts its own helpers by srun, so it comes first. */
static const struct step {
    const char *name, *rank, *count;
} STEPS[] = {
    {"mpirun", "OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE"},
    {"mpiexec", "PMI_RANK", "PMI_SIZE"},
};

/* Arrays; LAST and COUNT are NULL where there is no such variable. */
static const struct array {
    const char *name, *index, *count, *first, *last, *step;
    uint64_t begin; /* of the indices, where no variable says */
} ARRAYS[] = {
    {"a Slurm array", "SLURM_ARRAY_TASK_ID", "SLURM_ARRAY_TASK_COUNT", "SLURM_ARRAY_TASK_MIN",
     "SLURM_ARRAY_TASK_MAX", "SLURM_ARRAY_TASK_STEP", 0},
    {"a PBS array", "PBS_ARRAY_INDEX", NULL, NULL, NULL, NULL, 1},
    {"a PBS array", "PBS_ARRAYID", NULL, NULL, NULL, NULL, 1},
    {"an SGE array", "SGE_TASK_ID", NULL, "SGE_TASK_FIRST", "SGE_TASK_LAST", "SGE_TASK_STEPSIZE",
     1},
    {"an LSF array", "LSB_JOBINDEX", NULL, NULL, "LSB_JOBINDEX_END", "LSB_JOBINDEX_STEP", 1},
    {"an indexed Job", "JOB_COMPLETION_INDEX", NULL, NULL, NULL, NULL, 0},
    {"an AWS Batch array", "AWS_BATCH_JOB_ARRAY_INDEX", NULL, NULL, NULL, NULL, 0},
    {"a Google Batch job", "BATCH_TASK_INDEX", "BATCH_TASK_COUNT", NULL, NULL, NULL, 0},
    {"GNU parallel", "PARALLEL_SEQ", NULL, NULL, NULL, NULL, 1},
};

typedef const char *getter(const char *name);

const char *cm_launcher_getenv(const char *name)
{
    return getenv(name);
}

/* *there: the variable is set, and not to nothing. */
static int read_number(getter *get, const char *name, bool *there, uint64_t *out, cm_error *err)
{
    const char *text = name != NULL ? get(name) : NULL;
    /* "undefined" is SGE's word for a job that is no array. */
    *there = text != NULL && *text != '\0' && strcmp(text, "undefined") != 0;
    if (!*there)
        return CM_OK;
    char *end;
    unsigned long long n = strtoull(text, &end, 10);
    if (*text < '0' || *text > '9' || *end != '\0' || n > UINT32_MAX)
        return cm_fail(err, CM_EINVAL, "%s=%s: is not a number of a process", name, text);
    *out = n;
    return CM_OK;
}

static int find_step(getter *get, const char *name, const char *rank, const char *count,
                     cm_launcher *out, cm_error *err)
{
    bool has_rank, has_count;
    uint64_t index = 0, n = 0;
    int rc = read_number(get, rank, &has_rank, &index, err);
    if (rc == CM_OK)
        rc = read_number(get, count, &has_count, &n, err);
    if (rc != CM_OK || !has_rank || !has_count)
        return rc;
    if (index >= n)
        return cm_fail(err, CM_EINVAL, "%s=%llu is not below %s=%llu", rank,
                       (unsigned long long)index, count, (unsigned long long)n);
    *out = (cm_launcher){.kind = CM_LAUNCHER_STEP,
                         .name = name,
                         .variable = rank,
                         .index = index,
                         .count = n,
                         .step = 1};
    return CM_OK;
}

/* A script under sbatch, outside of any step, is one process however many tasks it has. */
static int find_idle_tasks(getter *get, cm_launcher *out, cm_error *err)
{
    bool there;
    uint64_t n = 0;
    if (get("SLURM_JOB_ID") == NULL || get("SLURM_STEP_ID") != NULL)
        return CM_OK;
    int rc = read_number(get, "SLURM_NTASKS", &there, &n, err);
    if (rc == CM_OK && there && n > 1)
        out->idle_tasks = n;
    return rc;
}

static int find_array(getter *get, const struct array *a, cm_launcher *out, cm_error *err)
{
    bool there, has_count, has_first, has_last, has_step;
    uint64_t index = 0, count = 0, first = a->begin, last = 0, step = 1;
    int rc = read_number(get, a->index, &there, &index, err);
    if (rc != CM_OK || !there)
        return rc;
    rc = read_number(get, a->count, &has_count, &count, err);
    if (rc == CM_OK)
        rc = read_number(get, a->first, &has_first, &first, err);
    if (rc == CM_OK)
        rc = read_number(get, a->last, &has_last, &last, err);
    if (rc == CM_OK)
        rc = read_number(get, a->step, &has_step, &step, err);
    if (rc != CM_OK)
        return rc;
    step = step > 0 ? step : 1;
    /* From FIRST to LAST without gaps, or nobody knows how many: "3,7" is two of more. */
    uint64_t regular = has_last && last >= first ? (last - first) / step + 1 : count;
    *out = (cm_launcher){.kind = CM_LAUNCHER_ARRAY,
                         .name = a->name,
                         .variable = a->index,
                         .index = index,
                         .count = has_count && count != regular ? 0 : regular,
                         .first = first,
                         .step = step};
    return CM_OK;
}

int cm_launcher_find(const char *(*get)(const char *name), bool arrays, cm_launcher *out,
                     cm_error *err)
{
    cm_launcher array = {0};
    int rc = CM_OK;
    *out = (cm_launcher){0};
    for (size_t i = 0; rc == CM_OK && out->kind == CM_LAUNCHER_NONE && i < 2; i++)
        rc = find_step(get, STEPS[i].name, STEPS[i].rank, STEPS[i].count, out, err);
    if (rc == CM_OK && out->kind == CM_LAUNCHER_NONE && get("SLURM_STEP_ID") != NULL)
        rc = find_step(get, "srun", "SLURM_PROCID", "SLURM_STEP_NUM_TASKS", out, err);
    for (size_t i = 0; rc == CM_OK && arrays && array.kind == CM_LAUNCHER_NONE &&
                       i < sizeof(ARRAYS) / sizeof(ARRAYS[0]);
         i++)
        rc = find_array(get, &ARRAYS[i], &array, err);
    if (rc != CM_OK)
        return rc;
    if (array.kind == CM_LAUNCHER_ARRAY && out->kind == CM_LAUNCHER_STEP && out->count > 1)
        return cm_fail(err, CM_EINVAL, "%s=%llu and %s=%llu of %llu: a step in an array",
                       array.variable, (unsigned long long)array.index, out->variable,
                       (unsigned long long)out->index, (unsigned long long)out->count);
    if (array.kind == CM_LAUNCHER_ARRAY)
        *out = array;
    return out->kind == CM_LAUNCHER_NONE ? find_idle_tasks(get, out, err) : CM_OK;
}

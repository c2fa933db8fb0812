/* The variables of each launcher, as rows, and their meaning. */

#include "../../../tools/common/launcher.h"
#include "../unit.h"

typedef struct row {
    const char *what;
    const char *set[12]; /* "NAME=value" */
    bool arrays;
    int status;
    cm_launcher_kind kind;
    uint64_t index, count, first, step, idle;
} row;

static const row *now;

static const char *get(const char *name)
{
    size_t n = strlen(name);
    for (size_t i = 0; now->set[i]; i++)
        if (strncmp(now->set[i], name, n) == 0 && now->set[i][n] == '=')
            return now->set[i] + n + 1;
    return NULL;
}

#define STEP  CM_LAUNCHER_STEP
#define ARRAY CM_LAUNCHER_ARRAY
#define TASK_3_OF_1_TO_8                                                                           \
    "SLURM_ARRAY_TASK_ID=3", "SLURM_ARRAY_TASK_COUNT=8", "SLURM_ARRAY_TASK_MIN=1",                 \
        "SLURM_ARRAY_TASK_MAX=8", "SLURM_ARRAY_TASK_STEP=1"

static const row ROWS[] = {
    {"nothing", {0}, true, CM_OK, CM_LAUNCHER_NONE, 0, 0, 0, 0, 0},
    {"srun",
     {"SLURM_JOB_ID=7", "SLURM_STEP_ID=0", "SLURM_PROCID=2", "SLURM_STEP_NUM_TASKS=4",
      "SLURM_NTASKS=4"},
     false,
     CM_OK,
     STEP,
     2,
     4,
     0,
     1,
     0},
    {"a step of fewer tasks than the job",
     {"SLURM_STEP_ID=3", "SLURM_PROCID=1", "SLURM_STEP_NUM_TASKS=2", "SLURM_NTASKS=16"},
     false,
     CM_OK,
     STEP,
     1,
     2,
     0,
     1,
     0},
    {"sbatch -n16 without srun",
     {"SLURM_JOB_ID=7", "SLURM_PROCID=0", "SLURM_NTASKS=16"},
     true,
     CM_OK,
     CM_LAUNCHER_NONE,
     0,
     0,
     0,
     0,
     16},
    {"an array, not asked for",
     {"SLURM_JOB_ID=7", TASK_3_OF_1_TO_8},
     false,
     CM_OK,
     CM_LAUNCHER_NONE,
     0,
     0,
     0,
     0,
     0},
    {"an array", {"SLURM_JOB_ID=7", TASK_3_OF_1_TO_8}, true, CM_OK, ARRAY, 3, 8, 1, 1, 0},
    {"an array in steps",
     {"SLURM_ARRAY_TASK_ID=5", "SLURM_ARRAY_TASK_COUNT=4", "SLURM_ARRAY_TASK_MIN=1",
      "SLURM_ARRAY_TASK_MAX=7", "SLURM_ARRAY_TASK_STEP=2"},
     true,
     CM_OK,
     ARRAY,
     5,
     4,
     1,
     2,
     0},
    {"two of more: nobody knows of how many",
     {"SLURM_ARRAY_TASK_ID=7", "SLURM_ARRAY_TASK_COUNT=2", "SLURM_ARRAY_TASK_MIN=3",
      "SLURM_ARRAY_TASK_MAX=7", "SLURM_ARRAY_TASK_STEP=1"},
     true,
     CM_OK,
     ARRAY,
     7,
     0,
     3,
     1,
     0},
    {"one task of srun in an array",
     {"SLURM_STEP_ID=0", "SLURM_PROCID=0", "SLURM_STEP_NUM_TASKS=1", TASK_3_OF_1_TO_8},
     true,
     CM_OK,
     ARRAY,
     3,
     8,
     1,
     1,
     0},
    {"several tasks of srun in an array, which is a job each",
     {"SLURM_STEP_ID=0", "SLURM_PROCID=1", "SLURM_STEP_NUM_TASKS=2", TASK_3_OF_1_TO_8},
     false,
     CM_OK,
     STEP,
     1,
     2,
     0,
     1,
     0},
    {"several tasks of srun in an array",
     {"SLURM_STEP_ID=0", "SLURM_PROCID=1", "SLURM_STEP_NUM_TASKS=2", TASK_3_OF_1_TO_8},
     true,
     CM_EINVAL,
     0,
     0,
     0,
     0,
     0,
     0},
    {"mpirun, whose helpers srun started",
     {"SLURM_STEP_ID=0", "SLURM_PROCID=0", "SLURM_STEP_NUM_TASKS=1", "OMPI_COMM_WORLD_RANK=5",
      "OMPI_COMM_WORLD_SIZE=8"},
     false,
     CM_OK,
     STEP,
     5,
     8,
     0,
     1,
     0},
    {"mpiexec", {"PMI_RANK=0", "PMI_SIZE=3"}, false, CM_OK, STEP, 0, 3, 0, 1, 0},
    {"half of it", {"PMI_RANK=0"}, false, CM_OK, CM_LAUNCHER_NONE, 0, 0, 0, 0, 0},
    {"PBS", {"PBS_ARRAY_INDEX=4"}, true, CM_OK, ARRAY, 4, 0, 1, 1, 0},
    {"SGE",
     {"SGE_TASK_ID=10", "SGE_TASK_FIRST=2", "SGE_TASK_LAST=20", "SGE_TASK_STEPSIZE=4"},
     true,
     CM_OK,
     ARRAY,
     10,
     5,
     2,
     4,
     0},
    {"SGE without an array",
     {"SGE_TASK_ID=undefined"},
     true,
     CM_OK,
     CM_LAUNCHER_NONE,
     0,
     0,
     0,
     0,
     0},
    {"Kubernetes", {"JOB_COMPLETION_INDEX=0"}, true, CM_OK, ARRAY, 0, 0, 0, 1, 0},
    {"AWS Batch", {"AWS_BATCH_JOB_ARRAY_INDEX=9"}, true, CM_OK, ARRAY, 9, 0, 0, 1, 0},
    {"Google Batch",
     {"BATCH_TASK_INDEX=1", "BATCH_TASK_COUNT=6"},
     true,
     CM_OK,
     ARRAY,
     1,
     6,
     0,
     1,
     0},
    {"GNU parallel", {"PARALLEL_SEQ=3"}, true, CM_OK, ARRAY, 3, 0, 1, 1, 0},
    {"no number", {"PMI_RANK=x", "PMI_SIZE=3"}, false, CM_EINVAL, 0, 0, 0, 0, 0, 0},
    {"a negative one", {"PMI_RANK=-1", "PMI_SIZE=3"}, false, CM_EINVAL, 0, 0, 0, 0, 0, 0},
    {"past the end", {"PMI_RANK=3", "PMI_SIZE=3"}, false, CM_EINVAL, 0, 0, 0, 0, 0, 0},
};

static void test_rows(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof(ROWS) / sizeof(ROWS[0]); i++) {
        cm_launcher l;
        cm_error err = {0};
        now = &ROWS[i];
        int rc = cm_launcher_find(get, now->arrays, &l, &err);
        if (rc != now->status)
            fail_msg("%s: status %d (%s)", now->what, rc, err.text);
        if (rc != CM_OK)
            continue;
        if (l.kind != now->kind || l.idle_tasks != now->idle)
            fail_msg("%s: kind %d, idle %d", now->what, (int)l.kind, (int)l.idle_tasks);
        if (l.kind != CM_LAUNCHER_NONE && (l.index != now->index || l.count != now->count ||
                                           l.first != now->first || l.step != now->step))
            fail_msg("%s: %d of %d, from %d by %d", now->what, (int)l.index, (int)l.count,
                     (int)l.first, (int)l.step);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_rows)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}

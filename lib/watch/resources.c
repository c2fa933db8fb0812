#include "watch/resources.h"

#include <fcntl.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/ticker.h"
#include "watch/nvml.h"
#include "watch/processes.h"

enum {
    DEFAULT_SAMPLES = 4096,
    STAT_TEXT = 128 << 10,
    MAX_CORES = 4096,
    /* A last interval shorter than this share of a whole one says nothing. */
    LEAST_SHARE = 4
};
#define DEFAULT_INTERVAL_NS UINT64_C(100000000)

typedef struct ticks {
    uint64_t busy, all;
} ticks;

typedef struct gpu {
    char name[CM_NVML_NAME_SIZE];
    uint64_t memory_nbytes;
} gpu;

struct cm_resources {
    uint64_t interval_ns; /* doubles when the record is full */
    size_t max_samples, n;
    cm_resource_sample *sample; /* core and gpu are not set */
    float *core;                /* [sample][core] */
    cm_gpu_use *use;            /* [sample][gpu] */

    unsigned ncores;
    unsigned *core_number;
    unsigned *place; /* of core number i in the record, or MAX_CORES */
    ticks *before;
    int stat;
    char *text;
    cm_processes *processes;
    cm_nvml *nvml;
    unsigned ngpus;
    gpu gpu[CM_RESOURCES_MAX_GPUS];

    uint64_t last_ns;
    cm_ticker ticker;
};

/* ---- one look ---- */

/*
 * The ticks of each core of ours since the look before, from the lines "cpu3 user
 * nice system idle iowait irq softirq steal ..." of /proc/stat.  CORE (or NULL)
 * gets the shares.
 */
static void look_at_cores(cm_resources *r, float *core)
{
    ssize_t n = r->stat < 0 ? -1 : pread(r->stat, r->text, STAT_TEXT - 1, 0);
    r->text[n > 0 ? n : 0] = '\0';
    for (char *line = r->text; line != NULL && strncmp(line, "cpu", 3) == 0;
         line = strchr(line, '\n'), line += line != NULL) {
        char *at = line + 3;
        if (*at < '0' || *at > '9')
            continue;
        unsigned long number = strtoul(at, &at, 10);
        if (number >= MAX_CORES || r->place[number] >= r->ncores)
            continue;
        uint64_t value[8] = {0}, all = 0;
        for (int i = 0; i < 8; i++)
            all += value[i] = strtoull(at, &at, 10);
        ticks now = {all - value[3] - value[4], all};
        ticks *before = &r->before[r->place[number]];
        if (core != NULL) {
            /* Idle time may go back a little on some kernels. */
            uint64_t passed = now.all > before->all ? now.all - before->all : 0;
            uint64_t busy = now.busy > before->busy ? now.busy - before->busy : 0;
            float share = passed > 0 ? (float)busy / (float)passed : 0;
            core[r->place[number]] = share > 1 ? 1 : share;
        }
        *before = now;
    }
}

/* Makes one of each two neighbours. */
static void halve(cm_resources *r)
{
    for (size_t i = 0; i < r->n / 2; i++) {
        const cm_resource_sample a = r->sample[2 * i], b = r->sample[2 * i + 1];
        const float of_a = (float)(a.end_ns - a.begin_ns), of_b = (float)(b.end_ns - b.begin_ns);
        const float wa = of_a + of_b > 0 ? of_a / (of_a + of_b) : 0.5f, wb = 1 - wa;
        r->sample[i] = (cm_resource_sample){
            .begin_ns = a.begin_ns,
            .end_ns = b.end_ns,
            .cpus = wa * a.cpus + wb * b.cpus,
            .nprocesses = a.nprocesses > b.nprocesses ? a.nprocesses : b.nprocesses,
            .rss_nbytes = a.rss_nbytes > b.rss_nbytes ? a.rss_nbytes : b.rss_nbytes};
        for (unsigned c = 0; c < r->ncores; c++)
            r->core[i * r->ncores + c] =
                wa * r->core[2 * i * r->ncores + c] + wb * r->core[(2 * i + 1) * r->ncores + c];
        for (unsigned g = 0; g < r->ngpus; g++) {
            const cm_gpu_use *ua = &r->use[2 * i * r->ngpus + g], *ub = ua + r->ngpus;
            r->use[i * r->ngpus + g] = (cm_gpu_use){
                .busy = ua->busy < 0   ? ub->busy
                        : ub->busy < 0 ? ua->busy
                                       : wa * ua->busy + wb * ub->busy,
                .memory_nbytes =
                    ua->memory_nbytes > ub->memory_nbytes ? ua->memory_nbytes : ub->memory_nbytes};
        }
    }
    r->n /= 2;
    r->interval_ns *= 2;
}

static uint64_t take_sample(void *context)
{
    cm_resources *r = context;
    if (r->n == r->max_samples)
        halve(r);
    cm_resource_sample *s = &r->sample[r->n];
    cm_processes_use use;
    look_at_cores(r, r->core + r->n * r->ncores);
    cm_processes_look(r->processes, &use);
    for (unsigned g = 0; g < r->ngpus; g++) {
        cm_gpu_use *u = &r->use[r->n * r->ngpus + g];
        cm_nvml_read(r->nvml, g, &u->busy, &u->memory_nbytes);
    }
    uint64_t now = cm_now_ns();
    *s = (cm_resource_sample){.begin_ns = r->last_ns,
                              .end_ns = now,
                              .cpus = (float)((double)use.cpu_ns / (double)(now - r->last_ns + 1)),
                              .nprocesses = use.n,
                              .rss_nbytes = use.rss_nbytes};
    r->last_ns = now;
    r->n++;
    return r->interval_ns;
}

/* ---- beginning and ending ---- */

/* The cores that this process may run on. */
static int list_cores(cm_resources *r, cm_error *err)
{
    const size_t size = CPU_ALLOC_SIZE(MAX_CORES);
    cpu_set_t *set = CPU_ALLOC(MAX_CORES);
    r->core_number = cm_calloc(MAX_CORES, sizeof(unsigned), err);
    r->place = cm_calloc(MAX_CORES, sizeof(unsigned), err);
    if (set == NULL || r->core_number == NULL || r->place == NULL) {
        CPU_FREE(set);
        return cm_fail(err, CM_ENOMEM, "no memory for a list of cores");
    }
    CPU_ZERO_S(size, set);
    bool known = sched_getaffinity(0, size, set) == 0;
    for (unsigned i = 0; i < MAX_CORES; i++) {
        r->place[i] = MAX_CORES;
        if (known && CPU_ISSET_S(i, size, set)) {
            r->place[i] = r->ncores;
            r->core_number[r->ncores++] = i;
        }
    }
    CPU_FREE(set);
    return CM_OK;
}

static int prepare(cm_resources *r, const cm_resources_options *options, cm_error *err)
{
    r->interval_ns = options->interval_ns > 0 ? options->interval_ns : DEFAULT_INTERVAL_NS;
    r->max_samples = options->max_samples > 0 ? options->max_samples : DEFAULT_SAMPLES;
    if (r->max_samples < 2)
        return cm_fail(err, CM_EINVAL, "a record of resources holds at least 2 samples");
    r->max_samples -= r->max_samples % 2; /* two neighbours become one */
    int rc = list_cores(r, err);
    if (rc != CM_OK)
        return rc;
    r->nvml = options->gpus ? cm_nvml_open() : NULL;
    r->ngpus = cm_nvml_count(r->nvml);
    if (r->ngpus > CM_RESOURCES_MAX_GPUS)
        r->ngpus = CM_RESOURCES_MAX_GPUS;
    for (unsigned g = 0; g < r->ngpus; g++)
        cm_nvml_describe(r->nvml, g, r->gpu[g].name, &r->gpu[g].memory_nbytes);
    const size_t n = r->max_samples;
    r->sample = cm_calloc(n, sizeof(*r->sample), err);
    r->core = cm_calloc(n, (r->ncores + 1) * sizeof(float), err);
    r->use = cm_calloc(n, (r->ngpus + 1) * sizeof(cm_gpu_use), err);
    r->before = cm_calloc(r->ncores + 1, sizeof(ticks), err);
    r->text = cm_calloc(STAT_TEXT, 1, err);
    r->processes = cm_processes_open(err);
    if (r->sample == NULL || r->core == NULL || r->use == NULL || r->before == NULL ||
        r->text == NULL || r->processes == NULL)
        return CM_ENOMEM;
    r->stat = open("/proc/stat", O_RDONLY | O_CLOEXEC);
    return CM_OK;
}

int cm_resources_start(const cm_resources_options *options, cm_resources **out, cm_error *err)
{
    cm_resources *r = cm_calloc(1, sizeof(*r), err);
    if (r == NULL)
        return CM_ENOMEM;
    r->stat = -1;
    int rc = prepare(r, options, err);
    if (rc == CM_OK) {
        cm_processes_use ignored;
        look_at_cores(r, NULL);
        cm_processes_look(r->processes, &ignored);
        r->last_ns = cm_now_ns();
        rc = cm_ticker_start(&r->ticker, r->interval_ns, take_sample, r, err);
    }
    if (rc != CM_OK) {
        cm_resources_free(r);
        return rc;
    }
    *out = r;
    return CM_OK;
}

void cm_resources_stop(cm_resources *r)
{
    if (!r->ticker.running)
        return;
    cm_ticker_stop(&r->ticker);
    if (r->n == 0 || cm_now_ns() - r->last_ns >= r->interval_ns / LEAST_SHARE)
        (void)take_sample(r);
}

void cm_resources_free(cm_resources *r)
{
    if (r == NULL)
        return;
    cm_resources_stop(r);
    cm_nvml_close(r->nvml);
    cm_processes_close(r->processes);
    if (r->stat >= 0)
        close(r->stat);
    free(r->sample);
    free(r->core);
    free(r->use);
    free(r->core_number);
    free(r->place);
    free(r->before);
    free(r->text);
    free(r);
}

/* ---- what was recorded ---- */

unsigned cm_resources_ncores(const cm_resources *r)
{
    return r->ncores;
}

unsigned cm_resources_ngpus(const cm_resources *r)
{
    return r->ngpus;
}

unsigned cm_resources_find_gpu(const cm_resources *r, const char *pci)
{
    const unsigned i = cm_nvml_find(r->nvml, pci);
    return i < r->ngpus ? i : r->ngpus;
}

uint64_t cm_resources_gpu_memory(const cm_resources *r, unsigned i)
{
    return r->gpu[i].memory_nbytes;
}

size_t cm_resources_count(const cm_resources *r)
{
    return r->n;
}

void cm_resources_at(const cm_resources *r, size_t i, cm_resource_sample *out)
{
    *out = r->sample[i];
    out->core = r->core + i * r->ncores;
    out->gpu = r->use + i * r->ngpus;
}

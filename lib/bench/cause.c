#include "bench/cause.h"

#include <string.h>

#include "bench/rules.h"

bool cm_readbench_by_library(const cm_readbench_session *s)
{
    return s->engine != NULL && strcmp(s->engine, "netcdf") == 0;
}

bool cm_readbench_by_user(const cm_readbench_session *s)
{
    return s->engine != NULL && strncmp(s->engine, "exec:", 5) == 0;
}

bool cm_readbench_is_planned(const cm_readbench_session *s)
{
    return s->loader != NULL && strcmp(s->loader, "planned") == 0;
}

bool cm_readbench_is_sync(const cm_readbench_session *s)
{
    return s->mode != NULL && strcmp(s->mode, "sync") == 0;
}

bool cm_readbench_is_cold(const cm_readbench_session *s)
{
    return s->temperature != NULL && strcmp(s->temperature, "cold") == 0;
}

const char *cm_readbench_setting_of(const cm_readbench_session *s, const char *name)
{
    for (size_t i = 0; i < s->nsettings; i++)
        if (strcmp(s->setting[i].name, name) == 0)
            return s->setting[i].value;
    return "";
}

const char *cm_readbench_cause_name(cm_readbench_cause cause)
{
    static const char *const names[] = {
        [CM_CAUSE_UNKNOWN] = "unknown",
        [CM_CAUSE_FAILURES] = "failures",
        [CM_CAUSE_NOTHING] = "nothing-stored",
        [CM_CAUSE_CONTENTION] = "contention",
        [CM_CAUSE_STEP] = "step",
        [CM_CAUSE_DEVICE_COPY] = "device-copy",
        [CM_CAUSE_CHUNK_SHAPE] = "chunk-shape",
        [CM_CAUSE_USER_LOADER] = "user-loader",
        [CM_CAUSE_LIBRARY] = "library",
        [CM_CAUSE_STORAGE] = "storage",
        [CM_CAUSE_FEW_REQUESTS] = "few-requests",
        [CM_CAUSE_CPUS] = "cpus",
        [CM_CAUSE_FEW_WORKERS] = "few-workers",
        [CM_CAUSE_WORK] = "work",
        [CM_CAUSE_UNEVEN] = "uneven",
    };
    return names[cause];
}

/*
 * The share of reading and decoding that other chunks would save: of its time, or else of its
 * bytes.
 */
static double spared(const cm_readbench_session *s, const cm_readbench_facts *f)
{
    if (f->excess > 0 && f->spared >= 0) /* many small chunks take time without decoding more */
        return f->excess > CM_RULE_EXCESS || f->spared > CM_RULE_SMALL_CHUNKS ? f->spared : 0;
    if (f->excess > 0)
        return f->excess > CM_RULE_EXCESS ? 1 - 1 / f->excess : 0;
    /* Unknown best chunks decode at least the bytes of the sample. */
    return s->amplification[0] > CM_RULE_AMPLIFICATION ? 1 - 1 / s->amplification[0] : 0;
}

double cm_readbench_shape_saves(const cm_readbench_session *s, const cm_readbench_facts *f)
{
    const bool known = f->largest_stage >= 0;
    return spared(s, f) * (known ? f->stage_share[0] + f->stage_share[1] : 1);
}

/* Half of what was waited for the device, or more. */
static bool waits_for_device(const cm_readbench_session *s)
{
    return s->device.used && s->device.wait.total > s->wait.total / 2;
}

/*
 * More requests do not shorten one request but run beside each other: while storage gave more when
 * asked for more, too few requests are the cause.
 */
static cm_readbench_cause storage_cause(const cm_readbench_session *s)
{
    if (cm_readbench_by_user(s))
        return CM_CAUSE_USER_LOADER;
    if (cm_readbench_by_library(s))
        return CM_CAUSE_LIBRARY;
    return s->rates.efficiency < CM_RULE_STORAGE_RATE ? CM_CAUSE_FEW_REQUESTS : CM_CAUSE_STORAGE;
}

static bool by_others_code(const cm_readbench_session *s)
{
    return cm_readbench_by_user(s) || cm_readbench_by_library(s);
}

/* Whether storage and CPUs could feed the accelerator, so that neither is lacking. */
static bool has_capacity(const cm_readbench_session *s)
{
    return s->accelerators.needed > 0 && s->rates.capacity > s->accelerators.needed;
}

/*
 * Causes that hold whatever other programs do: the counted work of decoding, and the delay of an
 * emulated storage where it exceeds the time that they may have taken.
 */
static cm_readbench_cause cause_beside_others(const cm_readbench_session *s,
                                              const cm_readbench_facts *f)
{
    if (cm_readbench_shape_saves(s, f) > CM_RULE_SHAPE_SAVES)
        return CM_CAUSE_CHUNK_SHAPE;
    if (s->emulated && f->stage_share[0] > CM_RULE_STORAGE && !has_capacity(s) &&
        f->stage_share[0] > f->others_explain)
        return storage_cause(s);
    return CM_CAUSE_CONTENTION;
}

/* Steps waited: for what? */
static cm_readbench_cause waiting_cause(const cm_readbench_session *s, const cm_readbench_facts *f)
{
    if (waits_for_device(s))
        return CM_CAUSE_DEVICE_COPY;
    if (cm_readbench_shape_saves(s, f) > CM_RULE_SHAPE_SAVES)
        return CM_CAUSE_CHUNK_SHAPE;
    if (f->stage_share[0] > CM_RULE_STORAGE && (by_others_code(s) || !has_capacity(s)))
        return storage_cause(s);
    if (has_capacity(s))
        return CM_CAUSE_UNEVEN;
    if (f->all_cores > CM_RULE_LOOKS)
        return CM_CAUSE_CPUS;
    if (f->largest_stage < 0 || f->nthreads < s->cpus || f->one_core > CM_RULE_LOOKS)
        return CM_CAUSE_FEW_WORKERS;
    return CM_CAUSE_WORK;
}

cm_readbench_cause cm_readbench_find_cause(const cm_readbench_session *s,
                                           const cm_readbench_facts *f)
{
    if (s->counts.failed_batches > 0)
        return CM_CAUSE_FAILURES;
    if (s->counts.chunks > 0 && s->counts.missing_chunks == s->counts.chunks)
        return CM_CAUSE_NOTHING;
    if (s->wait.n == 0)
        return CM_CAUSE_UNKNOWN;
    if (s->wait_share <= CM_RULE_KEEPS_UP)
        return CM_CAUSE_STEP;
    return f->contended ? cause_beside_others(s, f) : waiting_cause(s, f);
}

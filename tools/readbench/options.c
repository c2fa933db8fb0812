/* From what was typed to what the library is asked for. */
#include <string.h>

#include "base/number.h"
#include "readbench.h"

enum {
    EPOCHS = 2,         /* the second shows what caches give */
    COMPARED_EPOCHS = 3 /* of several stores in turn: fewer pairs say nothing of the spread */
};

/* "forward=30ms,backward=50ms,other=5ms", any of them, or one time for the whole step. */
static int parse_step_time(const char *text, cm_readbench_options *o, cm_error *err)
{
    static const char *const NAMES[] = {"forward", "backward", "other"};
    double *const part[] = {&o->step_forward, &o->step_backward, &o->step_other};
    char item[64];
    bool seen[3] = {false};

    *part[0] = *part[1] = *part[2] = 0;
    if (strchr(text, '=') == NULL)
        return cm_parse_time(text, part[0], err);
    for (const char *p = text;; p++) {
        size_t n = strcspn(p, ",");
        const char *equals = memchr(p, '=', n);
        size_t nname = equals ? (size_t)(equals - p) : n, k = 0;
        while (k < 3 && (strlen(NAMES[k]) != nname || memcmp(p, NAMES[k], nname) != 0))
            k++;
        if (k == 3 || equals == NULL || n - nname >= sizeof(item))
            return cm_fail(err, CM_EINVAL, "'%.*s' is not forward=T, backward=T or other=T", (int)n,
                           p);
        if (seen[k])
            return cm_fail(err, CM_EINVAL, "%s is given twice", NAMES[k]);
        memcpy(item, equals + 1, n - nname - 1);
        item[n - nname - 1] = '\0';
        if (cm_parse_time(item, part[k], err) != CM_OK)
            return CM_EINVAL;
        seen[k] = true;
        p += n;
        if (*p == '\0')
            return CM_OK;
    }
}

static int check_values(const readbench_values *v, const cm_texts *paths, cm_error *err)
{
    if (paths->n == 0)
        return cm_fail(err, CM_EINVAL, "no store");
    if (v->o.cold && v->o.warm)
        return cm_fail(err, CM_EINVAL, "--cold and --warm exclude each other");
    if (v->out && v->no_out)
        return cm_fail(err, CM_EINVAL, "--out and --no-out exclude each other");
    if (v->out && *v->out == '\0')
        return cm_fail(err, CM_EINVAL, "--out takes a folder");
    if (v->o.log_samples && v->no_out)
        return cm_fail(err, CM_EINVAL, "--log-samples and --no-out exclude each other");
    if (v->o.tune && v->sweep.n > 0)
        return cm_fail(err, CM_EINVAL, "--tune and --sweep exclude each other");
    if (v->cpus > 0)
        return cm_fail(err, CM_EINVAL, "--cpus needs --advise");
    if (v->o.cache_dir_nbytes > 0 && v->o.cache_dir == NULL)
        return cm_fail(err, CM_EINVAL, "--cache-dir-size needs --cache-dir");
    if (v->o.cache_policy != NULL && v->o.cache_nbytes == 0)
        return cm_fail(err, CM_EINVAL, "--cache-policy needs --cache");
    if (v->o.replay && v->sweep.n > 0)
        return cm_fail(err, CM_EINVAL, "--replay and --sweep exclude each other");
    if (v->o.rank > 0 && v->o.rank >= v->o.world_size)
        return cm_fail(err, CM_EINVAL, "--rank must be below --world-size");
    if (v->o.step_per_sample < 0)
        return cm_fail(err, CM_EINVAL, "--step-time-per-sample cannot be negative");
    return CM_OK;
}

/* Recorded reads come one by one, and as fast as they can, where no option says otherwise. */
static void replay_defaults(cm_readbench_options *o, const cm_common_options *common)
{
    if (!cm_tool_given(&READBENCH, common, "batch"))
        o->batch = 1;
    if (!cm_tool_given(&READBENCH, common, "step-time"))
        o->step_forward = o->step_backward = o->step_other = 0;
}

int readbench_complete(readbench_values *v, const cm_common_options *common, const cm_texts *paths,
                       cm_error *err)
{
    cm_readbench_options *o = &v->o;
    int rc = check_values(v, paths, err);

    if (rc == CM_OK && v->step_time) {
        rc = parse_step_time(v->step_time, o, err);
        if (rc != CM_OK)
            cm_error_prefix(err, "--step-time");
    }
    if (rc != CM_OK)
        return CM_EINVAL;
    if (o->replay != NULL)
        replay_defaults(o, common);
    o->store = *paths;
    if (o->epochs == 0)
        o->epochs = paths->n > 1 ? COMPARED_EPOCHS : EPOCHS;
    o->memory = common->memory;
    o->nthreads = common->nthreads;
    return CM_OK;
}

#include <pthread.h>
#include <stdatomic.h>

#include "base/mem.h"
#include "base/threads.h"
#include "convert/source/inputs_impl.h"

_Static_assert(CM_XXH128_TEXT <= 65, "either digest fits");

typedef struct digests {
    cm_job *job;
    cm_inputs_kind kind;
    unsigned step; /* files that a thread takes at once */
    size_t first, n;
    char (*text)[65];     /* from FIRST on */
    _Atomic size_t next;  /* from the end */
    pthread_mutex_t lock; /* guards: */
    cm_error error;
} digests;

/* Digests COUNT files from the I-th on. */
static int digest_step(digests *d, size_t i, unsigned count, cm_error *err)
{
    if (cm_monitor_canceled(d->job->options->monitor))
        return cm_fail(err, CM_ECANCELED, "stopped by request");
    const uint32_t file = (uint32_t)(d->first + i);
    return d->kind == CM_INPUTS_XXH128
               ? cm_multi_file_xxh128(d->job->source, file, d->text[i], err)
               : cm_multi_file_sha256(d->job->source, file, count, &d->text[i], err);
}

/* From the last file to the first: the last ones are those that are still open. */
static void digest_main(void *context, unsigned index)
{
    digests *d = context;
    (void)index;
    for (size_t ndone; (ndone = atomic_fetch_add(&d->next, d->step)) < d->n;) {
        cm_error err = {0};
        const size_t left = d->n - ndone;
        const unsigned count = left < d->step ? (unsigned)left : d->step;
        if (digest_step(d, left - count, count, &err) == CM_OK)
            continue;
        pthread_mutex_lock(&d->lock);
        if (d->error.status == CM_OK)
            d->error = err;
        pthread_mutex_unlock(&d->lock);
        atomic_store(&d->next, d->n);
    }
}

int cm_inputs_digest(const cm_job *job, cm_inputs_kind kind, size_t first, size_t n,
                     char (**out)[65], cm_error *err)
{
    digests d = {.job = (cm_job *)(uintptr_t)job,
                 .kind = kind,
                 .step = kind == CM_INPUTS_XXH128 ? 1 : CM_MULTI_DIGESTS,
                 .first = first,
                 .n = n};
    if ((d.text = cm_calloc(n + 1, sizeof(d.text[0]), err)) == NULL)
        return CM_ENOMEM;
    *out = d.text;
    pthread_mutex_init(&d.lock, NULL);
    cm_threads_run(cm_job_threads(job), digest_main, &d);
    pthread_mutex_destroy(&d.lock);
    if (d.error.status != CM_OK && err != NULL)
        *err = d.error;
    return d.error.status;
}

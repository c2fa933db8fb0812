/* Cancellation, checked between the steps of long work. */
#ifndef CM_BASE_STOP_H
#define CM_BASE_STOP_H

#include <stdbool.h>
#include <stddef.h>

#include <chunkmill/error.h>

typedef struct cm_stop {
    bool (*canceled)(void *context); /* any thread; NULL: never */
    void *context;
} cm_stop;

/* NULL accepted: never. */
static inline bool cm_stop_wanted(const cm_stop *s)
{
    return s != NULL && s->canceled != NULL && s->canceled(s->context);
}

/* CM_ECANCELED when the work is to stop. */
static inline int cm_stop_check(const cm_stop *s, cm_error *err)
{
    return cm_stop_wanted(s) ? cm_fail(err, CM_ECANCELED, "stopped by request") : CM_OK;
}

#endif

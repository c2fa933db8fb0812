#include "store/net/headway.h"

#include <stdlib.h>
#include <string.h>

#include "base/mem.h"

/*
 * Remembers one page, and replaces it as the number of pages doubles: this finds a loop of any
 * length.
 */
static int remember(cm_headway *h, const char *token, uint64_t sum, cm_error *err)
{
    if (h->npages < 2 * h->mark.number)
        return CM_OK;
    free(h->mark.token);
    h->mark.number = h->npages;
    h->mark.sum = sum;
    return (h->mark.token = cm_strdup(token, err)) == NULL ? CM_ENOMEM : CM_OK;
}

int cm_headway_check(cm_headway *h, const char *token, uint64_t sum, uint64_t nbytes,
                     const char *shown, cm_error *err)
{
    h->nempty = nbytes > 0 ? 0 : h->nempty + 1;
    /* Pages without a name are alike. */
    const bool alike = nbytes > 0 ? sum == h->mark.sum : h->nempty > CM_HEADWAY_MAX_EMPTY;
    bool again = h->npages++ > 0 && (alike || strcmp(token, h->mark.token) == 0);
    if (again)
        return cm_fail(err, CM_EIO,
                       "%s: the server's listing has no end: a page comes that came before", shown);
    h->nbytes += nbytes;
    if (h->npages > CM_HEADWAY_MAX_PAGES || h->nbytes > CM_HEADWAY_MAX_NBYTES)
        return cm_fail(err, CM_EIO,
                       "%s: the server's listing has no end: %llu pages with %llu bytes of names "
                       "are more than any store has",
                       shown, (unsigned long long)h->npages, (unsigned long long)h->nbytes);
    return remember(h, token, sum, err);
}

void cm_headway_release(cm_headway *h)
{
    free(h->mark.token);
    *h = (cm_headway){0};
}

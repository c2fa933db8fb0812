#include <stdlib.h>

#include "format/multi/internal.h"

cm_multi_scratch *cm_multi_scratch_take(cm_multi_dataset *d, cm_error *err)
{
    pthread_mutex_lock(&d->lock);
    cm_multi_scratch *s = d->scratch;
    if (s != NULL)
        d->scratch = s->next;
    pthread_mutex_unlock(&d->lock);
    if (s != NULL || (s = cm_calloc(1, sizeof(*s), err)) == NULL)
        return s;
    if ((s->ctx = cm_codec_ctx_create(err)) == NULL) {
        free(s);
        return NULL;
    }
    return s;
}

void cm_multi_scratch_give(cm_multi_dataset *d, cm_multi_scratch *s)
{
    pthread_mutex_lock(&d->lock);
    s->next = d->scratch;
    d->scratch = s;
    pthread_mutex_unlock(&d->lock);
}

void cm_multi_scratch_free(cm_multi_scratch *list)
{
    while (list != NULL) {
        cm_multi_scratch *s = list;
        list = s->next;
        cm_codec_ctx_free(s->ctx);
        cm_buf_release(&s->raw);
        cm_buf_release(&s->texts);
        cm_buf_release(&s->box);
        for (unsigned k = 0; k < 2; k++) {
            cm_buf_release(&s->stored[k]);
            cm_buf_release(&s->check[k]);
        }
        cm_strings_release(&s->text);
        free(s);
    }
}

#include "convert/beside/silence.h"

#include <stdlib.h>
#include <string.h>

typedef struct watched {
    char name[64];
    uint64_t beat_mark, since_ns; /* the last beat, and when it was seen first */
    bool beats;                   /* another one was seen before it */
} watched;

struct cm_silence {
    watched *lock;
    size_t n, capacity;
};

cm_silence *cm_silence_create(cm_error *err)
{
    return cm_calloc(1, sizeof(cm_silence), err);
}

void cm_silence_free(cm_silence *s)
{
    if (s != NULL)
        free(s->lock);
    free(s);
}

/* The entry of NAME; NULL: no memory, or a name that no lock has. */
static watched *entry_of(cm_silence *s, const char *name)
{
    for (size_t i = 0; i < s->n; i++)
        if (strcmp(s->lock[i].name, name) == 0)
            return &s->lock[i];
    watched *more = cm_make_room(s->lock, s->n, &s->capacity, sizeof(*more), 4);
    if (more == NULL || strlen(name) >= sizeof(more->name))
        return NULL;
    s->lock = more;
    more[s->n] = (watched){0};
    strcpy(more[s->n].name, name);
    return &more[s->n++];
}

/* The entry of NAME after this look at its beat; NULL: it cannot be watched. */
static const watched *watch(cm_silence *s, const char *name, const cm_holder *h, uint64_t now_ns)
{
    watched *w = s == NULL || h->beat_mark == 0 ? NULL : entry_of(s, name);
    if (w == NULL)
        return NULL;
    if (w->beat_mark != h->beat_mark) {
        w->beats = w->beat_mark != 0;
        w->beat_mark = h->beat_mark;
        w->since_ns = now_ns;
    }
    return w;
}

cm_holder_state cm_silence_judge(cm_silence *s, const char *name, const cm_holder *h, int64_t age_s,
                                 bool remote, uint64_t now_ns, cm_holder_state state)
{
    if (state != CM_HOLDER_ELSEWHERE || !h->beats)
        return state;
    const uint64_t enough = remote ? CM_REMOTE_WATCH_NS : CM_WATCH_NS;
    const watched *w = watch(s, name, h, now_ns);
    const uint64_t seen = w == NULL ? 0 : now_ns - w->since_ns;
    if (seen >= CM_SILENCE_S * UINT64_C(1000000000))
        return CM_HOLDER_ENDED;
    if (age_s <= CM_SILENCE_S || (w != NULL && w->beats && seen < enough))
        return state;
    return seen >= enough ? CM_HOLDER_ENDED : CM_HOLDER_SILENT;
}

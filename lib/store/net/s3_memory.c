#include "store/net/s3_memory.h"

#include <string.h>
#include <sys/mman.h>

#include "store/net/http.h"

enum {
    SINGLE_PIECES = 2,     /* a longer object is sent in parts */
    AHEAD_PIECES = 4,      /* default */
    LEAST_PIECE = 5 << 20, /* minimum size of a part in S3 */
    MOST_PIECES = 10000,
    PAGE = 4096
};

/* A free piece: the start of its memory. */
typedef struct cm_s3_idle {
    struct cm_s3_idle *next;
} cm_s3_idle;

/* Fewer, larger requests are cheaper; smaller pieces need less memory. */
static const size_t SIZES[CM_STORE_PIECES] = {16 << 20, 8 << 20, LEAST_PIECE};

void cm_s3_memory_init(cm_s3_memory *p)
{
    pthread_mutex_init(&p->lock, NULL);
    pthread_cond_init(&p->changed, NULL);
    p->piece_nbytes = SIZES[0];
    p->ahead_nbytes = AHEAD_PIECES * cm_s3_memory_piece(p);
    p->most_nbytes = SIZE_MAX;
}

/*
 * Separate pages: after one block of this size was freed, the heap would keep the next ones, in the
 * arena of each thread that ever had one.
 */
static uint8_t *new_pages(size_t nbytes, cm_error *err)
{
    void *at = mmap(NULL, nbytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (at != MAP_FAILED)
        return at;
    cm_fail(err, CM_ENOMEM, "no memory for a part of an object");
    return NULL;
}

static void drop_idle(cm_s3_memory *p)
{
    for (cm_s3_idle *next; p->idle != NULL; p->idle = next) {
        next = p->idle->next;
        munmap(p->idle, p->idle_form.piece_nbytes);
    }
}

void cm_s3_memory_release(cm_s3_memory *p)
{
    drop_idle(p);
    pthread_mutex_destroy(&p->lock);
    pthread_cond_destroy(&p->changed);
}

void cm_s3_memory_set(cm_s3_memory *p, const cm_store_limits *sending)
{
    pthread_mutex_lock(&p->lock);
    drop_idle(p);
    p->piece_nbytes = SIZES[sending->pieces];
    p->ahead_nbytes = sending->ahead_nbytes;
    p->most_nbytes = sending->most_nbytes;
    pthread_mutex_unlock(&p->lock);
}

/* ---- how much ---- */

static uint64_t whole_pages(uint64_t nbytes)
{
    return (nbytes + PAGE - 1) / PAGE * PAGE;
}

static size_t with_request(const cm_s3_form *form)
{
    return form->full_nbytes + CM_HTTP_REQUEST_NBYTES;
}

cm_s3_form cm_s3_form_of(const cm_s3_memory *p, const cm_object_form *form)
{
    const uint64_t most = form->most_nbytes;
    cm_s3_form f = {.piece_nbytes = p->piece_nbytes, .npieces = 1};
    if (form->in_order && most > 0 && most <= SINGLE_PIECES * p->piece_nbytes) {
        /* Allow for the unexpected: it takes no memory until it is used. */
        f.full_nbytes = (size_t)whole_pages(most);
        f.piece_nbytes = f.full_nbytes < LEAST_PIECE ? LEAST_PIECE : f.full_nbytes;
        f.nbytes = with_request(&f);
        return f;
    }
    if (most / MOST_PIECES >= f.piece_nbytes)
        f.piece_nbytes = (size_t)whole_pages(most / MOST_PIECES + 1);
    /* The head, which comes last, shares a piece with the first bytes that come. */
    f.npieces += form->head_nbytes > 0;
    f.full_nbytes = f.piece_nbytes;
    f.nbytes = f.npieces * with_request(&f);
    return f;
}

/* Sent from a scratch file, piece by piece, within the shared limit. */
cm_s3_form cm_s3_form_of_scratch(const cm_s3_memory *p, uint64_t most_nbytes)
{
    cm_s3_form f = cm_s3_form_of(p, &(cm_object_form){.most_nbytes = most_nbytes});
    f.npieces = 0;
    f.nbytes = 0;
    return f;
}

size_t cm_s3_memory_need(const cm_s3_memory *p, const cm_object_form *form)
{
    return form->in_order ? cm_s3_form_of(p, form).nbytes : 0;
}

size_t cm_s3_memory_piece(const cm_s3_memory *p)
{
    return p->piece_nbytes + CM_HTTP_REQUEST_NBYTES;
}

/* ---- allocation ---- */

static bool fits(const cm_s3_memory *p, size_t nbytes)
{
    const size_t held = p->needed_nbytes + p->extra_nbytes;
    return held <= p->most_nbytes && nbytes <= p->most_nbytes - held;
}

bool cm_s3_memory_enter(cm_s3_memory *p, const cm_s3_form *form)
{
    while (!fits(p, form->nbytes) && p->nending > 0)
        pthread_cond_wait(&p->changed, &p->lock);
    if (!fits(p, form->nbytes))
        return false;
    p->needed_nbytes += form->nbytes;
    p->nwriters++;
    return true;
}

void cm_s3_memory_leave(cm_s3_memory *p, const cm_s3_form *form)
{
    p->needed_nbytes -= form->nbytes;
    if (--p->nwriters == 0)
        drop_idle(p);
    pthread_cond_broadcast(&p->changed);
}

bool cm_s3_memory_has_room(const cm_s3_memory *p, const cm_s3_form *form)
{
    const size_t more = with_request(form);
    /* Always allow one, so that nobody waits for ever. */
    return p->extra_nbytes == 0 || (p->extra_nbytes + more <= p->ahead_nbytes && fits(p, more));
}

static bool is_same(const cm_s3_form *a, const cm_s3_form *b)
{
    return a->piece_nbytes == b->piece_nbytes && a->full_nbytes == b->full_nbytes;
}

uint8_t *cm_s3_memory_take(cm_s3_memory *p, const cm_s3_form *form, bool extra, cm_error *err)
{
    uint8_t *piece = NULL;
    /* Free pieces of another form first: they would exceed the limit. */
    if (p->idle != NULL && !is_same(form, &p->idle_form))
        drop_idle(p);
    if (p->idle != NULL) {
        piece = (uint8_t *)p->idle;
        p->idle = p->idle->next;
    } else {
        piece = new_pages(form->piece_nbytes, err);
    }
    if (piece != NULL && extra)
        p->extra_nbytes += with_request(form);
    return piece;
}

void cm_s3_memory_give(cm_s3_memory *p, uint8_t *piece, const cm_s3_form *form, bool extra)
{
    if (piece == NULL)
        return;
    if (extra)
        p->extra_nbytes -= with_request(form);
    if (p->idle != NULL && !is_same(form, &p->idle_form)) {
        munmap(piece, form->piece_nbytes);
        return;
    }
    cm_s3_idle *idle = (cm_s3_idle *)(void *)piece;
    idle->next = p->idle;
    p->idle = idle;
    p->idle_form = *form;
}

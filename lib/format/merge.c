#include "format/merge.h"

#include <stdlib.h>

#include "base/mem.h"

enum {
    /*
     * Read over gaps up to a page: copying it is cheaper than another system call, and free from a
     * disk, which reads ahead.
     */
    MAX_GAP = 4096,
    /* Longer requests are no faster on any disk, and several run at once. */
    MAX_MERGED = 8 << 20
};

typedef struct pieces_state {
    size_t capacity;
    cm_piece piece[];
} pieces_state;

static void release_state(void *state)
{
    free(state);
}

cm_piece *cm_pieces_room(cm_fetch_many *many, cm_error *err)
{
    pieces_state *s = many->release_state == release_state ? many->state : NULL;
    size_t nbytes;
    if (s != NULL && many->n <= s->capacity)
        return s->piece;
    cm_fetch_many_drop_state(many);
    if (!cm_mul_size(many->n, sizeof(cm_piece), &nbytes) ||
        !cm_add_size(nbytes, sizeof(*s), &nbytes))
        nbytes = SIZE_MAX;
    if ((s = cm_calloc(nbytes, 1, err)) == NULL)
        return NULL;
    s->capacity = many->n;
    many->state = s;
    many->release_state = release_state;
    return s->piece;
}

static bool is_before(const cm_piece *a, const cm_piece *b)
{
    return a->object != b->object ? a->object < b->object : a->offset < b->offset;
}

static void sift_down(cm_piece *piece, size_t root, size_t n)
{
    cm_piece moving = piece[root];
    for (size_t child; (child = 2 * root + 1) < n; root = child) {
        if (child + 1 < n && is_before(&piece[child], &piece[child + 1]))
            child++;
        if (!is_before(&moving, &piece[child]))
            break;
        piece[root] = piece[child];
    }
    piece[root] = moving;
}

/* qsort would allocate.  Chunks usually come in order: check that first. */
void cm_pieces_sort(cm_piece *piece, size_t n)
{
    size_t ordered = 1;
    while (ordered < n && !is_before(&piece[ordered], &piece[ordered - 1]))
        ordered++;
    if (ordered >= n)
        return;
    for (size_t root = n / 2; root-- > 0;)
        sift_down(piece, root, n);
    for (size_t end = n - 1; end > 0; end--) {
        cm_piece largest = piece[0];
        piece[0] = piece[end];
        piece[end] = largest;
        sift_down(piece, 0, end);
    }
}

size_t cm_pieces_merge(const cm_piece *piece, size_t n, uint64_t *end)
{
    uint64_t start = piece[0].offset, stop = start + piece[0].nbytes;
    size_t i = 1;
    for (; i < n && piece[i].object == piece[0].object; i++) {
        const cm_piece *p = &piece[i];
        uint64_t p_end = p->offset + p->nbytes;
        if (p->offset > stop && p->offset - stop > MAX_GAP)
            break;
        if (p_end > stop && p_end - start > MAX_MERGED)
            break;
        if (p_end > stop)
            stop = p_end;
    }
    *end = stop;
    return i;
}

size_t cm_pieces_place(cm_piece *piece, size_t n)
{
    size_t total = 0;
    for (size_t i = 0, count; i < n; i += count) {
        uint64_t end;
        count = cm_pieces_merge(piece + i, n - i, &end);
        for (size_t k = i; k < i + count; k++)
            piece[k].at = total + (size_t)(piece[k].offset - piece[i].offset);
        if (!cm_add_size(total, (size_t)(end - piece[i].offset), &total))
            return SIZE_MAX;
    }
    return total;
}

void cm_pieces_count(const cm_piece *piece, size_t n, cm_fetch_many *many)
{
    for (size_t i = 0, count; i < n; i += count) {
        uint64_t end;
        count = cm_pieces_merge(piece + i, n - i, &end);
        many->nrequests++;
        many->nbytes += end - piece[i].offset;
    }
}

void cm_pieces_point(const cm_piece *piece, size_t n, cm_fetch_many *many)
{
    for (size_t i = 0; i < n; i++) {
        cm_fetch_item *item = &many->item[piece[i].item];
        item->present = true;
        item->nbytes = (size_t)piece[i].nbytes;
        /* A buffer of no bytes may be NULL; data must not be. */
        item->data = item->nbytes > 0 ? many->buf.data + piece[i].at : (const uint8_t *)"";
    }
}

int cm_fetch_blame(cm_array *a, cm_fetch_many *many, int rc, cm_error *err)
{
    for (size_t i = 0; i < many->n; i++) {
        cm_fetch one = {0};
        cm_error alone = {0};
        int failed = a->ops->fetch(a, many->item[i].number, &many->buf, &one, &alone);
        if (failed && err != NULL)
            *err = alone;
        if (failed)
            return failed;
    }
    return rc;
}

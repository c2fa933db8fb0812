#include "format/nc/reader_child.h"

#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/trial.h"
#include "format/nc/preflight.h"

/* Extends the shared memory to at least NBYTES. */
static int make_room(cm_nc_child *c, size_t nbytes, cm_error *err)
{
    if (nbytes <= c->mapped)
        return CM_OK;
    if (c->map != NULL)
        munmap(c->map, c->mapped);
    c->map = NULL;
    c->mapped = 0;
    void *map = ftruncate(c->memory, (off_t)nbytes) == 0
                    ? mmap(NULL, nbytes, PROT_READ | PROT_WRITE, MAP_SHARED, c->memory, 0)
                    : MAP_FAILED;
    if (map == MAP_FAILED)
        return cm_fail(err, CM_ENOMEM, "%s: no memory for %zu bytes of it", c->path, nbytes);
    c->map = map;
    c->mapped = nbytes;
    return CM_OK;
}

static int read_box(cm_nc_child *c, cm_nc_node *node, const cm_box *box, cm_nc_reply *out,
                    cm_error *err)
{
    size_t nbytes = (size_t)cm_box_nelem(box) * node->var.array.dtype.nbytes;
    int rc = make_room(c, nbytes, err);
    if (rc == CM_OK)
        rc = cm_nc_read_library(c->file, &node->var, box, c->map, err);
    out->nbytes = nbytes;
    return rc;
}

static int read_text(cm_nc_child *c, cm_nc_node *node, const cm_box *box, cm_nc_reply *out,
                     cm_error *err)
{
    cm_strings text;
    cm_strings_init(&text, 0);
    int rc = cm_nc_read_library_strings(c->file, &node->var, box, &text, err);
    size_t lengths = text.nelem * sizeof(uint64_t), total = lengths;
    for (size_t i = 0; i < text.nelem; i++)
        total += text.ref[i].nbytes;
    if (rc == CM_OK)
        rc = make_room(c, total, err);
    uint8_t *to = rc == CM_OK ? c->map + lengths : NULL;
    for (size_t i = 0; rc == CM_OK && i < text.nelem; i++) {
        size_t nbytes;
        const char *from = cm_strings_get(&text, i, &nbytes);
        uint64_t length = nbytes;
        memcpy(c->map + i * sizeof length, &length, sizeof length);
        if (nbytes > 0)
            memcpy(to, from, nbytes);
        to += nbytes;
    }
    out->nbytes = total;
    cm_strings_release(&text);
    return rc;
}

/* The parent has prepared the variable; prepare it here too if the trial left it out. */
static int find_chunks(cm_nc_child *c, cm_nc_node *node, cm_error *err)
{
    int rc = cm_nc_var_prepare(c->file, &node->var, err);
    if (rc == CM_OK && node->var.access != CM_NC_CHUNK_LOCKED)
        rc = cm_fail(err, CM_EINTERNAL, "%s: variable %s: two processes see it differently",
                     c->path, node->var.array.name);
    return rc;
}

static int read_chunk(cm_nc_child *c, cm_nc_node *node, uint64_t number, cm_nc_reply *out,
                      cm_error *err)
{
    cm_buf stored = {0};
    cm_array *a = &node->var.array;
    int rc = find_chunks(c, node, err);
    if (rc == CM_OK)
        rc = a->ops->fetch(a, number, &stored, &out->fetch, err);
    if (rc == CM_OK && out->fetch.present)
        rc = make_room(c, stored.nbytes, err);
    if (rc == CM_OK && out->fetch.present) {
        memcpy(c->map, stored.data, stored.nbytes);
        out->nbytes = stored.nbytes;
    }
    cm_buf_release(&stored);
    return rc;
}

static int read_lengths(cm_nc_child *c, cm_nc_node *node, uint64_t number, uint64_t count,
                        cm_nc_reply *out, cm_error *err)
{
    int rc = find_chunks(c, node, err);
    out->nbytes = count * sizeof(uint64_t);
    if (rc == CM_OK)
        rc = make_room(c, (size_t)out->nbytes, err);
    for (uint64_t i = 0; rc == CM_OK && i < count; i++) {
        uint64_t nbytes = cm_nc_chunk_nbytes(node, number + i);
        memcpy(c->map + i * sizeof nbytes, &nbytes, sizeof nbytes);
    }
    return rc;
}

static int answer(cm_nc_child *c, const cm_nc_request *q, cm_nc_reply *out, cm_error *err)
{
    cm_nc_node *node = q->node < c->file->nnodes ? &c->file->node[q->node] : NULL;
    if (q->wish == CM_NC_WISH_CLOSE) {
        cm_nc_close(c->file);
        c->file = NULL;
        return CM_OK;
    }
    if (node == NULL)
        return cm_fail(err, CM_EINTERNAL, "%s: two processes see other variables", c->path);
    switch (q->wish) {
    case CM_NC_WISH_BOX:
        return read_box(c, node, &q->box, out, err);
    case CM_NC_WISH_TEXT:
        return read_text(c, node, &q->box, out, err);
    case CM_NC_WISH_CHUNK:
        return read_chunk(c, node, q->number, out, err);
    case CM_NC_WISH_LENGTHS:
        return read_lengths(c, node, q->number, q->count, out, err);
    case CM_NC_WISH_CLOSE:
        break;
    }
    return cm_fail(err, CM_EINTERNAL, "%s: an unknown request", c->path);
}

int cm_nc_child_open(void *child, cm_buf *record, cm_error *err)
{
    cm_nc_child *c = child;
    int rc = cm_nc_open_and_ask(c->path, false, &c->file, err);
    return rc == CM_OK ? cm_buf_append(record, &c->file->opened, sizeof c->file->opened, err) : rc;
}

void cm_nc_child_serve(void *child, int fd)
{
    cm_nc_child *c = child;
    uint64_t memory = c->most;
    cm_nc_request q;
    while (c->file != NULL && cm_fd_recv(fd, &q, sizeof q)) {
        cm_error err = {0};
        cm_nc_reply out = {0};
        cm_trial_renew_limits(c->cpu_s, memory);
        memory = 0; /* set this limit once */
        out.status = answer(c, &q, &out, &err);
        if (!cm_fd_send(fd, &out, sizeof out) ||
            (out.status != CM_OK && !cm_fd_send(fd, &err, sizeof err)))
            return;
    }
}

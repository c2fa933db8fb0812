#include "format/icechunk/tree.h"

#include <stdlib.h>
#include <string.h>

#include "format/icechunk/flat_read.h"

enum {
    BLOCK_NBYTES = 64 << 10
};

/* ---- memory ---- */

struct cm_fb_block {
    struct cm_fb_block *next;
    size_t used, nbytes;
    max_align_t data[];
};

void *cm_fb_alloc(cm_fb_tree *tree, size_t nbytes, cm_error *err)
{
    struct cm_fb_block *b = tree->block;
    size_t most;
    nbytes = nbytes == 0 ? 1 : nbytes;
    if (!cm_add_size(nbytes, sizeof(max_align_t) - 1, &nbytes)) {
        cm_fail(err, CM_ENOMEM, "no memory for metadata");
        return NULL;
    }
    nbytes -= nbytes % sizeof(max_align_t);
    if (tree->most > 0 && (nbytes > tree->most || tree->nbytes > tree->most - nbytes)) {
        cm_fail(err, CM_EBUDGET,
                "does not fit the memory: there are %llu MiB for metadata; raise `memory`",
                (unsigned long long)(tree->most >> 20));
        return NULL;
    }
    if (b == NULL || b->nbytes - b->used < nbytes) {
        size_t room = nbytes > BLOCK_NBYTES ? nbytes : BLOCK_NBYTES;
        b = cm_add_size(sizeof(*b), room, &most) ? cm_calloc(1, most, err) : NULL;
        if (b == NULL)
            return NULL;
        *b = (struct cm_fb_block){.next = tree->block, .nbytes = room};
        tree->block = b;
    }
    void *out = (uint8_t *)b->data + b->used;
    b->used += nbytes;
    tree->nbytes += nbytes;
    return out;
}

void cm_fb_release(cm_fb_tree *tree)
{
    for (struct cm_fb_block *next, *b = tree->block; b != NULL; b = next) {
        next = b->next;
        free(b);
    }
    *tree = (cm_fb_tree){0};
}

cm_fb_table *cm_fb_table_new(cm_fb_tree *tree, const cm_fb_schema *schema, cm_error *err)
{
    cm_fb_table *t = cm_fb_alloc(tree, sizeof(*t) + schema->nslots * sizeof(t->value[0]), err);
    if (t != NULL)
        t->schema = schema;
    return t;
}

/* ---- reading ---- */

typedef struct reading {
    cm_flatbuf in;
    const char *name;
    cm_fb_tree *tree;
    size_t ntables; /* as many as there may still be */
    bool known;     /* what the schema does not have is left out */
} reading;

/* The status of an allocation that failed. */
static int no_room(const reading *r, cm_error *err)
{
    if (r->tree->most == 0 || err == NULL || err->status != CM_EBUDGET)
        return CM_ENOMEM;
    cm_error_prefix(err, "%s", r->name);
    return CM_EBUDGET;
}

static int damaged(const reading *r, const cm_fb_schema *schema, cm_error *err)
{
    return cm_fail(err, CM_EFORMAT, "%s: is damaged (an offset in a table %s)", r->name,
                   schema->name);
}

static int read_table(reading *r, size_t at, const cm_fb_schema *schema, cm_fb_table **out,
                      cm_error *err);

static int read_tables(reading *r, size_t at, const cm_fb_slot *slot, const cm_fb_schema *schema,
                       cm_fb_value *v, cm_error *err)
{
    cm_flatbuf_list list;
    if (!cm_flatbuf_list_from(&r->in, at, 4, &list) || list.n > r->ntables)
        return damaged(r, schema, err);
    v->n = list.n;
    if ((v->item = cm_fb_alloc(r->tree, v->n * sizeof(v->item[0]), err)) == NULL)
        return no_room(r, err);
    int rc = CM_OK;
    for (size_t i = 0; rc == CM_OK && i < v->n; i++) {
        size_t to;
        rc = cm_flatbuf_follow(&r->in, list.first + 4 * i, &to)
                 ? read_table(r, to, slot->table[0], &v->item[i], err)
                 : damaged(r, schema, err);
    }
    return rc;
}

static int read_strings(reading *r, size_t at, const cm_fb_schema *schema, cm_fb_value *v,
                        cm_error *err)
{
    cm_flatbuf_list list, text;
    if (!cm_flatbuf_list_from(&r->in, at, 4, &list))
        return damaged(r, schema, err);
    v->n = list.n;
    if ((v->text = cm_fb_alloc(r->tree, v->n * sizeof(v->text[0]), err)) == NULL)
        return no_room(r, err);
    for (size_t i = 0; i < v->n; i++) {
        if (!cm_flatbuf_list_from(&r->in, list.first + 4 * i, 1, &text))
            return damaged(r, schema, err);
        v->text[i] = (cm_fb_value){.bytes = r->in.data + text.first, .n = text.n};
    }
    return CM_OK;
}

/* One table that the offset at AT points to; TYPE of a union, from 1. */
static int read_one(reading *r, size_t at, const cm_fb_slot *slot, uint64_t type,
                    const cm_fb_schema *schema, cm_fb_value *v, cm_error *err)
{
    size_t to;
    if (type > slot->ntables && r->known)
        return CM_OK;
    if (type == 0 || type > slot->ntables)
        return cm_fail(err, CM_EUNSUPPORTED,
                       "%s: was written by a newer version: a table %s has the unknown type %llu",
                       r->name, schema->name, (unsigned long long)type);
    if (!cm_flatbuf_follow(&r->in, at, &to))
        return damaged(r, schema, err);
    v->n = 1;
    if ((v->item = cm_fb_alloc(r->tree, sizeof(v->item[0]), err)) == NULL)
        return no_room(r, err);
    return read_table(r, to, slot->table[type - 1], &v->item[0], err);
}

static int read_field(reading *r, size_t at, unsigned slot, cm_fb_table *t, cm_error *err)
{
    const cm_fb_schema *schema = t->schema;
    const cm_fb_slot *s = &schema->slot[slot];
    cm_fb_value *v = &t->value[slot];
    cm_flatbuf_list list = {at, 1};
    v->there = true;
    switch (s->kind) {
    case CM_FB_TABLES:
        return read_tables(r, at, s, schema, v, err);
    case CM_FB_STRINGS:
        return read_strings(r, at, schema, v, err);
    case CM_FB_TABLE:
        return read_one(r, at, s, 1, schema, v, err);
    case CM_FB_UNION:
        return read_one(r, at, s, cm_fb_u64(t, slot - 1), schema, v, err);
    case CM_FB_STRING:
    case CM_FB_VECTOR:
        if (!cm_flatbuf_list_from(&r->in, at, s->kind == CM_FB_STRING ? 1 : s->nbytes, &list))
            return damaged(r, schema, err);
        break;
    case CM_FB_SCALAR:
    case CM_FB_UNUSED:
        if (!cm_flatbuf_has(&r->in, at, s->nbytes))
            return damaged(r, schema, err);
        break;
    }
    v->bytes = r->in.data + list.first;
    v->n = list.n;
    return CM_OK;
}

static int read_fields(reading *r, const cm_flatbuf_table *from, cm_fb_table *t, cm_error *err)
{
    const cm_fb_schema *schema = t->schema;
    int rc = CM_OK;
    for (unsigned i = 0; rc == CM_OK && i < from->nslots; i++) {
        const size_t at = cm_flatbuf_field(&r->in, from, i);
        const bool has = i < schema->nslots && schema->slot[i].kind != CM_FB_UNUSED;
        if (at == 0 || (!has && r->known))
            continue;
        if (!has)
            return cm_fail(
                err, CM_EUNSUPPORTED,
                "%s: was written by a newer version: a table %s has the unknown field %u", r->name,
                schema->name, i);
        rc = read_field(r, at, i, t, err);
    }
    for (unsigned i = 0; rc == CM_OK && i < schema->nslots; i++)
        if (schema->slot[i].required && !t->value[i].there)
            rc = cm_fail(err, CM_EFORMAT, "%s: is damaged (a table %s lacks field %u)", r->name,
                         schema->name, i);
    return rc;
}

static int read_table(reading *r, size_t at, const cm_fb_schema *schema, cm_fb_table **out,
                      cm_error *err)
{
    cm_flatbuf_table from;
    if (r->ntables == 0 || !cm_flatbuf_table_at(&r->in, at, &from))
        return damaged(r, schema, err);
    r->ntables--;
    cm_fb_table *t = *out = cm_fb_table_new(r->tree, schema, err);
    return t == NULL ? no_room(r, err) : read_fields(r, &from, t, err);
}

static int read_root(reading *r, const cm_fb_schema *schema, cm_error *err)
{
    size_t root;
    /* A table takes 4 bytes and an offset to it: more of them would be shared, as in a bomb. */
    r->ntables = r->in.nbytes / 8;
    int rc = r->in.nbytes < 8 || !cm_flatbuf_follow(&r->in, 0, &root)
                 ? damaged(r, schema, err)
                 : read_table(r, root, schema, &r->tree->root, err);
    if (rc != CM_OK)
        cm_fb_release(r->tree);
    return rc;
}

int cm_fb_read(const uint8_t *data, size_t nbytes, const cm_fb_schema *schema, const char *name,
               cm_fb_tree *out, cm_error *err)
{
    reading r = {.in = {data, nbytes}, .name = name, .tree = out};
    *out = (cm_fb_tree){0};
    return read_root(&r, schema, err);
}

int cm_fb_read_known(const uint8_t *data, size_t nbytes, const cm_fb_schema *schema,
                     const char *name, size_t most, cm_fb_tree *out, cm_error *err)
{
    reading r = {.in = {data, nbytes}, .name = name, .tree = out, .known = true};
    *out = (cm_fb_tree){.most = most};
    return read_root(&r, schema, err);
}

uint64_t cm_fb_u64(const cm_fb_table *t, unsigned slot)
{
    uint8_t bytes[8] = {0};
    if (t->value[slot].there && t->schema->slot[slot].nbytes <= sizeof(bytes))
        memcpy(bytes, t->value[slot].bytes, t->schema->slot[slot].nbytes);
    return cm_load_le64(bytes);
}

/* ---- changing ---- */

int cm_fb_set(cm_fb_tree *tree, cm_fb_table *t, unsigned slot, const void *bytes, size_t n,
              cm_error *err)
{
    const cm_fb_slot *s = &t->schema->slot[slot];
    const size_t size = s->kind == CM_FB_STRING ? 1 : s->nbytes;
    void *copy = cm_fb_alloc(tree, n * size, err);
    if (copy == NULL)
        return CM_ENOMEM;
    if (n > 0)
        memcpy(copy, bytes, n * size);
    t->value[slot] = (cm_fb_value){.there = true, .bytes = copy, .n = n};
    return CM_OK;
}

int cm_fb_set_u64(cm_fb_tree *tree, cm_fb_table *t, unsigned slot, uint64_t v, cm_error *err)
{
    uint8_t bytes[8];
    cm_store_le64(bytes, v);
    return cm_fb_set(tree, t, slot, bytes, 1, err);
}

int cm_fb_set_text(cm_fb_tree *tree, cm_fb_table *t, unsigned slot, const char *text, cm_error *err)
{
    return cm_fb_set(tree, t, slot, text, strlen(text), err);
}

int cm_fb_set_tables(cm_fb_tree *tree, cm_fb_table *t, unsigned slot, cm_fb_table *const *item,
                     size_t n, cm_error *err)
{
    cm_fb_table **copy = cm_fb_alloc(tree, n * sizeof(copy[0]), err);
    if (copy == NULL)
        return CM_ENOMEM;
    if (n > 0)
        memcpy(copy, item, n * sizeof(copy[0]));
    t->value[slot] = (cm_fb_value){.there = true, .item = copy, .n = n};
    return CM_OK;
}

/* ---- writing ---- */

static int write_table(cm_flat_writer *w, const cm_fb_table *t, uint32_t from, cm_error *err);

static int write_items(cm_flat_writer *w, const cm_fb_value *v, uint32_t from, cm_error *err)
{
    uint32_t first;
    int rc = cm_flat_vector(w, from, NULL, v->n, 4, 4, &first, err);
    for (size_t i = 0; rc == CM_OK && i < v->n; i++)
        rc = v->item != NULL
                 ? write_table(w, v->item[i], first + 4 * (uint32_t)i, err)
                 : cm_flat_string(w, first + 4 * (uint32_t)i, v->text[i].bytes, v->text[i].n, err);
    return rc;
}

static int write_field(cm_flat_writer *w, const cm_fb_slot *s, const cm_fb_value *v, uint32_t at,
                       cm_error *err)
{
    switch (s->kind) {
    case CM_FB_TABLES:
    case CM_FB_STRINGS:
        return write_items(w, v, at, err);
    case CM_FB_TABLE:
    case CM_FB_UNION:
        return write_table(w, v->item[0], at, err);
    case CM_FB_STRING:
        return cm_flat_string(w, at, v->bytes, v->n, err);
    case CM_FB_VECTOR:
        return cm_flat_vector(w, at, v->bytes, v->n, s->nbytes, s->align, NULL, err);
    case CM_FB_SCALAR:
    case CM_FB_UNUSED:
        break;
    }
    cm_flat_set(w, at, v->bytes, s->nbytes);
    return CM_OK;
}

/* The offset at FROM points to the table. */
static int write_table(cm_flat_writer *w, const cm_fb_table *t, uint32_t from, cm_error *err)
{
    cm_flat_field field[CM_FLAT_SLOTS];
    cm_flat_shape shape;
    uint32_t at;
    size_t n = 0;
    for (unsigned i = 0; i < t->schema->nslots; i++) {
        const cm_fb_slot *s = &t->schema->slot[i];
        if (t->value[i].there)
            field[n++] = s->kind == CM_FB_SCALAR ? (cm_flat_field){(uint16_t)i, s->nbytes, s->align}
                                                 : (cm_flat_field)CM_FLAT_OFFSET((uint16_t)i);
    }
    int rc = cm_flat_shape_of(w, field, n, &shape, err);
    if (rc == CM_OK)
        rc = cm_flat_table(w, &shape, &at, err);
    if (rc == CM_OK)
        cm_flat_point(w, from, at);
    for (unsigned i = 0; rc == CM_OK && i < t->schema->nslots; i++)
        if (t->value[i].there)
            rc = write_field(w, &t->schema->slot[i], &t->value[i], at + shape.at[i], err);
    return rc;
}

int cm_fb_write(const cm_fb_table *root, const char *id, cm_flat_writer *w, cm_error *err)
{
    int rc = cm_flat_begin(w, id, err);
    return rc == CM_OK ? write_table(w, root, 0, err) : rc;
}

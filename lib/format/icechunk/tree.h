/*
 * A flatbuffer as a tree of tables in memory, by its schema: to change a file of which most stays.
 *
 * Reading is checked against the bounds of the buffer.  Fields that are absent stay absent.  A
 * field that the schema here does not have is CM_EUNSUPPORTED: writing the tree would lose it.
 * A tree that is only looked at leaves such fields out.
 */
#ifndef CM_FORMAT_ICECHUNK_TREE_H
#define CM_FORMAT_ICECHUNK_TREE_H

#include "format/icechunk/flat_write.h"

typedef enum cm_fb_kind {
    CM_FB_UNUSED,
    CM_FB_SCALAR, /* or a struct: NBYTES aligned to ALIGN */
    CM_FB_STRING,
    CM_FB_VECTOR,  /* of such */
    CM_FB_STRINGS, /* a vector of strings */
    CM_FB_TABLE,
    CM_FB_TABLES, /* a vector of tables */
    CM_FB_UNION   /* a table, of the type that the scalar in the slot before says, from 1 */
} cm_fb_kind;

typedef struct cm_fb_schema cm_fb_schema;

typedef struct cm_fb_slot {
    cm_fb_kind kind;
    uint8_t nbytes, align;
    bool required;
    const cm_fb_schema *const *table; /* of a table; of a union by type; else NULL */
    unsigned ntables;
} cm_fb_slot;

struct cm_fb_schema {
    const char *name;
    unsigned nslots;
    cm_fb_slot slot[CM_FLAT_SLOTS];
};

typedef struct cm_fb_table cm_fb_table;

/* Bytes are borrowed from the buffer, or lie in the tree. */
typedef struct cm_fb_value {
    bool there;
    const void *bytes;        /* of a scalar, a string or a vector */
    size_t n;                 /* bytes of a string, elements of a vector; 1 */
    cm_fb_table **item;       /* N tables */
    struct cm_fb_value *text; /* N strings */
} cm_fb_value;

struct cm_fb_table {
    const cm_fb_schema *schema;
    cm_fb_value value[]; /* by slot */
};

/* The owner of tables. */
typedef struct cm_fb_tree {
    cm_fb_table *root;
    struct cm_fb_block *block;
    size_t nbytes, most; /* of it; MOST 0: no limit */
} cm_fb_tree;

/* DATA, which must outlive the tree; messages begin with NAME. */
int cm_fb_read(const uint8_t *data, size_t nbytes, const cm_fb_schema *schema, const char *name,
               cm_fb_tree *out, cm_error *err);
/*
 * cm_fb_read of what the schema has: other fields, and tables of other types (N 0), are left out.
 * CM_EBUDGET: the tree takes more than MOST bytes.
 */
int cm_fb_read_known(const uint8_t *data, size_t nbytes, const cm_fb_schema *schema,
                     const char *name, size_t most, cm_fb_tree *out, cm_error *err);
/* The content of W becomes the tree. */
int cm_fb_write(const cm_fb_table *root, const char *id, cm_flat_writer *w, cm_error *err);
void cm_fb_release(cm_fb_tree *tree); /* zeroed memory accepted */

/* ---- making and changing: the tree keeps copies of all values ---- */

/* NBYTES zeroed bytes that live as long as the tree. */
void *cm_fb_alloc(cm_fb_tree *tree, size_t nbytes, cm_error *err);
cm_fb_table *cm_fb_table_new(cm_fb_tree *tree, const cm_fb_schema *schema, cm_error *err);
/* A scalar, a string (N bytes) or a vector (N elements) of table T. */
int cm_fb_set(cm_fb_tree *tree, cm_fb_table *t, unsigned slot, const void *bytes, size_t n,
              cm_error *err);
int cm_fb_set_u64(cm_fb_tree *tree, cm_fb_table *t, unsigned slot, uint64_t v, cm_error *err);
int cm_fb_set_text(cm_fb_tree *tree, cm_fb_table *t, unsigned slot, const char *text,
                   cm_error *err);
/* N tables, whose list is copied; a table is a list of one. */
int cm_fb_set_tables(cm_fb_tree *tree, cm_fb_table *t, unsigned slot, cm_fb_table *const *item,
                     size_t n, cm_error *err);
/* The scalar in SLOT, 0 where it is absent. */
uint64_t cm_fb_u64(const cm_fb_table *t, unsigned slot);

#endif

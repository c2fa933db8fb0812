/*
 * The inside of a joined dataset.
 *
 * Along a joined axis the parts lie in *rows*, one for each place where a part begins; of two
 * joined axes each has its own rows, and where a row of the one meets a row of the other lies one
 * part, or none.  A row is cut into pieces where its files' chunks end.
 */
#ifndef CM_FORMAT_MULTI_INTERNAL_H
#define CM_FORMAT_MULTI_INTERNAL_H

#include <pthread.h>

#include "format/dataset_impl.h"
#include "format/multi/files.h"
#include "model/cuts.h"

typedef struct cm_multi_row {
    uint64_t origin; /* in the joined array */
    uint64_t first;  /* in its files */
    uint64_t count;
    uint64_t length; /* of the dimension in its files */
    uint64_t piece;  /* its first one */
    uint64_t chunk;  /* chunk length of its files; for a hole, its piece length */
    bool hole;       /* no part along the whole row */
} cm_multi_row;

typedef struct cm_multi_axis {
    cm_multi_row *row;
    uint64_t nrows;
    uint64_t npieces;
    uint64_t each; /* pieces of every row but the last; 0: they differ */
    cm_cuts cuts;  /* empty where all pieces but the last are one chunk, all of one length */
} cm_multi_axis;

/* How elements of a part are read; parts of similar files share one. */
typedef struct cm_multi_form {
    const cm_form *form;
    bool own_form, own_chain; /* false: borrowed from the specification, and from another form */
    cm_chain *chain;          /* CHUNKS; else NULL */
} cm_multi_form;

typedef struct cm_multi_array {
    cm_array base; /* first: a cm_array leads here */
    struct cm_multi_dataset *owner;
    const cm_multi_var *var;
    bool prepared;
    const char *access; /* for people */
    cm_multi_axis axis[CM_MULTI_MAX_AXES];
    /* By row of axis 0, then of axis 1: the part, from 1; 0: none.  NULL: row I is part I. */
    uint32_t *part_at;
    /* For parts without addresses in the specification; NULL: it has them all. */
    cm_located *located;
    uint32_t *part_in; /* by file, from 1, while parts are located: its last part; 0: none */
    uint16_t *form_of; /* for each part */
    cm_multi_form *form;
    unsigned nforms;
    bool has_source_chunks;
    uint64_t source_chunk[CM_MAX_RANK];
    uint64_t stored_nbytes;
    uint64_t longest; /* part, along the first of two axes */
    bool all_located;
} cm_multi_array;

typedef struct cm_multi_dataset {
    cm_dataset base; /* first */
    const cm_multi_spec *spec;
    cm_dataset_options options;
    cm_multi_files *files;
    /* The specification's, or its own: for lists of rows and parts. */
    cm_paged *paged, *own_paged;
    cm_multi_array *array;            /* one for each variable */
    pthread_mutex_t lock;             /* guards: */
    struct cm_multi_scratch *scratch; /* list of free scratches */
} cm_multi_dataset;

/* Memory for reading a box besides its destination; used by one thread at a time. */
typedef struct cm_multi_scratch {
    struct cm_multi_scratch *next;
    cm_codec_ctx *ctx;
    cm_buf raw;       /* elements as the file has them */
    cm_buf texts;     /* texts shorter than the variable's */
    cm_buf box;       /* elements of one part, if its place in the box has gaps */
    cm_buf stored[2]; /* chunks of the two files that are compared */
    cm_buf check[2];  /* their elements; the first is kept: */
    const cm_multi_var *kept;
    uint32_t kept_file;
    cm_box kept_box;
    cm_strings text;
} cm_multi_scratch;

static inline cm_multi_array *cm_multi_array_of(cm_array *a)
{
    return (cm_multi_array *)a;
}

/* Part P, marked as used (cm_paged_touch). */
static inline const cm_multi_part *cm_multi_part_of(const cm_multi_array *a, size_t p)
{
    cm_paged_touch(a->owner->paged, &a->var->part[p], sizeof(a->var->part[p]));
    return &a->var->part[p];
}

/* Row K of AXIS, marked as used. */
static inline cm_multi_row *cm_multi_row_at(const cm_multi_array *a, const cm_multi_axis *axis,
                                            uint64_t k)
{
    cm_paged_touch(a->owner->paged, &axis->row[k], sizeof(axis->row[k]));
    return &axis->row[k];
}

/* The part at index AT of the grid of rows, from 1; 0: none. */
static inline size_t cm_multi_part_at_rows(const cm_multi_array *a, size_t at)
{
    if (a->part_at == NULL)
        return at + 1;
    cm_paged_touch(a->owner->paged, &a->part_at[at], sizeof(a->part_at[at]));
    return a->part_at[at];
}

/* Where part P lies. */
const cm_located *cm_multi_located(const cm_multi_array *a, size_t p);
const cm_multi_form *cm_multi_form_of(const cm_multi_array *a, size_t p);

/*
 * rows.c: builds the rows of A's axes; *IS_GRID is false if parts do not form a grid.  CM_EINVAL if
 * they overlap or reach outside.
 */
int cm_multi_rows_make(cm_multi_array *a, bool *is_grid, cm_error *err);
/* Cuts axis I of A into pieces by the chunks of its rows' files. */
int cm_multi_rows_cut(cm_multi_array *a, unsigned i, cm_error *err);
void cm_multi_rows_release(cm_multi_axis *axis);
/* The row of axis number I of A that piece K lies in. */
const cm_multi_row *cm_multi_row_of_piece(const cm_multi_array *a, unsigned i, uint64_t k);

/* in_file.c: the variable in one of its files. */
/* Maps the variable's dimensions to those of the file, and says where the part begins. */
typedef struct cm_multi_view {
    unsigned rank; /* in the file */
    uint64_t shape[CM_MAX_RANK];
    bool has[CM_MAX_RANK];     /* by dimension of the variable: */
    unsigned dim[CM_MAX_RANK]; /* the file's */
    uint64_t origin[CM_MAX_RANK], first[CM_MAX_RANK];
} cm_multi_view;

void cm_multi_view_part(const cm_multi_array *a, const cm_multi_part *part, cm_multi_view *out);
/* BOX, inside the part, in the file. */
void cm_multi_box_in_file(const cm_multi_array *a, const cm_multi_view *in, const cm_box *box,
                          cm_box *out);
const char *cm_multi_path_of(const cm_multi_array *a, const cm_multi_part *part);
/* The name of the variable in the part's file. */
const char *cm_multi_name_in(const cm_multi_array *a, const cm_multi_part *part);
/* Length of the part in its file along dimension J of the variable. */
uint64_t cm_multi_length_in(const cm_multi_array *a, const cm_multi_part *part, unsigned j);
/*
 * Which dimension DIM of the file's variable is dimension J of the joined one, and the file's rank;
 * false: the file lacks it.
 */
bool cm_multi_dim_in(const cm_multi_array *a, const cm_multi_part *part, unsigned j, unsigned *dim,
                     unsigned *rank);
/* The part's variable in an open file, prepared. */
int cm_multi_find_variable(const cm_multi_array *a, const cm_multi_part *part, cm_dataset *ds,
                           cm_variable **out, cm_error *err);
/* The box of the part in the joined array. */
void cm_multi_part_box(const cm_multi_array *a, const cm_multi_part *part, cm_box *out);

/* part.c: one file's share of a variable. */
typedef struct cm_multi_piece {
    const cm_multi_array *array;
    const cm_multi_part *part;
    const cm_located *located;
    const cm_chain *chain;
    bool by_library; /* never by this program's own decoders */
} cm_multi_piece;

cm_multi_piece cm_multi_piece_of(const cm_multi_array *a, size_t p, bool by_library);
/* A decoder of A that suits CHUNK's form; NULL: none. */
const cm_chain *cm_multi_chain_for(const cm_multi_array *a, const cm_form *form);
/* True when the part's elements are converted. */
bool cm_multi_converts(const cm_multi_array *a, const cm_multi_part *part);
/* BOX of the joined array, inside the part, into DST: C order, the variable's type. */
int cm_multi_piece_read(const cm_multi_piece *p, cm_multi_scratch *scratch, const cm_box *box,
                        void *dst, cm_error *err);
int cm_multi_piece_read_strings(const cm_multi_piece *p, const cm_box *box, cm_strings *out,
                                cm_error *err);
/* The stored bytes of chunk NUMBER of the file's own grid. */
int cm_multi_fetch(const cm_multi_array *a, const cm_multi_part *part, const cm_located *located,
                   uint64_t number, cm_buf *buf, cm_fetch *out, cm_error *err);

/* chunks.c and boxes.c: the two ways to read an array. */
void cm_multi_use_chunks(cm_multi_array *a);
void cm_multi_use_boxes(cm_multi_array *a);
/* ops->read_box of both. */
int cm_multi_array_read(cm_array *a, const cm_box *box, void *dst, cm_error *err);
/*
 * expect.c: computes BOX of the joined array as P must have become, independently of the
 * conversion.
 */
int cm_multi_expect(const cm_multi_piece *p, cm_multi_scratch *scratch, const cm_box *box,
                    void *dst, cm_error *err);
int cm_multi_read_box(cm_multi_array *a, const cm_box *box, bool by_library, void *dst,
                      cm_error *err);
int cm_multi_read_strings(cm_multi_array *a, const cm_box *box, bool by_library, cm_strings *out,
                          cm_error *err);

/* locate.c: finds the addresses and forms of all parts. */
int cm_multi_locate(cm_multi_array *a, cm_error *err);
/*
 * CM_EFORMAT unless L, the addresses of PART, covers the file's whole grid with elements of the
 * declared type.
 */
int cm_multi_check_located(const cm_multi_array *a, const cm_multi_part *part, const cm_located *l,
                           cm_error *err);
void cm_multi_locate_release(cm_multi_array *a);

/* prepare.c */
int cm_multi_array_prepare(cm_multi_array *a, cm_error *err);
void cm_multi_array_release(cm_multi_array *a);

/* scratch.c */
cm_multi_scratch *cm_multi_scratch_take(cm_multi_dataset *d, cm_error *err);
void cm_multi_scratch_give(cm_multi_dataset *d, cm_multi_scratch *s);
void cm_multi_scratch_free(cm_multi_scratch *list);

#endif

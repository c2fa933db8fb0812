/*
 * A joined dataset from inside.
 *
 * Along a joined axis the parts lie in *rows*, one for each place where a part begins; of two
 * joined axes each has its own rows, and where a row of the one meets a row of the other lies
 * one part, or none.  A row is cut into pieces where its files' chunks end.
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
    uint64_t chunk;  /* of its files; of a hole, how it is cut */
    bool hole;       /* no part anywhere along it */
} cm_multi_row;

typedef struct cm_multi_axis {
    cm_multi_row *row;
    uint64_t nrows;
    uint64_t npieces;
    uint64_t each; /* pieces that every row but the last has; 0: not alike */
    cm_cuts cuts;  /* empty where all pieces but the last are one chunk of one length */
} cm_multi_axis;

/* How elements of a part are read; those of like files are alike. */
typedef struct cm_multi_form {
    const cm_form *form;
    bool own_form, own_chain; /* else they are the spec's, and another form's */
    cm_chain *chain;          /* CHUNKS; else NULL */
} cm_multi_form;

typedef struct cm_multi_array {
    cm_array base; /* first: a cm_array leads here */
    struct cm_multi_dataset *owner;
    const cm_multi_var *var;
    bool prepared;
    const char *access; /* for people */
    cm_multi_axis axis[CM_MULTI_MAX_AXES];
    /* By row of axis 0, then of axis 1: the part, from 1; 0: none.  NULL: row I has part I. */
    uint32_t *part_at;
    cm_located *located; /* of each part, where the spec says none; NULL: it always does */
    uint32_t *part_in;   /* by file, from 1, while parts are located: the last in it; 0: none */
    uint16_t *form_of;   /* each part's */
    cm_multi_form *form;
    unsigned nforms;
    bool has_source_chunks;
    uint64_t source_chunk[CM_MAX_RANK];
    uint64_t stored_nbytes;
    bool all_located;
} cm_multi_array;

typedef struct cm_multi_dataset {
    cm_dataset base; /* first */
    const cm_multi_spec *spec;
    cm_dataset_options options;
    cm_multi_files *files;
    cm_paged *paged, *own_paged;      /* the spec's, or its own: for lists of rows and parts */
    cm_multi_array *array;            /* one for each variable */
    pthread_mutex_t lock;             /* guards: */
    struct cm_multi_scratch *scratch; /* what is not in use */
} cm_multi_dataset;

/* What reading a box takes besides its destination; one thread's at a time. */
typedef struct cm_multi_scratch {
    struct cm_multi_scratch *next;
    cm_codec_ctx *ctx;
    cm_buf raw;       /* elements as the file has them */
    cm_buf texts;     /* those that are shorter than the variable's */
    cm_buf box;       /* those of one part, where its place in the box has gaps */
    cm_buf stored[2]; /* chunks of the two files that are compared */
    cm_buf check[2];  /* and their elements; the first is kept: */
    const cm_multi_var *kept;
    uint32_t kept_file;
    cm_box kept_box;
    cm_strings text;
} cm_multi_scratch;

static inline cm_multi_array *cm_multi_array_of(cm_array *a)
{
    return (cm_multi_array *)a;
}

/* Part P is going to be looked at. */
static inline const cm_multi_part *cm_multi_part_of(const cm_multi_array *a, size_t p)
{
    cm_paged_touch(a->owner->paged, &a->var->part[p], sizeof(a->var->part[p]));
    return &a->var->part[p];
}

/* So is row K of AXIS. */
static inline cm_multi_row *cm_multi_row_at(const cm_multi_array *a, const cm_multi_axis *axis,
                                            uint64_t k)
{
    cm_paged_touch(a->owner->paged, &axis->row[k], sizeof(axis->row[k]));
    return &axis->row[k];
}

/* The part at place AT of the rows, from 1; 0: none. */
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
 * rows.c: the rows of A's axes; false in *IS_GRID where parts lie otherwise.  CM_EINVAL where
 * they overlap or reach outside.
 */
int cm_multi_rows_make(cm_multi_array *a, bool *is_grid, cm_error *err);
/* Cuts axis number I of A, whose rows say how their files are cut, into pieces. */
int cm_multi_rows_cut(cm_multi_array *a, unsigned i, cm_error *err);
void cm_multi_rows_release(cm_multi_axis *axis);
/* The row of axis number I of A that piece K lies in. */
const cm_multi_row *cm_multi_row_of_piece(const cm_multi_array *a, unsigned i, uint64_t k);

/* part.c: one file's share of a variable. */
typedef struct cm_multi_piece {
    const cm_multi_array *array;
    const cm_multi_part *part;
    const cm_located *located;
    const cm_chain *chain;
    bool by_library; /* never by this program's own decoders */
} cm_multi_piece;

cm_multi_piece cm_multi_piece_of(const cm_multi_array *a, size_t p, bool by_library);
/* The name of the variable in the part's file. */
const char *cm_multi_name_in(const cm_multi_array *a, const cm_multi_part *part);
/* CHUNK's decoder among those that the array has; NULL: none. */
const cm_chain *cm_multi_chain_for(const cm_multi_array *a, const cm_form *form);
/* How long the part is along dimension J of the variable, in its file. */
uint64_t cm_multi_length_in(const cm_multi_array *a, const cm_multi_part *part, unsigned j);
/*
 * Which dimension of the file's variable dimension J of the variable is, and how many it has
 * there; false where the file lacks it.
 */
bool cm_multi_dim_in(const cm_multi_array *a, const cm_multi_part *part, unsigned j, unsigned *dim,
                     unsigned *rank);
/* True when the part's elements are not taken as they are. */
bool cm_multi_converts(const cm_multi_array *a, const cm_multi_part *part);
/* The part's variable in an open file, prepared. */
int cm_multi_find_variable(const cm_multi_array *a, const cm_multi_part *part, cm_dataset *ds,
                           cm_variable **out, cm_error *err);
/* What the part's place in the joined array is. */
void cm_multi_part_box(const cm_multi_array *a, const cm_multi_part *part, cm_box *out);
/* BOX of the joined array, inside the part, into DST: C order, the variable's type. */
int cm_multi_piece_read(const cm_multi_piece *p, cm_multi_scratch *scratch, const cm_box *box,
                        void *dst, cm_error *err);
int cm_multi_piece_read_strings(const cm_multi_piece *p, const cm_box *box, cm_strings *out,
                                cm_error *err);
/* The stored bytes of chunk NUMBER of the file's own grid. */
int cm_multi_fetch(const cm_multi_array *a, const cm_multi_part *part, const cm_located *located,
                   uint64_t number, cm_buf *buf, cm_fetch *out, cm_error *err);
/* "FILE: variable X, chunk N", N in the file, begins the message. */
void cm_multi_explain(const cm_multi_array *a, const cm_multi_part *part, uint64_t number,
                      cm_error *err);

/* chunks.c and boxes.c: the ways to an array's elements. */
void cm_multi_use_chunks(cm_multi_array *a);
void cm_multi_use_boxes(cm_multi_array *a);
/* expect.c: BOX of the joined array, as P must have become it; found without its conversion. */
int cm_multi_expect(const cm_multi_piece *p, cm_multi_scratch *scratch, const cm_box *box,
                    void *dst, cm_error *err);
int cm_multi_read_box(cm_multi_array *a, const cm_box *box, bool by_library, void *dst,
                      cm_error *err);
int cm_multi_read_strings(cm_multi_array *a, const cm_box *box, bool by_library, cm_strings *out,
                          cm_error *err);

/* locate.c: where all parts lie, and the forms that they have. */
int cm_multi_locate(cm_multi_array *a, cm_error *err);
/* CM_EFORMAT unless L, which is said of PART, has chunks for all of the file's grid, and elements
 * of the type that was said. */
int cm_multi_check_located(const cm_multi_array *a, const cm_multi_part *part, const cm_located *l,
                           cm_error *err);
void cm_multi_locate_release(cm_multi_array *a);

/* prepare.c */
int cm_multi_array_prepare(cm_multi_array *a, cm_error *err);
void cm_multi_array_release(cm_multi_array *a);
void cm_multi_array_keep(cm_array *a); /* ops->free: it belongs to its dataset */

/* scratch.c */
cm_multi_scratch *cm_multi_scratch_take(cm_multi_dataset *d, cm_error *err);
void cm_multi_scratch_give(cm_multi_dataset *d, cm_multi_scratch *s);
void cm_multi_scratch_free(cm_multi_scratch *list);

#endif

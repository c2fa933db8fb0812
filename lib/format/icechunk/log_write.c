#include "format/icechunk/log_write.h"

#include <string.h>

#include "format/icechunk/file_write.h"
#include "format/icechunk/key.h"

enum {
    PIECE = 4096 /* chunks at once */
};

/* A table ChunkIndices and its vector: two offsets, a count, and RANK numbers. */
static size_t chunk_nbytes(const cm_ice_log_array *a)
{
    return 12 + 4 * (size_t)a->rank;
}

/* ---- the tables above ---- */

typedef struct head {
    cm_flat_writer flat;
    cm_flat_shape indices;
} head;

static int add_ids(cm_flat_writer *w, uint32_t from, const cm_ice_ids *ids, cm_error *err)
{
    return cm_flat_vector(w, from, ids->id, ids->n, CM_ICE_NODE_ID, 1, NULL, err);
}

/* The root and the lists of ids; *LIST is the position of the first offset to an array's chunks. */
static int begin(head *h, const cm_ice_log_content *log, uint32_t *list, cm_error *err)
{
    static const cm_flat_field index = CM_FLAT_OFFSET(0);
    const struct {
        uint16_t slot;
        const cm_ice_ids *ids;
    } ids[] = {{CM_ICE_LOG_NEW_GROUPS, &log->new_groups},
               {CM_ICE_LOG_NEW_ARRAYS, &log->new_arrays},
               {CM_ICE_LOG_DELETED_GROUPS, &log->deleted_groups},
               {CM_ICE_LOG_DELETED_ARRAYS, &log->deleted_arrays},
               {CM_ICE_LOG_UPDATED_ARRAYS, &log->updated_arrays},
               {CM_ICE_LOG_UPDATED_GROUPS, &log->updated_groups}};
    enum {
        NIDS = sizeof(ids) / sizeof(ids[0])
    };
    cm_flat_field field[NIDS + 2] = {{CM_ICE_LOG_ID, CM_ICE_ID, 1},
                                     CM_FLAT_OFFSET(CM_ICE_LOG_CHUNKS)};
    cm_flat_writer *w = &h->flat;
    cm_flat_shape root;
    uint32_t at;
    for (size_t i = 0; i < NIDS; i++)
        field[2 + i] = (cm_flat_field)CM_FLAT_OFFSET(ids[i].slot);
    int rc = cm_flat_begin(w, CM_ICE_IDENTIFIER, err);
    if (rc == CM_OK)
        rc = cm_flat_shape_of(w, &index, 1, &h->indices, err);
    if (rc == CM_OK)
        rc = cm_flat_shape_of(w, field, NIDS + 2, &root, err);
    if (rc == CM_OK)
        rc = cm_flat_table(w, &root, &at, err);
    if (rc != CM_OK)
        return rc;
    cm_flat_root(w, at);
    cm_flat_set(w, at + root.at[CM_ICE_LOG_ID], log->id, CM_ICE_ID);
    for (size_t i = 0; rc == CM_OK && i < NIDS; i++)
        rc = add_ids(w, at + root.at[ids[i].slot], ids[i].ids, err);
    return rc == CM_OK ? cm_flat_vector(w, at + root.at[CM_ICE_LOG_CHUNKS], NULL, log->narrays, 4,
                                        4, list, err)
                       : rc;
}

/* The table of each array; its list of chunks comes behind all tables, at *END for the next. */
static int add_arrays(head *h, const cm_ice_log_content *log, uint32_t list, uint64_t *end,
                      cm_error *err)
{
    static const cm_flat_field field[] = {{CM_ICE_CHUNKS_NODE, CM_ICE_NODE_ID, 1},
                                          CM_FLAT_OFFSET(CM_ICE_CHUNKS_LIST)};
    cm_flat_writer *w = &h->flat;
    cm_flat_shape shape;
    uint32_t first = 0, at;
    int rc = cm_flat_shape_of(w, field, 2, &shape, err);
    for (size_t i = 0; rc == CM_OK && i < log->narrays; i++) {
        rc = cm_flat_table(w, &shape, &at, err);
        first = i == 0 ? at : first;
        if (rc != CM_OK)
            break;
        cm_flat_point(w, list + 4 * (uint32_t)i, at);
        cm_flat_set(w, at + shape.at[CM_ICE_CHUNKS_NODE], log->array[i].node, CM_ICE_NODE_ID);
    }
    *end = w->buf.nbytes;
    for (size_t i = 0; rc == CM_OK && i < log->narrays; i++) {
        const uint32_t from = first + shape.nbytes * (uint32_t)i + shape.at[CM_ICE_CHUNKS_LIST];
        cm_flat_point(w, from, (uint32_t)*end);
        *end += 4 + log->array[i].nrefs * (4 + chunk_nbytes(&log->array[i]));
        if (*end > CM_FLAT_MOST)
            return cm_fail(err, CM_EUNSUPPORTED,
                           "%llu chunks in one commit are more than a transaction log can list",
                           (unsigned long long)log->array[i].nrefs);
    }
    return rc;
}

/* ---- the chunks ---- */

static bool is_present(const cm_ice_log_array *a, uint64_t number)
{
    return a->present[number / 64] >> number % 64 & 1;
}

/* The vector of offsets to A's tables, which follow it. */
static int put_offsets(cm_ice_file *f, const cm_ice_log_array *a, cm_error *err)
{
    uint32_t piece[PIECE];
    const uint64_t size = chunk_nbytes(a);
    piece[0] = (uint32_t)a->nrefs;
    int rc = cm_ice_file_put(f, piece, 4, err);
    for (uint64_t i = 0; rc == CM_OK && i < a->nrefs;) {
        size_t n = 0;
        for (; n < PIECE && i < a->nrefs; n++, i++)
            piece[n] = (uint32_t)((a->nrefs - i) * 4 + i * size);
        rc = cm_ice_file_put(f, piece, 4 * n, err);
    }
    return rc;
}

/* The tables, of which the first lies at position AT. */
static int put_tables(cm_ice_file *f, const cm_ice_log_array *a, uint32_t vtable, uint64_t at,
                      cm_error *err)
{
    uint32_t piece[PIECE], index[CM_MAX_RANK] = {0};
    size_t n = 0;
    const size_t most = PIECE - 3 - CM_MAX_RANK;
    int rc = CM_OK;
    for (uint64_t number = 0, left = a->nrefs; rc == CM_OK && left > 0; number++) {
        if (is_present(a, number)) {
            piece[n++] = (uint32_t)(at - vtable);
            piece[n++] = 4;
            piece[n++] = a->rank;
            memcpy(piece + n, index, 4 * (size_t)a->rank);
            n += a->rank;
            at += chunk_nbytes(a);
            left--;
        }
        for (unsigned j = a->rank; j-- > 0 && ++index[j] == a->shape[j];)
            index[j] = 0;
        if (n > most || left == 0) {
            rc = cm_ice_file_put(f, piece, 4 * n, err);
            n = 0;
        }
    }
    return rc;
}

static int put_all(cm_ice_file *f, const head *h, const cm_ice_log_content *log, cm_error *err)
{
    uint64_t at = h->flat.buf.nbytes;
    int rc = cm_ice_file_put(f, h->flat.buf.data, h->flat.buf.nbytes, err);
    for (size_t i = 0; rc == CM_OK && i < log->narrays; i++) {
        const cm_ice_log_array *a = &log->array[i];
        rc = put_offsets(f, a, err);
        at += 4 + 4 * a->nrefs;
        if (rc == CM_OK)
            rc = put_tables(f, a, h->indices.vtable, at, err);
        at += a->nrefs * chunk_nbytes(a);
    }
    return rc;
}

int cm_ice_log_write(cm_store *root, const cm_ice_log_content *log, cm_error *err)
{
    head h = {0};
    cm_ice_file *f = NULL;
    char key[CM_ICE_KEY_SIZE];
    uint32_t list = 0;
    uint64_t nbytes = 0;
    cm_ice_key("transactions", log->id, key);
    int rc = begin(&h, log, &list, err);
    if (rc == CM_OK)
        rc = add_arrays(&h, log, list, &nbytes, err);
    if (rc == CM_OK)
        rc = cm_ice_file_create(root, key, CM_ICE_LOG_FILE, nbytes, &f, err);
    if (rc == CM_OK)
        rc = put_all(f, &h, log, err);
    if (rc == CM_OK)
        rc = cm_ice_file_commit(f, NULL, err);
    else
        cm_ice_file_abort(f);
    cm_flat_release(&h.flat);
    return rc;
}

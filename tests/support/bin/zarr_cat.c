/*
 * Shows a Zarr store to the tests, through the library alone.
 *
 *     zarr_cat STORE ARRAY          decoded bytes, little-endian, in C order;
 *                                   strings as u32 length and bytes each
 *     zarr_cat --meta STORE         the tree as JSON
 *     zarr_cat --copy SRC ARRAY DST [--format 2|3] [--threads N]
 *                                   the array again, with the same codecs
 *     zarr_cat --copy-all SRC DST [--format 2|3]
 *                                   all nodes, with consolidated metadata
 *     zarr_cat --erase STORE        prints how many foreign files were left
 */
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "format/array.h"
#include "format/zarr/erase.h"
#include "format/zarr/open.h"
#include "format/zarr/writer.h"
#include "model/copy.h"

static void die(const cm_error *err)
{
    fprintf(stderr, "zarr_cat: %s: %s\n", cm_status_name(err->status), err->text);
    exit(1);
}

#define TRY(call)                                                                                  \
    do {                                                                                           \
        if ((call) != CM_OK)                                                                       \
            die(&err);                                                                             \
    } while (0)

static cm_store *open_tree(const char *path, cm_zarr_tree *tree)
{
    cm_error err = {0};
    cm_store *store;
    TRY(cm_store_open_dir(path, false, &store, &err));
    TRY(cm_zarr_open(store, tree, &err));
    return store;
}

static cm_array *open_array(const cm_zarr_tree *tree, const char *path)
{
    cm_error err = {0};
    const cm_zarr_node *node = cm_zarr_find(tree, path);
    if (!node) {
        cm_fail(&err, CM_ENOTFOUND, "there is no node %s", path);
        die(&err);
    }
    cm_array *a;
    TRY(cm_zarr_array_open(tree, node, 1 << 20, &a, &err));
    return a;
}

static cm_box whole(const cm_array *a)
{
    cm_box box = {.rank = a->rank};
    memcpy(box.shape, a->shape, sizeof box.shape);
    return box;
}

/* ---- cat ---- */

static void cat(const char *path, const char *name)
{
    cm_error err = {0};
    cm_zarr_tree tree;
    cm_store *store = open_tree(path, &tree);
    cm_array *a = open_array(&tree, name);
    cm_box box = whole(a);
    uint64_t n = cm_box_nelem(&box);
    if (cm_dtype_is_vlen(&a->dtype)) {
        cm_strings text = {0};
        TRY(cm_array_read_strings(a, &box, &text, &err));
        for (uint64_t i = 0; i < n; i++) {
            size_t nbytes;
            const char *p = cm_strings_get(&text, i, &nbytes);
            uint32_t length = (uint32_t)nbytes;
            fwrite(&length, 4, 1, stdout);
            fwrite(p, 1, nbytes, stdout);
        }
        cm_strings_release(&text);
    } else {
        void *data = malloc(n * a->dtype.nbytes + 1);
        TRY(cm_array_read(a, NULL, &box, data, &err));
        fwrite(data, a->dtype.nbytes, n, stdout);
        free(data);
    }
    cm_array_free(a);
    cm_zarr_tree_release(&tree);
    cm_store_free(store);
}

/* ---- meta ---- */

static void meta(const char *path)
{
    cm_error err = {0};
    cm_zarr_tree tree;
    cm_store *store = open_tree(path, &tree);
    cm_json *list = cm_json_array();
    for (size_t i = 0; i < tree.nnodes; i++) {
        const cm_zarr_node *node = &tree.node[i];
        cm_json *j = cm_json_object(), *doc = NULL, *attrs = NULL;
        TRY(cm_json_set(j, "path", cm_json_string(node->path), &err));
        if (node->unsupported)
            TRY(cm_json_set(j, "unsupported", cm_json_string(node->unsupported), &err));
        TRY(tree.zarr_format == 3 ? cm_zarr_meta_to_v3(&node->meta, &doc, &err)
                                  : cm_zarr_meta_to_v2(&node->meta, &doc, &attrs, &err));
        TRY(cm_json_set(j, "doc", doc, &err));
        if (attrs)
            TRY(cm_json_set(j, "attrs", attrs, &err));
        TRY(cm_json_append(list, j, &err));
    }
    cm_json *top = cm_json_object();
    TRY(cm_json_set(top, "consolidated", cm_json_bool(tree.consolidated), &err));
    TRY(cm_json_set(top, "zarr_format", cm_json_u64((uint64_t)tree.zarr_format), &err));
    TRY(cm_json_set(top, "nodes", list, &err));
    cm_buf text = {0};
    TRY(cm_json_write(top, true, &text, &err));
    fwrite(text.data, 1, text.nbytes, stdout);
    putchar('\n');
    cm_buf_release(&text);
    cm_json_free(top);
    cm_zarr_tree_release(&tree);
    cm_store_free(store);
}

/* ---- copy ---- */

typedef struct job {
    cm_array *from;
    cm_zarr_writer *to;
    atomic_uint_fast64_t next;
} job;

/* The elements of chunk BOX in a buffer of a whole chunk, fill values beyond the edge. */
static void copy_chunk(cm_array *a, cm_zarr_writer *w, cm_codec_ctx *ctx, uint64_t number,
                       const cm_box *box, uint8_t *chunk, uint8_t *encoded)
{
    cm_error err = {0};
    const cm_grid *grid = cm_zarr_writer_grid(w);
    size_t itemsize = a->dtype.nbytes;
    uint8_t *part = malloc(cm_box_nelem(box) * itemsize + 1);
    TRY(cm_array_read(a, ctx, box, part, &err));
    int64_t to[CM_MAX_RANK], from[CM_MAX_RANK];
    cm_strides_c(a->rank, grid->chunk, itemsize, to);
    cm_strides_c(a->rank, box->shape, itemsize, from);
    cm_fill(chunk, grid->chunk_nelem, itemsize, a->fill);
    cm_copy_nd(a->rank, box->shape, itemsize, chunk, to, part, from);
    free(part);
    if (cm_all_equal(chunk, grid->chunk_nelem, itemsize, a->fill)) {
        TRY(cm_zarr_writer_skip(w, number, &err));
        return;
    }
    size_t nbytes;
    TRY(cm_chain_encode(cm_zarr_writer_chain(w), ctx, chunk, encoded, &nbytes, &err));
    TRY(cm_zarr_writer_put(w, number, encoded, nbytes, &err));
}

static void copy_strings(cm_array *a, cm_zarr_writer *w, cm_codec_ctx *ctx, uint64_t number,
                         const cm_box *box)
{
    cm_error err = {0};
    const cm_grid *grid = cm_zarr_writer_grid(w);
    cm_strings part = {0}, chunk = {0};
    cm_buf encoded = {0};
    TRY(cm_array_read_strings(a, box, &part, &err));
    TRY(cm_strings_reset(&chunk, grid->chunk_nelem, &err));
    uint64_t n = cm_box_nelem(box);
    for (uint64_t i = 0; i < n; i++) {
        uint64_t rest = i, at = 0, scale = 1;
        for (unsigned k = a->rank; k-- > 0; rest /= box->shape[k], scale *= grid->chunk[k])
            at += rest % box->shape[k] * scale;
        size_t nbytes;
        const char *text = cm_strings_get(&part, i, &nbytes);
        TRY(cm_strings_set(&chunk, at, text, nbytes, &err));
    }
    TRY(cm_chain_encode_strings(cm_zarr_writer_chain(w), ctx, &chunk, &encoded, &err));
    TRY(cm_zarr_writer_put(w, number, encoded.data, encoded.nbytes, &err));
    cm_buf_release(&encoded);
    cm_strings_release(&chunk);
    cm_strings_release(&part);
}

static void *work(void *argument)
{
    job *j = argument;
    cm_error err = {0};
    const cm_grid *grid = cm_zarr_writer_grid(j->to);
    const cm_chain *chain = cm_zarr_writer_chain(j->to);
    cm_codec_ctx *ctx = cm_codec_ctx_create(&err);
    bool is_vlen = cm_dtype_is_vlen(&j->from->dtype);
    uint8_t *chunk = malloc(cm_chain_decoded_nbytes(chain) + 1);
    uint8_t *encoded = malloc(cm_chain_encoded_bound(chain) + 1);
    for (;;) {
        uint64_t number = atomic_fetch_add(&j->next, 1), coord[CM_MAX_RANK];
        if (number >= grid->nchunks)
            break;
        cm_box box;
        cm_grid_coord(grid, number, coord);
        cm_grid_box(grid, coord, &box);
        if (is_vlen)
            copy_strings(j->from, j->to, ctx, number, &box);
        else
            copy_chunk(j->from, j->to, ctx, number, &box, chunk, encoded);
    }
    free(chunk);
    free(encoded);
    cm_codec_ctx_free(ctx);
    return NULL;
}

enum {
    MAX_THREADS = 16
};

static void copy_chunks(const cm_zarr_tree *tree, const cm_zarr_node *node, cm_store *to,
                        const char *to_path, const cm_zarr_meta *m, int nthreads)
{
    cm_error err = {0};
    cm_array *a = open_array(tree, node->path);
    cm_zarr_writer *w;
    TRY(cm_zarr_writer_create(to, to_path, m, &w, &err));
    TRY(cm_chain_can_encode(cm_zarr_writer_chain(w), &err));
    job j = {.from = a, .to = w};
    pthread_t thread[MAX_THREADS];
    for (int i = 0; i < nthreads; i++)
        pthread_create(&thread[i], NULL, work, &j);
    for (int i = 0; i < nthreads; i++)
        pthread_join(thread[i], NULL);
    TRY(cm_zarr_writer_finish(w, &err));
    cm_zarr_writer_free(w);
    cm_array_free(a);
}

static void copy(const char *from_path, const char *only, const char *to_path, int format,
                 int nthreads)
{
    cm_error err = {0};
    cm_zarr_tree tree;
    cm_store *from = open_tree(from_path, &tree), *to;
    TRY(cm_store_open_dir(to_path, true, &to, &err));
    cm_zarr_meta *m = calloc(tree.nnodes, sizeof *m);
    cm_zarr_entry *entry = calloc(tree.nnodes, sizeof *entry);
    size_t n = 0;
    format = format ? format : tree.zarr_format;
    for (size_t i = 0; i < tree.nnodes; i++) {
        const cm_zarr_node *node = &tree.node[i];
        if (only && strcmp(node->path, only) != 0)
            continue;
        TRY(cm_zarr_meta_copy(&node->meta, &m[n], &err));
        TRY(cm_zarr_meta_set_format(&m[n], format, &err));
        const char *path = only ? "" : node->path;
        if (m[n].verbatim)
            TRY(cm_zarr_objects_copy(from, node->path, to, path, NULL, NULL, &err));
        else if (!m[n].is_group)
            copy_chunks(&tree, node, to, path, &m[n], nthreads);
        entry[n] = (cm_zarr_entry){path, &m[n]};
        n++;
    }
    TRY(cm_zarr_hierarchy_write(to, format, entry, n, true, &err));
    for (size_t i = 0; i < n; i++)
        cm_zarr_meta_release(&m[i]);
    free(m);
    free(entry);
    cm_zarr_tree_release(&tree);
    cm_store_free(from);
    cm_store_free(to);
}

static void erase(const char *path)
{
    cm_error err = {0};
    cm_store *store;
    cm_zarr_left left;
    TRY(cm_store_open_output(path, false, &store, &err));
    TRY(cm_zarr_erase(store, &err));
    TRY(cm_zarr_count_left(store, &left, &err));
    printf("%llu\n", (unsigned long long)left.n);
    cm_store_free(store);
}

int main(int argc, char **argv)
{
    int format = 0, nthreads = 1, n = 0;
    const char *word[5] = {0};
    for (int i = 1; i < argc; i++) {
        if (strcmp(argv[i], "--format") == 0 && i + 1 < argc)
            format = atoi(argv[++i]);
        else if (strcmp(argv[i], "--threads") == 0 && i + 1 < argc)
            nthreads = atoi(argv[++i]);
        else if (n < 5)
            word[n++] = argv[i];
    }
    if (nthreads < 1 || nthreads > MAX_THREADS)
        nthreads = 1;
    if (n == 2 && strcmp(word[0], "--meta") == 0)
        meta(word[1]);
    else if (n == 2 && strcmp(word[0], "--erase") == 0)
        erase(word[1]);
    else if (n == 4 && strcmp(word[0], "--copy") == 0)
        copy(word[1], word[2], word[3], format, nthreads);
    else if (n == 3 && strcmp(word[0], "--copy-all") == 0)
        copy(word[1], NULL, word[2], format, nthreads);
    else if (n == 2 && word[0][0] != '-')
        cat(word[0], word[1]);
    else
        return fputs("zarr_cat: see the top of its source\n", stderr), 2;
    return 0;
}

/* Counts the chunks of one array by what is wrong with them. */
#include "format/zarr/census_tally.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- sizes that an object must have -------------------------------------------------------- */

/* The stored bytes of every chunk, where no codec's output depends on the values. */
static void find_fixed_nbytes(cm_census_tally *t)
{
    const cm_zarr_meta *m = t->meta;
    uint64_t n, more = 0;
    bool has_bytes = false;
    if (cm_dtype_is_vlen(&m->dtype) || !cm_product_u64(m->rank, m->chunk, &n) ||
        !cm_mul_u64(n, m->dtype.nbytes, &n))
        return;
    for (size_t i = 0; i < m->ncodecs; i++) {
        switch (m->codecs[i].id) {
        case CM_CODEC_BYTES:
            has_bytes = true;
            break;
        case CM_CODEC_TRANSPOSE:
            break;
        case CM_CODEC_CRC32C:
        case CM_CODEC_CRC32:
        case CM_CODEC_ADLER32:
        case CM_CODEC_FLETCHER32:
            more += 4;
            break;
        default:
            return;
        }
    }
    t->element_nbytes = has_bytes ? m->dtype.nbytes : 0;
    t->more_nbytes = more;
}

/* The bytes that OBJECT must have; 0: that depends on its values. */
static uint64_t fixed_nbytes(const cm_census_tally *t, uint64_t object)
{
    uint64_t coord[CM_MAX_RANK];
    if (t->element_nbytes == 0)
        return 0;
    cm_grid_coord(&t->names.grid, object, coord);
    return cm_grid_chunk_nelem(&t->names.grid, coord) * t->element_nbytes + t->more_nbytes;
}

/* Headers and trailers of compressed chunks have so many bytes. */
static uint64_t least_nbytes(const cm_zarr_meta *m)
{
    const cm_codec_id last = m->ncodecs > 0 ? m->codecs[m->ncodecs - 1].id : CM_CODEC_NONE;
    return last == CM_CODEC_BLOSC ? 16 : last == CM_CODEC_GZIP ? 18 : 1;
}

/* ---- beginning ----------------------------------------------------------------------------- */

/* Cells have the same number of rows, but for one. */
static uint64_t first_row(const cm_census_array *a, uint64_t nrows, size_t cell)
{
    return (uint64_t)((unsigned __int128)nrows * cell / a->ncells);
}

static int make_cells(cm_census_tally *t, cm_error *err)
{
    cm_census_array *out = t->out;
    const uint64_t nrows = t->grid.rank > 0 ? t->grid.count[0] : 1;
    out->nchunks = t->grid.nchunks;
    if (out->nchunks == 0)
        return CM_OK;
    out->ncells = nrows < CM_CENSUS_CELLS ? (size_t)nrows : CM_CENSUS_CELLS;
    out->cell = cm_calloc(out->ncells, sizeof(*out->cell), err);
    if (out->cell == NULL)
        return CM_ENOMEM;
    for (size_t i = 0; i < out->ncells; i++) {
        const uint64_t rows = first_row(out, nrows, i + 1) - first_row(out, nrows, i);
        out->cell[i].nchunks = rows * (out->nchunks / nrows);
    }
    return CM_OK;
}

int cm_census_tally_init(cm_census_tally *t, cm_variable *v, cm_census_array *out, cm_error *err)
{
    const cm_shard_spec *shard = cm_zarr_sharding(v->words);
    const char *unclear = v->unsupported;
    *t = (cm_census_tally){.path = v->name, .meta = v->words, .var = v, .out = out};
    pthread_mutex_init(&t->lock, NULL);
    cm_chunk_names_init(v->words, &t->names);
    t->sharded = shard != NULL;
    const unsigned kind = v->words->dtype.kind;
    out->no_fill = !v->words->has_fill && kind != CM_KIND_DATETIME && kind != CM_KIND_TIMEDELTA;
    if (unclear == NULL &&
        (!t->names.has_grid || cm_zarr_meta_grid(v->words, &t->grid, NULL) != CM_OK))
        unclear = "its grid of chunks is not understood";
    if (unclear != NULL) {
        out->unclear = cm_strdup(unclear, err);
        return out->unclear != NULL ? CM_OK : CM_ENOMEM;
    }
    if (shard == NULL)
        find_fixed_nbytes(t);
    t->least_nbytes = shard != NULL ? 1 : least_nbytes(v->words);
    if (t->names.grid.nchunks <= CM_CENSUS_BITS) {
        t->seen = cm_calloc((size_t)(t->names.grid.nchunks / 64 + 1), sizeof(*t->seen), err);
        if (t->seen == NULL)
            return CM_ENOMEM;
    }
    return make_cells(t, err);
}

void cm_census_tally_release(cm_census_tally *t)
{
    if (t->path == NULL)
        return;
    pthread_mutex_destroy(&t->lock);
    free(t->seen);
}

void cm_census_tally_see(cm_census_tally *t, const uint64_t *coord)
{
    const uint64_t number = cm_grid_number(&t->names.grid, coord);
    const uint64_t bit = UINT64_C(1) << number % 64;
    /* A listing may tell of an object twice while it is replaced. */
    if (t->seen == NULL ||
        (__atomic_fetch_or(&t->seen[number / 64], bit, __ATOMIC_RELAXED) & bit) == 0)
        __atomic_fetch_add(&t->nseen, 1, __ATOMIC_RELAXED);
}

bool cm_census_tally_saw(const cm_census_tally *t, uint64_t object)
{
    return t->seen != NULL && (t->seen[object / 64] >> object % 64 & 1) != 0;
}

/* ---- counting ------------------------------------------------------------------------------ */

/* True where NUMBER is the first of all so far. */
static bool keep_lowest(cm_lowest *l, uint64_t number)
{
    size_t at = l->n;
    while (at > 0 && l->number[at - 1] > number)
        at--;
    l->more = l->more || l->n == CM_CENSUS_NAMED;
    if (at == CM_CENSUS_NAMED)
        return false;
    if (l->n < CM_CENSUS_NAMED)
        l->n++;
    memmove(&l->number[at + 1], &l->number[at], (l->n - at - 1) * sizeof(l->number[0]));
    l->number[at] = number;
    return at == 0;
}

/* NCHUNKS holes in each of rows FIRST <= row < END of the grid's NROWS. */
static void mark_rows(cm_census_array *a, uint64_t nrows, uint64_t first, uint64_t end,
                      uint64_t nchunks)
{
    size_t cell = (size_t)((unsigned __int128)first * a->ncells / nrows);
    for (; cell < a->ncells && first_row(a, nrows, cell) < end; cell++) {
        const uint64_t begins = first_row(a, nrows, cell), ends = first_row(a, nrows, cell + 1);
        const uint64_t lo = begins > first ? begins : first, hi = ends < end ? ends : end;
        a->cell[cell].nholes += hi > lo ? (hi - lo) * nchunks : 0;
    }
}

static void count(cm_census_tally *t, cm_census_hole kind, bool whole, uint64_t number,
                  const cm_box *box, const char *why)
{
    cm_census_count *c = &t->out->hole[kind];
    uint64_t n = 1;
    for (unsigned j = 0; j < box->rank; j++)
        n *= box->shape[j];
    pthread_mutex_lock(&t->lock);
    c->n += n;
    bool first = keep_lowest(whole ? &t->shards[kind] : &t->chunks[kind], number);
    if (first && why != NULL) { /* without memory for it, the sentence is missing */
        free(c->why);
        c->why = cm_strdup(why, NULL);
    }
    if (kind != CM_CENSUS_LEFT_OUT && box->rank == 0)
        t->out->cell[0].nholes++;
    else if (kind != CM_CENSUS_LEFT_OUT)
        mark_rows(t->out, t->grid.count[0], box->start[0], box->start[0] + box->shape[0],
                  n / box->shape[0]);
    pthread_mutex_unlock(&t->lock);
}

void cm_census_tally_chunk(cm_census_tally *t, cm_census_hole kind, uint64_t number,
                           const char *why)
{
    cm_box box = {.rank = t->grid.rank};
    cm_grid_coord(&t->grid, number, box.start);
    for (unsigned j = 0; j < box.rank; j++)
        box.shape[j] = 1;
    count(t, kind, false, number, &box, why);
}

void cm_census_tally_object(cm_census_tally *t, cm_census_hole kind, uint64_t number,
                            const char *why)
{
    cm_box elements, chunks = {.rank = t->grid.rank};
    if (!t->sharded) {
        cm_census_tally_chunk(t, kind, number, why);
        return;
    }
    cm_grid_chunk_box(&t->names.grid, number, &elements);
    cm_grid_cover(&t->grid, &elements, chunks.start, chunks.shape);
    count(t, kind, true, number, &chunks, why);
}

bool cm_census_tally_size(cm_census_tally *t, uint64_t object, uint64_t nbytes)
{
    char why[96];
    const uint64_t want = fixed_nbytes(t, object);
    if (nbytes == 0) {
        cm_census_tally_object(t, CM_CENSUS_EMPTY, object, NULL);
        return false;
    }
    if (want == 0 ? nbytes >= t->least_nbytes : nbytes == want)
        return true;
    snprintf(why, sizeof(why), "has %llu bytes, and a chunk %s%llu", (unsigned long long)nbytes,
             want == 0 ? "at least " : "",
             (unsigned long long)(want == 0 ? t->least_nbytes : want));
    cm_census_tally_object(
        t, nbytes > want && want > 0 ? CM_CENSUS_UNDECODABLE : CM_CENSUS_TRUNCATED, object, why);
    return false;
}

/* ---- ending -------------------------------------------------------------------------------- */

/* How many of FIRST <= object < END were seen. */
static uint64_t count_seen(const cm_census_tally *t, uint64_t first, uint64_t end)
{
    uint64_t n = 0;
    for (uint64_t word = first / 64; word * 64 < end; word++) {
        uint64_t bits = t->seen[word];
        if (word == first / 64)
            bits &= UINT64_MAX << first % 64;
        if (end - word * 64 < 64)
            bits &= (UINT64_C(1) << end % 64) - 1;
        n += (uint64_t)__builtin_popcountll(bits);
    }
    return n;
}

/* The first object from I on that was not seen; END or more: there is none before END. */
static uint64_t find_absent(const cm_census_tally *t, uint64_t i, uint64_t end)
{
    while (i < end && cm_census_tally_saw(t, i))
        i += i % 64 == 0 && t->seen[i / 64] == UINT64_MAX ? 64 : 1;
    return i;
}

/* The first of FIRST <= chunk < END that were not seen, as long as names are wanted. */
static void name_absent(cm_census_tally *t, uint64_t first, uint64_t end)
{
    cm_lowest *names = &t->chunks[CM_CENSUS_ABSENT];
    for (uint64_t i = first; (i = find_absent(t, i, end)) < end && !names->more; i++)
        keep_lowest(names, i);
}

/* Only the first need names; the others are counted by words of bits, 10^7 of them in 5 ms. */
static void count_absent_chunks(cm_census_tally *t)
{
    cm_census_array *out = t->out;
    const uint64_t nrows = t->grid.rank > 0 ? t->grid.count[0] : 1;
    for (size_t i = 0; i < out->ncells; i++) {
        const uint64_t inner = out->nchunks / nrows;
        const uint64_t first = first_row(out, nrows, i) * inner;
        const uint64_t end = first_row(out, nrows, i + 1) * inner;
        const uint64_t absent = end - first - count_seen(t, first, end);
        out->hole[CM_CENSUS_ABSENT].n += absent;
        out->cell[i].nholes += absent;
        if (absent > 0)
            name_absent(t, first, end);
    }
}

static void count_absent(cm_census_tally *t)
{
    const uint64_t n = t->names.grid.nchunks;
    if (t->seen == NULL) {
        /* Which ones is not known: all are taken to have as many chunks. */
        const uint64_t absent = n > t->nseen ? n - t->nseen : 0;
        t->out->hole[CM_CENSUS_ABSENT].n += absent * (n > 0 ? t->grid.nchunks / n : 0);
        return;
    }
    if (!t->sharded) {
        count_absent_chunks(t);
        return;
    }
    for (uint64_t i = 0; (i = find_absent(t, i, n)) < n; i++)
        cm_census_tally_object(t, CM_CENSUS_ABSENT, i, NULL);
}

static int add_name(cm_census_count *c, const cm_grid *grid, uint64_t number, bool is_shard,
                    cm_error *err)
{
    uint64_t coord[CM_MAX_RANK];
    char text[CM_MAX_RANK * 21];
    cm_grid_coord(grid, number, coord);
    c->name[c->nnames] = cm_asprintf(err, "%s%s", is_shard ? "shard " : "",
                                     cm_coord_text(grid->rank, coord, text, sizeof(text)));
    return c->name[c->nnames] != NULL ? (c->nnames++, CM_OK) : CM_ENOMEM;
}

static int make_names(cm_census_tally *t, cm_census_hole kind, cm_error *err)
{
    cm_census_count *c = &t->out->hole[kind];
    const cm_lowest *shards = &t->shards[kind], *chunks = &t->chunks[kind];
    int rc = CM_OK;
    if (shards->n + chunks->n == 0)
        return CM_OK;
    c->name = cm_calloc(CM_CENSUS_NAMED, sizeof(*c->name), err);
    if (c->name == NULL)
        return CM_ENOMEM;
    for (size_t i = 0; i < shards->n && rc == CM_OK; i++)
        rc = add_name(c, &t->names.grid, shards->number[i], true, err);
    for (size_t i = 0; i < chunks->n && c->nnames < CM_CENSUS_NAMED && rc == CM_OK; i++)
        rc = add_name(c, &t->grid, chunks->number[i], false, err);
    c->more = shards->more || chunks->more || c->nnames < shards->n + chunks->n;
    return rc;
}

int cm_census_tally_finish(cm_census_tally *t, cm_error *err)
{
    uint64_t holes = 0;
    int rc = CM_OK;
    if (t->out->unclear != NULL)
        return CM_OK;
    count_absent(t);
    for (int i = 0; i < CM_CENSUS_HOLES && rc == CM_OK; i++) {
        holes += t->out->hole[i].n;
        rc = make_names(t, (cm_census_hole)i, err);
    }
    t->out->npresent = t->out->nchunks > holes ? t->out->nchunks - holes : 0;
    return rc;
}

#include "exec/load/pack.h"

#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/cpu.h"
#include "codec/checksum.h"

enum {
    GROUP_CHUNKS = 64,
    GROUP_NBYTES = 256 << 10, /* that a second-level cache holds */
    NONE = -1,
    MAX_VALUE_NBYTES = 256 /* of one element */
};

/* A chunk of the batch. */
typedef struct packed {
    uint64_t number;
    uint32_t array;
    bool present;
    uint64_t place; /* of its elements, once it is decoded; not present: of a fill value */
} packed;

/* A part of a sample and a chunk that it meets. */
typedef struct use {
    uint32_t chunk, part, piece;
} use;

struct cm_packer {
    const cm_load_arrays *in;
    const cm_proof *proof;
    cm_codec_ctx *ctx;
    cm_fetch_many many;
    cm_fetch_item item[GROUP_CHUNKS];
    cm_chunk_streams split;
    cm_parcel_writer w;
    cm_buf decoded; /* for the sentence of a chunk that is damaged */
    packed *chunk;
    use *use;
    uint32_t *order; /* chunks by array and number */
    int32_t *bucket; /* of a hash table: a chunk, or NONE */
    size_t nchunks, nuses, room, nbuckets;
    uint64_t *fill; /* places of the arrays' fill values; 0: none yet */
    uint64_t zeros; /* of a byte that is 0; 0: none yet */
    uint64_t last_ns;
};

static const char *name_of(const cm_array *a)
{
    return a->name[0] != '\0' ? a->name : "/";
}

/* ---- bounds ---- */

/* Chunks that one sample's PART meets at most. */
static bool chunks_met(const cm_array *a, const cm_sample_part *part, const cm_sample_space *space,
                       uint64_t *out)
{
    *out = 1;
    for (unsigned j = 0; j < a->rank; j++) {
        const uint64_t n = part->axis[j] >= 0 ? space->sample[part->axis[j]] : a->shape[j];
        const uint64_t all = (a->shape[j] + a->grid.chunk[j] - 1) / a->grid.chunk[j];
        uint64_t met = n == 0 ? 0 : (n - 1) / a->grid.chunk[j] + 2;
        met = met < all ? met : all;
        if (!cm_mul_u64(*out, met, out))
            return false;
    }
    return true;
}

static bool add_product(size_t *to, uint64_t a, uint64_t b)
{
    uint64_t n;
    return cm_mul_u64(a, b, &n) && cm_add_size(*to, n, to);
}

/* What N chunks of array I take. */
static bool add_array(const cm_load_arrays *in, const cm_proof *proof, size_t i, uint64_t n,
                      cm_pack_bounds *out, uint64_t *nstreams, uint64_t *nblocks, uint64_t *nbytes)
{
    static const cm_split_kind kinds[CM_PARCEL_NCODECS] = {[CM_PARCEL_ZSTD] = CM_SPLIT_ZSTD,
                                                           [CM_PARCEL_LZ4] = CM_SPLIT_LZ4,
                                                           [CM_PARCEL_DEFLATE] = CM_SPLIT_DEFLATE};
    const cm_proof_array *p = &proof->array[i];
    const size_t decoded = cm_chain_decoded_nbytes(in->array[i]->chain);
    bool fits =
        add_product(&out->slot_nbytes, n, p->stored_nbytes) &&
        add_product(nstreams, n, p->all_streams) && add_product(nblocks, n, p->nblocks) &&
        add_product(nbytes, n, decoded) &&
        add_product(&out->limits.scratch_nbytes, n, (decoded + 256) * (p->nblocks > 0 ? 2 : 1));
    for (int c = 0; c < CM_PARCEL_NCODECS && fits; c++) {
        size_t *most = &out->limits.stream_nbytes[c];
        fits = add_product(&out->limits.nstreams[c], n, p->nstreams[kinds[c]]);
        *most = p->stream_nbytes[kinds[c]] > *most ? p->stream_nbytes[kinds[c]] : *most;
    }
    return fits;
}

int cm_pack_find_bounds(const cm_load_arrays *in, const cm_proof *proof, uint64_t nbatch,
                        cm_pack_bounds *out, cm_error *err)
{
    uint64_t nstreams = 0, nblocks = 0, nbytes = 0, nboxes = 0, box_nbytes = 0, tables = 0;
    bool fits = true;
    *out = (cm_pack_bounds){0};
    for (size_t i = 0; i < in->narrays && fits; i++) {
        uint64_t all = 0;
        for (size_t p = 0; p < in->nparts && fits; p++) {
            uint64_t met = 0;
            if (in->part[p].array != i)
                continue;
            fits = chunks_met(in->array[i], &in->part[p], in->space, &met) &&
                   add_product(&all, met, nbatch) && add_product(&nboxes, met + 1, nbatch) &&
                   add_product(&out->nuses, met, nbatch);
            box_nbytes = in->part_nbytes[p] > box_nbytes ? in->part_nbytes[p] : box_nbytes;
        }
        const uint64_t n = all < proof->array[i].nchunks ? all : proof->array[i].nchunks;
        fits = fits && add_array(in, proof, i, n, out, &nstreams, &nblocks, &nbytes) &&
               cm_add_size(out->slot_nbytes, MAX_VALUE_NBYTES + CM_PARCEL_ALIGN, &out->slot_nbytes);
    }
    if (fits)
        tables = cm_parcel_tables_bound(nboxes, box_nbytes, nstreams, nblocks, nbytes);
    if (!fits || tables == UINT64_MAX ||
        !cm_add_size(out->slot_nbytes, tables + 2 * CM_PARCEL_ALIGN, &out->slot_nbytes) ||
        out->nuses > INT32_MAX / 2)
        return cm_fail(err, CM_EBUDGET, "a batch meets too many chunks to be packed");
    out->limits.parcel_nbytes = out->slot_nbytes;
    return CM_OK;
}

/* ---- packers ---- */

int cm_packer_create(const cm_load_arrays *in, const cm_proof *proof, cm_packer **out,
                     cm_error *err)
{
    cm_packer *p = cm_calloc(1, sizeof *p, err);
    if (p == NULL)
        return CM_ENOMEM;
    p->in = in;
    p->proof = proof;
    p->ctx = cm_codec_ctx_create(err);
    p->fill = cm_calloc(in->narrays + 1, sizeof *p->fill, err);
    if (p->ctx == NULL || p->fill == NULL) {
        cm_packer_free(p);
        return CM_ENOMEM;
    }
    *out = p;
    return CM_OK;
}

void cm_packer_free(cm_packer *p)
{
    if (p == NULL)
        return;
    cm_codec_ctx_free(p->ctx);
    cm_fetch_many_release(&p->many);
    cm_chunk_streams_release(&p->split);
    cm_parcel_writer_release(&p->w);
    cm_buf_release(&p->decoded);
    free(p->chunk);
    free(p->use);
    free(p->order);
    free(p->bucket);
    free(p->fill);
    free(p);
}

static void stage(cm_packer *p, cm_load_counts *counts, int which)
{
    const uint64_t now = cm_now_ns();
    counts->stage_ns[which] += now - p->last_ns;
    counts->stage_calls[which]++;
    p->last_ns = now;
}

/* ---- which chunks ---- */

/* Room for N uses, of as many chunks; what there is of them stays. */
static int make_room(cm_packer *p, size_t n, cm_error *err)
{
    if (n <= p->room)
        return CM_OK;
    const size_t more = 2 * n;
    size_t nbuckets = 64;
    while (nbuckets < 2 * more)
        nbuckets *= 2;
    packed *chunk = realloc(p->chunk, more * sizeof *chunk);
    p->chunk = chunk != NULL ? chunk : p->chunk;
    use *uses = realloc(p->use, more * sizeof *uses);
    p->use = uses != NULL ? uses : p->use;
    uint32_t *order = realloc(p->order, more * sizeof *order);
    p->order = order != NULL ? order : p->order;
    int32_t *bucket = malloc(nbuckets * sizeof *bucket);
    if (chunk == NULL || uses == NULL || order == NULL || bucket == NULL) {
        free(bucket);
        return cm_fail(err, CM_ENOMEM, "no memory for the chunks of a batch");
    }
    free(p->bucket);
    p->bucket = bucket;
    p->nbuckets = nbuckets;
    p->room = more;
    return CM_OK;
}

/* The chunk's number in the batch. */
static uint32_t chunk_of(cm_packer *p, uint32_t array, uint64_t number)
{
    uint64_t h = (number * UINT64_C(0x9e3779b97f4a7c15)) ^ array * UINT64_C(0xc2b2ae3d27d4eb4f);
    size_t at = (h >> 20) & (p->nbuckets - 1);
    for (; p->bucket[at] != NONE; at = (at + 1) & (p->nbuckets - 1)) {
        const packed *c = &p->chunk[p->bucket[at]];
        if (c->array == array && c->number == number)
            return (uint32_t)p->bucket[at];
    }
    p->bucket[at] = (int32_t)p->nchunks;
    p->chunk[p->nchunks] = (packed){.number = number, .array = array};
    return (uint32_t)p->nchunks++;
}

static void sample_box(const cm_packer *p, const cm_load_task *task, const use *u, cm_box *box)
{
    cm_box sample;
    cm_sample_at(p->in->space, task->epoch, task->piece[u->piece].sample, &sample);
    cm_sample_part_box(&p->in->part[u->part], &sample, box);
}

/* Calls of EACH for the chunks that a part of a sample meets. */
static uint64_t for_each_chunk(cm_packer *p, const cm_array *a, const cm_box *box, const use *u,
                               bool add)
{
    uint64_t first[CM_MAX_RANK], count[CM_MAX_RANK], coord[CM_MAX_RANK], n = 1;
    cm_grid_cover(&a->grid, box, first, count);
    for (unsigned j = 0; j < a->rank; j++) {
        coord[j] = first[j];
        n *= count[j];
    }
    for (uint64_t left = add ? n : 0; left > 0; left--) {
        p->use[p->nuses] = *u;
        p->use[p->nuses++].chunk =
            chunk_of(p, p->in->part[u->part].array, cm_grid_number(&a->grid, coord));
        for (unsigned j = a->rank; j-- > 0 && ++coord[j] == first[j] + count[j];)
            coord[j] = first[j];
    }
    return n;
}

static int find_chunks(cm_packer *p, const cm_load_task *task, cm_error *err)
{
    uint64_t n = 0;
    for (int add = 0; add < 2; add++) {
        for (uint32_t i = 0; i < task->npieces; i++)
            for (uint32_t part = 0; part < p->in->nparts; part++) {
                const use u = {.part = part, .piece = i};
                cm_box box;
                sample_box(p, task, &u, &box);
                if (cm_box_nelem(&box) > 0)
                    n += for_each_chunk(p, p->in->array[p->in->part[part].array], &box, &u, add);
            }
        if (add)
            break;
        int rc = n > INT32_MAX / 4 ? cm_fail(err, CM_EBUDGET, "a batch meets too many chunks")
                                   : make_room(p, n, err);
        if (rc != CM_OK)
            return rc;
        p->nchunks = p->nuses = 0;
        memset(p->bucket, 0xff, p->nbuckets * sizeof *p->bucket);
    }
    return CM_OK;
}

static int by_place(const void *x, const void *y, void *context)
{
    const packed *chunk = context;
    const packed *a = &chunk[*(const uint32_t *)x], *b = &chunk[*(const uint32_t *)y];
    if (a->array != b->array)
        return a->array < b->array ? -1 : 1;
    return a->number < b->number ? -1 : a->number > b->number;
}

/* ---- one chunk ---- */

static int blame(cm_packer *p, const cm_array *a, uint64_t number, cm_error *err)
{
    uint64_t coord[CM_MAX_RANK];
    char text[CM_MAX_RANK * 21 + 2];
    cm_grid_coord(&a->grid, number, coord);
    cm_error_prefix(err, "array %s: chunk %s", name_of(a),
                    cm_coord_text(a->rank, coord, text, sizeof text));
    cm_error_place(err, a->place);
    cm_error_place(err, p->in->store);
    return err != NULL ? err->status : CM_EFORMAT;
}

/* The sentence of the host's decoder where it has one. */
static int say_why(cm_packer *p, cm_array *a, const cm_fetch_item *item, cm_error *err)
{
    int rc = cm_buf_reserve(&p->decoded, cm_chain_decoded_nbytes(a->chain), err);
    if (rc == CM_OK)
        rc = cm_chain_decode(a->chain, p->ctx, item->data, item->nbytes, item->skip,
                             p->decoded.data, err);
    if (rc == CM_OK)
        rc = cm_fail(err, CM_EFORMAT, "its stored bytes are not those that were decoded before");
    return rc;
}

/* A chunk in one piece that nothing was done to needs no decoding. */
static bool is_plain(const cm_chunk_streams *s)
{
    return s->typesize <= 1 && s->nstreams == 1 && s->stream[0].kind == CM_SPLIT_STORED;
}

static int pack_streams(cm_packer *p, const packed *c, const uint8_t *stored, uint64_t raw,
                        cm_error *err)
{
    static const cm_parcel_codec codecs[] = {[CM_SPLIT_ZSTD] = CM_PARCEL_ZSTD,
                                             [CM_SPLIT_LZ4] = CM_PARCEL_LZ4,
                                             [CM_SPLIT_DEFLATE] = CM_PARCEL_DEFLATE};
    const uint64_t base = raw & ~CM_PARCEL_IN_SCRATCH;
    int rc = CM_OK;
    for (size_t i = 0; i < p->split.nstreams && rc == CM_OK; i++) {
        const cm_split_stream *s = &p->split.stream[i];
        uint64_t place;
        rc = cm_parcel_put(&p->w, stored + s->src, s->src_nbytes, &place, err);
        if (rc != CM_OK)
            break;
        if (s->kind == CM_SPLIT_STORED)
            rc = cm_parcel_add_bytes(&p->w, place, base + s->dst, s->dst_nbytes, err);
        else
            rc = cm_parcel_add_stream(&p->w,
                                      &(cm_parcel_stream){.codec = codecs[s->kind],
                                                          .array = c->array,
                                                          .chunk = c->number,
                                                          .src = place,
                                                          .src_nbytes = s->src_nbytes,
                                                          .dst = base + s->dst,
                                                          .dst_nbytes = s->dst_nbytes},
                                      err);
    }
    return rc;
}

static int pack_chunk(cm_packer *p, packed *c, const uint8_t *stored, cm_error *err)
{
    const cm_chunk_streams *s = &p->split;
    if (is_plain(s))
        return cm_parcel_put(&p->w, stored + s->stream[0].src, s->nbytes, &c->place, err);
    const uint64_t raw = cm_parcel_scratch(&p->w, s->nbytes);
    int rc = pack_streams(p, c, stored, raw, err);
    c->place = raw;
    if (rc != CM_OK || s->typesize <= 1)
        return rc;
    c->place = cm_parcel_scratch(&p->w, s->nbytes);
    const uint64_t out = c->place & ~CM_PARCEL_IN_SCRATCH;
    for (size_t at = 0; at < s->nbytes && rc == CM_OK; at += s->block_nbytes) {
        const size_t left = s->nbytes - at;
        rc = cm_parcel_add_shuffled(&p->w, raw + at, out + at, s->typesize,
                                    left < s->block_nbytes ? left : s->block_nbytes, err);
    }
    return rc;
}

static int place_fill(cm_packer *p, packed *c, cm_error *err)
{
    static const uint8_t zeros[MAX_VALUE_NBYTES];
    const cm_array *a = p->in->array[c->array];
    int rc = CM_OK;
    if (p->fill[c->array] == 0)
        rc = cm_parcel_put(&p->w, a->fill != NULL ? a->fill : zeros, a->dtype.nbytes,
                           &p->fill[c->array], err);
    c->place = p->fill[c->array];
    return rc;
}

/* What was fetched of C. */
static int take(cm_packer *p, packed *c, const cm_fetch_item *item, cm_load_counts *counts,
                cm_error *err)
{
    cm_array *a = p->in->array[c->array];
    const cm_proof_chunk *known = cm_proof_find(&p->proof->array[c->array], c->number);
    if (known == NULL)
        return cm_fail(err, CM_EINTERNAL, "it was not decoded before");
    c->present = item->present;
    if (!item->present)
        return known->state == CM_PROOF_MISSING
                   ? place_fill(p, c, err)
                   : cm_fail(err, CM_EFORMAT, "it is gone since it was decoded before");
    if (known->state != CM_PROOF_WHOLE ||
        cm_crc32c(cm_cpu_simd(), item->data, item->nbytes) != known->crc32c)
        return say_why(p, a, item, err);
    int rc = cm_chain_split(a->chain, item->data, item->nbytes, item->skip, &p->split, err);
    stage(p, counts, CM_LOAD_DECODE);
    if (rc == CM_OK)
        rc = pack_chunk(p, c, item->data, err);
    stage(p, counts, CM_LOAD_ASSEMBLE);
    counts->decoded++;
    counts->decoded_nbytes += cm_chain_decoded_nbytes(a->chain);
    return rc;
}

/* ---- fetching ---- */

typedef struct batch_status {
    int status; /* of the first chunk that failed */
    cm_error err;
} batch_status;

static void fail_chunk(cm_packer *p, const packed *c, int rc, batch_status *s, cm_error *err,
                       cm_load_counts *counts)
{
    counts->failed_chunks++;
    if (s->status != CM_OK)
        return;
    (void)blame(p, p->in->array[c->array], c->number, err);
    s->status = rc;
    s->err = *err;
}

static int fetch(cm_packer *p, cm_array *a, cm_fetch_item *item, size_t n, cm_load_counts *counts,
                 cm_error *err)
{
    p->many.item = item;
    p->many.n = n;
    int rc = cm_array_fetch_many(a, &p->many, err);
    counts->requests += p->many.nrequests;
    counts->stored_nbytes += p->many.nbytes;
    if (p->in->delay != NULL)
        cm_delay_wait(p->in->delay, p->many.nrequests, p->many.nbytes, p->many.io_ns);
    stage(p, counts, CM_LOAD_STORAGE);
    return rc;
}

/* Chunks number ORDER[0 .. N - 1] of one array; one by one where they cannot be read together. */
static void take_group(cm_packer *p, const uint32_t *order, size_t n, batch_status *s,
                       cm_load_counts *counts)
{
    cm_array *a = p->in->array[p->chunk[order[0]].array];
    cm_error err = {0};
    for (size_t i = 0; i < n; i++)
        p->item[i] = (cm_fetch_item){.number = p->chunk[order[i]].number};
    int rc = fetch(p, a, p->item, n, counts, &err);
    if (rc != CM_OK && n > 1) {
        for (size_t i = 0; i < n; i++)
            take_group(p, &order[i], 1, s, counts);
        return;
    }
    if (rc != CM_OK) { /* the array has named the chunk */
        counts->failed_chunks++;
        if (s->status == CM_OK) {
            cm_error_place(&err, a->place);
            cm_error_place(&err, p->in->store);
            s->status = rc;
            s->err = err;
        }
        return;
    }
    for (size_t i = 0; i < n; i++) {
        rc = take(p, &p->chunk[order[i]], &p->item[i], counts, &err);
        if (rc != CM_OK)
            fail_chunk(p, &p->chunk[order[i]], rc, s, &err, counts);
    }
}

static size_t group_of(const cm_packer *p, uint32_t array)
{
    const size_t most = p->in->group_nbytes != 0 ? p->in->group_nbytes : GROUP_NBYTES;
    const size_t each = p->proof->array[array].stored_nbytes;
    const size_t n = each > 0 ? most / each : GROUP_CHUNKS;
    return n < 1 ? 1 : n > GROUP_CHUNKS ? GROUP_CHUNKS : n;
}

static void take_chunks(cm_packer *p, batch_status *s, cm_load_counts *counts)
{
    for (size_t i = 0; i < p->nchunks; i++)
        p->order[i] = (uint32_t)i;
    if (p->nchunks > 1)
        qsort_r(p->order, p->nchunks, sizeof *p->order, by_place, p->chunk);
    for (size_t at = 0, n; at < p->nchunks; at += n) {
        const uint32_t array = p->chunk[p->order[at]].array;
        const size_t most = group_of(p, array);
        for (n = 1; n < most && at + n < p->nchunks; n++)
            if (p->chunk[p->order[at + n]].array != array)
                break;
        take_group(p, &p->order[at], n, s, counts);
    }
}

/* ---- boxes ---- */

/* What U's chunk has of its sample, to the sample's place in the batch. */
static int add_use(cm_packer *p, const cm_load_task *task, const use *u, cm_load_counts *counts,
                   cm_error *err)
{
    const packed *c = &p->chunk[u->chunk];
    const cm_array *a = p->in->array[c->array];
    const size_t itemsize = a->dtype.nbytes;
    uint64_t coord[CM_MAX_RANK], src_stride[CM_MAX_RANK], dst_stride[CM_MAX_RANK];
    uint64_t src_step = itemsize, dst_step = itemsize, src = c->place;
    uint64_t dst =
        cm_load_offset(p->in->part_nbytes, task->nbatch, u->part, task->piece[u->piece].place);
    cm_box sample, covered, shared;
    sample_box(p, task, u, &sample);
    cm_grid_coord(&a->grid, c->number, coord);
    cm_grid_box(&a->grid, coord, &covered);
    if (!cm_box_intersect(&covered, &sample, &shared))
        return CM_OK;
    for (unsigned j = a->rank; j-- > 0;) {
        src_stride[j] = c->present ? src_step : 0;
        dst_stride[j] = dst_step;
        if (c->present)
            src += (shared.start[j] - coord[j] * a->grid.chunk[j]) * src_step;
        dst += (shared.start[j] - sample.start[j]) * dst_step;
        src_step *= a->grid.chunk[j];
        dst_step *= sample.shape[j];
    }
    const uint64_t nbytes = cm_box_nelem(&shared) * itemsize;
    counts->chunks++;
    counts->logical_nbytes += nbytes;
    counts->missing_chunks += !c->present;
    counts->missing_nbytes += c->present ? 0 : nbytes;
    const cm_parcel_box box = {.src = src,
                               .dst = dst,
                               .rank = a->rank,
                               .shape = shared.shape,
                               .src_stride = src_stride,
                               .dst_stride = dst_stride,
                               .run_nbytes = itemsize};
    return cm_parcel_add_box(&p->w, &box, err);
}

/* What a clipped sample leaves of its place becomes zero. */
static int clear_rest(cm_packer *p, const cm_load_task *task, const use *u, cm_error *err)
{
    static const uint8_t zero;
    static const uint64_t nothing = 0, one = 1;
    const size_t whole = p->in->part_nbytes[u->part];
    cm_box box;
    int rc = CM_OK;
    sample_box(p, task, u, &box);
    const size_t nbytes =
        cm_box_nelem(&box) * p->in->array[p->in->part[u->part].array]->dtype.nbytes;
    if (nbytes > whole)
        return cm_fail(err, CM_EINTERNAL, "a sample is larger than its place");
    if (nbytes == whole)
        return CM_OK;
    if (p->zeros == 0)
        rc = cm_parcel_put(&p->w, &zero, 1, &p->zeros, err);
    const uint64_t left = whole - nbytes;
    const cm_parcel_box rest = {.src = p->zeros,
                                .dst =
                                    nbytes + cm_load_offset(p->in->part_nbytes, task->nbatch,
                                                            u->part, task->piece[u->piece].place),
                                .rank = 1,
                                .shape = &left,
                                .src_stride = &nothing,
                                .dst_stride = &one,
                                .run_nbytes = 1};
    return rc == CM_OK ? cm_parcel_add_box(&p->w, &rest, err) : rc;
}

static int add_boxes(cm_packer *p, const cm_load_task *task, cm_load_counts *counts, cm_error *err)
{
    int rc = CM_OK;
    for (size_t i = 0; i < p->nuses && rc == CM_OK; i++)
        rc = add_use(p, task, &p->use[i], counts, err);
    for (uint32_t i = 0; i < task->npieces && rc == CM_OK; i++)
        for (uint32_t part = 0; part < p->in->nparts && rc == CM_OK; part++)
            rc = clear_rest(p, task, &(use){.part = part, .piece = i}, err);
    return rc;
}

/* ---- a batch ---- */

int cm_packer_run(cm_packer *p, const cm_load_task *task, uint8_t *slot, size_t slot_nbytes,
                  cm_load_result *result, cm_error *err)
{
    cm_load_counts *counts = &result->counts;
    const uint64_t cpu_ns = cm_thread_cpu_ns();
    batch_status s = {.status = CM_OK};
    p->last_ns = cm_now_ns();
    cm_parcel_begin(&p->w, slot, slot_nbytes);
    memset(p->fill, 0, p->in->narrays * sizeof *p->fill);
    p->zeros = 0;
    int rc = find_chunks(p, task, err);
    if (rc == CM_OK) {
        stage(p, counts, CM_LOAD_ASSEMBLE);
        take_chunks(p, &s, counts);
        if ((rc = s.status) != CM_OK && err != NULL)
            *err = s.err;
    }
    if (rc == CM_OK)
        rc = add_boxes(p, task, counts, err);
    if (rc == CM_OK)
        rc =
            cm_parcel_end(&p->w, cm_load_offset(p->in->part_nbytes, task->nbatch, p->in->nparts, 0),
                          &result->nbytes, err);
    stage(p, counts, CM_LOAD_ASSEMBLE);
    counts->cpu_ns += cm_thread_cpu_ns() - cpu_ns;
    return rc;
}

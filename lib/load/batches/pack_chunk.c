/* The chunks of a batch: fetched, held against their proof, taken apart. */
#include <stdlib.h>
#include <string.h>

#include "base/cpu.h"
#include "codec/checksum.h"
#include "load/batches/pack_impl.h"
#include "model/copy.h"

enum {
    GROUP_NBYTES = 256 << 10 /* that a second-level cache holds */
};

/* ---- one chunk ---- */

static int decode(cm_packer *p, const cm_array *a, const cm_fetch_item *item, cm_error *err)
{
    int rc = cm_buf_reserve(&p->decoded, cm_chain_decoded_nbytes(a->chain), err);
    return rc == CM_OK ? cm_chain_decode(a->chain, p->ctx, item->data, item->nbytes, item->skip,
                                         p->decoded.data, err)
                       : rc;
}

/*
 * The stored bytes are those that the host has decoded.  Where chunks are proven as they are met it
 * decodes them now, also those that have changed since.
 */
static int prove(cm_packer *p, cm_proof_array *proof, const cm_array *a, const cm_fetch_item *item,
                 cm_error *err)
{
    cm_proof_chunk known;
    const bool is_known = cm_proof_find(proof, item->number, &known);
    const uint32_t crc = cm_crc32c(cm_cpu_simd(), item->data, item->nbytes);
    if (is_known && known.state == CM_PROOF_WHOLE && known.crc32c == crc)
        return CM_OK;
    if (!is_known && !p->proof->as_met)
        return cm_fail(err, CM_EINTERNAL, "it was not decoded before");
    if (item->nbytes > proof->most.stored_nbytes && p->proof->as_met)
        return cm_fail(
            err, CM_EUNSUPPORTED,
            "its %zu stored bytes are more than its elements need: decode it on the host",
            item->nbytes);
    int rc = decode(p, a, item, err); /* which has a sentence for what is damaged */
    if (rc == CM_OK && !p->proof->as_met)
        rc = cm_fail(err, CM_EFORMAT, "its stored bytes are not those that were decoded before");
    if (rc == CM_OK)
        cm_proof_keep(proof, item->number, crc);
    return rc;
}

/* A chunk in one piece that nothing was done to needs no decoding. */
static bool is_plain(const cm_chunk_streams *s)
{
    return s->typesize <= 1 && s->nstreams == 1 && s->stream[0].kind == CM_SPLIT_STORED;
}

static int pack_streams(cm_packer *p, const cm_packed *c, const uint8_t *stored, uint64_t raw,
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

/* NBYTES of the scratch where C's elements are to come to lie. */
static uint64_t find_room(cm_packer *p, const cm_packed *c, size_t nbytes)
{
    return c->frame != CM_CARRY_NO_FRAME ? CM_PARCEL_IN_SCRATCH | c->frame
                                         : cm_parcel_scratch(&p->w, nbytes);
}

static int pack_chunk(cm_packer *p, cm_packed *c, const uint8_t *stored, cm_error *err)
{
    const cm_chunk_streams *s = &p->split;
    if (is_plain(s) && c->frame == CM_CARRY_NO_FRAME)
        return cm_parcel_put(&p->w, stored + s->stream[0].src, s->nbytes, &c->place, err);
    const bool shuffled = s->typesize > 1;
    const uint64_t raw =
        shuffled ? cm_parcel_scratch(&p->w, s->nbytes) : find_room(p, c, s->nbytes);
    int rc = pack_streams(p, c, stored, raw, err);
    c->place = raw;
    if (rc != CM_OK || !shuffled)
        return rc;
    c->place = find_room(p, c, s->nbytes);
    const uint64_t out = c->place & ~CM_PARCEL_IN_SCRATCH;
    for (size_t at = 0; at < s->nbytes && rc == CM_OK; at += s->block_nbytes) {
        const size_t left = s->nbytes - at;
        rc = cm_parcel_add_shuffled(&p->w, raw + at, out + at, s->typesize,
                                    left < s->block_nbytes ? left : s->block_nbytes, err);
    }
    return rc;
}

/* The fill value as it would be stored, for what is not: all of a frame, or once for boxes. */
static int place_fill(cm_packer *p, cm_packed *c, cm_error *err)
{
    uint8_t value[CM_PACK_VALUE_NBYTES] = {0};
    const cm_array *a = p->in->array[c->array];
    const size_t each = a->dtype.nbytes;
    const uint32_t swap = cm_chain_split_swap(a->chain);
    int rc = CM_OK;
    if (a->fill != NULL)
        memcpy(value, a->fill, each);
    if (swap > 1)
        cm_swap_bytes(value, value, each / swap, swap);
    if (p->fill[c->array] == 0)
        rc = cm_parcel_put(&p->w, value, each, &p->fill[c->array], err);
    c->place = p->fill[c->array];
    if (rc != CM_OK || c->frame == CM_CARRY_NO_FRAME)
        return rc;
    const uint64_t n = cm_chain_decoded_nbytes(a->chain) / each;
    rc = cm_parcel_add_repeated(&p->w, c->place, c->frame, each, n, err);
    c->place = CM_PARCEL_IN_SCRATCH | c->frame;
    c->present = true; /* a chunk like any other from here on */
    return rc;
}

/* What was fetched of C. */
static int take(cm_packer *p, cm_packed *c, const cm_fetch_item *item, cm_load_counts *counts,
                cm_error *err)
{
    cm_array *a = p->in->array[c->array];
    cm_proof_array *proof = &p->proof->array[c->array];
    cm_proof_chunk known;
    c->present = item->present;
    if (c->carried != NULL)
        c->carried->missing = !item->present;
    if (!item->present) {
        const bool is_known = cm_proof_find(proof, c->number, &known);
        if (!p->proof->as_met && !is_known)
            return cm_fail(err, CM_EINTERNAL, "it was not decoded before");
        return p->proof->as_met || known.state == CM_PROOF_MISSING
                   ? place_fill(p, c, err)
                   : cm_fail(err, CM_EFORMAT, "it is gone since it was decoded before");
    }
    int rc = prove(p, proof, a, item, err);
    if (rc == CM_OK)
        rc = cm_chain_split(a->chain, item->data, item->nbytes, item->skip, &p->split, err);
    cm_pack_stage(p, counts, CM_LOAD_DECODE);
    if (rc == CM_OK)
        rc = pack_chunk(p, c, item->data, err);
    cm_pack_stage(p, counts, CM_LOAD_ASSEMBLE);
    counts->decoded++;
    counts->decoded_nbytes += cm_chain_decoded_nbytes(a->chain);
    return rc;
}

/* ---- fetching ---- */

typedef struct batch_status {
    int status; /* of the first chunk that failed */
    cm_error err;
} batch_status;

/* A chunk that other batches need too fails by itself, but for what fails all of them. */
static void fail_chunk(const cm_packed *c, int rc, batch_status *s, const cm_error *err,
                       cm_load_counts *counts)
{
    counts->failed_chunks++;
    if (c->carried != NULL && rc != CM_ENOMEM && rc != CM_EINTERNAL)
        cm_carry_fail(c->carried, rc, err->text);
    else if (s->status == CM_OK) {
        s->status = rc;
        s->err = *err;
    }
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
    cm_pack_stage(p, counts, CM_LOAD_STORAGE);
    return rc;
}

static void place(const cm_packer *p, const cm_array *a, cm_error *err)
{
    cm_error_place(err, a->place);
    cm_error_place(err, p->in->store);
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
        place(p, a, &err);
        fail_chunk(&p->chunk[order[0]], rc, s, &err, counts);
        return;
    }
    for (size_t i = 0; i < n; i++) {
        cm_packed *c = &p->chunk[order[i]];
        rc = take(p, c, &p->item[i], counts, &err);
        if (rc != CM_OK) {
            cm_grid_explain(&a->grid, c->number, "array", a->name, &err);
            place(p, a, &err);
            fail_chunk(c, rc, s, &err, counts);
        }
    }
}

static size_t group_of(const cm_packer *p, uint32_t array)
{
    const size_t most = p->in->group_nbytes != 0 ? p->in->group_nbytes : GROUP_NBYTES;
    const size_t each = p->proof->array[array].most.stored_nbytes;
    const size_t n = each > 0 ? most / each : CM_PACK_GROUP;
    return n < 1 ? 1 : n > CM_PACK_GROUP ? CM_PACK_GROUP : n;
}

static int by_place(const void *x, const void *y, void *context)
{
    const cm_packed *chunk = context;
    const cm_packed *a = &chunk[*(const uint32_t *)x], *b = &chunk[*(const uint32_t *)y];
    if (a->array != b->array)
        return a->array < b->array ? -1 : 1;
    return a->number < b->number ? -1 : a->number > b->number;
}

int cm_pack_chunks(cm_packer *p, cm_load_counts *counts, cm_error *err)
{
    batch_status s = {.status = CM_OK};
    size_t ntravel = 0;
    for (size_t i = 0; i < p->nchunks; i++)
        if (p->chunk[i].travels)
            p->order[ntravel++] = (uint32_t)i;
    if (ntravel > 1)
        qsort_r(p->order, ntravel, sizeof *p->order, by_place, p->chunk);
    for (size_t at = 0, n; at < ntravel; at += n) {
        const uint32_t array = p->chunk[p->order[at]].array;
        const size_t most = group_of(p, array);
        for (n = 1; n < most && at + n < ntravel; n++)
            if (p->chunk[p->order[at + n]].array != array)
                break;
        take_group(p, &p->order[at], n, &s, counts);
    }
    if (s.status != CM_OK && err != NULL)
        *err = s.err;
    return s.status;
}

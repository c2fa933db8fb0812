/* A place in an epoch, as bytes: 64 of them, little-endian. */
#include <string.h>

#include "base/cpu.h"
#include "codec/checksum.h"
#include "load/loader_impl.h"

enum {
    MAGIC = 0x504c4d43, /* "CMLP" */
    LAYOUT = 1,
    CHECKED = 52, /* bytes before the checksum */
    BLOCKS = 2,   /* how the planned loader orders samples */
    ORIGIN = 1    /* mark of a dimension in which samples begin later */
};

/* FNV-1a. */
static uint64_t mix(uint64_t hash, const void *data, size_t nbytes)
{
    const uint8_t *p = data;
    for (size_t i = 0; i < nbytes; i++)
        hash = (hash ^ p[i]) * UINT64_C(0x100000001b3);
    return hash;
}

static uint64_t mix_u64(uint64_t hash, uint64_t n)
{
    uint8_t le[8];
    cm_store_le64(le, n);
    return mix(hash, le, sizeof le);
}

/* Along dimension D, before element END. */
static uint64_t mix_chunks(uint64_t hash, const cm_grid *grid, unsigned d, uint64_t end)
{
    const cm_cuts *cuts = grid->cuts[d];
    hash = mix_u64(hash, grid->chunk[d]);
    for (size_t i = 0; cuts != NULL && i < cuts->nruns && cuts->run[i].first < end; i++) {
        hash = mix_u64(hash, cuts->run[i].first);
        hash = mix_u64(hash, cuts->run[i].length);
    }
    return hash;
}

/* Of dimensions that samples lie in only the elements used: a store may grow behind these. */
static uint64_t mix_part(uint64_t hash, const cm_load_run *run, size_t number)
{
    const cm_sample_space *s = &run->shared.space.space;
    const cm_sample_part *p = &run->shared.space.part[number];
    const cm_array *a = run->shared.data.array[p->array];
    hash = mix(hash, a->name, strlen(a->name) + 1);
    hash = mix_u64(hash, (uint64_t)run->shared.space.lag[number]);
    for (unsigned d = 0; d < p->rank; d++) {
        const int j = p->axis[d];
        const uint64_t used = j >= 0 ? s->length[j] : p->shape[d];
        hash = mix_u64(hash, (uint64_t)(int64_t)j);
        hash = mix_u64(hash, used);
        if (run->setting.planned) /* whose order follows the chunks */
            hash = mix_chunks(hash, &a->grid, d, j >= 0 ? s->origin[j] + used : used);
    }
    return hash;
}

uint64_t cm_loader_fingerprint(const cm_load_run *run)
{
    const cm_sample_space *s = &run->shared.space.space;
    const cm_epoch_share *share = &run->rank[0].share;
    const uint64_t numbers[] = {s->order,
                                s->parameter,
                                s->seed,
                                s->reach,
                                share->nsamples,
                                share->world,
                                share->rank,
                                share->batch,
                                share->drop_last,
                                s->rank,
                                run->setting.planned ? BLOCKS : 0,
                                run->shared.space.nparts};
    uint64_t hash = UINT64_C(0xcbf29ce484222325);
    for (size_t i = 0; i < sizeof numbers / sizeof *numbers; i++)
        hash = mix_u64(hash, numbers[i]);
    if (s->reach != 0 && s->lagged != 0) /* else as positions were that knew of none */
        hash = mix_u64(hash, s->lagged);
    for (unsigned d = 0; d < s->rank; d++) {
        hash = mix_u64(hash, s->length[d]);
        hash = mix_u64(hash, s->sample[d]);
        if (s->origin[d] != 0) /* else as positions were that knew of none */
            hash = mix_u64(mix_u64(hash, ORIGIN), s->origin[d]);
    }
    for (size_t p = 0; p < run->shared.space.nparts; p++)
        hash = mix_part(hash, run, p);
    return hash;
}

void cm_loader_place_write(const cm_loader_place *place, cm_loader_position *out)
{
    uint8_t *p = out->bytes;
    memset(out, 0, sizeof *out);
    cm_store_le32(p, MAGIC);
    cm_store_le32(p + 4, LAYOUT);
    cm_store_le64(p + 8, place->fingerprint);
    cm_store_le64(p + 16, place->epoch);
    cm_store_le64(p + 24, place->batch);
    cm_store_le64(p + 32, place->shape.window);
    for (unsigned j = 0; j < CM_BLOCKS_MAX_GROWING; j++) /* four bits each */
        p[40 + j / 2] |= (uint8_t)(place->shape.grown[j] << j % 2 * 4);
    cm_store_le32(p + CHECKED, cm_crc32c(cm_cpu_simd(), p, CHECKED));
}

int cm_loader_place_read(const cm_loader_position *position, cm_loader_place *out, cm_error *err)
{
    const uint8_t *p = position->bytes;
    if (cm_load_le32(p) != MAGIC || cm_load_le32(p + 4) != LAYOUT ||
        cm_load_le32(p + CHECKED) != cm_crc32c(cm_cpu_simd(), p, CHECKED))
        return cm_fail(err, CM_EINVAL, "the position is not one that a loader saved");
    *out = (cm_loader_place){.fingerprint = cm_load_le64(p + 8),
                             .epoch = cm_load_le64(p + 16),
                             .batch = cm_load_le64(p + 24),
                             .shape = {.window = cm_load_le64(p + 32)}};
    for (unsigned j = 0; j < CM_BLOCKS_MAX_GROWING; j++)
        out->shape.grown[j] = p[40 + j / 2] >> j % 2 * 4 & 15;
    return CM_OK;
}

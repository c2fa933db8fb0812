/*
 * Preparing a chain: the order of its codecs, and the size of everything that
 * will flow between them.
 */
#include <stdlib.h>
#include <string.h>

#include "base/number.h"
#include "codec/impl.h"

/* Copies SPECS, with `bytes` added where the list has no array->bytes codec. */
static int copy_with_bytes(const cm_codec_spec *specs, size_t n, bool is_vlen, cm_chain *chain,
                           cm_error *err)
{
    size_t at = 0;
    while (at < n && cm_codec_class_of(specs[at].id) == CM_CODEC_ARRAY_ARRAY)
        at++;
    bool add = at == n || cm_codec_class_of(specs[at].id) != CM_CODEC_ARRAY_BYTES;
    if (add && is_vlen) {
        return cm_fail(err, CM_EFORMAT,
                       "elements of variable length without a codec that stores them (vlen-utf8)");
    }
    if (!add) {
        chain->nsteps = n;
        return cm_codec_specs_copy(specs, n, &chain->specs, err);
    }
    cm_codec_spec *longer = cm_calloc(n + 1, sizeof *longer, err);
    if (longer == NULL)
        return CM_ENOMEM;
    if (at > 0)
        memcpy(longer, specs, at * sizeof *longer);
    longer[at].id = CM_CODEC_BYTES;
    if (n > at)
        memcpy(longer + at + 1, specs + at, (n - at) * sizeof *longer);
    chain->nsteps = n + 1;
    int rc = cm_codec_specs_copy(longer, n + 1, &chain->specs, err);
    free(longer);
    return rc;
}

/* Exactly one array->bytes codec, array->array in front of it, bytes->bytes after it. */
static int check_order(cm_chain *chain, cm_error *err)
{
    bool after = false; /* the array->bytes codec was there */
    for (size_t i = 0; i < chain->nsteps; i++) {
        const cm_codec_ops *ops = cm_codec_ops_of(chain->specs[i].id);
        if (ops == NULL)
            return cm_fail(err, CM_EINVAL, "codec number %d is not known", (int)chain->specs[i].id);
        if (after != (ops->kind == CM_CODEC_BYTES_BYTES)) {
            return cm_fail(err, CM_EFORMAT, "codec %s is out of place at position %zu", ops->name,
                           i);
        }
        if (ops->kind == CM_CODEC_ARRAY_BYTES) {
            chain->nfirst = i + 1;
            after = true;
        }
    }
    return CM_OK;
}

/*
 * The fill value as it enters the array->bytes codec: the array->array codecs
 * encode it too (sharding-indexed and scale_offset say so).  They work element
 * by element, or start with the first as it is (delta), so an array of rank 0
 * goes through them, which `transpose` leaves alone.
 */
static int prepare_fill(cm_chain *chain, const cm_dtype *type, const uint8_t *fill, cm_error *err)
{
    cm_chain *one = NULL;
    cm_codec_ctx *ctx = NULL;
    int rc =
        cm_chain_create_filled(chain->specs, chain->nfirst - 1, type, 0, NULL, NULL, &one, err);
    if (rc == CM_OK) {
        ctx = cm_codec_ctx_create(err);
        chain->fill = cm_calloc(1, one->encoded_bound + 1, err);
        rc = ctx != NULL && chain->fill != NULL ? CM_OK : CM_ENOMEM;
    }
    if (rc == CM_OK) {
        size_t nbytes;
        rc = cm_chain_encode(one, ctx, fill, chain->fill, &nbytes, err);
    }
    cm_codec_ctx_free(ctx);
    cm_chain_free(one);
    if (rc != CM_OK)
        cm_error_prefix(err, "fill value");
    return rc;
}

static int prepare_step(cm_chain *chain, size_t i, cm_error *err)
{
    cm_codec_step *step = &chain->step[i];
    const cm_codec_ops *ops = step->ops;
    step->decode_is_view = ops->decode == NULL;
    if (ops->kind == CM_CODEC_BYTES_BYTES) {
        step->in_bound = step[-1].out_bound;
        step->in = step[-1].in;
        step->varying = step[-1].varying;
    } else {
        step->in_bound = cm_dtype_is_vlen(&step->in.type) ? CM_CODEC_UNBOUNDED : step->in.nbytes;
        step->fill = chain->fill;
    }
    int rc = ops->prepare != NULL ? ops->prepare(step, err) : CM_OK;
    if (rc != CM_OK)
        return rc;
    if (ops->kind == CM_CODEC_ARRAY_ARRAY) {
        step->out_bound = step->out.nbytes;
        step[1].in = step->out;
    } else if (ops->kind == CM_CODEC_BYTES_BYTES) {
        if (step->in_bound == CM_CODEC_UNBOUNDED)
            step->out_bound = CM_CODEC_UNBOUNDED;
        else if (!ops->bound(step, step->in_bound, &step->out_bound))
            return cm_fail(err, CM_EBUDGET, "encoded chunks may be too large to address");
    }
    return CM_OK;
}

static size_t add_memory(size_t a, size_t b)
{
    size_t sum;
    return cm_add_size(a, b, &sum) ? sum : SIZE_MAX;
}

/* Which step writes where, how large the scratch between them gets, and what it all comes to. */
static void place(cm_chain *chain)
{
    size_t nwriters = 0;
    chain->encode_target = chain->nsteps;
    for (size_t i = 0; i < chain->nsteps; i++) {
        cm_codec_step *step = &chain->step[i];
        step->encode_writes = !step->encode_is_view && (!step->encode_appends || nwriters == 0);
        if (step->encode_writes) {
            nwriters++;
            chain->encode_target = i;
        }
    }
    size_t target = cm_chain_decode_target(chain, 0);
    size_t ndecode = 0, nencode = 0;
    /* The context itself, and its four buffers, each rounded up to a line of the cache. */
    chain->decode_memory = chain->encode_memory = sizeof(cm_codec_ctx) + 4 * 64;
    for (size_t i = 0; i < chain->nsteps; i++) {
        const cm_codec_step *step = &chain->step[i];
        chain->decode_memory = add_memory(chain->decode_memory, step->decode_memory);
        chain->encode_memory = add_memory(chain->encode_memory, step->encode_memory);
        if (step->in_bound == CM_CODEC_UNBOUNDED)
            continue; /* the scratch grows with what comes, within the caller's limit */
        if (!step->decode_is_view && i != target) {
            ndecode++;
            chain->decode_scratch = cm_max_u64(chain->decode_scratch, step->in_bound);
        }
        if (step->encode_writes && i != chain->encode_target)
            nencode++;
        chain->encode_scratch = cm_max_u64(chain->encode_scratch, step->out_bound);
    }
    for (size_t i = 0; i < 2; i++) {
        chain->decode_memory =
            add_memory(chain->decode_memory, i < ndecode ? chain->decode_scratch : 0);
        chain->encode_memory =
            add_memory(chain->encode_memory, i < nencode ? chain->encode_scratch : 0);
    }
}

int cm_chain_create_filled(const cm_codec_spec *specs, size_t nspecs, const cm_dtype *type,
                           unsigned rank, const uint64_t *shape, const uint8_t *fill,
                           cm_chain **out, cm_error *err)
{
    *out = NULL;
    cm_chain *chain = cm_calloc(1, sizeof *chain, err);
    if (chain == NULL)
        return CM_ENOMEM;
    cm_codec_array array;
    int rc = cm_codec_array_init(&array, type, rank, shape, err);
    if (rc == CM_OK)
        rc = copy_with_bytes(specs, nspecs, cm_dtype_is_vlen(type), chain, err);
    if (rc == CM_OK)
        rc = check_order(chain, err);
    if (rc == CM_OK) {
        chain->step = cm_calloc(chain->nsteps, sizeof *chain->step, err);
        rc = chain->step != NULL ? CM_OK : CM_ENOMEM;
    }
    if (rc == CM_OK && fill != NULL && chain->specs[chain->nfirst - 1].id == CM_CODEC_SHARDING)
        rc = prepare_fill(chain, type, fill, err);
    if (rc != CM_OK)
        goto out;
    chain->decoded_nbytes = array.nbytes;
    chain->step[0].in = array;
    for (size_t i = 0; i < chain->nsteps; i++) {
        chain->step[i].ops = cm_codec_ops_of(chain->specs[i].id);
        chain->step[i].spec = &chain->specs[i];
        chain->step[i].simd = cm_cpu_simd();
        rc = prepare_step(chain, i, err);
        if (rc != CM_OK) {
            cm_error_prefix(err, "codec %s", chain->step[i].ops->name);
            goto out;
        }
    }
    size_t bound = chain->step[chain->nsteps - 1].out_bound;
    chain->encoded_bound = bound == CM_CODEC_UNBOUNDED ? 0 : bound;
    place(chain);
    *out = chain;
    chain = NULL;
out:
    cm_chain_free(chain);
    return rc;
}

int cm_chain_create(const cm_codec_spec *specs, size_t nspecs, const cm_dtype *type, unsigned rank,
                    const uint64_t *shape, cm_chain **out, cm_error *err)
{
    const uint8_t *fill = NULL;
    for (size_t i = 0; i < nspecs && fill == NULL; i++) {
        if (specs[i].shard != NULL && specs[i].shard->fill != NULL) {
            fill = specs[i].shard->fill;
            if (specs[i].shard->fill_nbytes != type->nbytes) {
                return cm_fail(err, CM_EINVAL,
                               "codec sharding_indexed: a fill value of %zu bytes, elements of %u",
                               specs[i].shard->fill_nbytes, type->nbytes);
            }
        }
    }
    return cm_chain_create_filled(specs, nspecs, type, rank, shape, fill, out, err);
}

void cm_chain_free(cm_chain *chain)
{
    if (chain == NULL)
        return;
    for (size_t i = 0; chain->step != NULL && i < chain->nsteps; i++) {
        const cm_codec_ops *ops = chain->step[i].ops;
        if (ops != NULL && ops->release != NULL)
            ops->release(&chain->step[i]);
    }
    free(chain->step);
    free(chain->fill);
    cm_codec_specs_free(chain->specs, chain->nsteps);
    free(chain);
}

bool cm_chain_same_codecs(const cm_chain *a, const cm_chain *b)
{
    if (a->nsteps != b->nsteps || !cm_dtype_equal(&a->step[0].in.type, &b->step[0].in.type))
        return false;
    for (size_t i = 0; i < a->nsteps; i++) {
        const cm_codec_spec *x = &a->specs[i], *y = &b->specs[i];
        if (x->cast != NULL || x->shard != NULL || memcmp(x, y, sizeof(*x)) != 0)
            return false;
    }
    return true;
}

size_t cm_chain_decoded_nbytes(const cm_chain *chain)
{
    return chain->decoded_nbytes;
}

size_t cm_chain_encoded_bound(const cm_chain *chain)
{
    return chain->encoded_bound;
}

size_t cm_chain_decode_memory(const cm_chain *chain)
{
    return chain->decode_memory;
}

size_t cm_chain_encode_memory(const cm_chain *chain)
{
    return chain->encode_memory;
}

bool cm_chain_is_raw(const cm_chain *chain)
{
    return chain->nsteps == 1 && chain->step[0].ops == &cm_bytes_ops &&
           chain->step[0].decode_is_view;
}

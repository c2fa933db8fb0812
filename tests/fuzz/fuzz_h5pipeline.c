/*
 * HDF5 filter pipelines with any numbers as their parameters: refused, or a chain that
 * refuses or decodes chunks of hostile bytes, and decodes what it encodes.
 */
#include "format/nc/h5_pipeline.h"
#include "fuzz.h"

enum {
    MAX_VALUES = 10,
    MAX_FILTERS = 4
};

static hid_t pipeline;

int LLVMFuzzerInitialize(int *argc, char ***argv)
{
    (void)argc;
    (void)argv;
    H5open();
    H5Eset_auto2(H5E_DEFAULT, NULL, NULL);
    pipeline = H5Pcreate(H5P_DATASET_CREATE);
    REQUIRE(pipeline >= 0);
    return 0;
}

/* Optional filters need not be known to HDF5. */
static void add_filters(fuzz_input *in)
{
    static const int ids[] = {1, 2, 3, 4, 307, 32000, 32001, 32004, 32008, 32015, 5, 32013};
    size_t n = fuzz_number(in, 1) % (MAX_FILTERS + 1);
    for (size_t i = 0; i < n; i++) {
        unsigned value[MAX_VALUES];
        size_t nvalues = fuzz_number(in, 1), wide = nvalues & 16;
        int id = ids[fuzz_number(in, 1) % (sizeof ids / sizeof *ids)];
        nvalues = (nvalues & 15) % (MAX_VALUES + 1);
        for (size_t k = 0; k < nvalues; k++)
            value[k] = (unsigned)fuzz_number(in, wide ? 4 : 1);
        (void)H5Pset_filter(pipeline, id, H5Z_FLAG_OPTIONAL, nvalues, value);
    }
}

static void check_chain(const cm_chain *chain, fuzz_input *in)
{
    size_t nbytes = cm_chain_decoded_nbytes(chain), n = 0;
    cm_codec_ctx *ctx = cm_codec_ctx_create(NULL);
    uint8_t *src = fuzz_copy(in->data, in->nbytes), *dst = calloc(1, nbytes);
    cm_error err;
    REQUIRE(ctx != NULL && dst != NULL);
    (void)cm_chain_decode(chain, ctx, src, in->nbytes, 0, dst, &err);
    if (cm_chain_can_encode(chain, &err) == CM_OK) {
        memset(dst, 7, nbytes);
        memcpy(dst, src, in->nbytes < nbytes ? in->nbytes : nbytes);
        uint8_t *encoded = malloc(cm_chain_encoded_bound(chain)), *back = malloc(nbytes);
        REQUIRE(encoded != NULL && back != NULL);
        if (cm_chain_encode(chain, ctx, dst, encoded, &n, &err) == CM_OK) {
            REQUIRE(n <= cm_chain_encoded_bound(chain));
            REQUIRE(cm_chain_decode(chain, ctx, encoded, n, 0, back, &err) == CM_OK);
            REQUIRE(memcmp(dst, back, nbytes) == 0);
        }
        free(encoded);
        free(back);
    }
    free(src);
    free(dst);
    cm_codec_ctx_free(ctx);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t nbytes)
{
    static const cm_dtype types[] = {{.kind = CM_KIND_FLOAT, .nbytes = 4},
                                     {.kind = CM_KIND_INT, .nbytes = 2},
                                     {.kind = CM_KIND_UINT, .nbytes = 1},
                                     {.kind = CM_KIND_FLOAT, .nbytes = 8}};
    static const uint64_t shape[] = {6, 11};
    fuzz_input in = {data, nbytes};
    const uint8_t choice = (uint8_t)fuzz_number(&in, 1);
    const cm_dtype *type = &types[choice & 3];
    cm_codec_spec *specs;
    size_t n;
    cm_chain *chain;
    cm_error err;
    (void)H5Premove_filter(pipeline, H5Z_FILTER_ALL);
    add_filters(&in);
    if (cm_h5_pipeline(pipeline, type, choice & 4, &specs, &n, &err) != CM_OK)
        return 0;
    REQUIRE(n == (size_t)H5Pget_nfilters(pipeline) + 1);
    if (cm_chain_create(specs, n, type, 2, shape, &chain, &err) == CM_OK) {
        REQUIRE(cm_chain_decoded_nbytes(chain) == 66 * type->nbytes);
        check_chain(chain, &in);
        cm_chain_free(chain);
    }
    cm_codec_specs_free(specs, n);
    return 0;
}

/*
 * numcodecs' own vectors: what others encoded decodes to the same arrays here.
 *
 * CHUNKMILL_DATA names the folder that holds codecs/; without it, ../shared/data.
 */
#include <dirent.h>
#include <math.h>
#include <stdio.h>
#include <sys/stat.h>

#include "../../support/npy.h"
#include "../unit.h"
#include "base/json.h"
#include "codec/codec.h"

static const struct codec_id {
    const char *name;
    cm_codec_id id;
    bool repeatable; /* encoding gives the very same bytes */
} ids[] = {
    {"blosc", CM_CODEC_BLOSC, false},
    {"bz2", CM_CODEC_BZ2, false},
    {"crc32c", CM_CODEC_CRC32C, true},
    {"delta", CM_CODEC_DELTA, true},
    {"fixedscaleoffset", CM_CODEC_FIXEDSCALEOFFSET, true},
    {"gzip", CM_CODEC_GZIP, false},
    {"lz4", CM_CODEC_LZ4, false},
    {"shuffle", CM_CODEC_SHUFFLE, true},
    {"zlib", CM_CODEC_ZLIB, false},
    {"zstd", CM_CODEC_ZSTD, false},
};

static char root[3000];
static unsigned nchecked;

/* "<f8", "|b1", "|S3", "<M8[ns]": little-endian or of single bytes. */
static cm_dtype numpy_type(const char *descr)
{
    static const struct {
        char letter;
        cm_kind kind;
    } kinds[] = {{'b', CM_KIND_BOOL},  {'i', CM_KIND_INT},      {'u', CM_KIND_UINT},
                 {'f', CM_KIND_FLOAT}, {'c', CM_KIND_COMPLEX},  {'S', CM_KIND_BYTES},
                 {'V', CM_KIND_RAW},   {'M', CM_KIND_DATETIME}, {'m', CM_KIND_TIMEDELTA}};
    assert_true(descr[0] == '<' || descr[0] == '|');
    for (size_t i = 0; i < sizeof kinds / sizeof kinds[0]; i++)
        if (kinds[i].letter == descr[1])
            return cm_dtype_make(kinds[i].kind, (uint32_t)strtoul(descr + 2, NULL, 10));
    fail_msg("type %s", descr);
    return cm_dtype_make(CM_KIND_RAW, 1);
}

static double number(const cm_json *config, const char *name)
{
    double v = 0;
    (void)cm_json_get_double(cm_json_member(config, name), &v);
    return v;
}

static cm_codec_spec read_config(const char *folder, bool *repeatable)
{
    char path[4200];
    uint8_t *text;
    size_t nbytes;
    cm_error err = {0};
    cm_json *config = NULL;
    snprintf(path, sizeof path, "%s/config.json", folder);
    if (cm_read_file(path, &text, &nbytes, &err) || cm_json_parse(text, nbytes, &config, &err))
        fail_msg("%s", err.text);
    free(text);
    const char *id = cm_json_text(cm_json_member(config, "id"), NULL);
    cm_codec_spec spec = {0};
    for (size_t i = 0; i < sizeof ids / sizeof ids[0]; i++) {
        if (id && strcmp(id, ids[i].name) == 0) {
            spec.id = ids[i].id;
            *repeatable = ids[i].repeatable;
        }
    }
    assert_int_not_equal(spec.id, CM_CODEC_NONE);
    spec.level = (int)number(config, spec.id == CM_CODEC_BLOSC ? "clevel"
                                     : spec.id == CM_CODEC_LZ4 ? "acceleration"
                                                               : "level");
    (void)cm_json_get_bool(cm_json_member(config, "checksum"), &spec.checksum);
    spec.elementsize = (uint32_t)number(config, "elementsize");
    spec.scale = number(config, "scale");
    spec.offset = number(config, "offset");
    spec.blosc.shuffle = (cm_blosc_shuffle)number(config, "shuffle");
    spec.blosc.blocksize = (uint32_t)number(config, "blocksize");
    const char *cname = cm_json_text(cm_json_member(config, "cname"), NULL);
    snprintf(spec.blosc.cname, sizeof spec.blosc.cname, "%s", cname ? cname : "");
    if (cm_json_has(config, "dtype")) {
        spec.dtype = numpy_type(cm_json_text(cm_json_member(config, "dtype"), NULL));
        spec.astype = numpy_type(cm_json_text(cm_json_member(config, "astype"), NULL));
    }
    cm_json_free(config);
    return spec;
}

static void compare(const cm_codec_spec *spec, const cm_npy *npy, const uint8_t *decoded,
                    const char *path)
{
    size_t nbytes = npy->nelem * npy->itemsize;
    if (spec->id != CM_CODEC_FIXEDSCALEOFFSET) {
        if (memcmp(decoded, npy->data, nbytes) != 0)
            fail_msg("%s: other values", path);
        return;
    }
    for (uint64_t i = 0; i < npy->nelem; i++) {
        double want, have;
        memcpy(&want, npy->data + 8 * i, 8);
        memcpy(&have, decoded + 8 * i, 8);
        if (!(fabs(want - have) <= 0.5 / spec->scale + 1e-12 * fabs(want)))
            fail_msg("%s: element %llu is %.17g, not %.17g", path, (unsigned long long)i, have,
                     want);
    }
}

static void check_vector(const cm_codec_spec *spec, bool repeatable, const cm_npy *npy,
                         const char *path)
{
    cm_error err = {0};
    uint8_t *encoded;
    size_t nbytes;
    if (cm_read_file(path, &encoded, &nbytes, &err))
        fail_msg("%s", err.text);
    cm_dtype type = numpy_type(npy->descr);
    cm_chain *chain = NULL;
    cm_codec_ctx *ctx = cm_codec_ctx_create(&err);
    /* numcodecs flattens an array in the order in which it lies, C or Fortran. */
    if (!ctx || cm_chain_create(spec, 1, &type, 1, &npy->nelem, &chain, &err))
        fail_msg("%s: %s", path, err.text);
    uint8_t *decoded = malloc(cm_chain_decoded_nbytes(chain));
    if (cm_chain_decode(chain, ctx, encoded, nbytes, 0, decoded, &err))
        fail_msg("%s: %s", path, err.text);
    compare(spec, npy, decoded, path);

    uint8_t *again = malloc(cm_chain_encoded_bound(chain));
    size_t n;
    if (cm_chain_encode(chain, ctx, npy->data, again, &n, &err))
        fail_msg("%s: %s", path, err.text);
    if (repeatable && (n != nbytes || memcmp(again, encoded, n) != 0))
        fail_msg("%s: encoded otherwise", path);
    if (cm_chain_decode(chain, ctx, again, n, 0, decoded, &err))
        fail_msg("%s: %s", path, err.text);
    compare(spec, npy, decoded, path);
    free(again);
    free(decoded);
    free(encoded);
    cm_chain_free(chain);
    cm_codec_ctx_free(ctx);
    nchecked++;
}

/* Every array.NN.npy of FOLDER with every codec.MM/encoded.NN.dat. */
static void check_folder(const char *folder)
{
    for (unsigned m = 0; m < 100; m++) {
        char path[4096];
        struct stat st;
        snprintf(path, sizeof path, "%s/codec.%02u", folder, m);
        if (stat(path, &st))
            return;
        bool repeatable = false;
        cm_codec_spec spec = read_config(path, &repeatable);
        for (unsigned n = 0; n < 100; n++) {
            cm_error err = {0};
            cm_npy npy;
            snprintf(path, sizeof path, "%s/array.%02u.npy", folder, n);
            if (stat(path, &st))
                break;
            if (cm_npy_read(path, &npy, &err))
                fail_msg("%s", err.text);
            snprintf(path, sizeof path, "%s/codec.%02u/encoded.%02u.dat", folder, m, n);
            check_vector(&spec, repeatable, &npy, path);
            cm_npy_release(&npy);
        }
    }
}

static void test_codec(void **state)
{
    const struct codec_id *codec = *state;
    char folder[3100];
    struct stat st;
    snprintf(folder, sizeof folder, "%s/codecs", root);
    if (stat(folder, &st)) {
        print_message("no vectors in %s\n", folder);
        skip();
    }
    nchecked = 0;
    snprintf(folder, sizeof folder, "%s/codecs/%s", root, codec->name);
    check_folder(folder);
    DIR *d = opendir(folder);
    assert_non_null(d);
    for (struct dirent *e; (e = readdir(d));) { /* delta's are one level down, by type */
        char below[3400];
        snprintf(below, sizeof below, "%s/%s", folder, e->d_name);
        if (e->d_name[0] != '.' && strncmp(e->d_name, "codec.", 6) != 0 && !stat(below, &st) &&
            S_ISDIR(st.st_mode))
            check_folder(below);
    }
    closedir(d);
    assert_true(nchecked > 0);
}

int main(void)
{
    const char *data = getenv("CHUNKMILL_DATA");
    snprintf(root, sizeof root, "%s", data && *data ? data : "../shared/data");
    struct CMUnitTest tests[sizeof ids / sizeof ids[0]];
    for (size_t i = 0; i < sizeof ids / sizeof ids[0]; i++)
        tests[i] = (struct CMUnitTest){.name = ids[i].name,
                                       .test_func = test_codec,
                                       .initial_state = (void *)(uintptr_t)&ids[i]};
    return cmocka_run_group_tests_name("codec vectors", tests, NULL, NULL);
}

#include "gpu/nvcomp.h"

#include <dlfcn.h>
#include <stdio.h>
#include <string.h>

const char *const cm_nvcomp_names[CM_PARCEL_NCODECS] = {"zstd", "lz4", "deflate"};

static const nvcomp_options options = {.backend = NVCOMP_BACKEND_CUDA};

/* Of the wheel the name has the major version; a system may have the plain one too. */
static void *open_system(void)
{
    static const char *const names[] = {"libnvcomp.so.6", "libnvcomp.so.5", "libnvcomp.so"};
    void *library = NULL;
    for (size_t i = 0; i < sizeof names / sizeof *names && library == NULL; i++)
        library = dlopen(names[i], RTLD_NOW | RTLD_LOCAL | RTLD_NODELETE);
    return library;
}

static bool find(void *library, const char *codec, const char *what, void *function)
{
    char symbol[96];
    snprintf(symbol, sizeof symbol, "nvcompBatched%sDecompress%s", codec, what);
    void *const found = dlsym(library, symbol);
    memcpy(function, &found, sizeof found);
    return found != NULL;
}

/* Streams lie at multiples of CM_PARCEL_ALIGN, and what they become anywhere. */
static int check_alignments(const nvcomp *n, int codec, cm_error *err)
{
    nvcomp_alignments a = {0};
    const int status = n->codec[codec].get_alignments(options, &a);
    if (status != NVCOMP_OK)
        return cm_nvcomp_fail(n, status, "asking for alignments", err);
    if (a.input > CM_PARCEL_ALIGN || a.output > 1 || a.temp > 256)
        return cm_fail(err, CM_EUNSUPPORTED,
                       "%s wants streams of %s at multiples of %zu and %zu bytes, temporary memory "
                       "at %zu",
                       n->text, cm_nvcomp_names[codec], a.input, a.output, a.temp);
    return CM_OK;
}

static int find_codec(nvcomp *n, int codec, cm_error *err)
{
    static const char *const names[CM_PARCEL_NCODECS] = {"Zstd", "LZ4", "Deflate"};
    nvcomp_codec *c = &n->codec[codec];
    const bool is_5 = n->version / 1000 == 5;
    if (!find(n->library, names[codec], "GetRequiredAlignments", &c->get_alignments) ||
        !find(n->library, names[codec], "Async", &c->decompress) ||
        !(is_5 ? find(n->library, names[codec], "GetTempSizeAsync", &c->get_temp_size_5)
               : find(n->library, names[codec], "GetTempSize", &c->get_temp_size_6)))
        return cm_fail(err, CM_EUNSUPPORTED, "%s has not the functions of its version for %s",
                       n->text, cm_nvcomp_names[codec]);
    return check_alignments(n, codec, err);
}

static int read_version(nvcomp *n, const char *path, cm_error *err)
{
    nvcomp_get_properties *get;
    nvcomp_properties properties = {0};
    void *const found = dlsym(n->library, "nvcompGetProperties");
    memcpy(&get, &found, sizeof found);
    if (found == NULL || get(&properties) != NVCOMP_OK)
        return cm_fail(err, CM_EUNSUPPORTED, "%s does not tell its version: it is not nvCOMP",
                       path ? path : "libnvcomp.so");
    n->version = properties.version;
    snprintf(n->text, sizeof n->text, "nvCOMP %u.%u.%u", n->version / 1000 % 1000,
             n->version % 1000 / 100, n->version % 100);
    if (n->version / 1000 < NVCOMP_OLDEST || n->version / 1000 > NVCOMP_NEWEST)
        return cm_fail(err, CM_EUNSUPPORTED, "%s is not known here: version %d or %d is", n->text,
                       NVCOMP_OLDEST, NVCOMP_NEWEST);
    return CM_OK;
}

int cm_nvcomp_load(const char *path, nvcomp *n, cm_error *err)
{
    *n = (nvcomp){0};
    n->library = path ? dlopen(path, RTLD_NOW | RTLD_LOCAL | RTLD_NODELETE) : open_system();
    if (n->library == NULL)
        return cm_fail(err, CM_ENOTFOUND,
                       "NVIDIA's nvCOMP, which decodes on the device, is not found: %s (the Python "
                       "packages nvidia-libnvcomp-cu12 and -cu13 have it)",
                       dlerror());
    int rc = read_version(n, path, err);
    for (int c = 0; c < CM_PARCEL_NCODECS && rc == CM_OK; c++)
        rc = find_codec(n, c, err);
    if (rc != CM_OK)
        cm_nvcomp_unload(n);
    return rc;
}

void cm_nvcomp_unload(nvcomp *n)
{
    if (n->library)
        dlclose(n->library);
    *n = (nvcomp){0};
}

int cm_nvcomp_temp_size(const nvcomp *n, cm_parcel_codec codec, size_t nstreams, size_t most_nbytes,
                        size_t total_nbytes, cuda_stream_handle stream, size_t *out, cm_error *err)
{
    const nvcomp_codec *c = &n->codec[codec];
    const int status =
        c->get_temp_size_6
            ? c->get_temp_size_6(nstreams, most_nbytes, options, out, total_nbytes, stream)
            : c->get_temp_size_5(nstreams, most_nbytes, options, out, total_nbytes);
    return status == NVCOMP_OK ? CM_OK
                               : cm_nvcomp_fail(n, status, "asking for temporary memory", err);
}

int cm_nvcomp_fail(const nvcomp *n, int status, const char *doing, cm_error *err)
{
    static const struct {
        int status;
        const char *text;
    } rows[] = {{10, "a value that it does not take"},
                {11, "not supported"},
                {12, "the stream cannot be decompressed"},
                {13, "a wrong checksum"},
                {15, "more bytes than there is room for"},
                {16, "a wrong length in a header"},
                {17, "a wrong alignment"},
                {18, "a chunk that is too large"},
                {20, "a wrong length of the stream"},
                {1000, "an error of CUDA"},
                {10000, "an error of its own"}};
    const char *text = "an unknown error";
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        if (rows[i].status == status)
            text = rows[i].text;
    return cm_fail(err, status == 11 ? CM_EUNSUPPORTED : CM_EIO, "%s: %s: %s (status %d)", n->text,
                   doing, text, status);
}

#include "format/nc/h5_dataset.h"

#include <stdlib.h>
#include <string.h>

#include "format/nc/h5_pipeline.h"
#include "format/nc/h5_virtual.h"

static bool is_plain_integer(hid_t type, const cm_dtype *want)
{
    H5T_sign_t sign = want->kind == CM_KIND_INT ? H5T_SGN_2 : H5T_SGN_NONE;
    return (want->kind == CM_KIND_INT || want->kind == CM_KIND_UINT) &&
           H5Tget_precision(type) == 8 * (size_t)want->nbytes && H5Tget_offset(type) == 0 &&
           H5Tget_sign(type) == sign;
}

static bool is_ieee(hid_t type, uint32_t nbytes)
{
    if (nbytes == 4)
        return H5Tequal(type, H5T_IEEE_F32LE) > 0 || H5Tequal(type, H5T_IEEE_F32BE) > 0;
    return nbytes == 8 &&
           (H5Tequal(type, H5T_IEEE_F64LE) > 0 || H5Tequal(type, H5T_IEEE_F64BE) > 0);
}

/* Compares TYPE with WANT, apart from byte order. */
static void check_type(hid_t type, const cm_dtype *want, cm_h5_dataset *out)
{
    if (cm_dtype_is_vlen(want) && H5Tget_class(type) == H5T_STRING && H5Tis_variable_str(type) == 0)
        out->text_nbytes = H5Tget_size(type);
    if (cm_dtype_is_vlen(want) && H5Tget_class(type) == H5T_FLOAT)
        out->small_float = H5Tget_size(type) <= CM_H5_SMALL_FLOAT_NBYTES;
    if (cm_dtype_is_vlen(want) || H5Tget_size(type) != want->nbytes)
        return;
    H5T_order_t order = H5T_ORDER_LE;
    switch (H5Tget_class(type)) {
    case H5T_INTEGER:
        out->plain = is_plain_integer(type, want);
        order = H5Tget_order(type);
        break;
    case H5T_FLOAT:
        out->plain = want->kind == CM_KIND_FLOAT && is_ieee(type, want->nbytes);
        order = H5Tget_order(type);
        break;
    case H5T_ENUM: {
        hid_t base = H5Tget_super(type);
        if (base < 0)
            return;
        out->plain = is_plain_integer(base, want);
        order = H5Tget_order(base);
        H5Tclose(base);
        break;
    }
    case H5T_STRING:
        out->plain =
            want->kind == CM_KIND_BYTES && want->nbytes == 1 && H5Tis_variable_str(type) == 0;
        break;
    default:
        return;
    }
    out->plain = out->plain && (order == H5T_ORDER_LE || order == H5T_ORDER_BE ||
                                (order == H5T_ORDER_NONE && want->nbytes == 1));
    out->big_endian = order == H5T_ORDER_BE && want->nbytes > 1;
}

static int read_fill_text(hid_t dcpl, hid_t type, cm_h5_dataset *out, cm_error *err)
{
    if (H5Tis_variable_str(type) <= 0)
        return CM_OK;
    hid_t memory = H5Tcopy(H5T_C_S1);
    char *text = NULL;
    int rc = CM_OK;
    if (memory >= 0 && H5Tset_size(memory, H5T_VARIABLE) >= 0 &&
        H5Tset_cset(memory, H5Tget_cset(type)) >= 0 &&
        H5Pget_fill_value(dcpl, memory, &text) >= 0 && text != NULL) {
        out->fill_text = cm_strdup(text, err);
        rc = out->fill_text != NULL ? CM_OK : CM_ENOMEM;
        H5free_memory(text);
    }
    if (memory >= 0)
        H5Tclose(memory);
    return rc;
}

/*
 * Finds the value that H5Dread gives for unwritten elements.  H5D__chunk_read and H5D__contig_read
 * leave the buffer unchanged when the fill time is NEVER, or when no fill value is defined and the
 * fill time is IFSET.
 */
static int read_fill(hid_t dcpl, hid_t type, const cm_dtype *want, cm_h5_dataset *out,
                     cm_error *err)
{
    H5D_fill_value_t defined = H5D_FILL_VALUE_UNDEFINED;
    H5D_fill_time_t when = H5D_FILL_TIME_NEVER;
    if (H5Pfill_value_defined(dcpl, &defined) < 0 || H5Pget_fill_time(dcpl, &when) < 0 ||
        when == H5D_FILL_TIME_NEVER || defined == H5D_FILL_VALUE_UNDEFINED)
        return CM_OK;
    out->fill = CM_H5_FILL_ZERO;
    if (defined != H5D_FILL_VALUE_USER_DEFINED)
        return CM_OK;
    if (cm_dtype_is_vlen(want)) {
        out->fill = CM_H5_FILL_VALUE;
        return read_fill_text(dcpl, type, out, err);
    }
    hid_t native = H5Tget_native_type(type, H5T_DIR_ASCEND);
    if (native < 0)
        return CM_OK;
    /* The native type has another size for a float16 that netCDF-C gives as float32. */
    bool same = H5Tget_size(native) == want->nbytes && want->nbytes <= sizeof out->fill_value;
    if (same && H5Pget_fill_value(dcpl, native, out->fill_value) >= 0)
        out->fill = CM_H5_FILL_VALUE;
    H5Tclose(native);
    return CM_OK;
}

static bool read_shape(hid_t dataset, cm_h5_dataset *out)
{
    hid_t space = H5Dget_space(dataset);
    if (space < 0)
        return false;
    hsize_t extent[H5S_MAX_RANK], most[H5S_MAX_RANK];
    out->no_elements = H5Sget_simple_extent_type(space) == H5S_NULL;
    int rank = out->no_elements ? -1 : H5Sget_simple_extent_ndims(space);
    bool good =
        rank >= 0 && rank <= CM_MAX_RANK && H5Sget_simple_extent_dims(space, extent, most) == rank;
    for (int j = 0; good && j < rank; j++) {
        out->extent[j] = extent[j];
        out->most[j] = most[j] == H5S_UNLIMITED ? UINT64_MAX : most[j];
    }
    out->rank = good ? (unsigned)rank : 0;
    H5Sclose(space);
    return good;
}

/* An external link has led to another file when the file numbers differ. */
static bool read_place(hid_t file, hid_t dataset, cm_h5_dataset *out)
{
    H5O_info_t root, own;
    if (H5Oget_info2(file, &root, H5O_INFO_BASIC) < 0 ||
        H5Oget_info2(dataset, &own, H5O_INFO_BASIC) < 0)
        return false;
    out->elsewhere = root.fileno != own.fileno;
    out->header = own.addr;
    return true;
}

static bool read_layout(hid_t dcpl, cm_h5_dataset *out)
{
    out->layout = H5Pget_layout(dcpl);
    if (out->layout == H5D_LAYOUT_ERROR)
        return false;
    int nexternal = H5Pget_external_count(dcpl);
    if (nexternal < 0)
        return false;
    out->external = nexternal > 0;
    if (out->layout != H5D_CHUNKED)
        return true;
    hsize_t chunk[H5S_MAX_RANK];
    unsigned options = 0;
    if (H5Pget_chunk(dcpl, CM_MAX_RANK, chunk) != (int)out->rank ||
        H5Pget_chunk_opts(dcpl, &options) < 0)
        return false;
    for (unsigned j = 0; j < out->rank; j++)
        out->chunk[j] = chunk[j];
    out->edges_unfiltered = options & H5D_CHUNK_DONT_FILTER_PARTIAL_CHUNKS;
    return true;
}

static int read_codecs(hid_t dcpl, const cm_dtype *type, cm_h5_dataset *out, cm_error *err)
{
    if (out->layout != H5D_CHUNKED || !out->plain)
        return CM_OK;
    cm_error why;
    int rc = cm_h5_pipeline(dcpl, type, out->big_endian, &out->codec, &out->ncodecs, &why);
    if (rc == CM_ENOMEM)
        return cm_fail(err, rc, "%s", why.text);
    if (rc != CM_OK) {
        out->codec_reason = cm_strdup(why.text, err);
        return out->codec_reason != NULL ? CM_OK : CM_ENOMEM;
    }
    return CM_OK;
}

int cm_h5_dataset_describe(hid_t file, const char *path, const cm_dtype *type, cm_h5_dataset *out,
                           cm_error *err)
{
    memset(out, 0, sizeof *out);
    int rc = CM_OK;
    hid_t stored = -1, dcpl = -1;
    hid_t dataset = H5Dopen2(file, path, H5P_DEFAULT);
    if (dataset < 0)
        return CM_OK;
    stored = H5Dget_type(dataset);
    dcpl = H5Dget_create_plist(dataset);
    if (stored < 0 || dcpl < 0 || !read_shape(dataset, out) || !read_place(file, dataset, out) ||
        !read_layout(dcpl, out))
        goto out;
    check_type(stored, type, out);
    if (out->layout == H5D_VIRTUAL)
        rc = cm_h5_virtual_absent(file, dcpl, &out->absent_source, err);
    if (rc == CM_OK)
        rc = read_fill(dcpl, stored, type, out, err);
    if (rc == CM_OK)
        rc = read_codecs(dcpl, type, out, err);
    out->known = rc == CM_OK;

out:
    if (dcpl >= 0)
        H5Pclose(dcpl);
    if (stored >= 0)
        H5Tclose(stored);
    H5Dclose(dataset);
    if (rc != CM_OK)
        cm_h5_dataset_release(out);
    return rc;
}

void cm_h5_dataset_release(cm_h5_dataset *d)
{
    if (d == NULL)
        return;
    cm_codec_specs_free(d->codec, d->ncodecs);
    free(d->codec_reason);
    free(d->absent_source);
    free(d->fill_text);
    memset(d, 0, sizeof *d);
}

#include "format/nc/fixed_text.h"

#include <stdlib.h>
#include <string.h>

#include "format/nc/extent.h"

enum {
    /* The length is only claimed where nothing is stored. */
    MAX_TEXT_NBYTES = 16 << 20,
    SLICE_NBYTES = 4 << 20 /* read at once; HDF5 has no chunk cache here, so that small ones cost */
};

typedef struct reader {
    const cm_nc_node *node;
    hid_t dataset, type, space;
    size_t nbytes; /* of a string */
    uint8_t *text; /* of a slice */
} reader;

static int failed(const reader *r, const char *what, cm_error *err)
{
    return cm_fail(err, CM_EFORMAT, "%s: variable %s: HDF5 cannot read %s", r->node->file->path,
                   r->node->var.array.name, what);
}

/* Reading fails as a whole where HDF5 lacks a filter; then that is what is to be said. */
static int explain(const reader *r, cm_error *err)
{
    hid_t dcpl = H5Dget_create_plist(r->dataset);
    int n = dcpl >= 0 ? H5Pget_nfilters(dcpl) : 0;
    int missing = -1;
    for (int i = 0; i < n && missing < 0; i++) {
        size_t nvalues = 0;
        H5Z_filter_t id = H5Pget_filter2(dcpl, (unsigned)i, NULL, &nvalues, NULL, 0, NULL, NULL);
        if (id >= 0 && H5Zfilter_avail(id) <= 0)
            missing = id;
    }
    if (dcpl >= 0)
        H5Pclose(dcpl);
    if (missing < 0)
        return failed(r, "its strings", err);
    return cm_fail(err, CM_EUNSUPPORTED, "%s: variable %s: HDF5 filter %d is not available",
                   r->node->file->path, r->node->var.array.name, missing);
}

/* The next slice of PART, from element DONE in C order: it ends within a row of its dimension. */
static void next_slice(const cm_box *part, uint64_t most, uint64_t done, cm_box *out)
{
    *out = *part;
    uint64_t inner = 1;
    for (unsigned j = part->rank; j-- > 0;) {
        uint64_t at = done / inner % part->shape[j];
        uint64_t left = part->shape[j] - at;
        uint64_t fit = most / inner;
        out->start[j] = part->start[j] + at;
        out->shape[j] = fit == 0 ? 1 : left < fit ? left : fit;
        /* Only whole rows of what lies inside may be followed by more. */
        if (out->shape[j] < part->shape[j])
            most = inner - 1;
        inner *= part->shape[j];
    }
}

static int read_slice(const reader *r, const cm_box *slice, cm_error *err)
{
    hsize_t start[CM_MAX_RANK], count[CM_MAX_RANK];
    for (unsigned j = 0; j < slice->rank; j++) {
        start[j] = slice->start[j];
        count[j] = slice->shape[j];
    }
    hid_t memory = H5S_ALL;
    if (slice->rank) {
        memory = H5Screate_simple((int)slice->rank, count, NULL);
        if (memory < 0 ||
            H5Sselect_hyperslab(r->space, H5S_SELECT_SET, start, NULL, count, NULL) < 0) {
            if (memory >= 0)
                H5Sclose(memory);
            return failed(r, "a part of it", err);
        }
    }
    herr_t rc = H5Dread(r->dataset, r->type, memory, slice->rank ? r->space : H5S_ALL, H5P_DEFAULT,
                        r->text);
    if (slice->rank)
        H5Sclose(memory);
    return rc < 0 ? explain(r, err) : CM_OK;
}

static int read_slices(reader *r, const cm_box *box, const cm_box *inside, cm_strings *out,
                       cm_error *err)
{
    uint64_t nelem = cm_box_nelem(inside);
    uint64_t most = r->nbytes < SLICE_NBYTES ? SLICE_NBYTES / r->nbytes : 1;
    most = most < nelem ? most : nelem;
    /* Elements that were never written and have no fill value are left alone. */
    r->text = cm_calloc((size_t)most, r->nbytes, err);
    if (!r->text)
        return CM_ENOMEM;
    for (uint64_t done = 0; done < nelem;) {
        cm_box slice;
        next_slice(inside, most, done, &slice);
        int rc = read_slice(r, &slice, err);
        uint64_t n = cm_box_nelem(&slice);
        for (uint64_t i = 0; i < n && !rc; i++) {
            const char *text = (const char *)r->text + i * r->nbytes;
            rc = cm_strings_set(out, (size_t)cm_extent_place(box, inside, done + i), text,
                                strnlen(text, r->nbytes), err);
        }
        if (rc)
            return rc;
        done += n;
    }
    return CM_OK;
}

int cm_fixed_text_read(const cm_nc_node *node, const cm_box *box, const cm_box *inside,
                       cm_strings *out, cm_error *err)
{
    reader r = {.node = node, .nbytes = node->dataset.text_nbytes};
    if (r.nbytes > MAX_TEXT_NBYTES)
        return cm_fail(err, CM_EUNSUPPORTED,
                       "%s: variable %s: strings of %zu bytes each are not read, at most %d",
                       node->file->path, node->var.array.name, r.nbytes, MAX_TEXT_NBYTES);
    r.dataset = H5Dopen2(node->file->h5, node->h5_path, H5P_DEFAULT);
    r.type = r.dataset >= 0 ? H5Dget_type(r.dataset) : -1;
    r.space = r.dataset >= 0 ? H5Dget_space(r.dataset) : -1;
    int rc = r.type >= 0 && r.space >= 0 ? read_slices(&r, box, inside, out, err)
                                         : failed(&r, "the dataset again", err);
    free(r.text);
    if (r.space >= 0)
        H5Sclose(r.space);
    if (r.type >= 0)
        H5Tclose(r.type);
    if (r.dataset >= 0)
        H5Dclose(r.dataset);
    return rc;
}

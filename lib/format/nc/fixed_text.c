#include "format/nc/fixed_text.h"

#include <stdlib.h>
#include <string.h>

#include "format/nc/extent.h"
#include "format/nc/h5_read.h"

enum {
    /* A limit: the file may claim any length where nothing is stored. */
    MAX_TEXT_NBYTES = 16 << 20,
    SLICE_NBYTES = 4 << 20 /* read at once; small slices are slow without HDF5's chunk cache */
};

typedef struct reader {
    const cm_nc_node *node;
    hid_t dataset, type;
    size_t nbytes; /* of one string */
    uint8_t *text; /* of one slice */
} reader;

/* The next slice of PART, from element DONE in C order, within a row of its dimension. */
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
        /* An outer dimension may be longer than 1 only if the inner ones are whole. */
        if (out->shape[j] < part->shape[j])
            most = inner - 1;
        inner *= part->shape[j];
    }
}

static int read_slices(reader *r, const cm_box *box, const cm_box *inside, cm_strings *out,
                       cm_error *err)
{
    uint64_t nelem = cm_box_nelem(inside);
    uint64_t most = r->nbytes < SLICE_NBYTES ? SLICE_NBYTES / r->nbytes : 1;
    most = most < nelem ? most : nelem;
    /* HDF5 leaves unwritten elements without a fill value unchanged. */
    r->text = cm_calloc((size_t)most, r->nbytes, err);
    if (r->text == NULL)
        return CM_ENOMEM;
    for (uint64_t done = 0; done < nelem;) {
        cm_box slice;
        next_slice(inside, most, done, &slice);
        int rc = cm_h5_read(r->node, r->dataset, r->type, &slice, r->text, err);
        uint64_t n = cm_box_nelem(&slice);
        for (uint64_t i = 0; i < n && rc == CM_OK; i++) {
            const char *text = (const char *)r->text + i * r->nbytes;
            rc = cm_strings_set(out, (size_t)cm_extent_place(box, inside, done + i), text,
                                strnlen(text, r->nbytes), err);
        }
        if (rc != CM_OK)
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
    int rc = r.type >= 0
                 ? read_slices(&r, box, inside, out, err)
                 : cm_fail(err, CM_EFORMAT, "%s: variable %s: HDF5 cannot open the dataset again",
                           node->file->path, node->var.array.name);
    free(r.text);
    if (r.type >= 0)
        H5Tclose(r.type);
    if (r.dataset >= 0)
        H5Dclose(r.dataset);
    return rc;
}

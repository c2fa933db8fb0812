/*
 * HDF5 object headers: what a data layout message says is within what it can say, in every
 * width of addresses and lengths and under a user block.
 */
#include "format/nc/h5_object.h"
#include "fuzz.h"

static void check_layout(const cm_h5_layout_message *m, int rc)
{
    if (rc != CM_OK)
        return;
    REQUIRE(m->index >= CM_H5_INDEX_NONE && m->index <= CM_H5_INDEX_BTREE2);
    REQUIRE(m->index == CM_H5_INDEX_NONE || (m->rank >= 1 && m->rank <= 32));
    REQUIRE(!m->single_filtered || m->index == CM_H5_INDEX_SINGLE);
}

/* The first byte chooses widths and user block, the second where the header lies. */
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t nbytes)
{
    static const unsigned width[] = {2, 4, 8, 8};
    if (nbytes < 2)
        return 0;
    const unsigned choice = data[0], at = data[1];
    uint8_t *copy = fuzz_copy(data + 2, nbytes - 2);
    cm_source source = cm_source_of_memory(copy, nbytes - 2);
    cm_h5_super super = {.offset_nbytes = width[choice & 3],
                         .length_nbytes = width[choice >> 2 & 3],
                         .base = choice & 16 ? 512 : 0};
    cm_h5_layout_message layout;
    cm_error err;
    check_layout(&layout, cm_h5_layout_read(&source, &super, at, &layout, &err));
    if (cm_h5_super_read(&source, &super, &err) == CM_OK) {
        REQUIRE(super.version <= 3 && super.base < nbytes);
        check_layout(&layout, cm_h5_layout_read(&source, &super, at, &layout, &err));
    }
    free(copy);
    return 0;
}

/*
 * NetCDF-4 files opened without a library.  Any bytes are either read or left to the libraries;
 * what is read lies in the file, and its numbers are possible.  The first byte says whether the
 * checksums are repaired: without that few changes would get past the first of them.
 */
#include "../support/repair.h"
#include "format/nc/plain.h"
#include "fuzz.h"

static void check_variable(cm_nc_node *node, uint64_t nbytes)
{
    const cm_array *a = &node->var.array;
    REQUIRE(node->prepared && a->ops != NULL && a->attrs != NULL && a->rank <= CM_MAX_RANK);
    REQUIRE(a->dtype.nbytes >= 1 && a->dtype.nbytes <= 8);
    for (unsigned j = 0; j < a->rank; j++)
        REQUIRE(a->dim_name[j] != NULL && a->dim_name[j][0] != '\0');
    if (node->var.access == CM_NC_ARITHMETIC && node->slab.itemsize > 0)
        REQUIRE(node->slab.begin <= nbytes);
    else
        REQUIRE(node->var.access == CM_NC_CHUNK_INDEX || a->ops->read_box != NULL);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t nbytes)
{
    if (nbytes < 2)
        return 0;
    uint8_t *copy = fuzz_copy(data + 1, nbytes - 1);
    if (data[0] & 1)
        repair(copy, nbytes - 1);
    cm_nc_file *file = cm_calloc(1, sizeof(*file), NULL);
    REQUIRE(file != NULL);
    file->source = file->data = cm_source_of_memory(copy, nbytes - 1);
    file->ncid = -1;
    file->h5 = -1;
    file->path = fuzz_text("a file", 6);
    if (cm_h5_super_read(&file->source, &file->super, NULL) == CM_OK &&
        cm_nc_plain_read(file, NULL) == CM_OK) {
        REQUIRE(file->ngroups == 1 && file->group->attrs != NULL);
        for (size_t i = 0; i < file->nnodes; i++)
            check_variable(&file->node[i], nbytes - 1);
    }
    cm_nc_close(file);
    free(copy);
    return 0;
}

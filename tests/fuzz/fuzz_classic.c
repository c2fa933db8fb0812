/*
 * The header of a NetCDF classic file: any bytes are parsed or refused, within the bounds of
 * the file.
 */
#include <stdlib.h>

#include "format/nc/classic_header.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t nbytes);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t nbytes)
{
    cm_source source = cm_source_of_memory(data, nbytes);
    cm_classic_header header;
    cm_error err;
    if (cm_classic_header_read(&source, &header, &err) != CM_OK)
        return 0;
    /* Invariants that readers rely on. */
    if (header.header_nbytes > nbytes || header.data_end < header.header_nbytes)
        abort();
    for (size_t i = 0; i < header.nvars; i++) {
        const cm_classic_var *v = &header.var[i];
        if (!v->name || v->itemsize == 0 || v->begin < header.header_nbytes)
            abort();
        if (!v->is_record && v->begin + v->nbytes > header.data_end)
            abort();
        if (v->is_record && header.nrecords &&
            v->begin + (header.nrecords - 1) * header.record_nbytes + v->nbytes > header.data_end)
            abort();
    }
    cm_classic_header_release(&header);
    return 0;
}

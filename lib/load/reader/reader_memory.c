/* How many chunks a reader fetches at once, and what memory it takes. */
#include "load/reader/reader_impl.h"

/* Bytes of a stored chunk of A at most, except one that no encoder of ours would write. */
static size_t usual_nbytes(const cm_array *a)
{
    const size_t decoded = cm_array_decoded_nbytes(a), most = a->max_stored_nbytes;
    return most > 0 && most < decoded ? most : decoded;
}

static size_t at_most(size_t n, size_t nbytes, size_t each)
{
    return each > 0 && nbytes / each < n ? nbytes / each : n;
}

size_t cm_reader_group(const cm_array *a, size_t group_nbytes)
{
    size_t n = CM_READ_GROUP_CHUNKS;
    if (group_nbytes == 0)
        group_nbytes = CM_READ_GROUP_NBYTES;
    n = at_most(n, group_nbytes, usual_nbytes(a));
    /* Hostile chunks are as long as they may be, all of them. */
    n = at_most(n, group_nbytes + CM_READ_HOSTILE_NBYTES, a->max_stored_nbytes);
    return n < 1 ? 1 : n;
}

size_t cm_reader_stored_nbytes(const cm_array *a, size_t group_nbytes)
{
    const size_t most = a->max_stored_nbytes;
    size_t all;
    if (!cm_mul_size(usual_nbytes(a), cm_reader_group(a, group_nbytes), &all))
        return SIZE_MAX;
    return all > most ? all : most;
}

size_t cm_reader_memory(const cm_array *a, const cm_feed *feed)
{
    size_t total = sizeof(cm_reader);
    if (!a->chunked)
        return total;
    size_t decoded = cm_array_decoded_nbytes(a);
    if (!cm_add_size(total, cm_reader_stored_nbytes(a, 0), &total) ||
        !cm_add_size(total, decoded, &total) ||
        !cm_add_size(total, cm_array_decode_memory(a), &total))
        return SIZE_MAX;
    if (feed != NULL && !cm_feed_is_identity(feed)) {
        size_t converted = a->grid.chunk_nelem * cm_feed_nbytes(feed);
        if (!cm_add_size(total, decoded, &total) || !cm_add_size(total, converted, &total))
            return SIZE_MAX;
    }
    return total;
}

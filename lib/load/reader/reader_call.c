/* Bookkeeping of a call: the time of its stages, and its first error. */
#include "base/clock.h"
#include "load/reader/reader_impl.h"

void cm_read_stage(cm_read_call *c, int which)
{
    uint64_t now = cm_now_ns();
    c->counts->stage_ns[which] += now - c->reader->last_ns;
    c->counts->stage_calls[which]++;
    c->reader->last_ns = now;
}

cm_error *cm_read_next_error(const cm_read_call *c)
{
    return c->status == CM_OK ? c->err : NULL;
}

void cm_read_keep_error(cm_read_call *c, int rc)
{
    if (rc == CM_OK || c->status != CM_OK)
        return;
    c->status = rc;
    cm_error_place(c->err, c->array->place);
    cm_error_place(c->err, c->reader->options.store);
}

#include "bench/foresee.h"

#include <math.h>

static double storage(const cm_batch_work *w, double share, double call, double request,
                      double byte, double nbytes)
{
    return share * ((double)w->calls * call + (double)w->requests * request + nbytes * byte);
}

cm_seconds cm_foresee(const cm_batch_work *w, const cm_chunk_costs *costs,
                      const cm_chunk_costs *again, const cm_slowed *slowed)
{
    const double first = w->chunks > 0 ? (double)w->distinct / (double)w->chunks : 1;
    const double nbytes =
        w->stored_nbytes > 0 ? (double)w->stored_nbytes : (double)w->chunks * costs->stored_nbytes;
    cm_seconds t = {
        .wall =
            storage(w, first, costs->call.wall, costs->request.wall, costs->byte.wall, nbytes) +
            storage(w, 1 - first, again->call.wall, again->request.wall, again->byte.wall, nbytes),
        .cpu = storage(w, first, costs->call.cpu, costs->request.cpu, costs->byte.cpu, nbytes) +
               storage(w, 1 - first, again->call.cpu, again->request.cpu, again->byte.cpu, nbytes)};
    if (slowed->bandwidth > 0)
        t.wall = fmax(t.wall, (double)w->requests * slowed->latency + nbytes / slowed->bandwidth);
    t.wall += (double)w->chunks * costs->chunk.wall;
    t.cpu += (double)w->chunks * costs->chunk.cpu;
    return t;
}

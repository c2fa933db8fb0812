/* From the lines of a log of accesses to boxes of elements of one array. */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/number.h"
#include "watch/access_impl.h"

/* One read, or a request that may become a part of one. */
typedef struct span {
    double at, end;
    int64_t pid, thread;
    uint64_t line;
    uint64_t read; /* its number in the process, which boxes of one selection share; 0: none */
    size_t box;    /* in `box` of the spans */
} span;

typedef struct spans {
    span *of;
    size_t n, capacity;
    uint64_t *box; /* first elements and lengths of each */
    size_t nnumbers, number_capacity;
    unsigned rank;
} spans;

/* ---- keys ---------------------------------------------------------------------------------- */

/* Decimal digits at *TEXT, which moves behind them. */
static bool take_digits(const char **text, uint64_t *out)
{
    const char *p = *text;
    uint64_t value = 0;
    if (*p < '0' || *p > '9')
        return false;
    for (; *p >= '0' && *p <= '9'; p++) {
        const uint64_t digit = (uint64_t)(*p - '0');
        if (value > (UINT64_MAX - digit) / 10)
            return false;
        value = value * 10 + digit;
    }
    *text = p;
    *out = value;
    return true;
}

bool cm_access_key_coord(const char *key, const char *name, unsigned rank, uint64_t *coord)
{
    const size_t n = strlen(name);
    if (n > 0 && (strncmp(key, name, n) != 0 || key[n] != '/'))
        return false;
    key += n > 0 ? n + 1 : 0;
    if (*key == 'c') {
        key++;
        if (rank == 0)
            return *key == '\0';
        if (*key != '/' && *key != '.')
            return false;
        key++;
    }
    uint64_t only;
    if (rank == 0)
        return take_digits(&key, &only) && only == 0 && *key == '\0';
    for (unsigned j = 0; j < rank; j++) {
        if (j > 0 && *key != '/' && *key != '.')
            return false;
        key += j > 0;
        if (!take_digits(&key, &coord[j]))
            return false;
    }
    return *key == '\0';
}

/* ---- boxes --------------------------------------------------------------------------------- */

static int no_memory(const cm_access_log *log, cm_error *err)
{
    return cm_fail(err, CM_ENOMEM, "%s: no memory for the reads in it", log->name);
}

static int add(const cm_access_log *log, spans *s, const span *one, const uint64_t *start,
               const uint64_t *count, cm_error *err)
{
    span *grown = cm_make_room(s->of, s->n, &s->capacity, sizeof *s->of, 256);
    if (grown == NULL)
        return no_memory(log, err);
    s->of = grown;
    for (unsigned k = 0; k < 2 * s->rank; k++) {
        uint64_t *numbers =
            cm_make_room(s->box, s->nnumbers, &s->number_capacity, sizeof *s->box, 1024);
        if (numbers == NULL)
            return no_memory(log, err);
        s->box = numbers;
        s->box[s->nnumbers++] = k < s->rank ? start[k] : count[k - s->rank];
    }
    s->of[s->n] = *one;
    s->of[s->n++].box = s->nnumbers - 2 * s->rank;
    return CM_OK;
}

static int outside(const cm_access_log *log, uint64_t line, const cm_access_array *a, unsigned j,
                   uint64_t end, cm_error *err)
{
    return cm_fail(err, CM_EINVAL,
                   "%s, line %" PRIu64 ": %s was read up to element %" PRIu64
                   " of dimension %u, and has %" PRIu64
                   " there now: the store changed since, or it is another one",
                   log->name, line, a->name[0] != '\0' ? a->name : "/", end, j, a->shape[j]);
}

static bool has_name(const cm_access_log *log, size_t at, const cm_access_array *a)
{
    return strcmp(cm_access_text(log, at), a->name) == 0;
}

static int other_rank(const cm_access_log *log, uint64_t line, const cm_access_array *a,
                      unsigned rank, cm_error *err)
{
    return cm_fail(err, CM_EINVAL,
                   "%s, line %" PRIu64
                   ": %s had %u dimensions and has %u now: the store changed since, or it is "
                   "another one",
                   log->name, line, a->name[0] != '\0' ? a->name : "/", rank, a->rank);
}

/* Boxes that the program asked for. */
static int collect_wanted(const cm_access_log *log, const cm_access_array *a, spans *s,
                          cm_error *err)
{
    int rc = CM_OK;
    for (size_t i = 0; i < log->nwanted && rc == CM_OK; i++) {
        const cm_access_wanted *w = &log->wanted[i];
        uint64_t start[CM_MAX_RANK] = {0}, count[CM_MAX_RANK] = {0};
        bool empty = false;
        if (!has_name(log, w->array, a))
            continue;
        if (w->rank != a->rank)
            return other_rank(log, w->line, a, w->rank, err);
        for (unsigned j = 0; j < w->rank; j++) {
            const uint64_t *range = &log->number[w->box + 2 * j];
            if (range[1] > a->shape[j])
                return outside(log, w->line, a, j, range[1], err);
            start[j] = range[0];
            count[j] = range[1] - range[0];
            empty = empty || count[j] == 0;
        }
        const span one = {.at = w->at,
                          .end = w->at + w->seconds,
                          .pid = w->pid,
                          .line = w->line,
                          .read = w->read};
        if (!empty)
            rc = add(log, s, &one, start, count, err);
    }
    return rc;
}

static int objects_of(const cm_access_array *a, cm_grid *out, cm_error *err)
{
    const cm_cuts *cuts[CM_MAX_RANK] = {NULL};
    for (unsigned j = 0; a->cuts != NULL && j < a->rank; j++)
        cuts[j] = a->cuts[j];
    return cm_grid_init_cut(out, a->rank, a->shape, a->chunk, cuts, err);
}

/* Requests for chunks, each as the box of the chunk. */
static int collect_chunks(const cm_access_log *log, const cm_access_array *a, spans *s,
                          cm_error *err)
{
    cm_grid grid;
    int rc = objects_of(a, &grid, err);
    for (size_t i = 0; i < log->nrequests && rc == CM_OK; i++) {
        const cm_access_request *r = &log->request[i];
        uint64_t start[CM_MAX_RANK] = {0}, count[CM_MAX_RANK] = {0};
        cm_box box;
        if (!cm_access_key_coord(cm_access_text(log, r->key), a->name, a->rank, start))
            continue;
        for (unsigned j = 0; j < a->rank; j++) {
            if (start[j] >= grid.count[j])
                return cm_fail(err, CM_EINVAL,
                               "%s, line %" PRIu64
                               ": the array has no chunk %s now: the store changed since, or it "
                               "is another one",
                               log->name, r->line, cm_access_text(log, r->key));
        }
        cm_grid_box(&grid, start, &box);
        memcpy(start, box.start, sizeof start);
        memcpy(count, box.shape, sizeof count);
        const span one = {.at = r->at,
                          .end = r->at + r->seconds,
                          .pid = r->pid,
                          .thread = r->thread,
                          .line = r->line};
        rc = add(log, s, &one, start, count, err);
    }
    return rc;
}

/* ---- order --------------------------------------------------------------------------------- */

static int by_begin(const void *x, const void *y)
{
    const span *a = x, *b = y;
    if (a->at != b->at)
        return a->at < b->at ? -1 : 1;
    return (a->line > b->line) - (a->line < b->line);
}

static int by_thread(const void *x, const void *y)
{
    const span *a = x, *b = y;
    if (a->pid != b->pid)
        return a->pid < b->pid ? -1 : 1;
    if (a->thread != b->thread)
        return a->thread < b->thread ? -1 : 1;
    return by_begin(x, y);
}

/* Whether the N boxes from AT on, each of another chunk, fill the box around them: START, COUNT. */
static bool fill_box(const spans *s, size_t at, size_t n, uint64_t *start, uint64_t *count)
{
    uint64_t end[CM_MAX_RANK] = {0}, all = 1, sum = 0;
    for (size_t i = at; i < at + n; i++) {
        const uint64_t *box = &s->box[s->of[i].box];
        uint64_t nelem = 1;
        for (unsigned j = 0; j < s->rank; j++) {
            const uint64_t first = box[j], last = first + box[s->rank + j];
            start[j] = i == at ? first : cm_min_u64(start[j], first);
            end[j] = i == at ? last : cm_max_u64(end[j], last);
            if (!cm_mul_u64(nelem, box[s->rank + j], &nelem))
                return false;
        }
        if (sum > UINT64_MAX - nelem)
            return false;
        sum += nelem;
    }
    for (unsigned j = 0; j < s->rank; j++) {
        count[j] = end[j] - start[j];
        if (!cm_mul_u64(all, count[j], &all))
            return false;
    }
    return all == sum;
}

/* Of the boxes from AT on: those that a thread had under way at once. */
static size_t together_from(const spans *s, size_t at)
{
    double end = s->of[at].end;
    size_t n = 1;
    while (at + n < s->n && s->of[at + n].pid == s->of[at].pid &&
           s->of[at + n].thread == s->of[at].thread && s->of[at + n].at < end) {
        end = s->of[at + n].end > end ? s->of[at + n].end : end;
        n++;
    }
    return n;
}

/* Chunks of one read become one box. */
static void join_chunks(spans *s)
{
    size_t kept = 0;
    if (s->n == 0)
        return;
    qsort(s->of, s->n, sizeof *s->of, by_thread);
    for (size_t at = 0, n; at < s->n; at += n) {
        uint64_t start[CM_MAX_RANK] = {0}, count[CM_MAX_RANK] = {0};
        n = together_from(s, at);
        if (n == 1 || !fill_box(s, at, n, start, count)) {
            memmove(&s->of[kept], &s->of[at], n * sizeof *s->of);
            kept += n;
            continue;
        }
        span one = s->of[at];
        for (size_t i = at; i < at + n; i++)
            one.end = s->of[i].end > one.end ? s->of[i].end : one.end;
        memcpy(&s->box[one.box], start, s->rank * sizeof *start);
        memcpy(&s->box[one.box + s->rank], count, s->rank * sizeof *count);
        s->of[kept++] = one;
    }
    s->n = kept;
}

static int by_number(const void *x, const void *y)
{
    const double a = *(const double *)x, b = *(const double *)y;
    return (a > b) - (a < b);
}

/* Whether span I is of another read than the one before it. */
static bool begins(const spans *s, size_t i)
{
    return i == 0 || s->of[i].read == 0 || s->of[i].read != s->of[i - 1].read ||
           s->of[i].pid != s->of[i - 1].pid;
}

/* The most reads that were under way at once; 0: no memory. */
static unsigned most_together(const spans *s)
{
    double *end = malloc((s->n + 1) * sizeof *end);
    size_t n = 0, ended = 0, begun = 0, most = 1;
    if (end == NULL)
        return 0;
    for (size_t i = 0; i < s->n; i++)
        if (begins(s, i))
            end[n++] = s->of[i].end;
    qsort(end, n, sizeof *end, by_number);
    for (size_t i = 0; i < s->n; i++) {
        begun += begins(s, i);
        while (ended < n && end[ended] <= s->of[i].at)
            ended++;
        if (ended < begun && begun - ended > most)
            most = begun - ended;
    }
    free(end);
    return most > UINT32_MAX ? UINT32_MAX : (unsigned)most;
}

static unsigned count_processes(const spans *s)
{
    enum {
        MOST = 1024
    };
    int64_t pid[MOST];
    unsigned n = 0;
    for (size_t i = 0; i < s->n && n < MOST; i++) {
        unsigned k = 0;
        while (k < n && pid[k] != s->of[i].pid)
            k++;
        if (k == n)
            pid[n++] = s->of[i].pid;
    }
    return n;
}

/* ---- all of it ----------------------------------------------------------------------------- */

static int check_stored(const cm_access_log *log, const cm_access_array *a, cm_access_reads *out,
                        cm_error *err)
{
    for (size_t i = 0; i < log->nstored; i++) {
        const cm_access_stored *s = &log->stored[i];
        if (!has_name(log, s->array, a))
            continue;
        if (s->rank != a->rank)
            return other_rank(log, s->line, a, s->rank, err);
        for (unsigned j = 0; j < s->rank; j++) {
            if (log->number[s->shape + j] != a->shape[j])
                return cm_fail(err, CM_EINVAL,
                               "%s, line %" PRIu64 ": %s had %" PRIu64
                               " %s along dimension %u and has %" PRIu64
                               " now: the store changed since, or it is another one",
                               log->name, s->line, a->name[0] != '\0' ? a->name : "/",
                               log->number[s->shape + j],
                               cm_of_count(log->number[s->shape + j], "element", "elements"), j,
                               a->shape[j]);
            if (log->number[s->shape + s->rank + j] != a->chunk[j])
                out->rechunked = true;
        }
    }
    return CM_OK;
}

static void count_requests(const cm_access_log *log, const cm_access_array *a, cm_access_reads *out)
{
    uint64_t coord[CM_MAX_RANK];
    for (size_t i = 0; i < log->nrequests; i++) {
        const cm_access_request *r = &log->request[i];
        if (!cm_access_key_coord(cm_access_text(log, r->key), a->name, a->rank, coord))
            continue;
        out->nrequests++;
        out->nmissing += r->nbytes == CM_ACCESS_NO_BYTES;
        if (r->nbytes != CM_ACCESS_NO_BYTES && out->stored_nbytes <= UINT64_MAX - r->nbytes)
            out->stored_nbytes += r->nbytes;
    }
}

/* Boxes of S in the order of their beginning. */
static int give(const cm_access_log *log, spans *s, cm_access_reads *out, cm_error *err)
{
    const size_t each = 2 * (size_t)s->rank;
    double last = 0;
    if (s->n == 0)
        return CM_OK;
    qsort(s->of, s->n, sizeof *s->of, by_begin);
    out->box = calloc(s->n * each + 1, sizeof *out->box); /* S has as many */
    out->together = most_together(s);
    if (out->box == NULL || out->together == 0)
        return no_memory(log, err);
    for (size_t i = 0; i < s->n; i++) {
        const uint64_t *box = &s->box[s->of[i].box];
        uint64_t nelem = 1;
        if (each > 0)
            memcpy(&out->box[i * each], box, each * sizeof *box);
        for (unsigned j = 0; j < s->rank; j++)
            if (!cm_mul_u64(nelem, box[s->rank + j], &nelem))
                nelem = UINT64_MAX;
        out->nelem = out->nelem > UINT64_MAX - nelem ? UINT64_MAX : out->nelem + nelem;
        last = s->of[i].end > last ? s->of[i].end : last;
    }
    out->n = s->n;
    out->seconds = last - s->of[0].at;
    out->nprocesses = count_processes(s);
    return CM_OK;
}

int cm_access_reads_find(const cm_access_log *log, const cm_access_array *a, cm_access_reads *out,
                         cm_error *err)
{
    spans s = {.rank = a->rank};
    *out = (cm_access_reads){.rank = a->rank};
    int rc = check_stored(log, a, out, err);
    if (rc == CM_OK)
        rc = collect_wanted(log, a, &s, err);
    out->wanted = s.n > 0;
    /* After a change of chunks a key does not say which elements it meant. */
    if (rc == CM_OK && s.n == 0 && !out->rechunked) {
        rc = collect_chunks(log, a, &s, err);
        join_chunks(&s);
    }
    if (rc == CM_OK)
        rc = give(log, &s, out, err);
    if (rc == CM_OK)
        count_requests(log, a, out);
    free(s.of);
    free(s.box);
    return rc;
}

void cm_access_reads_release(cm_access_reads *reads)
{
    free(reads->box);
    *reads = (cm_access_reads){0};
}

void cm_access_box(const cm_access_reads *reads, size_t i, cm_box *out)
{
    const uint64_t *box = &reads->box[i * 2 * reads->rank];
    out->rank = reads->rank;
    for (unsigned j = 0; j < reads->rank; j++) {
        out->start[j] = box[j];
        out->shape[j] = box[reads->rank + j];
    }
}

bool cm_access_log_object(const cm_access_log *log, const cm_access_array *a, size_t i,
                          const char **key, uint64_t *nbytes)
{
    uint64_t coord[CM_MAX_RANK];
    for (size_t k = 0; k < log->nrequests; k++) {
        const cm_access_request *r = &log->request[k];
        if (r->part || r->nbytes == CM_ACCESS_NO_BYTES ||
            !cm_access_key_coord(cm_access_text(log, r->key), a->name, a->rank, coord) || i-- > 0)
            continue;
        *key = cm_access_text(log, r->key);
        *nbytes = r->nbytes;
        return true;
    }
    return false;
}

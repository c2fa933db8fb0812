/* Lines of a log of accesses, as they stand. */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/json.h"
#include "watch/access_impl.h"

/* Times that are no times at all would sort anyhow. */
#define LATEST  1e12
#define LONGEST 1e9

enum {
    READ_NBYTES = 1 << 16
};

/* ---- members of a line --------------------------------------------------------------------- */

static int wrong(const cm_access_log *log, const char *what, cm_error *err)
{
    return cm_fail(err, CM_EFORMAT, "%s, line %" PRIu64 ": %s", log->name, log->nlines, what);
}

static int no_memory(const cm_access_log *log, cm_error *err)
{
    return cm_fail(err, CM_ENOMEM, "%s: no memory for its %" PRIu64 " lines", log->name,
                   log->nlines);
}

/* Appends a text, whose place goes to *AT. */
static int keep_text(cm_access_log *log, const cm_json *j, const char *what, size_t *at,
                     cm_error *err)
{
    size_t nbytes;
    const char *text = cm_json_text(j, &nbytes);
    if (text == NULL || strlen(text) != nbytes)
        return wrong(log, what, err);
    *at = log->text.nbytes;
    return cm_buf_append(&log->text, text, nbytes + 1, NULL) == CM_OK ? CM_OK : no_memory(log, err);
}

static int keep_number(cm_access_log *log, uint64_t value, cm_error *err)
{
    uint64_t *grown =
        cm_make_room(log->number, log->nnumbers, &log->number_capacity, sizeof *log->number, 256);
    if (grown == NULL)
        return no_memory(log, err);
    log->number = grown;
    log->number[log->nnumbers++] = value;
    return CM_OK;
}

static int take_times(const cm_access_log *log, const cm_json *line, double *at, double *seconds,
                      cm_error *err)
{
    if (!cm_json_get_double(cm_json_member(line, "time"), at) || !isfinite(*at) || *at < 0 ||
        *at > LATEST)
        return wrong(log, "\"time\" is not a time in seconds", err);
    if (!cm_json_get_double(cm_json_member(line, "seconds"), seconds) || !isfinite(*seconds) ||
        *seconds < 0 || *seconds > LONGEST)
        return wrong(log, "\"seconds\" is not a duration in seconds", err);
    return CM_OK;
}

/* A number that need not be there. */
static int take_number(const cm_access_log *log, const cm_json *line, const char *name,
                       int64_t *out, cm_error *err)
{
    char what[64];
    *out = 0;
    if (!cm_json_has(line, name) || cm_json_get_i64(cm_json_member(line, name), out))
        return CM_OK;
    snprintf(what, sizeof what, "\"%s\" is not an integer", name);
    return wrong(log, what, err);
}

/* ---- kinds of lines ------------------------------------------------------------------------ */

static int take_head(const cm_access_log *log, const cm_json *line, cm_error *err)
{
    int64_t version;
    const char *kind = cm_json_text(cm_json_member(line, "chunkmill"), NULL);
    if (kind == NULL || strcmp(kind, "access") != 0)
        return wrong(log, "this is not a log of chunkmill.record", err);
    if (!cm_json_get_i64(cm_json_member(line, "version"), &version) || version != 1)
        return wrong(log, "its version is not 1", err);
    return CM_OK;
}

static int take_request(cm_access_log *log, const cm_json *line, cm_error *err)
{
    cm_access_request r = {.line = log->nlines, .nbytes = CM_ACCESS_NO_BYTES};
    const cm_json *nbytes = cm_json_member(line, "nbytes"); /* null: not there */
    if (!cm_json_has(line, "nbytes") ||
        (nbytes != NULL && (!cm_json_get_u64(nbytes, &r.nbytes) || r.nbytes == CM_ACCESS_NO_BYTES)))
        return wrong(log, "\"nbytes\" is not a number of bytes", err);
    r.part = cm_json_member(line, "range") != NULL;
    int rc = take_times(log, line, &r.at, &r.seconds, err);
    if (rc == CM_OK)
        rc = take_number(log, line, "pid", &r.pid, err);
    if (rc == CM_OK)
        rc = take_number(log, line, "thread", &r.thread, err);
    if (rc == CM_OK)
        rc = keep_text(log, cm_json_member(line, "key"), "\"key\" is not the name of an object",
                       &r.key, err);
    if (rc != CM_OK)
        return rc;
    cm_access_request *grown = cm_make_room(log->request, log->nrequests, &log->request_capacity,
                                            sizeof *log->request, 256);
    if (grown == NULL)
        return no_memory(log, err);
    log->request = grown;
    log->request[log->nrequests++] = r;
    return CM_OK;
}

/* [first, end] of one dimension. */
static int take_range(cm_access_log *log, const cm_json *range, cm_error *err)
{
    uint64_t first, end;
    if (cm_json_length(range) != 2 || !cm_json_is(range, CM_JSON_ARRAY) ||
        !cm_json_get_u64(cm_json_at(range, 0), &first) ||
        !cm_json_get_u64(cm_json_at(range, 1), &end) || end < first)
        return wrong(log, "\"box\" is not a list of [first, end]", err);
    int rc = keep_number(log, first, err);
    return rc == CM_OK ? keep_number(log, end, err) : rc;
}

static int name_array(cm_access_log *log, size_t at, cm_error *err)
{
    const char *name = cm_access_text(log, at);
    for (size_t i = 0; i < log->narrays; i++)
        if (strcmp(cm_access_text(log, log->array[i]), name) == 0)
            return CM_OK;
    size_t *grown =
        cm_make_room(log->array, log->narrays, &log->array_capacity, sizeof *log->array, 16);
    if (grown == NULL)
        return no_memory(log, err);
    log->array = grown;
    log->array[log->narrays++] = at;
    return CM_OK;
}

static int take_box(cm_access_log *log, const cm_json *line, cm_error *err)
{
    const cm_json *box = cm_json_member(line, "box");
    cm_access_wanted w = {.line = log->nlines, .box = log->nnumbers};
    int64_t read;
    if (!cm_json_is(box, CM_JSON_ARRAY) || cm_json_length(box) > CM_MAX_RANK)
        return wrong(log, "\"box\" is not a list of [first, end]", err);
    w.rank = (unsigned)cm_json_length(box);
    int rc = take_times(log, line, &w.at, &w.seconds, err);
    if (rc == CM_OK)
        rc = take_number(log, line, "pid", &w.pid, err);
    if (rc == CM_OK)
        rc = take_number(log, line, "read", &read, err);
    for (unsigned j = 0; j < w.rank && rc == CM_OK; j++)
        rc = take_range(log, cm_json_at(box, j), err);
    if (rc == CM_OK)
        rc =
            keep_text(log, cm_json_member(line, "array"), "\"array\" is not a name", &w.array, err);
    if (rc == CM_OK)
        rc = name_array(log, w.array, err);
    if (rc != CM_OK)
        return rc;
    w.read = (uint64_t)read;
    cm_access_wanted *grown =
        cm_make_room(log->wanted, log->nwanted, &log->wanted_capacity, sizeof *log->wanted, 256);
    if (grown == NULL)
        return no_memory(log, err);
    log->wanted = grown;
    log->wanted[log->nwanted++] = w;
    return CM_OK;
}

/* Lengths of each dimension. */
static int take_lengths(cm_access_log *log, const cm_json *list, unsigned rank, cm_error *err)
{
    int rc = CM_OK;
    if (!cm_json_is(list, CM_JSON_ARRAY) || cm_json_length(list) != rank)
        return wrong(log, "\"shape\" and \"chunks\" are not lists of as many lengths", err);
    for (unsigned j = 0; j < rank && rc == CM_OK; j++) {
        uint64_t length;
        if (!cm_json_get_u64(cm_json_at(list, j), &length))
            return wrong(log, "a length is not a number of elements", err);
        rc = keep_number(log, length, err);
    }
    return rc;
}

static int take_stored(cm_access_log *log, const cm_json *line, cm_error *err)
{
    const cm_json *shape = cm_json_member(line, "shape");
    cm_access_stored s = {.line = log->nlines, .shape = log->nnumbers};
    if (!cm_json_is(shape, CM_JSON_ARRAY) || cm_json_length(shape) > CM_MAX_RANK)
        return wrong(log, "\"shape\" is not a list of lengths", err);
    s.rank = (unsigned)cm_json_length(shape);
    int rc = take_lengths(log, shape, s.rank, err);
    if (rc == CM_OK)
        rc = take_lengths(log, cm_json_member(line, "chunks"), s.rank, err);
    if (rc == CM_OK)
        rc =
            keep_text(log, cm_json_member(line, "array"), "\"array\" is not a name", &s.array, err);
    if (rc != CM_OK)
        return rc;
    cm_access_stored *grown =
        cm_make_room(log->stored, log->nstored, &log->stored_capacity, sizeof *log->stored, 16);
    if (grown == NULL)
        return no_memory(log, err);
    log->stored = grown;
    log->stored[log->nstored++] = s;
    return CM_OK;
}

/* ---- lines --------------------------------------------------------------------------------- */

/* One line without its end.  Lines with other members are of later versions' making. */
static int take_line(cm_access_log *log, const char *text, size_t nbytes, cm_error *err)
{
    cm_json *line = NULL;
    cm_error inner = {0};
    log->nlines++;
    if (nbytes == 0)
        return CM_OK;
    int rc = cm_json_parse(text, nbytes, &line, &inner);
    if (rc == CM_ENOMEM)
        return no_memory(log, err);
    if (rc != CM_OK || !cm_json_is(line, CM_JSON_OBJECT))
        rc = wrong(log, "not a JSON object", err);
    else if (cm_json_has(line, "chunkmill"))
        rc = take_head(log, line, err);
    else if (cm_json_has(line, "key"))
        rc = take_request(log, line, err);
    else if (cm_json_has(line, "box"))
        rc = take_box(log, line, err);
    else if (cm_json_has(line, "shape"))
        rc = take_stored(log, line, err);
    else
        rc = wrong(log, "neither a request, nor a box, nor an array", err);
    cm_json_free(line);
    return rc;
}

/* Whole lines at the beginning of TEXT; *TAKEN is how many bytes they are. */
static int take_lines(cm_access_log *log, const char *text, size_t nbytes, size_t *taken,
                      cm_error *err)
{
    int rc = CM_OK;
    *taken = 0;
    while (rc == CM_OK) {
        const char *end = memchr(text + *taken, '\n', nbytes - *taken);
        if (end == NULL)
            break;
        const size_t length = (size_t)(end - (text + *taken));
        if (length > CM_ACCESS_LINE) {
            log->nlines++;
            return wrong(log, "it is longer than 65536 bytes", err);
        }
        rc = take_line(log, text + *taken, length, err);
        *taken += length + 1;
    }
    if (rc == CM_OK && nbytes - *taken > CM_ACCESS_LINE) {
        log->nlines++;
        return wrong(log, "it is longer than 65536 bytes", err);
    }
    return rc;
}

static int create(const char *name, cm_access_log **out, cm_error *err)
{
    cm_access_log *log = cm_calloc(1, sizeof *log, err);
    *out = log;
    if (log == NULL)
        return CM_ENOMEM;
    log->name = cm_strdup(name, err);
    return log->name != NULL ? CM_OK : CM_ENOMEM;
}

static int check(const cm_access_log *log, cm_error *err)
{
    if (log->nrequests == 0 && log->nwanted == 0)
        return cm_fail(err, CM_EFORMAT, "%s: no read is recorded in it", log->name);
    return CM_OK;
}

int cm_access_log_parse(const char *name, const char *text, size_t nbytes, cm_access_log **out,
                        cm_error *err)
{
    size_t taken;
    int rc = create(name, out, err);
    if (rc == CM_OK)
        rc = take_lines(*out, text, nbytes, &taken, err);
    if (rc == CM_OK)
        rc = check(*out, err);
    if (rc != CM_OK) {
        cm_access_log_free(*out);
        *out = NULL;
    }
    return rc;
}

static int read_file(cm_access_log *log, int fd, cm_buf *buf, cm_error *err)
{
    int rc = CM_OK;
    while (rc == CM_OK) {
        if (cm_buf_reserve(buf, buf->nbytes + READ_NBYTES, NULL) != CM_OK)
            return no_memory(log, err);
        const ssize_t got = read(fd, buf->data + buf->nbytes, READ_NBYTES);
        if (got < 0 && errno == EINTR)
            continue;
        if (got < 0)
            return cm_fail_errno(err, errno, "%s: cannot be read", log->name);
        if (got == 0)
            break;
        size_t taken;
        buf->nbytes += (size_t)got;
        rc = take_lines(log, (const char *)buf->data, buf->nbytes, &taken, err);
        memmove(buf->data, buf->data + taken, buf->nbytes - taken);
        buf->nbytes -= taken;
    }
    return rc;
}

int cm_access_log_open(const char *path, cm_access_log **out, cm_error *err)
{
    cm_buf buf = {0};
    int rc = create(path, out, err);
    const int fd = rc == CM_OK ? open(path, O_RDONLY | O_CLOEXEC) : -1;
    if (rc == CM_OK && fd < 0)
        rc = cm_fail_errno(err, errno, "%s: cannot be opened", path);
    if (rc == CM_OK)
        rc = read_file(*out, fd, &buf, err);
    if (fd >= 0)
        close(fd);
    cm_buf_release(&buf);
    if (rc == CM_OK)
        rc = check(*out, err);
    if (rc != CM_OK) {
        cm_access_log_free(*out);
        *out = NULL;
    }
    return rc;
}

void cm_access_log_free(cm_access_log *log)
{
    if (log == NULL)
        return;
    free(log->name);
    cm_buf_release(&log->text);
    free(log->number);
    free(log->request);
    free(log->wanted);
    free(log->stored);
    free(log->array);
    free(log);
}

const char *cm_access_text(const cm_access_log *log, size_t at)
{
    return (const char *)log->text.data + at;
}

const char *cm_access_log_name(const cm_access_log *log)
{
    return log->name;
}

uint64_t cm_access_log_requests(const cm_access_log *log)
{
    return log->nrequests;
}

const char *cm_access_log_array(const cm_access_log *log, size_t i)
{
    return i < log->narrays ? cm_access_text(log, log->array[i]) : NULL;
}

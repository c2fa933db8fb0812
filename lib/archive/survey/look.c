#include "archive/survey/look.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>

#include "archive/survey/form.h"
#include "archive/survey/lengths.h"
#include "base/cpu.h"
#include "codec/checksum.h"
#include "format/counted.h"
#include "model/calendar.h"
#include "store/open.h"

typedef struct look {
    cm_looker *l;
    cm_dataset *file;
    cm_wire_out own; /* the file's frame */
    cm_error *err;
} look;

/* ---- frames ---- */

uint32_t cm_frame_check(const void *payload, size_t nbytes)
{
    return cm_crc32c(cm_cpu_simd(), payload, nbytes);
}

/* A frame around what lies behind BEGIN, where its header has its place. */
static void close_frame(cm_buf *buf, size_t begin, uint32_t kind)
{
    const uint8_t *payload = buf->data + begin + sizeof(cm_frame);
    size_t nbytes = buf->nbytes - begin - sizeof(cm_frame);
    const cm_frame frame = {kind, cm_frame_check(payload, nbytes), nbytes};
    memcpy(buf->data + begin, &frame, sizeof(frame));
}

/* The digest of DATA, which is sent unless it was. */
static int share(cm_looker *l, const void *data, size_t nbytes, cm_digest *out, cm_error *err)
{
    uint64_t before;
    *out = cm_wire_digest(data, nbytes);
    if (cm_known_find(&l->sent, *out, &before))
        return CM_OK;
    size_t begin = l->out.nbytes;
    int rc = cm_buf_resize(&l->out, begin + sizeof(cm_frame), err);
    cm_wire_out w = {&l->out, rc, err};
    cm_wire_put_digest(&w, *out);
    cm_wire_put(&w, data, nbytes);
    if (w.status != CM_OK) {
        l->out.nbytes = begin;
        return w.status;
    }
    close_frame(&l->out, begin, CM_FRAME_SHARED);
    return cm_known_add(&l->sent, *out, 0, err);
}

static int share_json(look *s, const cm_json *json, cm_digest *out)
{
    s->l->scratch.nbytes = 0;
    int rc = cm_json_write(json, false, &s->l->scratch, s->err);
    return rc == CM_OK ? share(s->l, s->l->scratch.data, s->l->scratch.nbytes, out, s->err) : rc;
}

/* ---- a variable ---- */

/* A variable of a group that nc2zarr has marked. */
static bool is_of_statistics(const cm_dataset *ds, const cm_variable *v)
{
    for (size_t i = 0; i < ds->ngroups; i++) {
        const size_t n = strlen(ds->group[i].path);
        if (n > 0 && cm_group_is_counted(ds->group[i].attrs) &&
            strncmp(v->name, ds->group[i].path, n) == 0 && v->name[n] == '/')
            return true;
    }
    return false;
}

/*
 * Names of dimensions say what belongs together: an array of a store that has none for one of
 * them stays as it is, and is not part of the record; nor are statistics that a repository has.
 */
static bool is_told(const cm_dataset *ds, const cm_variable *v)
{
    if (is_of_statistics(ds, v))
        return false;
    for (unsigned j = 0; j < v->rank; j++)
        if (v->dim_name[j] == NULL)
            return false;
    return true;
}

static int share_variable(look *s, const cm_variable *v, cm_digest *out)
{
    size_t nfill = cm_dtype_is_vlen(&v->dtype) || v->dtype.nbytes > 16 ? 0 : v->dtype.nbytes;
    s->l->scratch.nbytes = 0;
    cm_wire_out w = {&s->l->scratch, CM_OK, s->err};
    cm_wire_put_text(&w, v->name);
    cm_wire_put_dtype(&w, &v->dtype);
    cm_wire_put_u32(&w, v->rank);
    for (unsigned j = 0; j < v->rank; j++) {
        cm_wire_put_text(&w, v->dim_name[j]);
        cm_wire_put_u8(&w, v->unlimited[j]);
    }
    cm_wire_put_u8(&w, v->is_char);
    cm_wire_put_u8(&w, v->is_coordinate);
    cm_wire_put_u8(&w, v->has_fill_value);
    cm_wire_put(&w, v->fill_value, sizeof(v->fill_value));
    cm_wire_put_u8(&w, v->scale_nbytes);
    cm_wire_put_u8(&w, v->offset_nbytes);
    cm_wire_put_u8(&w, v->fill != NULL && nfill > 0);
    if (v->fill != NULL && nfill > 0)
        cm_wire_put(&w, v->fill, nfill);
    cm_wire_put_text(&w, v->fill_text);
    cm_wire_put_text(&w, v->unsupported);
    cm_wire_put_text(&w, v->decoded_from);
    cm_wire_put_u8(&w, v->has_source_chunks);
    for (unsigned j = 0; v->has_source_chunks && j < v->rank; j++)
        cm_wire_put_u64(&w, v->source_chunk[j]);
    if (w.status == CM_OK)
        w.status = cm_json_write(v->attrs, false, &s->l->scratch, s->err);
    return w.status == CM_OK ? share(s->l, s->l->scratch.data, s->l->scratch.nbytes, out, s->err)
                             : w.status;
}

/* ---- values ---- */

static const char *text_of(const cm_variable *v, const char *name)
{
    return cm_json_text(cm_json_member(v->attrs, name), NULL);
}

static bool counts_time(const cm_variable *v)
{
    const char *units = text_of(v, "units");
    return units != NULL && cm_time_axis_is(units);
}

/* Bounds follow the axis they belong to, which may be counted from another date. */
static bool bounds_time(const look *s, const cm_variable *v)
{
    for (size_t i = 0; i < s->file->nvars; i++) {
        const cm_variable *axis = &s->file->var[i];
        const char *bounds = text_of(axis, "bounds");
        if (bounds == NULL)
            bounds = text_of(axis, "climatology");
        if (bounds != NULL && strcmp(bounds, v->name) == 0 && counts_time(axis))
            return true;
    }
    return false;
}

static bool any_unlimited(const cm_variable *v)
{
    for (unsigned j = 0; j < v->rank; j++)
        if (v->unlimited[j])
            return true;
    return false;
}

/* Whether the values of V, NBYTES of them, are wanted. */
static bool is_wanted(const look *s, const cm_variable *v, uint64_t nbytes)
{
    /* A row size says where all samples behind it belong. */
    if (v->is_coordinate || text_of(v, "sample_dimension") != NULL)
        return nbytes <= CM_LOOK_COORDINATE;
    if (!any_unlimited(v) && nbytes <= CM_LOOK_STATIC)
        return true;
    if (nbytes > CM_LOOK_VALUES)
        return false;
    /* Text that counts along one dimension is how some models write time. */
    return counts_time(v) || (v->is_char && v->rank == 2) || bounds_time(s, v);
}

static bool size_of(const cm_variable *a, uint64_t *nbytes)
{
    *nbytes = a->dtype.nbytes;
    for (unsigned j = 0; j < a->rank; j++)
        if (!cm_mul_u64(*nbytes, a->shape[j], nbytes))
            return false;
    return true;
}

/* The digest of V's values in *OUT; false: they are not part of the record. */
static int share_values(look *s, cm_variable *v, bool *there, cm_digest *out)
{
    uint64_t nbytes;
    *there = false;
    if (v->unsupported != NULL || cm_dtype_is_vlen(&v->dtype) || !size_of(v, &nbytes) ||
        !is_wanted(s, v, nbytes))
        return CM_OK;
    cm_buf *buf = &s->l->scratch;
    cm_box box = {.rank = v->rank};
    memcpy(box.shape, v->shape, sizeof(box.shape));
    int rc = cm_dataset_prepare(s->file, v, s->err);
    if (rc == CM_OK)
        rc = cm_buf_resize(buf, (size_t)nbytes, s->err);
    if (rc == CM_OK && nbytes > 0)
        rc = cm_array_read(v->array, s->l->ctx, &box, buf->data, s->err);
    if (rc == CM_OK)
        rc = share(s->l, buf->data, (size_t)nbytes, out, s->err);
    *there = rc == CM_OK;
    return rc;
}

/* ---- a file ---- */

static int put_groups(look *s)
{
    size_t n = s->file->ngroups;
    int rc = CM_OK;
    cm_wire_put_u32(&s->own, (uint32_t)n);
    for (size_t i = 0; rc == CM_OK && i < n; i++) {
        const cm_dataset_group *g = &s->file->group[i];
        cm_digest attrs;
        rc = share_json(s, g->attrs, &attrs);
        cm_wire_put_text(&s->own, g->path);
        cm_wire_put_digest(&s->own, attrs);
    }
    return rc != CM_OK ? rc : s->own.status;
}

/* The list of variables, which like files share, and the format. */
static int put_skeleton(look *s)
{
    cm_buf list = {0};
    cm_digest d;
    size_t n = 0;
    cm_wire_out w = {&list, CM_OK, s->err};
    for (size_t i = 0; i < s->file->nvars; i++)
        n += is_told(s->file, &s->file->var[i]);
    cm_wire_put_text(&w, s->file->format_name);
    cm_wire_put_u32(&w, (uint32_t)n);
    for (size_t i = 0; w.status == CM_OK && i < s->file->nvars; i++) {
        if (!is_told(s->file, &s->file->var[i]))
            continue;
        int rc = share_variable(s, &s->file->var[i], &d);
        cm_wire_put_digest(&w, d);
        if (rc != CM_OK)
            w.status = rc;
    }
    cm_wire_put_u32(&w, (uint32_t)cm_dataset_nwarnings(s->file));
    for (size_t i = 0; i < cm_dataset_nwarnings(s->file); i++)
        cm_wire_put_text(&w, cm_dataset_warning_at(s->file, i));
    int rc = w.status == CM_OK ? share(s->l, list.data, list.nbytes, &d, s->err) : w.status;
    cm_buf_release(&list);
    cm_wire_put_digest(&s->own, d);
    return rc != CM_OK ? rc : s->own.status;
}

/* How stored bytes become elements, which like files share. */
static int share_form(look *s, const cm_form *f, cm_digest *out)
{
    s->l->scratch.nbytes = 0;
    cm_wire_out w = {&s->l->scratch, CM_OK, s->err};
    cm_wire_put_form(&w, f);
    return w.status == CM_OK ? share(s->l, s->l->scratch.data, s->l->scratch.nbytes, out, s->err)
                             : w.status;
}

/*
 * Where V's bytes lie, 16 for each chunk.  What cannot be prepared has no place: that is told
 * when it is converted, if it is.
 */
static int put_places(look *s, cm_variable *v)
{
    static const uint8_t zero[8];
    cm_located l = {0};
    cm_digest form;
    bool there = v->unsupported == NULL && cm_dataset_prepare(s->file, v, NULL) == CM_OK &&
                 cm_dataset_locate(s->file, v, &l, NULL) == CM_OK && l.form != NULL &&
                 l.form->kind != CM_LOCATED_NOT && cm_wire_can_put_form(l.form);
    int rc = there ? share_form(s, l.form, &form) : CM_OK;
    cm_wire_put_u8(&s->own, there);
    if (there && rc == CM_OK) {
        cm_wire_put_digest(&s->own, form);
        cm_wire_put_u64(&s->own, l.begin);
        cm_wire_put_u64(&s->own, l.row_stride);
        cm_wire_put_u64(&s->own, l.nplaces);
        /* They are used where they stand. */
        size_t at = s->own.buf->nbytes - sizeof(cm_frame);
        cm_wire_put(&s->own, zero, (8 - at % 8) % 8);
        cm_wire_put(&s->own, l.place, l.nplaces * sizeof(l.place[0]));
    }
    cm_located_release(&l);
    return rc;
}

static int put_variables(look *s)
{
    int rc = CM_OK;
    for (size_t i = 0; rc == CM_OK && i < s->file->nvars; i++) {
        cm_variable *v = &s->file->var[i];
        bool there;
        cm_digest values = {0};
        if (!is_told(s->file, v))
            continue;
        rc = share_values(s, v, &there, &values);
        for (unsigned j = 0; j < v->rank; j++)
            cm_wire_put_u64(&s->own, v->shape[j]);
        cm_wire_put_u8(&s->own, there);
        if (there)
            cm_wire_put_digest(&s->own, values);
        if (rc == CM_OK)
            rc = put_places(s, v);
    }
    return rc != CM_OK ? rc : s->own.status;
}

/* All of a record behind the file's identity. */
static int describe(look *s)
{
    cm_wire_put_u32(&s->own, CM_OK);
    int rc = put_skeleton(s);
    if (rc == CM_OK)
        rc = put_groups(s);
    return rc == CM_OK ? put_variables(s) : rc;
}

static int describe_at(look *s, const char *path)
{
    /* This process is the trial. */
    const cm_dataset_options options = {.guard = CM_GUARD_NONE, .plain = true, .net = s->l->net};
    int rc = cm_dataset_open(path, "", &options, &s->file, s->err);
    if (rc == CM_OK && s->file->kind == CM_DATASET_ZARR) /* files have one length for each name */
        rc = cm_lengths_check(s->file, s->err);
    if (rc == CM_OK)
        rc = describe(s);
    cm_dataset_close(s->file);
    return rc;
}

static void put_identity(cm_wire_out *w, uint64_t number, const struct stat *st)
{
    cm_wire_put_u64(w, number);
    cm_wire_put_u64(w, st->st_dev);
    cm_wire_put_u64(w, st->st_ino);
    cm_wire_put_u64(w, (uint64_t)st->st_size);
    cm_wire_put_u64(w, cm_look_ns(&st->st_mtim));
    cm_wire_put_u64(w, cm_look_ns(&st->st_ctim));
}

bool cm_look_is_good(const uint8_t *payload, uint64_t nbytes)
{
    enum {
        IDENTITY = 6 * sizeof(uint64_t)
    };
    return nbytes >= IDENTITY + sizeof(uint32_t) && cm_load_le32(payload + IDENTITY) == CM_OK;
}

static int put_failure(cm_wire_out *w, const cm_error *why)
{
    cm_wire_put_u32(w, (uint32_t)why->status);
    cm_wire_put_text(w, why->text);
    return w->status;
}

static int append_own(cm_looker *l, cm_buf *own, int rc)
{
    if (rc == CM_OK)
        close_frame(own, 0, CM_FRAME_FILE);
    if (rc == CM_OK)
        rc = cm_buf_append(&l->out, own->data, own->nbytes, NULL);
    cm_buf_release(own);
    return rc;
}

/*
 * A file may be written to again within one tick of the clock that its times are of, and then
 * has the same times.  So one that is younger is looked at when that tick is over: whatever is
 * written later shows.  Only the first of many young files waits.
 */
static void let_tick_pass(const char *path, struct stat *st)
{
    enum {
        TICK_NS = 20000000,    /* 100 a second, at the least, and some */
        COARSE_NS = 2000000000 /* file systems that count in seconds, or in pairs of them */
    };
    struct timespec now;
    uint64_t changed = cm_look_ns(&st->st_ctim);
    uint64_t tick = st->st_ctim.tv_nsec == 0 ? COARSE_NS : TICK_NS;
    if (clock_gettime(CLOCK_REALTIME, &now) != 0)
        return;
    uint64_t then = cm_look_ns(&now);
    if (then < changed || then - changed >= tick)
        return; /* the clock of another machine may be ahead: nothing to wait for is known */
    now = (struct timespec){.tv_sec = (time_t)((tick - (then - changed)) / 1000000000u),
                            .tv_nsec = (long)((tick - (then - changed)) % 1000000000u)};
    while (nanosleep(&now, &now) != 0 && errno == EINTR)
        ;
    (void)stat(path, st);
}

static void put_object(cm_wire_out *w, uint64_t number, const cm_copy *copy)
{
    cm_wire_put_u64(w, number);
    cm_wire_put_u64(w, 0);
    cm_wire_put_u64(w, cm_copy_mark(copy));
    cm_wire_put_u64(w, cm_copy_stat(copy)->nbytes);
    cm_wire_put_u64(w, 0);
    cm_wire_put_u64(w, 0);
}

/* A frame that begins with the identity of F as it is now. */
static cm_wire_out begin_own(cm_buf *own, const cm_look_file *f, uint64_t number, struct stat *st,
                             cm_error *err)
{
    *st = (struct stat){0};
    bool there = f->copy != NULL || cm_store_url_is_remote(f->path) ||
                 cm_icechunk_path(f->path) != NULL || stat(f->path, st) == 0;
    int failed = errno, rc = cm_buf_resize(own, sizeof(cm_frame), err);
    if (there && S_ISREG(st->st_mode))
        let_tick_pass(f->path, st);
    cm_wire_out w = {own, rc, err};
    if (f->copy != NULL)
        put_object(&w, number, f->copy);
    else
        put_identity(&w, number, st);
    if (!there && rc == CM_OK)
        (void)cm_fail_errno(err, failed, "%s", f->path);
    return w;
}

static int make_context(cm_looker *l, cm_error *err)
{
    if (l->ctx == NULL)
        l->ctx = cm_codec_ctx_create(err);
    return l->ctx == NULL ? CM_ENOMEM : CM_OK;
}

int cm_look_at(cm_looker *l, cm_dataset *ds, uint64_t number, cm_error *err)
{
    cm_buf own = {0};
    look s = {.l = l, .file = ds, .err = err};
    s.own = (cm_wire_out){&own, cm_buf_resize(&own, sizeof(cm_frame), err), err};
    put_identity(&s.own, number, &(struct stat){0});
    int rc = make_context(l, err);
    return append_own(l, &own, rc == CM_OK ? describe(&s) : rc);
}

int cm_look(cm_looker *l, const cm_look_file *file, uint64_t number, cm_error *err)
{
    struct stat st;
    cm_buf own = {0};
    cm_error why = {0};
    look s = {.l = l, .err = &why};
    s.own = begin_own(&own, file, number, &st, &why);
    size_t identity = own.nbytes;
    int rc = why.status;
    if (rc == CM_OK)
        rc = make_context(l, &why);
    if (rc == CM_OK)
        rc = describe_at(&s, file->copy != NULL ? file->lies : file->path);
    if (rc != CM_OK && file->copy != NULL)
        cm_copy_name(file->copy, file->lies, &why);
    if (rc != CM_OK && rc != CM_ENOMEM) {
        own.nbytes = identity;
        s.own.status = CM_OK;
        rc = put_failure(&s.own, &why);
    }
    rc = append_own(l, &own, rc);
    return rc == CM_OK ? CM_OK : cm_fail(err, CM_ENOMEM, "%s: no memory to survey it", file->path);
}

int cm_look_failed(cm_looker *l, const cm_look_file *file, uint64_t number, const cm_error *why,
                   cm_error *err)
{
    struct stat st;
    cm_buf own = {0};
    cm_error ignored = {0};
    cm_wire_out w = begin_own(&own, file, number, &st, &ignored);
    int rc = append_own(l, &own, put_failure(&w, why));
    return rc == CM_OK ? CM_OK : cm_fail(err, CM_ENOMEM, "%s: no memory to survey it", file->path);
}

void cm_looker_release(cm_looker *l)
{
    cm_codec_ctx_free(l->ctx);
    l->ctx = NULL;
    cm_known_release(&l->sent);
    cm_buf_release(&l->out);
    cm_buf_release(&l->scratch);
}

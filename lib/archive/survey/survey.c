#include "archive/survey/survey.h"

#include <malloc.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "archive/survey/cache.h"
#include "archive/survey/pool.h"
#include "archive/survey/records.h"
#include "base/cpu.h"

/* ---- collecting ---- */

typedef struct collector {
    cm_survey *survey;
    cm_spot *spot; /* of each file; in paged memory */
    cm_survey_cache *cache;
} collector;

static int take(void *context, const cm_frame *frame, const uint8_t *payload, cm_error *err)
{
    collector *c = context;
    uint64_t offset = 0;
    int rc = cm_records_append(c->survey->records, frame, payload, &offset, err);
    if (rc != CM_OK || frame->kind != CM_FRAME_FILE)
        return rc;
    uint64_t number = frame->nbytes >= sizeof(uint64_t) ? cm_load_le64(payload) : UINT64_MAX;
    if (number >= c->survey->nfiles)
        return cm_fail(err, CM_EINTERNAL, "a survey gave the record of no file");
    c->spot[number].offset = offset;
    c->spot[number].nbytes = frame->nbytes;
    /* One that could not be read is not kept, nor a store that grows. */
    if (c->cache != NULL && !c->survey->file[number].is_base &&
        cm_look_is_good(payload, frame->nbytes))
        c->cache->is_old = true;
    return CM_OK;
}

cm_surveyed *cm_survey_file(const cm_survey *s, size_t i)
{
    cm_surveyed *f = &s->file[i];
    cm_paged_touch(s->paged, f, sizeof(*f));
    cm_paged_touch(s->paged, f->path, 1);
    return f;
}

/* File I, and where its record lies, are going to be read. */
static cm_surveyed *touch_file(cm_survey *s, const cm_spot *spot, size_t i)
{
    cm_paged_touch(s->paged, &spot[i], sizeof(spot[i]));
    return cm_survey_file(s, i);
}

/* Size and time of each file now.  One that a tape system took away has no blocks. */
static void see_files(cm_survey *s, cm_spot *spot)
{
    for (size_t i = 0; i < s->nfiles; i++) {
        struct stat st;
        cm_surveyed *f = touch_file(s, spot, i);
        if (f->copy != NULL) {
            f->nbytes = cm_copy_stat(f->copy)->nbytes;
            f->ino = cm_copy_mark(f->copy);
            s->nbytes += f->nbytes;
            spot[i].regular = cm_copy_is_marked(f->copy); /* else no record of it is believed */
        }
        if (f->is_base || f->copy != NULL || f->status != CM_OK || stat(f->path, &st) != 0)
            continue;
        s->nbytes += (uint64_t)st.st_size;
        f->dev = st.st_dev;
        f->ino = st.st_ino;
        f->nbytes = (uint64_t)st.st_size;
        spot[i].mtime_ns = cm_look_ns(&st.st_mtim);
        spot[i].ctime_ns = cm_look_ns(&st.st_ctim);
        spot[i].regular = S_ISREG(st.st_mode);
        f->offline = S_ISREG(st.st_mode) && st.st_size > 0 && st.st_blocks == 0;
    }
}

/* A store needs no process of its own, and a child process has no network. */
static int look_at_base(const cm_survey_options *o, cm_survey *s, collector *c, cm_error *err)
{
    cm_looker l = {.net = o->net};
    cm_frame f;
    int rc = cm_look(&l, &(cm_look_file){.path = s->file[0].path}, 0, err);
    s->file[0].opened = true;
    for (size_t at = 0; rc == CM_OK && at < l.out.nbytes; at += sizeof(f) + f.nbytes) {
        memcpy(&f, l.out.data + at, sizeof(f));
        rc = take(c, &f, l.out.data + at + sizeof(f), err);
    }
    cm_looker_release(&l);
    return rc;
}

/* An object that nothing is known of. */
static int note_unknown(collector *c, size_t i, cm_error *err)
{
    cm_surveyed *f = &c->survey->file[i];
    cm_looker l = {0};
    cm_error why = {.status = f->status};
    cm_frame frame;
    snprintf(why.text, sizeof(why.text), "%s", f->why);
    int rc = cm_look_failed(&l, &(cm_look_file){.path = f->path}, i, &why, err);
    if (rc == CM_OK) {
        memcpy(&frame, l.out.data, sizeof(frame));
        rc = take(c, &frame, l.out.data + sizeof(frame), err);
    }
    cm_looker_release(&l);
    return rc;
}

static int look_at_files(const cm_survey_options *o, cm_survey *s, collector *c, cm_error *err)
{
    const char **path = cm_paged_calloc(s->paged, s->nfiles + 1, sizeof(*path), err);
    uint64_t *number = cm_paged_calloc(s->paged, s->nfiles + 1, sizeof(*number), err);
    cm_copy **copy = cm_paged_calloc(s->paged, s->nfiles + 1, sizeof(cm_copy *), err);
    cm_survey_job job = {.path = path,
                         .number = number,
                         .copy = copy,
                         .copies = s->copies,
                         .nprocesses = o->nprocesses > 0 ? o->nprocesses : cm_cpu_count(),
                         .memory = o->memory,
                         .monitor = o->monitor,
                         .take = take,
                         .context = c};
    int rc = path == NULL || number == NULL || copy == NULL ? CM_ENOMEM : CM_OK;
    for (size_t i = 0; rc == CM_OK && i < s->nfiles; i++) {
        cm_surveyed *f = touch_file(s, c->spot, i);
        if (f->offline || f->is_base || c->spot[i].offset != 0)
            continue;
        if (f->status != CM_OK) {
            rc = note_unknown(c, i, err);
            continue;
        }
        f->opened = true;
        path[job.n] = f->path;
        copy[job.n] = f->copy;
        number[job.n++] = i;
    }
    s->nlooked = job.n;
    cm_monitor_phase(o->monitor, CM_PHASE_SURVEYING, job.n);
    if (rc == CM_OK && job.n > 0)
        rc = cm_survey_pool_run(&job, err);
    cm_paged_let_go(s->paged);
    return rc;
}

/* ---- reading records ---- */

static int damaged(const cm_surveyed *f, cm_error *err)
{
    return cm_fail(err, CM_EFORMAT, "%s: its record in the survey is damaged", f->path);
}

int cm_surveyed_read(cm_survey *s, cm_surveyed *f, const cm_spot *spot, cm_error *err)
{
    const uint8_t *at = s->records->map + spot->offset;
    f->records = s->records;
    f->base = at;
    cm_records_touch(s->records, spot->nbytes);
    cm_wire_in w = {at, at + spot->nbytes, false};
    (void)cm_wire_get_u64(&w); /* its number */
    f->dev = cm_wire_get_u64(&w);
    f->ino = cm_wire_get_u64(&w);
    f->nbytes = cm_wire_get_u64(&w);
    if (f->is_base)
        f->nbytes = 0; /* of a folder: it says nothing */
    f->mtime_ns = cm_wire_get_u64(&w);
    (void)cm_wire_get_u64(&w); /* ctime: a cache asks for it */
    f->status = (cm_status)cm_wire_get_u32(&w);
    if (f->status != CM_OK) {
        f->why = cm_wire_get_text(&w);
        return w.bad || f->why == NULL ? damaged(f, err) : CM_OK;
    }
    cm_digest skeleton = cm_wire_get_digest(&w);
    if (w.bad)
        return damaged(f, err);
    int rc = cm_records_skeleton(s->records, skeleton, &s->nskeletons, &f->skeleton, err);
    f->record = w.at;
    f->end = w.end;
    return rc;
}

/* Takes the records that there are; a survey that was stopped lacks some. */
static int read_records(cm_survey *s, const collector *c, cm_error *err)
{
    int rc = cm_records_map(s->records, err);
    for (size_t i = 0; rc == CM_OK && i < s->nfiles; i++) {
        cm_surveyed *f = touch_file(s, c->spot, i);
        if (!f->offline && c->spot[i].offset != 0)
            rc = cm_surveyed_read(s, f, &c->spot[i], err);
    }
    return rc;
}

/* The base comes first; files that it has already do not come. */
static int list_files(const cm_survey_options *o, cm_survey *s, cm_error *err)
{
    if (o->base != NULL)
        s->file[s->nfiles++] = (cm_surveyed){.path = o->base, .is_base = true};
    for (size_t i = 0; i < s->inputs.n; i++) {
        const cm_input *in = &s->inputs.item[i];
        bool listed = false;
        const cm_object_stat *told = in->copy != NULL ? cm_copy_stat(in->copy) : NULL;
        char tag[sizeof(told->tag)];
        if (told != NULL)
            cm_copy_tag(in->copy, tag);
        int rc = o->listed == NULL || in->status != CM_OK
                     ? CM_OK
                     : o->listed(o->listed_context, in->path, told != NULL ? told->nbytes : 0,
                                 told != NULL ? tag : NULL, &listed, err);
        if (rc != CM_OK)
            return rc;
        s->nlisted += listed;
        cm_paged_touch(s->paged, &s->file[s->nfiles], sizeof(s->file[0]));
        if (!listed)
            s->file[s->nfiles++] = (cm_surveyed){.path = in->path,
                                                 .given = in->given + (o->base != NULL),
                                                 .copy = in->copy,
                                                 .status = in->status,
                                                 .why = in->why};
    }
    cm_inputs_forget(&s->inputs);
    return CM_OK;
}

static int prepare(const cm_survey_options *o, cm_survey *s, collector *c, cm_error *err)
{
    if ((s->paged = cm_paged_create(o->scratch, err)) == NULL)
        return CM_ENOMEM;
    s->inputs = (cm_inputs){.paged = s->paged,
                            .standard = o->standard,
                            .zero = o->zero,
                            .avoid = o->avoid,
                            .net = o->net,
                            .scratch = o->fetched,
                            .max_nbytes = o->fetched_nbytes};
    int rc = cm_inputs_find(&o->inputs, &s->inputs, err);
    s->copies = s->inputs.copies;
    if (rc != CM_OK)
        return rc;
    size_t most = s->inputs.n + 2;
    s->file = cm_paged_calloc(s->paged, most, sizeof(s->file[0]), err);
    c->spot = cm_paged_calloc(s->paged, most, sizeof(c->spot[0]), err);
    if (s->file == NULL || c->spot == NULL)
        return CM_ENOMEM;
    if ((rc = list_files(o, s, err)) != CM_OK)
        return rc;
    see_files(s, c->spot);
    (void)malloc_trim(0); /* lists that were made while files were found */
    return cm_records_create(o->scratch, s->paged, &s->records, err);
}

/* Also what was found before it was stopped or failed, so that it need not be found again. */
static int keep(cm_survey *s, const collector *c, int rc, cm_error *err)
{
    cm_error why = {0};
    int failed = rc != CM_OK ? read_records(s, c, &why) : CM_OK;
    if (failed == CM_OK)
        failed = cm_survey_cache_save(c->cache, s, c->spot, &why);
    if (rc != CM_OK || failed == CM_OK)
        return rc;
    if (err != NULL)
        *err = why;
    return failed;
}

static int survey(const cm_survey_options *o, cm_survey *s, collector *c, cm_error *err)
{
    int rc = prepare(o, s, c, err);
    if (rc == CM_OK && c->cache != NULL)
        rc = cm_survey_cache_load(c->cache, s, c->spot, err);
    if (rc != CM_OK)
        return rc;
    if (o->base != NULL)
        rc = look_at_base(o, s, c, err);
    if (rc == CM_OK)
        rc = look_at_files(o, s, c, err);
    if (rc == CM_OK)
        rc = read_records(s, c, err);
    return c->cache != NULL ? keep(s, c, rc, err) : rc;
}

int cm_survey_run(const cm_survey_options *options, cm_survey *out, cm_error *err)
{
    cm_survey_cache cache = {0};
    collector c = {.survey = out, .cache = options->cache != NULL ? &cache : NULL};
    *out = (cm_survey){0};
    int rc =
        c.cache != NULL ? cm_survey_cache_open(&cache, options->cache, options->avoid, err) : CM_OK;
    if (rc == CM_OK)
        rc = survey(options, out, &c, err);
    cm_survey_cache_release(&cache);
    return rc;
}

void cm_survey_release(cm_survey *s)
{
    cm_records_free(s->records);
    cm_copies_free(s->copies);
    cm_paged_free(s->paged);
    free(s->cache_refused);
    cm_inputs_release(&s->inputs);
    *s = (cm_survey){0};
}

/* ---- a file's record ---- */

/* The record of this file is going to be read. */
static void touch(const cm_surveyed *f)
{
    if (f->end != NULL)
        cm_records_touch(f->records, (uint64_t)(f->end - f->base));
}

void cm_survey_touch(cm_survey *s)
{
    cm_records_touch(s->records, sizeof(cm_skeleton));
}

void cm_survey_rest(cm_survey *s)
{
    cm_records_rest(s->records);
}

int cm_survey_failed(const cm_survey *s, cm_error *err)
{
    return s->records->failed == CM_OK ? CM_OK
           : s->records->failed == CM_ENOMEM
               ? cm_fail(err, CM_ENOMEM, "no memory for attributes of files")
               : cm_fail(err, CM_EFORMAT, "a record of the survey is damaged");
}

size_t cm_surveyed_ngroups(const cm_surveyed *f)
{
    cm_wire_in w = {f->record, f->end, false};
    return cm_wire_get_u32(&w);
}

static void skip_groups(cm_wire_in *w, size_t n)
{
    for (size_t i = 0; i < n && !w->bad; i++) {
        (void)cm_wire_get_text(w);
        (void)cm_wire_get_digest(w);
    }
}

int cm_surveyed_group(const cm_survey *s, const cm_surveyed *f, size_t i, const char **path,
                      cm_digest *attrs, cm_error *err)
{
    (void)s;
    touch(f);
    cm_wire_in w = {f->record, f->end, false};
    (void)cm_wire_get_u32(&w);
    skip_groups(&w, i);
    *path = cm_wire_get_text(&w);
    *attrs = cm_wire_get_digest(&w);
    return w.bad || *path == NULL ? damaged(f, err) : CM_OK;
}

int cm_survey_json(const cm_survey *s, cm_digest digest, cm_json **out, cm_error *err)
{
    size_t nbytes;
    const void *text = cm_survey_values(s, digest, &nbytes);
    if (text == NULL)
        return cm_fail(err, CM_EFORMAT, "a record of the survey is missing");
    return cm_json_parse(text, nbytes, out, err);
}

cm_surveyed_iter cm_surveyed_begin(const cm_surveyed *f)
{
    cm_surveyed_iter it = {.file = f, .at = {f->record, f->end, false}};
    touch(f);
    uint32_t ngroups = cm_wire_get_u32(&it.at);
    skip_groups(&it.at, ngroups);
    return it;
}

static void get_places(cm_wire_in *w, const uint8_t *base, cm_surveyed_var *out)
{
    cm_located *l = &out->located;
    out->form = cm_wire_get_digest(w);
    l->begin = cm_wire_get_u64(w);
    l->row_stride = cm_wire_get_u64(w);
    l->nplaces = cm_wire_get_u64(w);
    (void)cm_wire_get(w, (8 - (size_t)(w->at - base) % 8) % 8);
    if (l->nplaces > (size_t)(w->end - w->at) / sizeof(l->place[0]))
        w->bad = true;
    l->place = w->bad || l->nplaces == 0 ? NULL : cm_wire_get(w, l->nplaces * sizeof(l->place[0]));
}

bool cm_surveyed_next(cm_surveyed_iter *it, cm_surveyed_var *out)
{
    const cm_skeleton *k = it->file->skeleton;
    if (k == NULL || it->i >= k->nvars)
        return false;
    *out = (cm_surveyed_var){.var = k->var[it->i++]};
    for (unsigned j = 0; j < out->var->rank; j++)
        out->shape[j] = cm_wire_get_u64(&it->at);
    out->has_values = cm_wire_get_u8(&it->at) != 0;
    if (out->has_values)
        out->values = cm_wire_get_digest(&it->at);
    out->is_located = cm_wire_get_u8(&it->at) != 0;
    if (out->is_located)
        get_places(&it->at, it->file->base, out);
    return !it->at.bad;
}

bool cm_surveyed_find(const cm_surveyed *f, const char *name, cm_surveyed_var *out)
{
    cm_surveyed_iter it = cm_surveyed_begin(f);
    while (cm_surveyed_next(&it, out))
        if (strcmp(out->var->name, name) == 0)
            return true;
    return false;
}

int cm_survey_form(const cm_survey *s, cm_digest digest, const cm_form **out, cm_error *err)
{
    return cm_records_form(s->records, digest, out, err);
}

const void *cm_survey_values(const cm_survey *s, cm_digest digest, size_t *nbytes)
{
    const cm_shared *found = cm_records_find(s->records, digest);
    *nbytes = found == NULL ? 0 : (size_t)found->nbytes;
    cm_records_touch(s->records, *nbytes);
    return found == NULL ? NULL : s->records->map + found->offset;
}

/* A part of a commit of arrays that are converted, or passed on. */
#include <stdlib.h>
#include <string.h>

#include "base/path.h"
#include "convert/sink/icechunk/part.h"
#include "convert/sink/part/parts_counted.h"
#include "format/icechunk/key.h"
#include "options/store_path.h"
#include "store/open.h"

/* ---- the commit ---- */

static int check(cm_repository_part *p, uint8_t tip[CM_ICE_ID], cm_error *err)
{
    cm_repository r = {0};
    cm_store *root = NULL;
    int rc = cm_repository_part_look(p, &r, &root, err);
    if (rc == CM_OK)
        rc = cm_repository_check(&r, p->sink, p->job, err);
    if (rc == CM_OK)
        memcpy(tip, r.own.tip, CM_ICE_ID);
    cm_ice_base_release(&r.own);
    cm_store_free(root);
    return rc;
}

static int open(cm_repository_part *p, cm_ice_writing *w, cm_error *err)
{
    return cm_ice_writing_open(w, p->sink, p->job, err);
}

static int complete(cm_repository_part *p, cm_ice_writing *w, cm_error *err)
{
    int rc = p->sink->options->statistics ? cm_parts_counted_join(p->job, &p->sink->out.beside, err)
                                          : CM_OK;
    return rc == CM_OK ? cm_ice_writing_complete(w, p->sink, p->job, err) : rc;
}

static int publish(cm_repository_part *p, cm_ice_writing *w, cm_error *err)
{
    return cm_ice_writing_publish(w, p->sink, p->job, NULL, err);
}

static const cm_repository_part_ops ops = {
    .check = check, .open = open, .complete = complete, .publish = publish};

/* ---- the sink ---- */

static int is_same_place(const char *a, const char *b, bool *out, cm_error *err)
{
    char *real[2] = {NULL, NULL};
    int rc = cm_path_real(a, &real[0], err);
    if (rc == CM_OK)
        rc = cm_path_real(b, &real[1], err);
    *out = real[0] != NULL && real[1] != NULL ? strcmp(real[0], real[1]) == 0 : strcmp(a, b) == 0;
    free(real[0]);
    free(real[1]);
    return rc;
}

/* A branch of the repository that is written moves with the commit: parts read one snapshot. */
static int check_source(const cm_sink *s, cm_error *err)
{
    const char *repository = cm_icechunk_path(s->options->source);
    cm_store_path of = {0};
    uint8_t id[CM_ICE_ID];
    if (repository == NULL)
        return CM_OK;
    int rc = cm_store_path_split(repository, &of, err);
    char *at = rc == CM_OK ? strrchr(of.path, '@') : NULL;
    const bool pinned = at != NULL && (strncmp(at, "@tag:", 5) == 0 || cm_ice_id_parse(at + 1, id));
    bool whole = false, same = false;
    if (rc == CM_OK)
        rc = is_same_place(of.path, s->out.root, &whole, err);
    if (at != NULL)
        *at = '\0';
    if (rc == CM_OK)
        rc = is_same_place(of.path, s->out.root, &same, err);
    if (rc == CM_OK && !pinned && (whole || same))
        rc = cm_fail(err, CM_EINVAL,
                     "`part`: %s is written, too; name the snapshot that all parts read, "
                     "icechunk:PATH@SNAPSHOT",
                     s->options->source);
    cm_store_path_release(&of);
    return rc;
}

static int find(cm_sink *s, cm_job *job, cm_error *err)
{
    int rc = cm_repository_find_part(s, job, err);
    return rc == CM_OK ? check_source(s, err) : rc;
}

static int begin(cm_sink *s, cm_job *job, bool *moves, cm_error *err)
{
    cm_repository_part *p = s->own = cm_calloc(1, sizeof(*p), err);
    if (p == NULL)
        return CM_ENOMEM;
    p->ops = &ops;
    int rc = cm_sink_describe(job, NULL, err);
    if (rc == CM_OK)
        rc = cm_ice_writing_check(job, err);
    return rc == CM_OK ? cm_repository_part_begin(p, s, job, moves, err) : rc;
}

static int leave(cm_sink *s, cm_job *job, int rc, cm_error *err)
{
    cm_repository_part *p = s->own;
    (void)job;
    (void)err;
    s->own = NULL;
    if (p != NULL)
        cm_repository_part_release(p);
    free(p);
    return rc;
}

const cm_sink_ops cm_sink_icechunk_part = {.kind = CM_SINK_COMMITS,
                                           .terms.unconsolidated = true,
                                           .find = find,
                                           .layout = cm_job_layout,
                                           .begin = begin,
                                           .commit = cm_part_commit,
                                           .withdraw = cm_part_withdraw,
                                           .leave = leave,
                                           .give_back = cm_sink_end_output};

#include "convert/sink/store/output.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "convert/beside/ledger.h"
#include "convert/beside/parts_files.h"
#include "convert/sink/growth/append_repair.h"
#include "convert/statistics/statistics.h"
#include "options/store_path.h"
#include "store/net/url.h"
#include "store/open.h"
#include "store/zip.h"
#include "watch/monitor.h"

enum {
    MAX_TRIES = 100 /* others come and go meanwhile */
};

/* ---- what is there ---- */

/* The journal of versions that had it inside the store. */
#define OLD_JOURNAL ".chunkmill-journal"

/* Storage that does not answer is no answer: a store taken for none would be written into. */
static int find_zarr(cm_store *store, bool *out, cm_error *err)
{
    static const char *const marks[] = {"zarr.json", ".zgroup", ".zarray", ".zmetadata"};
    int rc = CM_OK;
    *out = false;
    for (size_t i = 0; i < sizeof(marks) / sizeof(marks[0]) && rc != CM_EIO && !*out; i++) {
        rc = cm_store_size(store, marks[i], NULL, err);
        *out = rc == CM_OK;
    }
    return rc == CM_EIO ? rc : CM_OK;
}

static int open_node(cm_output *out, cm_store *root, bool create, cm_error *err)
{
    const cm_store_options options = {.output = true, .net = out->net};
    if (!cm_store_is_remote(root))
        return cm_store_open_below(root, out->node, create, &out->store, err);
    char *url = cm_url_join(out->root, out->node, err);
    int rc = url == NULL ? CM_ENOMEM : cm_store_open(url, &options, &out->store, err);
    free(url);
    return rc;
}

/* Opens what is there: OUT->store stays NULL where nothing is. */
static int open_there(cm_output *out, cm_error *err)
{
    const cm_store_options options = {.output = true, .net = out->net};
    cm_place there;
    cm_store *root;
    cm_entry_kind kind = CM_ENTRY_NONE;
    cm_store_free(out->store);
    out->store = NULL;
    int rc = cm_store_probe(out->root, &options, &there, err);
    if (rc != CM_OK || there == CM_PLACE_NOTHING)
        return rc;
    if (there != CM_PLACE_FOLDER)
        return cm_fail(err, CM_EEXIST, "%s: is a file, and files are never overwritten", out->root);
    if (*out->node == '\0')
        return cm_store_open(out->root, &options, &out->store, err);
    rc = cm_store_open(out->root, &options, &root, err);
    if (rc != CM_OK)
        return rc;
    rc = cm_store_kind(root, out->node, &kind, err);
    if (rc == CM_OK && kind == CM_ENTRY_FILE)
        rc = cm_fail(err, CM_EEXIST, "%s: is a file, and files are never overwritten", out->path);
    else if (rc == CM_OK && kind != CM_ENTRY_NONE)
        rc = open_node(out, root, false, err);
    if (rc != CM_OK)
        cm_error_place(err, out->root);
    cm_store_free(root);
    return rc;
}

static int name_output(const cm_output *out, int rc, cm_error *err)
{
    if (rc != CM_OK)
        cm_error_place(err, out->path);
    return rc;
}

/*
 * A zip file is absent or complete, so no journal tells of it.  One that is no store, or damaged,
 * is somebody's.
 */
static int examine_zip(cm_output *out, cm_error *err)
{
    struct stat st;
    cm_error why = {0};
    bool zarr = false;
    out->state = CM_OUTPUT_ABSENT;
    out->phase = CM_JOURNAL_NONE;
    out->device = out->inode = 0;
    if (lstat(out->beside.root, &st) != 0)
        return errno == ENOENT ? CM_OK : cm_fail_errno(err, errno, "%s", out->path);
    if (S_ISDIR(st.st_mode))
        return cm_fail(err, CM_EEXIST, "%s: is a folder, and its name that of a zip file",
                       out->path);
    cm_store *old = NULL;
    int rc = cm_store_open_zip(out->beside.root, "", &old, &why);
    if (rc == CM_EFORMAT || rc == CM_EUNSUPPORTED)
        rc = cm_fail(err, CM_EEXIST, "%s: is a file and not a store, and never overwritten (%s)",
                     out->path, why.text);
    else if (rc != CM_OK)
        rc = cm_fail(err, rc, "%s", why.text);
    if (rc == CM_OK)
        rc = find_zarr(old, &zarr, err);
    cm_store_free(old);
    out->state = zarr ? CM_OUTPUT_STORE : CM_OUTPUT_OTHER;
    out->device = (uint64_t)st.st_dev;
    out->inode = (uint64_t)st.st_ino;
    return rc;
}

static int examine(cm_output *out, cm_error *err)
{
    bool zarr = false, any = false;
    if (out->is_zip)
        return name_output(out, examine_zip(out, err), err);
    int rc = open_there(out, err);
    if (rc == CM_OK)
        rc = cm_journal_look(&out->beside, out->journal, &out->phase, err);
    if (rc == CM_OK && out->store != NULL)
        rc = find_zarr(out->store, &zarr, err);
    if (rc != CM_OK)
        return name_output(out, rc, err);
    if (out->store == NULL)
        out->state = CM_OUTPUT_ABSENT;
    else if (out->phase != CM_JOURNAL_NONE ||
             cm_store_size(out->store, OLD_JOURNAL, NULL, NULL) == CM_OK)
        out->state = CM_OUTPUT_BEGUN;
    else if (zarr)
        out->state = CM_OUTPUT_STORE;
    else {
        rc = cm_store_has_any(out->store, "", &any, err);
        out->state = any ? CM_OUTPUT_OTHER : CM_OUTPUT_EMPTY;
    }
    return name_output(out, rc, err);
}

/* ---- what may be done with it ---- */

/*
 * A run that was stopped: what cannot be gone on with begins again, if nothing complete is lost
 * by that.
 */
static int decide_begun(cm_output *out, cm_error *err)
{
    if (out->overwrite)
        return CM_OK;
    if (!out->resume)
        return cm_fail(err, CM_EEXIST, "%s: exists; `resume` finishes it, `overwrite` begins again",
                       out->path);
    out->resumes = out->phase == CM_JOURNAL_WRITING;
    /* Until its chunks are begun, a run that replaces a store has still the right to. */
    if (out->resumes || out->phase == CM_JOURNAL_PREPARING)
        return CM_OK;
    bool zarr;
    int rc = find_zarr(out->store, &zarr, err);
    if (rc == CM_OK && zarr)
        return cm_fail(err, CM_EEXIST,
                       "%s: the journal beside it is damaged, and a store is there that may be "
                       "complete; `overwrite` begins again",
                       out->path);
    return rc;
}

static int decide(cm_output *out, cm_error *err)
{
    switch (out->state) {
    case CM_OUTPUT_ABSENT:
        return CM_OK;
    case CM_OUTPUT_BEGUN:
        return decide_begun(out, err);
    case CM_OUTPUT_EMPTY:
        if (out->overwrite || out->resume)
            return CM_OK;
        break;
    case CM_OUTPUT_STORE:
        if (out->overwrite)
            return CM_OK;
        out->finished = out->resume;
        if (out->resume)
            return CM_OK;
        break;
    case CM_OUTPUT_OTHER:
        if (out->overwrite)
            return cm_fail(err, CM_EEXIST,
                           "%s: is not a Zarr store, so `overwrite` does not touch it", out->path);
        if (out->resume)
            return cm_fail(err, CM_EEXIST,
                           "%s: exists, but is not a store that `resume` can finish", out->path);
        return cm_fail(err, CM_EEXIST, "%s: exists, and is not a Zarr store; name another output",
                       out->path);
    }
    const bool grows = out->state == CM_OUTPUT_STORE && !out->is_zip && *out->node == '\0';
    return cm_fail(err, CM_EEXIST, "%s: exists; `overwrite` replaces it%s", out->path,
                   grows ? ", and `append` adds to it" : "");
}

int cm_output_find(const cm_output_request *request, cm_output *out, cm_error *err)
{
    *out = (cm_output){.overwrite = request->overwrite,
                       .resume = request->resume,
                       .break_lock = request->break_lock,
                       .net = request->net,
                       .beside.fd = -1};
    int rc = cm_store_path_plain(request->root, &out->root, err);
    if (rc != CM_OK)
        return rc;
    if ((out->node = cm_strdup(request->node, err)) == NULL)
        return CM_ENOMEM;
    out->path = cm_asprintf(err, "%s%s%s", out->root, *out->node != '\0' ? "/" : "", out->node);
    out->journal = cm_journal_name(out->node, err);
    if (out->path == NULL || out->journal == NULL)
        return CM_ENOMEM;
    if (*out->root == '\0')
        return cm_fail(err, CM_EINVAL, "the path of a store is empty");
    out->is_zip = cm_zip_is_name(out->root);
    rc = cm_beside_find(out->root, out->net, &out->beside, err);
    out->beside.stop = (cm_stop){cm_monitor_cancels, request->monitor};
    return rc;
}

int cm_output_check(const cm_output_request *request, cm_output *out, cm_error *err)
{
    int rc = cm_output_find(request, out, err);
    if (rc == CM_OK)
        rc = cm_lock_peek(&out->beside, out->break_lock, err);
    if (rc == CM_OK)
        rc = cm_parts_check_none(&out->beside, out->overwrite, err);
    if (rc != CM_OK)
        return name_output(out, rc, err);
    rc = examine(out, err);
    return rc == CM_OK ? decide(out, err) : rc;
}

int cm_output_decide(cm_output *out, cm_error *err)
{
    int rc = examine(out, err);
    out->resume = out->phase == CM_JOURNAL_PREPARING;
    return rc == CM_OK ? decide(out, err) : rc;
}

int cm_output_join(cm_output *out, cm_error *err)
{
    const cm_store_options options = {.output = true, .net = out->net};
    cm_store_free(out->store);
    out->store = NULL;
    return cm_store_open(out->root, &options, &out->store, err);
}

int cm_output_is_begun(const char *root, const char *node, cm_net *net, bool *out, cm_error *err)
{
    cm_beside beside = {.fd = -1};
    cm_journal_phase phase = CM_JOURNAL_NONE;
    char *name = cm_journal_name(node, err);
    int rc = name == NULL ? CM_ENOMEM : cm_beside_find(root, net, &beside, err);
    if (rc == CM_OK)
        rc = cm_beside_open(&beside, false, err);
    if (rc == CM_OK)
        rc = cm_journal_look(&beside, name, &phase, err);
    *out = phase != CM_JOURNAL_NONE;
    cm_beside_release(&beside);
    free(name);
    return rc;
}

int cm_output_check_above(const char *root, const char *node, cm_net *net, cm_error *err)
{
    char *above = cm_strdup(node, err);
    int rc = above == NULL ? CM_ENOMEM : CM_OK;
    while (rc == CM_OK && *above != '\0') {
        bool begun = false;
        char *slash = strrchr(above, '/');
        *(slash != NULL ? slash : above) = '\0';
        rc = cm_output_is_begun(root, above, net, &begun, err);
        if (rc == CM_OK && begun)
            rc = cm_fail(err, CM_EEXIST, "%s%s%s: is not finished; `resume` does that", root,
                         *above != '\0' ? "::" : "", above);
    }
    free(above);
    return rc;
}

/* ---- beginning ---- */

/* The plan holds only if nobody else was at the output since. */
static int check_unchanged(cm_output *out, cm_error *err)
{
    cm_output_state state = out->state;
    cm_journal_phase phase = out->phase;
    cm_store *planned = out->store;
    out->store = NULL;
    int rc = examine(out, err);
    /* Writers were made with the store that was opened first: the same folder. */
    if (planned != NULL) {
        cm_store_free(out->store);
        out->store = planned;
    }
    if (rc == CM_OK && (state != out->state || phase != out->phase))
        rc =
            cm_fail(err, CM_EEXIST, "%s: another run changed it meanwhile; start again", out->path);
    return rc;
}

/*
 * A run that fails removes the folders above its node that it made and that are empty, the root
 * among them: the one that was just opened may be gone.
 */
static int make_node(cm_output *out, cm_error *err)
{
    const cm_store_options options = {.output = true, .create = true, .net = out->net};
    cm_store *root = NULL;
    int rc = cm_store_open(out->root, &options, &root, err);
    if (rc == CM_OK && *out->node == '\0') {
        out->store = root;
        root = NULL;
    } else if (rc == CM_OK) {
        rc = open_node(out, root, true, err);
        if (rc != CM_OK)
            cm_error_prefix(err, "%s", out->root);
    }
    cm_store_free(root);
    return rc;
}

/* In the folder beside the output, whose lock is held: what an earlier run left there is gone. */
static int make_zip(cm_output *out, cm_error *err)
{
    const cm_zip_place place = {.path = out->beside.root,
                                .folder = out->beside.path,
                                .device = out->device,
                                .inode = out->inode};
    return cm_store_create_zip(&place, &out->store, err);
}

static int make_folder(cm_output *out, cm_error *err)
{
    if (out->is_zip)
        return make_zip(out, err);
    int rc = make_node(out, err);
    for (int i = 0; rc == CM_ENOTFOUND && !out->beside.remote && i < MAX_TRIES; i++)
        rc = make_node(out, err);
    out->made = rc == CM_OK;
    return rc;
}

static cm_verdict judge_old_journal(void *context, const char *below, cm_entry_kind kind)
{
    (void)context;
    return kind == CM_ENTRY_FILE && strcmp(below, OLD_JOURNAL) == 0 ? CM_REMOVE : CM_KEEP;
}

/* Journals of nodes and the files of parts tell of nothing any more when a store is replaced. */
static cm_verdict judge_beside(void *context, const char *below, cm_entry_kind kind)
{
    (void)context;
    bool old = strncmp(below, "journal-", 8) == 0 || cm_parts_is_file(below) ||
               strcmp(below, CM_LEDGER_NAME) == 0 ||
               strncmp(below, CM_ZIP_TEMPORARY, strlen(CM_ZIP_TEMPORARY)) == 0 ||
               strncmp(below, CM_COMMIT_NAME, strlen(CM_COMMIT_NAME)) == 0;
    return kind == CM_ENTRY_FILE && old ? CM_REMOVE : CM_KEEP;
}

static int empty_folder(cm_output *out, cm_zarr_left *left, cm_error *err)
{
    bool zarr;
    int rc = find_zarr(out->store, &zarr, err);
    if (rc == CM_OK && zarr)
        rc = cm_zarr_erase(out->store, err);
    if (rc == CM_OK && *out->node == '\0')
        rc = cm_repair_remove_all(out->store, &out->beside, err);
    if (rc == CM_OK)
        rc = cm_journal_erase(&out->beside, out->journal, out->store, err);
    if (rc == CM_OK)
        rc = cm_store_sweep(out->store, "", judge_old_journal, NULL, err);
    if (rc == CM_OK && *out->node == '\0')
        rc = cm_store_sweep(out->beside.in, "", judge_beside, NULL, err);
    return rc == CM_OK ? cm_zarr_count_left(out->store, left, err) : rc;
}

/*
 * In a bucket a run that was killed may have left nothing but parts of objects, which are none: it
 * looks as if nothing were there.
 */
static int make_place(cm_output *out, cm_error *err)
{
    int rc = make_folder(out, err);
    if (rc != CM_OK || !cm_store_is_remote(out->store))
        return rc;
    rc = cm_store_cache_listing(out->store, err);
    return rc == CM_OK ? cm_journal_erase(&out->beside, out->journal, out->store, err) : rc;
}

/* Something of another kind may have the name of a node. */
static int check_names(const cm_output *out, const cm_made *made, cm_error *err)
{
    int rc = CM_OK;
    for (size_t i = 0; rc == CM_OK && out->store != NULL && made != NULL && i < made->n; i++)
        rc = cm_zarr_check_free(out->store, made->node[i].path, made->node[i].meta, err);
    return rc;
}

int cm_output_foresee(const cm_output *out, const cm_json *fingerprint, const cm_made *made,
                      cm_error *err)
{
    int rc = out->resumes ? cm_journal_check(&out->beside, out->journal, fingerprint, err) : CM_OK;
    return name_output(out, rc == CM_OK ? check_names(out, made, err) : rc, err);
}

int cm_output_lock(cm_output *out, const cm_made *made, cm_error *err)
{
    int rc = cm_lock_take(&out->beside, out->break_lock, &out->lock, &out->note, err);
    if (rc != CM_OK)
        cm_error_place(err, out->root);
    if (rc == CM_OK)
        rc = cm_parts_check_none(&out->beside, out->overwrite, err);
    if (rc == CM_OK)
        rc = check_unchanged(out, err);
    if (rc == CM_OK && out->store != NULL && !out->resumes)
        rc = cm_store_cache_listing(out->store, err);
    if (rc == CM_OK)
        rc = check_names(out, made, err);
    return name_output(out, rc, err);
}

int cm_output_begin(cm_output *out, const cm_made *made, cm_zarr_left *left, cm_error *err)
{
    static const cm_made nothing = {0};
    *left = (cm_zarr_left){0};
    if (out->resumes)
        return CM_OK;
    int rc = out->store != NULL ? cm_store_cache_listing(out->store, err) : CM_OK;
    if (rc == CM_OK && !out->is_zip)
        rc = cm_journal_prepare(&out->beside, out->journal, made == NULL ? &nothing : made,
                                out->store, err);
    /* The statistics are those of a store that goes; an old zip file stays until the new one is. */
    if (rc == CM_OK && !out->is_zip)
        rc = cm_statistics_forget(out->path, out->beside.net, err);
    /* The plan of a store that somebody removed goes first: beside a folder it would hold. */
    if (rc == CM_OK && out->store == NULL && *out->node == '\0')
        rc = cm_store_sweep(out->beside.in, "", judge_beside, NULL, err);
    if (rc == CM_OK)
        rc = out->store == NULL ? make_place(out, err) : empty_folder(out, left, err);
    cm_store_drop_listing(out->store);
    out->touched = rc == CM_OK;
    return name_output(out, rc, err);
}

int cm_output_open_journal(cm_output *out, const cm_json *fingerprint, const cm_made *made,
                           unsigned nthreads, uint64_t memory, cm_journal **journal,
                           uint64_t *nchunks, cm_error *err)
{
    *nchunks = 0;
    int rc = out->resumes
                 ? cm_journal_resume(&out->beside, out->journal, fingerprint, made, out->store,
                                     nthreads, memory, journal, nchunks, err)
                 : cm_journal_begin(&out->beside, out->journal, fingerprint, made, journal, err);
    out->begun = rc == CM_OK;
    return name_output(out, rc, err);
}

/* ---- ending ---- */

int cm_output_finish(cm_output *out, cm_error *err)
{
    int rc = out->is_zip ? cm_statistics_forget(out->path, NULL, err) : CM_OK;
    return rc == CM_OK ? cm_store_complete(out->store, err) : rc;
}

void cm_output_complete(cm_output *out)
{
    cm_beside_remove(&out->beside, out->journal);
    out->begun = false;
}

void cm_output_tidy(cm_output *out)
{
    if (out->beside.in != NULL && out->lock == NULL)
        (void)cm_lock_take(&out->beside, false, &out->lock, &out->note, NULL);
}

static cm_verdict judge_itself(void *context, const char *below, cm_entry_kind kind)
{
    (void)context;
    (void)kind;
    return *below == '\0' ? CM_REMOVE : CM_KEEP;
}

static bool is_gone(int rc)
{
    return rc == CM_OK || rc == CM_ENOTFOUND;
}

/* False where something of it stays. */
static bool erase_made(cm_store *store, const cm_made *made)
{
    /* The root, and what it says of all others, first: what is half removed is no store. */
    bool gone = is_gone(cm_zarr_erase_metadata(store, "", NULL));
    for (size_t i = 0; i < made->n; i++) {
        const cm_made_node *node = &made->node[i];
        gone &= is_gone(cm_zarr_erase_metadata(store, node->path, NULL));
        if (node->meta != NULL)
            gone &= is_gone(cm_zarr_erase_chunks(store, node->path, node->meta, NULL));
    }
    /* Groups come last, and the deepest of them may be anywhere among them. */
    for (size_t i = made->n; i-- > 0;)
        gone &= is_gone(cm_store_sweep(store, made->node[i].path, judge_itself, NULL, NULL));
    return gone;
}

bool cm_output_discard(cm_output *out, const cm_made *made)
{
    if (!out->touched)
        return true;
    if (out->is_zip) {
        cm_store_free(out->store);
        out->store = NULL;
        return true;
    }
    /* Without the journal no run would know chunks that stay for what they are. */
    if (!erase_made(out->store, made) && out->begun)
        return false;
    /* A store that is gone cannot be resumed. */
    cm_output_complete(out);
    if (out->made && !cm_store_is_remote(out->store))
        rmdir(out->path);
    return true;
}

void cm_output_end(cm_output *out)
{
    cm_store_free(out->store);
    out->store = NULL;
    cm_lock_release(out->lock, &out->beside);
    out->lock = NULL;
}

void cm_output_release(cm_output *out)
{
    cm_output_end(out);
    cm_beside_release(&out->beside);
    free(out->root);
    free(out->node);
    free(out->path);
    free(out->journal);
    free(out->note);
    *out = (cm_output){0};
}

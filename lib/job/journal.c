#include "job/journal.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define FILE_NAME "/.chunkmill-journal"

struct cm_journal {
    char *path;
    int fd;
};

static char *journal_path(const char *folder, cm_error *err)
{
    return cm_asprintf(err, "%s%s", folder, FILE_NAME);
}

bool cm_journal_exists(const char *folder)
{
    struct stat st;
    char *path = journal_path(folder, NULL);
    bool exists = path != NULL && stat(path, &st) == 0 && S_ISREG(st.st_mode);
    free(path);
    return exists;
}

void cm_journal_remove(const char *folder)
{
    char *path = journal_path(folder, NULL);
    if (path != NULL)
        unlink(path);
    free(path);
}

static int refuse_other(const cm_json *was, const cm_json *is, cm_error *err)
{
    cm_json_iter it = cm_json_begin(is);
    while (cm_json_next(&it))
        if (!cm_json_equal(it.value, cm_json_member(was, it.name)))
            return cm_fail(err, CM_EEXIST,
                           "the output was begun with another %s; --resume goes on only with what "
                           "was begun, --overwrite begins again",
                           it.name);
    return CM_OK;
}

/* ---- the file ---- */

static int write_all(int fd, const void *data, size_t nbytes, const char *path, cm_error *err)
{
    const char *p = data;
    while (nbytes > 0) {
        ssize_t n = write(fd, p, nbytes);
        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0)
            return cm_fail_errno(err, errno, "cannot write %s", path);
        p += n;
        nbytes -= (size_t)n;
    }
    return CM_OK;
}

static int open_file(const char *folder, int flags, cm_journal **out, cm_error *err)
{
    cm_journal *j = cm_calloc(1, sizeof(*j), err);
    if (j == NULL)
        return CM_ENOMEM;
    if ((j->path = journal_path(folder, err)) == NULL) {
        free(j);
        return CM_ENOMEM;
    }
    j->fd = open(j->path, flags | O_CLOEXEC | O_APPEND, 0666);
    if (j->fd < 0) {
        int rc = cm_fail_errno(err, errno, "cannot open %s", j->path);
        free(j->path);
        free(j);
        return rc;
    }
    *out = j;
    return CM_OK;
}

static int header(const cm_json *fingerprint, const cm_journal_list *list, bool made, cm_json **out,
                  cm_error *err)
{
    cm_json *arrays = cm_json_array(), *j = cm_json_copy(fingerprint);
    int rc = j == NULL ? cm_fail(err, CM_ENOMEM, "no memory for the journal") : CM_OK;
    for (size_t i = 0; rc == CM_OK && i < list->n; i++)
        rc = cm_json_append(arrays, cm_json_string(list->item[i].name), err);
    if (rc == CM_OK)
        rc = cm_json_set(j, "made", cm_json_bool(made), err);
    if (rc == CM_OK) {
        rc = cm_json_set(j, "arrays", arrays, err);
        arrays = NULL;
    }
    cm_json_free(arrays);
    if (rc == CM_OK)
        *out = j;
    else
        cm_json_free(j);
    return rc;
}

int cm_journal_begin(const char *folder, const cm_json *fingerprint, const cm_journal_list *list,
                     bool made, cm_journal **out, cm_error *err)
{
    cm_json *j = NULL;
    cm_buf text = {0};
    int rc = header(fingerprint, list, made, &j, err);
    if (rc == CM_OK)
        rc = cm_json_write(j, false, &text, err);
    if (rc == CM_OK)
        rc = cm_buf_append(&text, "\n", 1, err);
    if (rc == CM_OK)
        rc = open_file(folder, O_WRONLY | O_CREAT | O_TRUNC, out, err);
    if (rc == CM_OK)
        rc = write_all((*out)->fd, text.data, text.nbytes, (*out)->path, err);
    cm_buf_release(&text);
    cm_json_free(j);
    return rc;
}

/* The header and what follows it; *rest points into TEXT. */
static int read_file(const char *folder, cm_buf *text, cm_json **head, char **rest, cm_error *err)
{
    cm_journal *j;
    struct stat st;
    int rc = open_file(folder, O_RDONLY, &j, err);
    if (rc != CM_OK)
        return rc;
    if (fstat(j->fd, &st) != 0)
        rc = cm_fail_errno(err, errno, "%s", j->path);
    if (rc == CM_OK)
        rc = cm_buf_resize(text, (size_t)st.st_size + 1, err);
    for (size_t done = 0; rc == CM_OK && done + 1 < text->nbytes;) {
        ssize_t n = read(j->fd, text->data + done, text->nbytes - 1 - done);
        if (n > 0)
            done += (size_t)n;
        else if (n == 0 || errno != EINTR)
            rc = cm_fail(err, CM_EIO, "cannot read %s", j->path);
    }
    if (rc == CM_OK) {
        text->data[text->nbytes - 1] = '\0';
        char *end = strchr((char *)text->data, '\n');
        *rest = end == NULL ? NULL : end + 1;
        if (end == NULL ||
            cm_json_parse(text->data, (size_t)(end - (char *)text->data), head, NULL) != CM_OK)
            rc = cm_fail(err, CM_EFORMAT, "%s is no journal; --overwrite begins again", j->path);
    }
    cm_journal_close(j, false);
    return rc;
}

/* Lines "VARIABLE CHUNK"; a last one without its newline was cut off by a crash and does not count. */
static int adopt_skipped(const cm_journal_list *list, char *text, uint64_t *nchunks, cm_error *err)
{
    for (char *end; (end = strchr(text, '\n')) != NULL; text = end + 1) {
        size_t index;
        uint64_t chunk;
        *end = '\0';
        if (sscanf(text, "%zu %" SCNu64, &index, &chunk) != 2 || index >= list->n ||
            list->item[index].writer == NULL ||
            chunk >= cm_zarr_writer_grid(list->item[index].writer)->nchunks)
            return cm_fail(err, CM_EFORMAT, "the journal holds a line that is none: %.60s", text);
        cm_zarr_writer *w = list->item[index].writer;
        if (cm_zarr_writer_is_delivered(w, chunk))
            continue;
        int rc = cm_zarr_writer_skip(w, chunk, err);
        if (rc != CM_OK)
            return rc;
        ++*nchunks;
    }
    return CM_OK;
}

static int adopt_objects(const cm_journal_list *list, uint64_t *nchunks, cm_error *err)
{
    for (size_t i = 0; i < list->n; i++) {
        cm_zarr_writer *w = list->item[i].writer;
        for (uint64_t k = 0; w != NULL && k < cm_zarr_writer_outer_grid(w)->nchunks; k++) {
            bool kept;
            int rc = cm_zarr_writer_keep(w, k, &kept, err);
            if (rc != CM_OK)
                return rc;
            *nchunks += kept;
        }
    }
    return CM_OK;
}

int cm_journal_resume(const char *folder, const cm_json *fingerprint, const cm_journal_list *list,
                      cm_journal **out, uint64_t *nchunks, cm_error *err)
{
    cm_json *was = NULL;
    cm_buf text = {0};
    char *rest = NULL;
    *nchunks = 0;
    int rc = read_file(folder, &text, &was, &rest, err);
    if (rc == CM_OK)
        rc = refuse_other(was, fingerprint, err);
    /* Objects first: a chunk of a shard that is whole may also have a line. */
    if (rc == CM_OK)
        rc = adopt_objects(list, nchunks, err);
    if (rc == CM_OK)
        rc = adopt_skipped(list, rest, nchunks, err);
    if (rc == CM_OK)
        rc = open_file(folder, O_WRONLY, out, err);
    cm_buf_release(&text);
    cm_json_free(was);
    return rc;
}

int cm_journal_open(const cm_output *out, const cm_json *fingerprint, const cm_journal_list *list,
                    cm_journal **journal, uint64_t *nchunks, cm_error *err)
{
    *nchunks = 0;
    int rc = out->resumes ? cm_journal_resume(out->path, fingerprint, list, journal, nchunks, err)
                          : cm_journal_begin(out->path, fingerprint, list, out->made, journal, err);
    if (rc != CM_OK && err != NULL && strstr(err->text, out->path) == NULL)
        cm_error_prefix(err, "%s", out->path);
    return rc;
}

int cm_journal_skip(cm_journal *journal, size_t index, uint64_t chunk, cm_error *err)
{
    char line[48];
    int n = snprintf(line, sizeof(line), "%zu %" PRIu64 "\n", index, chunk);
    return write_all(journal->fd, line, (size_t)n, journal->path, err);
}

void cm_journal_close(cm_journal *journal, bool done)
{
    if (journal == NULL)
        return;
    close(journal->fd);
    if (done)
        unlink(journal->path);
    free(journal->path);
    free(journal);
}

int cm_journal_give_up(const char *folder, cm_store *store, cm_error *err)
{
    cm_json *head = NULL;
    cm_buf text = {0};
    char *rest, *path = journal_path(folder, err);
    bool made = false;
    int rc = path == NULL ? CM_ENOMEM : read_file(folder, &text, &head, &rest, err);
    if (rc == CM_OK) {
        const cm_json *arrays = cm_json_member(head, "arrays");
        cm_json_get_bool(cm_json_member(head, "made"), &made);
        if (made)
            cm_output_remove_below(store, "");
        for (size_t i = 0; i < cm_json_length(arrays); i++) {
            const char *name = cm_json_text(cm_json_at(arrays, i), NULL);
            if (name != NULL && cm_key_check(name, NULL) == CM_OK)
                cm_output_remove_below(store, name);
        }
        unlink(path);
        rc = cm_store_prune(store, "", err);
    }
    free(path);
    cm_buf_release(&text);
    cm_json_free(head);
    return rc;
}

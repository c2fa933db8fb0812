/* Starts the child that reads for the libraries, with a file or for one that is open. */
#include <fcntl.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/cpu.h"
#include "base/glibc.h"
#include "format/nc/preflight.h"
#include "format/nc/reader_child.h"
#include "format/nc/reader_impl.h"
#include "format/nc/trial.h"

enum {
    LEAST_MEMORY = 64 << 20 /* for data, whatever the limit */
};

static int make_memory(void)
{
    int fd = memfd_create("chunkmill", MFD_CLOEXEC | MFD_ALLOW_SEALING);
    /* The seal keeps this mapping valid, whatever the child does. */
    if (fd >= 0 && fcntl(fd, F_ADD_SEALS, F_SEAL_SHRINK) == 0)
        return fd;
    if (fd >= 0)
        close(fd);
    return -1;
}

static int start_child(cm_nc_reader *r, cm_error *err)
{
    cm_trial_fate fate;
    cm_buf record;
    cm_nc_child child = {
        .path = r->path, .memory = r->memory, .most = r->most, .cpu_s = r->limits.cpu_s};
    cm_buf_init(&record, sizeof r->opened);
    int rc = cm_trial_keep(cm_nc_child_open, cm_nc_child_serve, &child, &r->limits, &record, &fate,
                           &r->child, err);
    rc = cm_nc_trial_judge(rc, r->path, &r->limits, &fate, err);
    if (rc == CM_OK && r->child.pid != 0 && record.nbytes == sizeof r->opened)
        memcpy(&r->opened, record.data, sizeof r->opened);
    cm_buf_release(&record);
    return rc;
}

/* The reader of PATH, after its child has tried the file; NULL if no process can be started. */
static int start_reader(const char *path, const cm_dataset_options *options, cm_nc_reader **out,
                        cm_error *err)
{
    cm_nc_reader *r = cm_calloc(1, sizeof *r, err);
    *out = NULL;
    if (r == NULL)
        return CM_ENOMEM;
    pthread_mutex_init(&r->lock, NULL);
    r->memory = make_memory();
    r->child.fd = -1;
    r->path = cm_strdup(path, err);
    int rc = r->path == NULL ? CM_ENOMEM : cm_nc_trial_begin(err);
    cm_nc_trial_limits(path, options->memory, options->canceled, options->canceled_context,
                       &r->limits);
    r->most = options->memory > 0 ? options->memory : cm_memory_available() / 2;
    /* Keep a quarter for the parent. */
    r->most = r->most / 4 * 3 > LEAST_MEMORY ? r->most / 4 * 3 : LEAST_MEMORY;
    if (rc == CM_OK)
        rc = r->memory < 0 ? cm_nc_preflight(path, options, err) : start_child(r, err);
    if (rc == CM_OK && r->child.pid != 0)
        *out = r;
    else
        cm_nc_reader_release(r);
    return rc;
}

/* ---- the file that it is for ---- */

/* Gives READER to FILE, or stops it; NULL: no process could be started. */
static int give(cm_nc_file *file, cm_nc_reader *reader, cm_error *err)
{
    if (reader == NULL || cm_nc_is_same_file(&reader->opened, &file->opened)) {
        file->reader = reader;
        return CM_OK;
    }
    (void)cm_nc_reader_stop(reader);
    return cm_fail(err, CM_EFORMAT,
                   "%s: was replaced or written to while it was being opened; run again when it "
                   "is complete",
                   file->path);
}

int cm_nc_guard(cm_nc_file *file, const cm_dataset_options *options, cm_error *err)
{
    cm_nc_reader *reader = NULL;
    /* netCDF-C reads classic files by arithmetic alone, so these need no reader. */
    if (file->reader != NULL || file->h5 < 0)
        return CM_OK;
    int rc = start_reader(file->path, options, &reader, err);
    return rc == CM_OK ? give(file, reader, err) : rc;
}

int cm_nc_open_tried(const char *path, const cm_dataset_options *options, cm_nc_file **out,
                     cm_error *err)
{
    cm_nc_reader *reader = NULL;
    *out = NULL;
    int rc = start_reader(path, options, &reader, err);
    if (rc == CM_OK)
        rc = cm_nc_open(path, &(cm_nc_options){.io = options->io}, out, err);
    if (rc != CM_OK || (*out)->h5 < 0) {
        (void)cm_nc_reader_stop(reader);
        reader = NULL;
    }
    if (rc != CM_OK)
        return rc;
    (*out)->canceled = options->canceled;
    (*out)->context = options->canceled_context;
    rc = give(*out, reader, err);
    if (rc == CM_OK)
        return CM_OK;
    cm_nc_close(*out);
    *out = NULL;
    return rc;
}

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <netcdf.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "format/nc/at_work.h"
#include "format/nc/file.h"
#include "format/nc/lock.h"
#include "format/nc/plain.h"
#include "format/nc/reader.h"

/* Opens PATH and gets its size; O_NONBLOCK, so that a pipe is refused at once. */
static int open_source(cm_nc_file *file, cm_error *err)
{
    int fd = open(file->path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    if (fd < 0)
        return cm_fail_errno(err, errno, "%s", file->path);
    file->source = cm_source_of_fd(fd, 0);
    struct stat st;
    if (fstat(fd, &st) != 0)
        return cm_fail_errno(err, errno, "%s", file->path);
    if (S_ISDIR(st.st_mode))
        return cm_fail(err, CM_EFORMAT, "%s: is a folder, not a NetCDF file", file->path);
    if (!S_ISREG(st.st_mode))
        return cm_fail(err, CM_EFORMAT, "%s: is not a regular file", file->path);
    if (st.st_size == 0)
        return cm_fail(err, CM_EFORMAT, "%s: is empty", file->path);
    file->source.nbytes = (uint64_t)st.st_size;
    file->data = file->source;
    file->opened = st;
    return CM_OK;
}

/*
 * The file is opened here, by HDF5 and by netCDF-C.  If it was replaced in between, one file would
 * be read with another's index.
 */
static int check_same(const cm_nc_file *file, const char *real_path, cm_error *err)
{
    struct stat st;
    void *handle = NULL;
    bool same = stat(real_path, &st) == 0 && cm_nc_is_same_file(&st, &file->opened);
    /* The sec2 driver, which is the default, hands out its descriptor. */
    if (same && file->h5 >= 0 && H5Fget_vfd_handle(file->h5, H5P_DEFAULT, &handle) >= 0 &&
        handle != NULL)
        same = fstat(*(const int *)handle, &st) == 0 && cm_nc_is_same_file(&st, &file->opened);
    if (same)
        return CM_OK;
    return cm_fail(err, CM_EFORMAT,
                   "%s: was replaced or written to while it was being opened; run again when it "
                   "is complete",
                   file->path);
}

/* Opens the data descriptor. */
static int open_data(cm_nc_file *file, cm_io io, cm_error *err)
{
    if (io == CM_IO_PREAD)
        return CM_OK;
    if (io != CM_IO_DIRECT)
        return cm_fail(err, CM_EUNSUPPORTED, "%s: NetCDF is read with pread or O_DIRECT only",
                       file->path);
    int rc = cm_direct_create(&file->direct, err);
    if (rc != CM_OK)
        return rc;
    int fd = open(file->path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_DIRECT);
    if (fd < 0 && errno != EINVAL)
        return cm_fail_errno(err, errno, "%s", file->path);
    if (fd < 0)
        return cm_fail(err, CM_EUNSUPPORTED,
                       "%s: its file system does not read past the page cache (O_DIRECT)",
                       file->path);
    file->data = cm_source_of_direct(fd, file->source.nbytes, file->direct);
    uint8_t first;
    rc = cm_source_read(&file->data, 0, &first, 1, err);
    if (rc != CM_OK)
        cm_error_place(err, file->path);
    return rc;
}

static int check_end(const cm_nc_file *file, uint64_t promised, cm_error *err)
{
    if (promised <= file->source.nbytes)
        return CM_OK;
    return cm_fail(err, CM_EFORMAT,
                   "%s: truncated: the header promises %" PRIu64 " bytes, the file has %" PRIu64,
                   file->path, promised, file->source.nbytes);
}

/* The signature at the very beginning: HDF5 may have it further on, behind another format's. */
static int check_signature(const cm_nc_file *file, cm_error *err)
{
    char head[4];
    if (file->source.nbytes >= sizeof(head) &&
        cm_source_read(&file->source, 0, head, sizeof(head), NULL) == CM_OK &&
        (memcmp(head, "CDF", 3) == 0 || memcmp(head, "\211HDF", 4) == 0))
        return CM_OK;
    return cm_fail(err, CM_EUNSUPPORTED, "%s: does not begin like NetCDF or HDF5", file->path);
}

/* Determines the file's format, and whether it is complete, before a library sees it. */
static int classify(cm_nc_file *file, bool *is_hdf5, cm_error *err)
{
    *is_hdf5 = false;
    int rc = cm_classic_header_read(&file->source, &file->classic, err);
    if (rc == CM_OK)
        return check_end(file, file->classic.data_end, err);
    if (rc != CM_ENOTFOUND) {
        cm_error_place(err, file->path);
        return rc;
    }
    rc = cm_h5_super_read(&file->source, &file->super, err);
    if (rc == CM_ENOTFOUND)
        return cm_fail(err, CM_EFORMAT, "%s: is neither NetCDF nor HDF5", file->path);
    if (rc != CM_OK) {
        cm_error_place(err, file->path);
        return rc;
    }
    *is_hdf5 = true;
    return check_end(file, file->super.end, err);
}

/*
 * netCDF-C opens with H5F_CLOSE_WEAK, and HDF5 refuses to open a file twice with different
 * degrees.  The first opening sets the size of the chunk caches.  MARK is a property list made
 * before all of netCDF-C's.
 */
static int open_hdf5(cm_nc_file *file, const char *real_path, hid_t *mark, cm_error *err)
{
    hid_t access = *mark = H5Pcreate(H5P_FILE_ACCESS);
    size_t nbytes = 0, nelem = 0;
    float preemption = 0;
    if (file->library_caches && nc_get_chunk_cache(&nbytes, &nelem, &preemption))
        nbytes = nelem = 0;
    if (access >= 0 && H5Pset_fclose_degree(access, H5F_CLOSE_WEAK) >= 0 &&
        H5Pset_cache(access, 0, nelem, nbytes, preemption) >= 0)
        file->h5 = H5Fopen(real_path, H5F_ACC_RDONLY, access);
    if (access >= 0)
        H5Pclose(access);
    if (file->h5 < 0 && file->super.writing)
        return cm_fail(err, CM_EFORMAT,
                       "%s: is open for writing elsewhere, or its writer died; if it died, "
                       "h5clear -s makes the file readable",
                       file->path);
    if (file->h5 < 0)
        return cm_fail(err, CM_EFORMAT, "%s: HDF5 cannot open it, it is corrupt", file->path);
    int rc = cm_h5_check_groups(file->h5, err);
    if (rc != CM_OK)
        cm_error_place(err, file->path);
    return rc;
}

static void set_format_name(cm_nc_file *file)
{
    int format = 0;
    const char *name = "NetCDF-4";
    if (file->classic.version) {
        snprintf(file->format_name, sizeof file->format_name, "NetCDF classic (CDF-%d)",
                 file->classic.version);
        return;
    }
    if (nc_inq_format(file->ncid, &format) == NC_NOERR && format == NC_FORMAT_NETCDF4_CLASSIC)
        name = "NetCDF-4 classic model";
    /* netCDF-C makes up names only where a file has no named dimensions. */
    for (size_t i = 0; i < file->ndims; i++)
        if (file->dim[i].name != NULL && strncmp(file->dim[i].name, "phony_dim_", 10) == 0)
            name = "HDF5";
    snprintf(file->format_name, sizeof file->format_name, "%s", name);
}

/*
 * Tries twice: the format is known, but a read interrupted by a signal makes netCDF-C report
 * another.
 */
static int open_known(const char *real_path, int *ncid)
{
    int rc = nc_open(real_path, NC_NOWRITE, ncid);
    return rc == NC_ENOTNC ? nc_open(real_path, NC_NOWRITE, ncid) : rc;
}

/*
 * Opens without chunk caches, unless KEEP_CACHES.  netCDF-C gives every variable a cache and keeps
 * it until the file is closed: 60 variables of 4 MB held 267 MB, 24 MB without.  Boxes are read
 * whole and need none, and HDF5 would take a cached chunk of fill values for a stored one.  The
 * size is set by netCDF-C's global default, because nc_set_var_chunk_cache in 4.9.0 opens the
 * wrong dataset where a variable and a dimension share a name (nc4_reopen_dataset).
 */
static int open_netcdf(const char *real_path, bool keep_caches, int *ncid)
{
    if (keep_caches)
        return open_known(real_path, ncid);
    size_t nbytes = 0, nelem = 0;
    float preemption = 0;
    int rc = nc_get_chunk_cache(&nbytes, &nelem, &preemption);
    if (rc == CM_OK)
        rc = nc_set_chunk_cache(0, nelem, preemption);
    if (rc != CM_OK)
        return rc;
    rc = open_known(real_path, ncid);
    int restored = nc_set_chunk_cache(nbytes, nelem, preemption);
    if (rc != CM_OK || !restored)
        return rc;
    (void)nc_close(*ncid);
    return restored;
}

/* Runs all steps that need the lock. */
static int open_libraries(cm_nc_file *file, bool is_hdf5, const char *real_path, cm_error *err)
{
    hid_t mark = -1;
    (void)cm_nc_lacked_memory();
    int rc = is_hdf5 ? open_hdf5(file, real_path, &mark, err) : CM_OK;
    if (rc != CM_OK)
        return rc;
    rc = open_netcdf(real_path, file->library_caches, &file->ncid);
    cm_nc_forgotten_find(mark, &file->forgotten);
    if (rc != CM_OK) {
        file->ncid = -1;
        char version[32];
        cm_nc_hdf5_version(version, sizeof version);
        if (rc == NC_EHDFERR)
            return cm_fail(err, CM_EFORMAT,
                           "%s: netCDF-C cannot open it: it is corrupt, or in a format newer than "
                           "HDF5 %s reads",
                           file->path, version);
        return cm_fail(err, CM_EFORMAT, "%s: netCDF-C cannot open it: %s", file->path,
                       nc_strerror(rc));
    }
    rc = check_same(file, real_path, err);
    if (rc == CM_OK)
        rc = cm_nc_groups_read(file, err);
    if (rc == CM_OK)
        rc = cm_nc_variables_read(file, err);
    if (rc == CM_OK)
        rc = cm_h5_add_unseen(file, err);
    /* Attributes or variables may be missing then, and would be missing from the store. */
    if (rc == CM_OK && cm_nc_lacked_memory())
        rc = cm_fail(err, CM_EFORMAT,
                     "%s: not enough memory for HDF5 to read its metadata; the file is damaged, or "
                     "`memory` is too small for it",
                     file->path);
    if (rc == CM_OK)
        set_format_name(file);
    return rc;
}

static void forget(cm_nc_file *file);

/* *DONE: the file was read completely, without a library. */
static int open_plain(cm_nc_file *file, bool *done, cm_error *err)
{
    int rc = cm_nc_plain_read(file, err);
    *done = rc == CM_OK;
    if (rc == CM_EUNSUPPORTED) {
        forget(file);
        file->plain = false;
        return CM_OK;
    }
    return rc == CM_OK ? check_same(file, file->path, err) : rc;
}

/* A resolved path has no "//", so that netCDF-C cannot take it for a URL. */
static int open_resolved(cm_nc_file *file, bool is_hdf5, cm_error *err)
{
    char *real_path = realpath(file->path, NULL);
    if (real_path == NULL)
        return cm_fail_errno(err, errno, "%s", file->path);
    cm_nc_lock();
    cm_nc_work_on(file->path);
    int rc = open_libraries(file, is_hdf5, real_path, err);
    cm_nc_unlock();
    free(real_path);
    return rc;
}

int cm_nc_open(const char *path, const cm_nc_options *options, cm_nc_file **out, cm_error *err)
{
    *out = NULL;
    cm_nc_file *file = cm_calloc(1, sizeof *file, err);
    if (file == NULL)
        return CM_ENOMEM;
    file->source.fd = -1;
    file->data.fd = -1;
    file->ncid = -1;
    file->h5 = -1;
    file->library_only = options != NULL && options->library_only;
    file->library_caches = options != NULL && options->library_caches;
    const cm_io io = options != NULL ? options->io : CM_IO_PREAD;
    const bool plain =
        options != NULL && options->plain && !options->library_only && io == CM_IO_PREAD;
    bool is_hdf5 = false, done = false;
    file->path = cm_strdup(path, err);
    int rc = file->path != NULL ? open_source(file, err) : CM_ENOMEM;
    if (rc == CM_OK && plain)
        rc = cm_nc_plain_load(file, err);
    if (rc == CM_OK && options != NULL && options->recognises)
        rc = check_signature(file, err);
    if (rc == CM_OK)
        rc = classify(file, &is_hdf5, err);
    if (rc == CM_OK)
        rc = open_data(file, io, err);
    if (rc == CM_OK && plain && is_hdf5)
        rc = open_plain(file, &done, err);
    if (rc == CM_OK && !done)
        rc = open_resolved(file, is_hdf5, err);
    if (rc != CM_OK)
        cm_nc_close(file);
    else
        *out = file;
    return rc;
}

size_t cm_nc_var_cache_nbytes(const cm_nc_file *file, const cm_nc_var *var)
{
    const cm_nc_node *node = (const cm_nc_node *)var;
    size_t nbytes = 0, nelem;
    float preemption;
    cm_nc_lock();
    if (file->h5 < 0 || node->hdf5_only ||
        nc_get_var_chunk_cache(node->ncid, node->varid, &nbytes, &nelem, &preemption))
        nbytes = 0;
    cm_nc_unlock();
    return nbytes;
}

static void release_array(cm_array *a)
{
    free(a->name);
    for (unsigned j = 0; j < CM_MAX_RANK; j++)
        free(a->dim_name[j]);
    free(a->fill);
    free(a->fill_text);
    cm_json_free(a->attrs);
    cm_chain_free(a->chain);
}

static void release_node(cm_nc_node *node)
{
    release_array(&node->var.array);
    free(node->var.access_reason);
    free(node->var.unsupported);
    free(node->h5_path);
    free(node->unreadable);
    cm_h5_dataset_release(&node->dataset);
    cm_chunk_index_release(&node->index);
}

static void release_group(cm_nc_group *group)
{
    free(group->path);
    cm_json_free(group->attrs);
    for (size_t i = 0; i < group->ndims; i++)
        free(group->dim[i].name);
    free(group->dim);
}

static void close_libraries(cm_nc_file *file)
{
    /* If closing crashes, leave everything open: nothing was written. */
    bool good = cm_nc_reader_stop(file->reader);
    if (!good || (file->ncid < 0 && file->h5 < 0))
        return;
    cm_nc_lock();
    for (size_t i = 0; i < file->nnodes; i++)
        if (file->node[i].locked_dataset >= 0)
            H5Dclose(file->node[i].locked_dataset);
    /* Nothing was written, so errors of closing lose nothing. */
    if (file->ncid >= 0)
        (void)nc_close(file->ncid);
    cm_nc_forgotten_close(&file->forgotten);
    if (file->h5 >= 0)
        H5Fclose(file->h5);
    cm_nc_unlock();
}

/* Frees the description of the file's content. */
static void forget(cm_nc_file *file)
{
    for (size_t i = 0; i < file->nnodes; i++)
        release_node(&file->node[i]);
    for (size_t i = 0; i < file->ngroups; i++)
        release_group(&file->group[i]);
    for (size_t i = 0; i < file->nwarnings; i++)
        free(file->warning[i]);
    free(file->node);
    free(file->group);
    free(file->group_ncid);
    free(file->dim);
    free(file->warning);
    file->node = NULL;
    file->group = NULL;
    file->group_ncid = NULL;
    file->dim = NULL;
    file->warning = NULL;
    file->nnodes = file->ngroups = file->ndims = file->nwarnings = 0;
}

void cm_nc_close(cm_nc_file *file)
{
    if (file == NULL)
        return;
    close_libraries(file);
    forget(file);
    cm_classic_header_release(&file->classic);
    if (file->direct != NULL && file->data.fd >= 0 && file->data.fd != file->source.fd)
        close(file->data.fd);
    cm_direct_free(file->direct);
    free(file->image);
    if (file->source.fd >= 0)
        close(file->source.fd);
    free(file->path);
    free(file);
}

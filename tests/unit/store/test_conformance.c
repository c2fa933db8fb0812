/*
 * The suite of all stores over those of this layer: memory, folders in each way of reading, a
 * cache on disk, a zip file while it is written.
 */
#include "conformance.h"
#include "store/zip.h"

enum {
    CACHE_NBYTES = 100000 /* less than some tests read */
};

static int open_memory(fixture *f, const kind *k, cm_error *err)
{
    (void)k;
    int rc = cm_store_open_memory(&f->store, err);
    f->writer = f->store;
    return rc;
}

static int open_folder(fixture *f, const kind *k, cm_error *err)
{
    (void)k;
    int rc = cm_store_open_dir(f->folder, true, &f->store, err);
    f->writer = f->store;
    return rc;
}

static int open_folder_io(fixture *f, const kind *k, cm_error *err)
{
    int rc = cm_store_open_dir_io(f->folder, k->io, &f->store, err);
    f->writer = f->store;
    return rc;
}

static int open_cache(fixture *f, const kind *k, cm_error *err)
{
    char path[80];
    (void)k;
    int rc = cm_store_open_dir(f->folder, true, &f->writer, err);
    snprintf(path, sizeof path, "%s.cache", f->folder);
    return rc ? rc : cm_store_open_disk_cache(f->writer, path, CACHE_NBYTES, &f->store, err);
}

static int open_zip(fixture *f, const kind *k, cm_error *err)
{
    char path[80];
    (void)k;
    snprintf(path, sizeof path, "%s/store.zip", f->folder);
    const cm_zip_place place = {.path = path, .folder = f->folder};
    int rc = cm_store_create_zip(&place, &f->store, err);
    f->writer = f->store;
    return rc;
}

int main(void)
{
    static const kind kinds[] = {
        {.name = "memory", .open = open_memory, .in_memory = true},
        {.name = "folder", .open = open_folder},
        {.name = "folder, pread", .open = open_folder_io, .io = CM_IO_PREAD},
        {.name = "folder, mmap", .open = open_folder_io, .io = CM_IO_MMAP},
        {.name = "folder, uring", .open = open_folder_io, .io = CM_IO_URING},
        {.name = "folder, direct", .open = open_folder_io, .io = CM_IO_DIRECT},
        {.name = "cache on disk", .open = open_cache},
        {.name = "zip file", .open = open_zip},
    };
    return run_conformance("store", kinds, sizeof kinds / sizeof *kinds);
}

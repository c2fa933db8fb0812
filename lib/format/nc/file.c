/* An open file: its variables, groups and warnings, and arrays that outlive their use. */
#include "format/nc/file.h"

#include <stdarg.h>
#include <sys/stat.h>

#include "base/sentences.h"

int cm_nc_warn(cm_nc_file *file, cm_error *err, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    int rc = cm_sentences_add(&file->warning, &file->nwarnings, err, format, args);
    va_end(args);
    return rc;
}

bool cm_nc_is_same_file(const struct stat *a, const struct stat *b)
{
    return a->st_dev == b->st_dev && a->st_ino == b->st_ino && a->st_size == b->st_size &&
           a->st_mtim.tv_sec == b->st_mtim.tv_sec && a->st_mtim.tv_nsec == b->st_mtim.tv_nsec;
}

const char *cm_nc_format_name(const cm_nc_file *file)
{
    return file->format_name;
}

uint64_t cm_nc_file_nbytes(const cm_nc_file *file)
{
    return file->source.nbytes;
}

size_t cm_nc_ngroups(const cm_nc_file *file)
{
    return file->ngroups;
}

const cm_nc_group *cm_nc_group_at(const cm_nc_file *file, size_t i)
{
    return i < file->ngroups ? &file->group[i] : NULL;
}

size_t cm_nc_nvars(const cm_nc_file *file)
{
    return file->nnodes;
}

cm_nc_var *cm_nc_var_at(cm_nc_file *file, size_t i)
{
    return i < file->nnodes ? &file->node[i].var : NULL;
}

size_t cm_nc_nwarnings(const cm_nc_file *file)
{
    return file->nwarnings;
}

const char *cm_nc_warning_at(const cm_nc_file *file, size_t i)
{
    return i < file->nwarnings ? file->warning[i] : NULL;
}

#include "file.h"

#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/mem.h"
#include "base/outstream.h"
#include "readbench.h"

char *readbench_file_path(const char *folder, const char *prefix, const char *name, cm_error *err)
{
    return cm_asprintf(err, "%s/%s%s", folder, prefix, name);
}

/* A file under another name until it is complete. */
typedef struct part {
    char *part, *whole;
    bool made; /* PART is there */
    cm_outstream stream;
} part;

static int part_open(part *p, const char *folder, const char *name, cm_error *err)
{
    *p = (part){.part = readbench_file_path(folder, READBENCH_PART, name, err),
                .whole = readbench_file_path(folder, "", name, err)};
    if (p->part == NULL || p->whole == NULL)
        return CM_ENOMEM;
    int fd = open(p->part, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
    if (fd < 0)
        return cm_fail_errno(err, errno, "%s: cannot be written", p->whole);
    p->made = true;
    int errnum = cm_outstream_open(&p->stream, fd);
    return errnum == 0 ? CM_OK : cm_fail_errno(err, errnum, "%s: cannot be written", p->whole);
}

/*
 * RC is what writing it came to.  The file takes its name when that, and every write to the
 * stream, went well; else it is removed.
 */
static int part_close(part *p, int rc, cm_error *err)
{
    int errnum = cm_outstream_close(&p->stream);
    if (rc == CM_OK && errnum != 0)
        rc = cm_fail_errno(err, errnum, "%s: cannot be written", p->whole);
    if (rc == CM_OK && rename(p->part, p->whole) != 0)
        rc = cm_fail_errno(err, errno, "%s: cannot be renamed to %s", p->part, p->whole);
    if (rc != CM_OK && p->made)
        unlink(p->part);
    free(p->part);
    free(p->whole);
    return rc;
}

int readbench_file_write(const char *folder, const char *name, readbench_content *content,
                         const void *context, cm_error *err)
{
    part p;
    int rc = part_open(&p, folder, name, err);
    if (rc == CM_OK)
        rc = content(context, p.stream.file, err);
    return part_close(&p, rc, err);
}

enum {
    MAX_SUMMARY = 64 << 20 /* a summary is a few kilobytes for each session */
};

static int read_file(const char *path, cm_buf *out, cm_error *err)
{
    struct stat st;
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    if (fd < 0)
        return cm_fail_errno(err, errno, "%s: cannot be read", path);
    int rc = fstat(fd, &st) != 0 ? cm_fail_errno(err, errno, "%s: cannot be read", path)
             : !S_ISREG(st.st_mode) || st.st_size > MAX_SUMMARY
                 ? cm_fail(err, CM_EFORMAT, "%s: this is not a summary of a readbench run", path)
                 : cm_buf_resize(out, (size_t)st.st_size, err);
    int errnum = rc == CM_OK ? cm_fd_read(fd, out->data, out->nbytes, &out->nbytes) : 0;
    if (errnum != 0)
        rc = cm_fail_errno(err, errnum, "%s: cannot be read", path);
    close(fd);
    return rc;
}

int readbench_file_json(const char *path, cm_json **out, cm_error *err)
{
    cm_buf text = {0};
    *out = NULL;
    int rc = read_file(path, &text, err);
    if (rc == CM_OK && cm_json_parse(text.data, text.nbytes, out, err) != CM_OK) {
        cm_error_prefix(err, "%s", path);
        rc = CM_EFORMAT;
    }
    cm_buf_release(&text);
    return rc;
}

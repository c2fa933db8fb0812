#include "base/outstream.h"

#include <errno.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/mem.h"

static ssize_t write_cookie(void *cookie, const char *data, size_t nbytes)
{
    cm_outstream *s = cookie;
    if (s->errnum == 0)
        s->errnum = s->write(s->context, data, nbytes);
    if (s->errnum == 0)
        return (ssize_t)nbytes;
    errno = s->errnum;
    return 0; /* of an error; a negative number would be added to the length */
}

static int open_stream(cm_outstream *s, cm_outstream_write *write, void *context, int fd)
{
    *s = (cm_outstream){.write = write, .context = context, .fd = fd};
    s->file = fopencookie(s, "w", (cookie_io_functions_t){.write = write_cookie});
    return s->file != NULL ? 0 : errno != 0 ? errno : ENOMEM;
}

int cm_outstream_wrap(cm_outstream *s, cm_outstream_write *write, void *context)
{
    return open_stream(s, write, context, -1);
}

static int write_fd(void *context, const void *data, size_t nbytes)
{
    return cm_fd_write((int)(intptr_t)context, data, nbytes);
}

int cm_outstream_borrow(cm_outstream *s, int fd)
{
    return open_stream(s, write_fd, (void *)(intptr_t)fd, -1);
}

int cm_outstream_open(cm_outstream *s, int fd)
{
    int errnum = open_stream(s, write_fd, (void *)(intptr_t)fd, fd);
    if (errnum != 0)
        close(fd);
    return errnum;
}

/* Keeps ERRNUM, unless an earlier failure is known. */
static void keep_first(cm_outstream *s, int errnum)
{
    if (s->errnum == 0)
        s->errnum = errnum;
}

int cm_outstream_flush(cm_outstream *s)
{
    if (fflush(s->file) != 0)
        keep_first(s, errno);
    return s->errnum;
}

int cm_outstream_close(cm_outstream *s)
{
    if (s->file == NULL)
        return 0;
    if (fclose(s->file) != 0)
        keep_first(s, errno);
    s->file = NULL;
    /* Network file systems report a full disk only here. */
    if (s->fd >= 0 && close(s->fd) != 0 && errno != EINTR)
        keep_first(s, errno);
    s->fd = -1;
    return s->errnum;
}

/* ---- texts ---- */

enum {
    FIRST_NBYTES = 128
};

static int append(void *context, const void *data, size_t nbytes)
{
    cm_outtext *t = context;
    while (t->capacity - t->nbytes <= nbytes) { /* with a NUL */
        void *more = cm_make_room(t->text, t->capacity, &t->capacity, 1, FIRST_NBYTES);
        if (more == NULL)
            return ENOMEM;
        t->text = more;
    }
    memcpy(t->text + t->nbytes, data, nbytes);
    t->nbytes += nbytes;
    t->text[t->nbytes] = '\0';
    return 0;
}

FILE *cm_outtext_open(cm_outtext *t)
{
    *t = (cm_outtext){0};
    cm_outstream_wrap(&t->stream, append, t);
    return t->stream.file;
}

char *cm_outtext_close(cm_outtext *t)
{
    int errnum = cm_outstream_close(&t->stream);
    if (errnum == 0) /* an empty text has its NUL, too */
        errnum = append(t, "", 0);
    if (errnum == 0)
        return t->text;
    free(t->text);
    return NULL;
}

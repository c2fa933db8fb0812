/* The lines of a loader: they come out of the pipe as they went in, and nothing else does. */
#include <fcntl.h>
#include <unistd.h>

#include "base/clock.h"
#include "fuzz.h"
#include "load/workers/child.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t nbytes)
{
    int fd[2];
    cm_error err;
    const char *line;
    size_t n, at = 0;
    if (nbytes > 32768) /* what a pipe holds for certain */
        return 0;
    REQUIRE(pipe2(fd, O_CLOEXEC | O_NONBLOCK) == 0);
    REQUIRE(write(fd[1], data, nbytes) == (ssize_t)nbytes);
    /* No process: the end of the lines is known by their bytes alone. */
    cm_child child = {.out = fd[0]};
    cm_buf_init(&child.buf, CM_CHILD_MAX_LINE);
    const cm_child_patience patience = {cm_now_ns() + 10000000000u, NULL, NULL};
    for (const uint8_t *end; at < nbytes && (end = memchr(data + at, '\n', nbytes - at));) {
        const size_t want = (size_t)(end - (data + at));
        REQUIRE(cm_child_read_line(&child, &patience, &line, &n, &err) == CM_OK);
        REQUIRE(n == want && memcmp(line, data + at, n) == 0 && line[n] == '\0');
        at += want + 1;
    }
    /* The rest is not a line, however long it is waited for. */
    const cm_child_patience none = {cm_now_ns(), NULL, NULL};
    REQUIRE(cm_child_read_line(&child, &none, &line, &n, &err) == CM_EIO);
    cm_buf_release(&child.buf);
    close(fd[0]);
    close(fd[1]);
    return 0;
}

/*
 * LD_PRELOAD library: makes one call to the system fail.
 *
 *   FAILIO_STATE   a file of STATE_NBYTES zeros: what was counted, and what was made to fail
 *   FAILIO_ROOT    a folder, absolute and without links: only what lies below it counts
 *   FAILIO_CLASS   which calls (see classes[])
 *   FAILIO_NTH     which of them fails (1 is the first; 0: none, they are only counted)
 *   FAILIO_HOW     EIO and the like; "short": half of what was asked for is done; "kill": the
 *                  process is killed before the call; "stop": it is stopped there, and the call
 *                  succeeds when it goes on
 *   FAILIO_ON      "1": every later call of this class fails too, as on a full disk
 *
 * Calls count that name a path below the root, or a descriptor of one.  Memory, threads,
 * processes and pipes have none: there, calls of the program itself count, not those of its
 * libraries.  A stream that was opened by fopen is one of ours over a descriptor, so that what
 * stdio writes is seen too.  The counters lie in a shared mapping of the file, so that
 * children of a program count on, and a crash loses nothing.
 */
#define _GNU_SOURCE
/* Each function is defined below under both of its names. */
#undef _FILE_OFFSET_BITS
#include <dirent.h>
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <link.h>
#include <pthread.h>
#include <signal.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

typedef enum class {
    OPEN,
    READ,
    WRITE,
    SYNC,
    RENAME,
    MKDIR,
    UNLINK,
    CLOSE,
    MMAP,
    THREAD,
    TRUNCATE,
    STAT,
    LIST,
    LOCK,
    FORK,
    RING,
    NCLASSES
} class;

static const char *const classes[NCLASSES] = {
    "open", "read",   "write",    "sync", "rename", "mkdir", "unlink", "close",
    "mmap", "thread", "truncate", "stat", "list",   "lock",  "fork",   "ring"};

static const struct {
    const char *name;
    int number;
} errors[] = {{"EIO", EIO},       {"ENOSPC", ENOSPC}, {"EINTR", EINTR},   {"EMFILE", EMFILE},
              {"EACCES", EACCES}, {"ENOMEM", ENOMEM}, {"EAGAIN", EAGAIN}, {"EROFS", EROFS},
              {"ENOENT", ENOENT}, {"EDQUOT", EDQUOT}, {"ENOLCK", ENOLCK}, {"ENOSYS", ENOSYS},
              {"ESTALE", ESTALE}};

enum {
    STATE_NBYTES = 4096,
    SHORT = -1,
    KILL = -2,
    STOP = -3
};

/* The file of FAILIO_STATE; tests/support/failio.py reads it. */
typedef struct state {
    atomic_ulong count[32]; /* by class */
    atomic_ulong nfailed;
    char what[PATH_MAX - 33 * sizeof(atomic_ulong)]; /* the first that failed */
} state;
_Static_assert(sizeof(state) == STATE_NBYTES, "the layout that is read");

static state *shared;
static char root[PATH_MAX];
static size_t root_nbytes;
static int wanted = -1, how;
static unsigned long nth;
static int go_on;
static uintptr_t text_begin, text_end;

static int main_program(struct dl_phdr_info *info, size_t size, void *data)
{
    (void)size, (void)data;
    for (int i = 0; i < info->dlpi_phnum; i++) {
        const ElfW(Phdr) *p = &info->dlpi_phdr[i];
        if (p->p_type == PT_LOAD && (p->p_flags & PF_X)) {
            text_begin = info->dlpi_addr + p->p_vaddr;
            text_end = text_begin + p->p_memsz;
        }
    }
    return 1; /* the first object is the program */
}

#define REAL(name)     ((__typeof__(&name))real(#name))
#define FROM_PROGRAM() is_program(__builtin_return_address(0))

static void *real(const char *name)
{
    void *p = dlsym(RTLD_NEXT, name);
    if (p == NULL)
        abort();
    return p;
}

static int is_program(const void *caller)
{
    return (uintptr_t)caller >= text_begin && (uintptr_t)caller < text_end;
}

__attribute__((constructor)) static void start(void)
{
    const char *path = getenv("FAILIO_STATE"), *below = getenv("FAILIO_ROOT");
    const char *name = getenv("FAILIO_CLASS"), *number = getenv("FAILIO_NTH");
    const char *error = getenv("FAILIO_HOW"), *on = getenv("FAILIO_ON");
    if (path == NULL || below == NULL || strlen(below) >= sizeof(root))
        return;
    int fd = REAL(open64)(path, O_RDWR | O_CLOEXEC);
    void *data = fd < 0
                     ? MAP_FAILED
                     : REAL(mmap64)(NULL, STATE_NBYTES, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    if (data == MAP_FAILED)
        abort();
    REAL(close)(fd);
    dl_iterate_phdr(main_program, NULL);
    strcpy(root, below);
    root_nbytes = strlen(root);
    for (int i = 0; name != NULL && i < NCLASSES; i++)
        if (strcmp(name, classes[i]) == 0)
            wanted = i;
    how = SHORT;
    if (error != NULL && strcmp(error, "kill") == 0)
        how = KILL;
    if (error != NULL && strcmp(error, "stop") == 0)
        how = STOP;
    for (size_t i = 0; error != NULL && i < sizeof(errors) / sizeof(*errors); i++)
        if (strcmp(error, errors[i].name) == 0)
            how = errors[i].number;
    nth = number != NULL ? strtoul(number, NULL, 10) : 0;
    go_on = on != NULL && *on == '1';
    shared = data;
}

/* ---- what counts ---- */

static int is_below(const char *path)
{
    return strncmp(path, root, root_nbytes) == 0 &&
           (path[root_nbytes] == '/' || path[root_nbytes] == '\0');
}

/* The path of FD into PATH (PATH_MAX); 0: it has none. */
static int path_of(int fd, char *path)
{
    char link[40];
    snprintf(link, sizeof(link), "/proc/self/fd/%d", fd);
    ssize_t n = fd < 0 ? -1 : readlink(link, path, PATH_MAX - 1);
    path[n < 0 ? 0 : n] = '\0';
    return n > 0;
}

static int fd_concerns(int fd)
{
    char path[PATH_MAX];
    int saved = errno;
    int concerns = shared != NULL && path_of(fd, path) && is_below(path);
    errno = saved;
    return concerns;
}

static int path_concerns(int dirfd, const char *path)
{
    char folder[PATH_MAX];
    int saved = errno, concerns = 0;
    if (shared == NULL || path == NULL)
        return 0;
    if (path[0] == '/')
        concerns = is_below(path);
    else if (dirfd == AT_FDCWD)
        concerns = getcwd(folder, sizeof(folder)) != NULL && is_below(folder);
    else
        concerns = path_of(dirfd, folder) && is_below(folder);
    errno = saved;
    return concerns;
}

/*
 * One call more of class C, by FUNCTION on what PATH or FD names: is it the one that fails?
 * errno is set then.
 */
static int fails(class c, const char *function, const char *path, int fd)
{
    if (shared == NULL)
        return 0;
    unsigned long now = atomic_fetch_add(&shared->count[c], 1) + 1;
    if ((int)c != wanted || nth == 0 || (go_on ? now < nth : now != nth))
        return 0;
    if (atomic_fetch_add(&shared->nfailed, 1) == 0) {
        char name[PATH_MAX] = "";
        if (path == NULL && path_of(fd, name))
            path = name;
        int n = snprintf(shared->what, sizeof(shared->what), "%s ", function);
        strncat(shared->what, path ? path : "", sizeof(shared->what) - (size_t)n - 1);
    }
    if (how == KILL)
        kill(getpid(), SIGKILL);
    if (how == STOP) {
        kill(getpid(), SIGSTOP);
        return 0;
    }
    errno = how == SHORT ? 0 : how;
    return 1;
}

/*
 * Whether the call comes from netCDF-C, which does not go on after reads of classic files that
 * give a part or EINTR, as reads of regular files on a disk never do: it takes what lacks for
 * zeros, or fails.
 */
static int is_for_whole_reads(const void *caller)
{
    Dl_info info;
    return (how == SHORT || how == EINTR) && dladdr(caller, &info) != 0 && info.dli_fname != NULL &&
           strstr(info.dli_fname, "/libnetcdf") != NULL;
}

/* Of a call that moves NBYTES: the error (-1), a part (1 or more), or all of them (0). */
static ssize_t part_for(const void *caller, class c, const char *function, int fd, size_t nbytes)
{
    if (!fd_concerns(fd))
        return 0;
    if (c == READ && is_for_whole_reads(caller)) {
        atomic_fetch_add(&shared->count[c], 1);
        return 0;
    }
    if (!fails(c, function, NULL, fd))
        return 0;
    if (how != SHORT)
        return -1;
    return nbytes > 1 ? (ssize_t)(nbytes / 2) : 0;
}

#define CALLER    __builtin_return_address(0)
#define part(...) part_for(CALLER, __VA_ARGS__)

/* ---- open ---- */

static mode_t mode_of(int flags, va_list rest)
{
    return flags & O_CREAT || (flags & O_TMPFILE) == O_TMPFILE ? va_arg(rest, mode_t) : 0;
}

static int open_at(const char *function, int dirfd, const char *path, int flags, mode_t mode)
{
    if (path_concerns(dirfd, path) && fails(OPEN, function, path, dirfd))
        return -1;
    return REAL(openat64)(dirfd, path, flags, mode);
}

#define OPEN_FUNCTION(name)                                                                        \
    int name(const char *path, int flags, ...)                                                     \
    {                                                                                              \
        va_list rest;                                                                              \
        va_start(rest, flags);                                                                     \
        mode_t mode = mode_of(flags, rest);                                                        \
        va_end(rest);                                                                              \
        return open_at(#name, AT_FDCWD, path, flags, mode);                                        \
    }
#define OPENAT_FUNCTION(name)                                                                      \
    int name(int dirfd, const char *path, int flags, ...)                                          \
    {                                                                                              \
        va_list rest;                                                                              \
        va_start(rest, flags);                                                                     \
        mode_t mode = mode_of(flags, rest);                                                        \
        va_end(rest);                                                                              \
        return open_at(#name, dirfd, path, flags, mode);                                           \
    }
OPEN_FUNCTION(open)
OPEN_FUNCTION(open64)
OPENAT_FUNCTION(openat)
OPENAT_FUNCTION(openat64)

/* The functions that _FORTIFY_SOURCE calls instead. */
int __open_2(const char *path, int flags);
int __open64_2(const char *path, int flags);
int __openat_2(int dirfd, const char *path, int flags);
int __openat64_2(int dirfd, const char *path, int flags);
int __open_2(const char *path, int flags)
{
    return open_at("open", AT_FDCWD, path, flags, 0);
}
int __open64_2(const char *path, int flags)
{
    return open_at("open", AT_FDCWD, path, flags, 0);
}
int __openat_2(int dirfd, const char *path, int flags)
{
    return open_at("openat", dirfd, path, flags, 0);
}
int __openat64_2(int dirfd, const char *path, int flags)
{
    return open_at("openat", dirfd, path, flags, 0);
}

int creat(const char *path, mode_t mode)
{
    return open_at("creat", AT_FDCWD, path, O_CREAT | O_WRONLY | O_TRUNC, mode);
}
int creat64(const char *path, mode_t mode)
{
    return open_at("creat", AT_FDCWD, path, O_CREAT | O_WRONLY | O_TRUNC, mode);
}

#define MKSTEMP_FUNCTION(name, parameters, ...)                                                    \
    int name parameters                                                                            \
    {                                                                                              \
        if (path_concerns(AT_FDCWD, path) && fails(OPEN, #name, path, -1))                         \
            return -1;                                                                             \
        return REAL(name)(__VA_ARGS__);                                                            \
    }
MKSTEMP_FUNCTION(mkstemp, (char *path), path)
MKSTEMP_FUNCTION(mkstemp64, (char *path), path)
MKSTEMP_FUNCTION(mkostemp, (char *path, int flags), path, flags)
MKSTEMP_FUNCTION(mkostemp64, (char *path, int flags), path, flags)

/* ---- streams: the descriptor's calls are ours, those inside of libc are not ---- */

static int fd_of(void *cookie)
{
    return (int)(intptr_t)cookie;
}

static ssize_t stream_read(void *cookie, char *data, size_t nbytes)
{
    return read(fd_of(cookie), data, nbytes);
}

static ssize_t stream_write(void *cookie, const char *data, size_t nbytes)
{
    size_t done = 0;
    while (done < nbytes) { /* as the streams of libc do */
        ssize_t n = write(fd_of(cookie), data + done, nbytes - done);
        if (n < 0 && errno != EINTR)
            return 0; /* how a cookie says that it failed */
        done += n < 0 ? 0 : (size_t)n;
    }
    return (ssize_t)done;
}

static int stream_seek(void *cookie, off64_t *offset, int whence)
{
    off64_t at = lseek64(fd_of(cookie), *offset, whence);
    if (at < 0)
        return -1;
    *offset = at;
    return 0;
}

/* fileno works for the streams made here. */
enum {
    MOST_STREAMS = 256
};
static struct {
    _Atomic(FILE *) stream;
    atomic_int fd;
} streams[MOST_STREAMS];

static int stream_close(void *cookie)
{
    for (int i = 0; i < MOST_STREAMS; i++)
        if (streams[i].stream != NULL && streams[i].fd == fd_of(cookie))
            streams[i].stream = NULL;
    return close(fd_of(cookie));
}

int fileno(FILE *f)
{
    for (int i = 0; i < MOST_STREAMS; i++)
        if (streams[i].stream != NULL && streams[i].stream == f)
            return streams[i].fd;
    return REAL(fileno)(f);
}

static FILE *open_stream(const char *path, const char *mode)
{
    int flags = strchr(mode, '+') ? O_RDWR : mode[0] == 'r' ? O_RDONLY : O_WRONLY;
    flags |= mode[0] == 'w' ? O_CREAT | O_TRUNC : mode[0] == 'a' ? O_CREAT | O_APPEND : 0;
    flags |= (strchr(mode, 'e') ? O_CLOEXEC : 0) | (strchr(mode, 'x') ? O_EXCL : 0);
    int fd = open_at("fopen", AT_FDCWD, path, flags, 0666);
    if (fd < 0)
        return NULL;
    cookie_io_functions_t io = {stream_read, stream_write, stream_seek, stream_close};
    FILE *f = fopencookie((void *)(intptr_t)fd, mode, io);
    if (f == NULL)
        REAL(close)(fd);
    for (int i = 0; f != NULL && i < MOST_STREAMS; i++) {
        FILE *none = NULL;
        if (atomic_compare_exchange_strong(&streams[i].stream, &none, f)) {
            streams[i].fd = fd;
            break;
        }
    }
    return f;
}

FILE *fopen(const char *path, const char *mode)
{
    return path_concerns(AT_FDCWD, path) ? open_stream(path, mode) : REAL(fopen)(path, mode);
}
FILE *fopen64(const char *path, const char *mode)
{
    return path_concerns(AT_FDCWD, path) ? open_stream(path, mode) : REAL(fopen64)(path, mode);
}

/* ---- read and write ---- */

static ssize_t read_for(const void *caller, int fd, void *data, size_t nbytes)
{
    ssize_t n = part_for(caller, READ, "read", fd, nbytes);
    return n < 0 ? n : REAL(read)(fd, data, n ? (size_t)n : nbytes);
}

ssize_t read(int fd, void *data, size_t nbytes)
{
    return read_for(CALLER, fd, data, nbytes);
}

ssize_t __read_chk(int fd, void *data, size_t nbytes, size_t most);
ssize_t __read_chk(int fd, void *data, size_t nbytes, size_t most)
{
    return read_for(CALLER, fd, data, nbytes < most ? nbytes : most);
}

ssize_t pread64(int fd, void *data, size_t nbytes, off64_t offset)
{
    ssize_t n = part(READ, "pread", fd, nbytes);
    return n < 0 ? n : REAL(pread64)(fd, data, n ? (size_t)n : nbytes, offset);
}
ssize_t pread(int fd, void *data, size_t nbytes, off_t offset)
{
    return pread64(fd, data, nbytes, offset);
}

ssize_t __pread_chk(int fd, void *data, size_t nbytes, off_t offset, size_t most);
ssize_t __pread64_chk(int fd, void *data, size_t nbytes, off64_t offset, size_t most);
ssize_t __pread_chk(int fd, void *data, size_t nbytes, off_t offset, size_t most)
{
    return pread64(fd, data, nbytes < most ? nbytes : most, offset);
}
ssize_t __pread64_chk(int fd, void *data, size_t nbytes, off64_t offset, size_t most)
{
    return pread64(fd, data, nbytes < most ? nbytes : most, offset);
}

ssize_t write(int fd, const void *data, size_t nbytes)
{
    ssize_t n = part(WRITE, "write", fd, nbytes);
    return n < 0 ? n : REAL(write)(fd, data, n ? (size_t)n : nbytes);
}

ssize_t pwrite64(int fd, const void *data, size_t nbytes, off64_t offset)
{
    ssize_t n = part(WRITE, "pwrite", fd, nbytes);
    return n < 0 ? n : REAL(pwrite64)(fd, data, n ? (size_t)n : nbytes, offset);
}
ssize_t pwrite(int fd, const void *data, size_t nbytes, off_t offset)
{
    return pwrite64(fd, data, nbytes, offset);
}

/* Of several pieces, a short one is the first of them. */
#define VECTOR_FUNCTION(name, class, parameters, ...)                                              \
    ssize_t name parameters                                                                        \
    {                                                                                              \
        ssize_t some = part(class, #name, fd, (size_t)n);                                          \
        n = some > 0 ? (int)some : n;                                                              \
        return some < 0 ? some : REAL(name)(__VA_ARGS__);                                          \
    }
VECTOR_FUNCTION(readv, READ, (int fd, const struct iovec *v, int n), fd, v, n)
VECTOR_FUNCTION(preadv, READ, (int fd, const struct iovec *v, int n, off_t at), fd, v, n, at)
VECTOR_FUNCTION(preadv64, READ, (int fd, const struct iovec *v, int n, off64_t at), fd, v, n, at)
VECTOR_FUNCTION(writev, WRITE, (int fd, const struct iovec *v, int n), fd, v, n)
VECTOR_FUNCTION(pwritev, WRITE, (int fd, const struct iovec *v, int n, off_t at), fd, v, n, at)
VECTOR_FUNCTION(pwritev64, WRITE, (int fd, const struct iovec *v, int n, off64_t at), fd, v, n, at)

/* ---- what takes a descriptor, and what takes paths ---- */

#define FD_FUNCTION(name, class, parameters, ...)                                                  \
    int name parameters                                                                            \
    {                                                                                              \
        if (fd_concerns(fd) && fails(class, #name, NULL, fd))                                      \
            return -1;                                                                             \
        return REAL(name)(__VA_ARGS__);                                                            \
    }
#define PATH_FUNCTION(name, class, dirfd, path, parameters, ...)                                   \
    int name parameters                                                                            \
    {                                                                                              \
        if (path_concerns(dirfd, path) && fails(class, #name, path, dirfd))                        \
            return -1;                                                                             \
        return REAL(name)(__VA_ARGS__);                                                            \
    }

FD_FUNCTION(fsync, SYNC, (int fd), fd)
FD_FUNCTION(fdatasync, SYNC, (int fd), fd)
FD_FUNCTION(syncfs, SYNC, (int fd), fd)

PATH_FUNCTION(rename, RENAME, AT_FDCWD, from, (const char *from, const char *to), from, to)
PATH_FUNCTION(renameat, RENAME, a, from, (int a, const char *from, int b, const char *to), a, from,
              b, to)
PATH_FUNCTION(renameat2, RENAME, a, from,
              (int a, const char *from, int b, const char *to, unsigned flags), a, from, b, to,
              flags)
PATH_FUNCTION(link, RENAME, AT_FDCWD, from, (const char *from, const char *to), from, to)
PATH_FUNCTION(linkat, RENAME, b, to, (int a, const char *from, int b, const char *to, int flags), a,
              from, b, to, flags)
PATH_FUNCTION(symlink, RENAME, AT_FDCWD, to, (const char *from, const char *to), from, to)

PATH_FUNCTION(mkdir, MKDIR, AT_FDCWD, path, (const char *path, mode_t mode), path, mode)
PATH_FUNCTION(mkdirat, MKDIR, fd, path, (int fd, const char *path, mode_t mode), fd, path, mode)

PATH_FUNCTION(unlink, UNLINK, AT_FDCWD, path, (const char *path), path)
PATH_FUNCTION(unlinkat, UNLINK, fd, path, (int fd, const char *path, int flags), fd, path, flags)
PATH_FUNCTION(rmdir, UNLINK, AT_FDCWD, path, (const char *path), path)
PATH_FUNCTION(remove, UNLINK, AT_FDCWD, path, (const char *path), path)

/* It is closed, whatever it says. */
int close(int fd)
{
    int failed = fd_concerns(fd) && fails(CLOSE, "close", NULL, fd), number = errno;
    int rc = REAL(close)(fd);
    if (!failed)
        return rc;
    errno = number;
    return -1;
}

PATH_FUNCTION(truncate, TRUNCATE, AT_FDCWD, path, (const char *path, off_t n), path, n)
PATH_FUNCTION(truncate64, TRUNCATE, AT_FDCWD, path, (const char *path, off64_t n), path, n)
FD_FUNCTION(ftruncate, TRUNCATE, (int fd, off_t n), fd, n)
FD_FUNCTION(ftruncate64, TRUNCATE, (int fd, off64_t n), fd, n)
FD_FUNCTION(fallocate, TRUNCATE, (int fd, int mode, off_t at, off_t n), fd, mode, at, n)
FD_FUNCTION(fallocate64, TRUNCATE, (int fd, int mode, off64_t at, off64_t n), fd, mode, at, n)

int posix_fallocate(int fd, off_t at, off_t n)
{
    return fd_concerns(fd) && fails(TRUNCATE, "posix_fallocate", NULL, fd)
               ? errno
               : REAL(posix_fallocate)(fd, at, n);
}
int posix_fallocate64(int fd, off64_t at, off64_t n)
{
    return fd_concerns(fd) && fails(TRUNCATE, "posix_fallocate", NULL, fd)
               ? errno
               : REAL(posix_fallocate64)(fd, at, n);
}

PATH_FUNCTION(stat, STAT, AT_FDCWD, path, (const char *path, struct stat *st), path, st)
PATH_FUNCTION(stat64, STAT, AT_FDCWD, path, (const char *path, struct stat64 *st), path, st)
PATH_FUNCTION(lstat, STAT, AT_FDCWD, path, (const char *path, struct stat *st), path, st)
PATH_FUNCTION(lstat64, STAT, AT_FDCWD, path, (const char *path, struct stat64 *st), path, st)
FD_FUNCTION(fstat, STAT, (int fd, struct stat *st), fd, st)
FD_FUNCTION(fstat64, STAT, (int fd, struct stat64 *st), fd, st)
PATH_FUNCTION(fstatat, STAT, fd, path, (int fd, const char *path, struct stat *st, int flags), fd,
              path, st, flags)
PATH_FUNCTION(fstatat64, STAT, fd, path, (int fd, const char *path, struct stat64 *st, int flags),
              fd, path, st, flags)
PATH_FUNCTION(statx, STAT, fd, path,
              (int fd, const char *restrict path, int flags, unsigned mask,
               struct statx *restrict st),
              fd, path, flags, mask, st)
/* The room is made here: of its versions the first asks for it. */
char *realpath(const char *path, char *out)
{
    if (path_concerns(AT_FDCWD, path) && fails(STAT, "realpath", path, AT_FDCWD))
        return NULL;
    char *room = out != NULL ? out : malloc(PATH_MAX);
    char *found = room != NULL ? REAL(realpath)(path, room) : NULL;
    if (found == NULL && room != out)
        free(room);
    return found;
}
PATH_FUNCTION(access, STAT, AT_FDCWD, path, (const char *path, int mode), path, mode)
PATH_FUNCTION(faccessat, STAT, fd, path, (int fd, const char *path, int mode, int flags), fd, path,
              mode, flags)

/* ---- folders ---- */

DIR *opendir(const char *path)
{
    if (path_concerns(AT_FDCWD, path) && fails(LIST, "opendir", path, -1))
        return NULL;
    return REAL(opendir)(path);
}

DIR *fdopendir(int fd)
{
    if (fd_concerns(fd) && fails(LIST, "fdopendir", NULL, fd))
        return NULL;
    return REAL(fdopendir)(fd);
}

struct dirent *readdir(DIR *folder)
{
    if (fd_concerns(dirfd(folder)) && fails(LIST, "readdir", NULL, dirfd(folder)))
        return NULL;
    return REAL(readdir)(folder);
}

struct dirent64 *readdir64(DIR *folder)
{
    if (fd_concerns(dirfd(folder)) && fails(LIST, "readdir", NULL, dirfd(folder)))
        return NULL;
    return REAL(readdir64)(folder);
}

/* ---- locks ---- */

FD_FUNCTION(flock, LOCK, (int fd, int operation), fd, operation)

static int control(int fd, int command, void *argument)
{
    int locks = command == F_SETLK || command == F_SETLKW || command == F_OFD_SETLK ||
                command == F_OFD_SETLKW;
    if (locks && fd_concerns(fd) && fails(LOCK, "fcntl", NULL, fd))
        return -1;
    return REAL(fcntl64)(fd, command, argument);
}

#define FCNTL_FUNCTION(name)                                                                       \
    int name(int fd, int command, ...)                                                             \
    {                                                                                              \
        va_list rest;                                                                              \
        va_start(rest, command);                                                                   \
        void *argument = va_arg(rest, void *);                                                     \
        va_end(rest);                                                                              \
        return control(fd, command, argument);                                                     \
    }
FCNTL_FUNCTION(fcntl)
FCNTL_FUNCTION(fcntl64)

/* ---- what has no path: only the program's own calls ---- */

static int map_fails(int from_program, int flags, int fd)
{
    if (flags & MAP_ANONYMOUS ? !from_program : !fd_concerns(fd))
        return 0;
    return fails(MMAP, "mmap", flags & MAP_ANONYMOUS ? "(memory)" : NULL, fd);
}

void *mmap(void *at, size_t n, int protection, int flags, int fd, off_t offset)
{
    if (shared != NULL && map_fails(FROM_PROGRAM(), flags, fd))
        return MAP_FAILED;
    return REAL(mmap)(at, n, protection, flags, fd, offset);
}
void *mmap64(void *at, size_t n, int protection, int flags, int fd, off64_t offset)
{
    if (shared != NULL && map_fails(FROM_PROGRAM(), flags, fd))
        return MAP_FAILED;
    return REAL(mmap64)(at, n, protection, flags, fd, offset);
}

int pthread_create(pthread_t *restrict thread, const pthread_attr_t *restrict attributes,
                   void *(*run)(void *), void *restrict argument)
{
    if (FROM_PROGRAM() && fails(THREAD, "pthread_create", "(a thread)", -1))
        return errno;
    return REAL(pthread_create)(thread, attributes, run, argument);
}

pid_t fork(void)
{
    if (FROM_PROGRAM() && fails(FORK, "fork", "(a process)", -1))
        return -1;
    return REAL(fork)();
}

int pipe2(int fd[2], int flags)
{
    if (FROM_PROGRAM() && fails(FORK, "pipe2", "(a pipe)", -1))
        return -1;
    return REAL(pipe2)(fd, flags);
}

int socketpair(int domain, int type, int protocol, int fd[2]);
int socketpair(int domain, int type, int protocol, int fd[2])
{
    if (FROM_PROGRAM() && fails(FORK, "socketpair", "(a pair of sockets)", -1))
        return -1;
    return REAL(socketpair)(domain, type, protocol, fd);
}

/* A program of the portable build calls what its glibc lacks by number. */
long syscall(long number, ...)
{
    long a[6];
    va_list list;
    va_start(list, number);
    for (int i = 0; i < 6; i++)
        a[i] = va_arg(list, long);
    va_end(list);
    if (number == SYS_renameat2)
        return renameat2((int)a[0], (const char *)a[1], (int)a[2], (const char *)a[3],
                         (unsigned)a[4]);
    if (number == SYS_memfd_create && FROM_PROGRAM() &&
        fails(MMAP, "memfd_create", (const char *)a[0], -1))
        return -1;
    return REAL(syscall)(number, a[0], a[1], a[2], a[3], a[4], a[5]);
}

int memfd_create(const char *name, unsigned flags)
{
    if (FROM_PROGRAM() && fails(MMAP, "memfd_create", name, -1))
        return -1;
    return REAL(memfd_create)(name, flags);
}

/* Functions of liburing, which return the negative error. */
#define RING_FUNCTION(name, parameters, ...)                                                       \
    int name parameters;                                                                           \
    int name parameters                                                                            \
    {                                                                                              \
        if (FROM_PROGRAM() && fails(RING, #name, "(a ring)", -1))                                  \
            return -errno;                                                                         \
        return REAL(name)(__VA_ARGS__);                                                            \
    }
RING_FUNCTION(io_uring_queue_init, (unsigned n, void *ring, unsigned flags), n, ring, flags)
RING_FUNCTION(io_uring_submit, (void *ring), ring)
RING_FUNCTION(io_uring_submit_and_wait, (void *ring, unsigned n), ring, n)

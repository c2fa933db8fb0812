/*
 * LD_PRELOAD library: makes one allocation fail.
 *
 *   FAILMALLOC_NTH   which of the counted allocations fails (1 is the first)
 *   FAILMALLOC_MIN   only allocations of at least this many bytes count
 *
 * Only calls from the program itself count, not those of the libraries that it
 * uses: what they do without memory is theirs.  The file named by
 * FAILMALLOC_REACHED is made when an allocation has failed.
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <link.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static uintptr_t text_begin, text_end;
static long nth;
static size_t least;
static const char *reached;
static atomic_long count;

static int main_program(struct dl_phdr_info *info, size_t size, void *data)
{
    (void)size;
    (void)data;
    for (int i = 0; i < info->dlpi_phnum; i++) {
        const ElfW(Phdr) *p = &info->dlpi_phdr[i];
        if (p->p_type == PT_LOAD && (p->p_flags & PF_X)) {
            text_begin = info->dlpi_addr + p->p_vaddr;
            text_end = text_begin + p->p_memsz;
        }
    }
    return 1; /* the first object is the program */
}

__attribute__((constructor)) static void start(void)
{
    const char *text = getenv("FAILMALLOC_NTH");
    const char *min = getenv("FAILMALLOC_MIN");
    dl_iterate_phdr(main_program, NULL);
    reached = getenv("FAILMALLOC_REACHED");
    least = min ? strtoull(min, NULL, 10) : 0;
    nth = text ? strtol(text, NULL, 10) : 0;
}

static int fails(size_t nbytes, const void *caller)
{
    uintptr_t at = (uintptr_t)caller;
    int fd;
    if (!nth || nbytes < least || at < text_begin || at >= text_end ||
        atomic_fetch_add(&count, 1) + 1 != nth)
        return 0;
    if (reached && (fd = open(reached, O_CREAT | O_WRONLY, 0600)) >= 0)
        close(fd);
    errno = ENOMEM;
    return 1;
}

#define REAL(name) ((__typeof__(&name))dlsym(RTLD_NEXT, #name))
#define CALLER     __builtin_return_address(0)

extern void *__libc_malloc(size_t);
extern void *__libc_calloc(size_t, size_t);
extern void *__libc_realloc(void *, size_t);

void *malloc(size_t n)
{
    return fails(n, CALLER) ? NULL : __libc_malloc(n);
}

void *calloc(size_t n, size_t size)
{
    return fails(n * size, CALLER) ? NULL : __libc_calloc(n, size);
}

void *realloc(void *p, size_t n)
{
    return fails(n, CALLER) ? NULL : __libc_realloc(p, n);
}

int posix_memalign(void **out, size_t alignment, size_t n)
{
    return fails(n, CALLER) ? ENOMEM : REAL(posix_memalign)(out, alignment, n);
}

void *aligned_alloc(size_t alignment, size_t n)
{
    return fails(n, CALLER) ? NULL : REAL(aligned_alloc)(alignment, n);
}

char *strdup(const char *s)
{
    size_t n = strlen(s) + 1;
    char *p = fails(n, CALLER) ? NULL : __libc_malloc(n);
    return p ? memcpy(p, s, n) : NULL;
}

char *strndup(const char *s, size_t most)
{
    size_t n = strnlen(s, most);
    char *p = fails(n + 1, CALLER) ? NULL : __libc_malloc(n + 1);
    if (!p)
        return NULL;
    p[n] = '\0';
    return memcpy(p, s, n);
}

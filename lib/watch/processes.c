#include "watch/processes.h"

#include <dirent.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

enum {
    MAX_PROCESSES = 1024,
    CHILDREN_TEXT = 16 << 10
};

typedef struct process {
    pid_t pid;
    clockid_t clock;
    uint64_t cpu_ns; /* at the last look */
    int statm;
    bool seen;
} process;

struct cm_processes {
    size_t n;
    process process[MAX_PROCESSES]; /* number 0 is this one */
    uint64_t page;
    char text[CHILDREN_TEXT];
};

static uint64_t cpu_of(const process *p)
{
    struct timespec t;
    if (clock_gettime(p->clock, &t) != 0)
        return p->cpu_ns; /* it has ended */
    return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

static void add(cm_processes *p, pid_t pid)
{
    char path[64];
    for (size_t i = 0; i < p->n; i++)
        if (p->process[i].pid == pid) {
            p->process[i].seen = true;
            return;
        }
    process new = {.pid = pid, .seen = true};
    if (p->n == MAX_PROCESSES || clock_getcpuclockid(pid, &new.clock) != 0)
        return;
    snprintf(path, sizeof(path), "/proc/%d/statm", (int)pid);
    if ((new.statm = open(path, O_RDONLY | O_CLOEXEC)) < 0)
        return;
    new.cpu_ns = cpu_of(&new);
    p->process[p->n++] = new;
}

cm_processes *cm_processes_open(cm_error *err)
{
    cm_processes *p = cm_calloc(1, sizeof(*p), err);
    if (p != NULL) {
        p->page = (uint64_t)sysconf(_SC_PAGESIZE);
        add(p, getpid());
    }
    return p;
}

void cm_processes_close(cm_processes *p)
{
    for (size_t i = 0; p != NULL && i < p->n; i++)
        close(p->process[i].statm);
    free(p);
}

/* The text of a file of /proc, NUL-terminated; false when it is not there. */
static bool read_text(int folder, const char *name, char *text, size_t size)
{
    int fd = openat(folder, name, O_RDONLY | O_CLOEXEC);
    ssize_t n = fd < 0 ? -1 : read(fd, text, size - 1);
    if (fd >= 0)
        close(fd);
    text[n > 0 ? n : 0] = '\0';
    return n > 0;
}

/* Adds the children of each thread of PID. */
static void add_children(cm_processes *p, pid_t pid)
{
    char path[64], name[300];
    snprintf(path, sizeof(path), "/proc/%d/task", (int)pid);
    DIR *folder = opendir(path);
    if (folder == NULL)
        return;
    for (const struct dirent *e; (e = readdir(folder)) != NULL;) {
        if (e->d_name[0] == '.')
            continue;
        snprintf(name, sizeof(name), "%s/children", e->d_name);
        if (!read_text(dirfd(folder), name, p->text, sizeof(p->text)))
            continue;
        char *at = p->text, *after;
        for (long child; (child = strtol(at, &after, 10)) > 0; at = after)
            add(p, (pid_t)child);
    }
    closedir(folder);
}

static void drop_unseen(cm_processes *p)
{
    size_t kept = 0;
    for (size_t i = 0; i < p->n; i++) {
        if (p->process[i].seen)
            p->process[kept++] = p->process[i];
        else
            close(p->process[i].statm);
    }
    p->n = kept;
}

/* Pages that are resident, and those of them that may be shared. */
static bool memory_of(const process *p, uint64_t *resident, uint64_t *shared)
{
    char text[128];
    unsigned long long all, here, with_others;
    ssize_t n = pread(p->statm, text, sizeof(text) - 1, 0);
    text[n > 0 ? n : 0] = '\0';
    if (sscanf(text, "%llu %llu %llu", &all, &here, &with_others) != 3 || with_others > here)
        return false;
    *resident = here;
    *shared = with_others;
    return true;
}

void cm_processes_look(cm_processes *p, cm_processes_use *out)
{
    *out = (cm_processes_use){0};
    for (size_t i = 1; i < p->n; i++)
        p->process[i].seen = false;
    for (size_t i = 0; i < p->n; i++) /* grows on the way: children of children */
        if (p->process[i].seen)
            add_children(p, p->process[i].pid);
    drop_unseen(p);
    uint64_t own = 0, most_shared = 0;
    for (size_t i = 0; i < p->n; i++) {
        process *each = &p->process[i];
        uint64_t cpu_ns = cpu_of(each), resident, shared;
        out->cpu_ns += cpu_ns > each->cpu_ns ? cpu_ns - each->cpu_ns : 0;
        each->cpu_ns = cpu_ns;
        if (!memory_of(each, &resident, &shared))
            continue;
        out->n++;
        own += resident - shared;
        most_shared = shared > most_shared ? shared : most_shared;
    }
    out->rss_nbytes = (own + most_shared) * p->page;
}

/*
 * Gives a fuzzer inputs that are kept in files, without an engine:
 *
 *     fuzz_json FOLDER...
 *
 * Each file is tried as it is, then cut off at up to CUTS places and with up to CHANGES
 * single bytes changed, the same ones in every run.  The memory of the process is limited,
 * and an input that takes longer than LIMIT_S ends it.
 */
#include <dirent.h>
#include <errno.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include "fuzz.h"

#pragma weak LLVMFuzzerInitialize

enum {
    CUTS = 16,
    CHANGES = 64,
    LIMIT_S = 60 /* thousands of times what any input takes: loaded machines are slow */
};

static const char *current; /* the file, for the message */
static int messages = STDERR_FILENO;
static size_t ninputs;

static void say_where(int signal_number)
{
    dprintf(messages, "%s, or bytes like it: signal %d\n", current, signal_number);
    raise(signal_number);
}

static void try(const uint8_t *data, size_t nbytes)
{
    uint8_t *copy = fuzz_copy(data, nbytes);
    alarm(LIMIT_S);
    LLVMFuzzerTestOneInput(copy, nbytes);
    alarm(0);
    free(copy);
    ninputs++;
}

static void try_variants(uint8_t *data, size_t nbytes)
{
    uint64_t state = 88172645463325252u + nbytes;
    try(data, nbytes);
    for (size_t i = 0; i < CUTS && i < nbytes; i++)
        try(data, nbytes * i / CUTS);
    for (size_t i = 0; i < CHANGES && nbytes > 0; i++) {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        uint8_t *at = &data[(state >> 8) % nbytes], was = *at;
        *at = i % 2 ? (uint8_t)(was ^ (1u << (state & 7))) : (uint8_t)state;
        try(data, nbytes);
        *at = was;
    }
}

static void read_file(const char *path)
{
    FILE *f = fopen(path, "rb");
    struct stat st;
    if (f == NULL || fstat(fileno(f), &st) != 0 || !S_ISREG(st.st_mode)) {
        fprintf(stderr, "%s: %s\n", path, f == NULL ? strerror(errno) : "is no file");
        exit(1);
    }
    uint8_t *data = malloc((size_t)st.st_size + 1);
    if (data == NULL || fread(data, 1, (size_t)st.st_size, f) != (size_t)st.st_size) {
        fprintf(stderr, "%s: cannot be read\n", path);
        exit(1);
    }
    fclose(f);
    current = path;
    try_variants(data, (size_t)st.st_size);
    free(data);
}

static int by_name(const struct dirent **a, const struct dirent **b)
{
    return strcmp((*a)->d_name, (*b)->d_name);
}

int main(int argc, char **argv)
{
    static const int deaths[] = {SIGABRT, SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGALRM};
    char path[4096];
    size_t nfiles = 0;
    /* A fuzzer may put its own output aside; what is said here is still seen. */
    messages = dup(STDERR_FILENO);
    /* Fuzzers have their own signal and setrlimit where what they call changes the process. */
    const struct sigaction death = {.sa_handler = say_where, .sa_flags = (int)SA_RESETHAND};
    for (size_t i = 0; i < sizeof deaths / sizeof *deaths; i++)
        sigaction(deaths[i], &death, NULL);
    if (LLVMFuzzerInitialize != NULL)
        LLVMFuzzerInitialize(&argc, &argv);
#ifndef __SANITIZE_ADDRESS__ /* which reserves terabytes of addresses */
    prlimit(0, RLIMIT_DATA, &(struct rlimit){(rlim_t)2 << 30, (rlim_t)2 << 30}, NULL);
#endif
    for (int i = 1; i < argc; i++) {
        struct dirent **entry;
        int n = scandir(argv[i], &entry, NULL, by_name);
        if (n < 0) {
            dprintf(messages, "%s: %s\n", argv[i], strerror(errno));
            return 1;
        }
        for (int k = 0; k < n; k++) {
            snprintf(path, sizeof path, "%s/%s", argv[i], entry[k]->d_name);
            if (entry[k]->d_name[0] != '.') {
                read_file(path);
                nfiles++;
            }
            free(entry[k]);
        }
        free(entry);
    }
    dprintf(messages, "%zu inputs from %zu files\n", ninputs, nfiles);
    return nfiles > 0 ? 0 : 1;
}

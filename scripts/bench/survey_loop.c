/*
 * survey_loop: the least time in which libnetcdf tells what many files hold.
 *
 *     survey_loop PROCESSES FOLDER
 *
 * Processes in bare loops open each file of FOLDER, ask for every dimension, variable,
 * attribute, chunking and filter, and read the coordinates.  Prints {"seconds": ...}.
 */
#include <glob.h>
#include <netcdf.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

static void check(int status, const char *path)
{
    if (status == NC_NOERR)
        return;
    fprintf(stderr, "survey_loop: %s: %s\n", path, nc_strerror(status));
    exit(1);
}

static void read_attributes(const char *path, int nc, int var, int natts)
{
    for (int i = 0; i < natts; i++) {
        char name[NC_MAX_NAME + 1];
        nc_type type;
        size_t n;
        check(nc_inq_attname(nc, var, i, name), path);
        check(nc_inq_att(nc, var, name, &type, &n), path);
        void *value = malloc(n * 8 + 8);
        if (type != NC_STRING)
            check(nc_get_att(nc, var, name, value), path);
        free(value);
    }
}

static void read_variable(const char *path, int nc, int var)
{
    int ndims, dims[NC_MAX_VAR_DIMS], natts, dim, storage, shuffle, deflate, level;
    size_t chunk[NC_MAX_VAR_DIMS], n;
    char name[NC_MAX_NAME + 1];
    nc_type type;
    check(nc_inq_var(nc, var, name, &type, &ndims, dims, &natts), path);
    check(nc_inq_var_chunking(nc, var, &storage, chunk), path);
    check(nc_inq_var_deflate(nc, var, &shuffle, &deflate, &level), path);
    read_attributes(path, nc, var, natts);
    if (ndims != 1 || nc_inq_dimid(nc, name, &dim) != NC_NOERR)
        return;
    check(nc_inq_dimlen(nc, dim, &n), path);
    double *values = malloc(n * sizeof(*values) + 8);
    check(nc_get_var_double(nc, var, values), path);
    free(values);
}

static void survey(const char *path)
{
    int nc, ndims, nvars, natts, unlimited;
    check(nc_open(path, NC_NOWRITE, &nc), path);
    check(nc_inq(nc, &ndims, &nvars, &natts, &unlimited), path);
    read_attributes(path, nc, NC_GLOBAL, natts);
    for (int i = 0; i < nvars; i++)
        read_variable(path, nc, i);
    check(nc_close(nc), path);
}

int main(int argc, char **argv)
{
    struct timespec begin, end;
    char pattern[4096];
    glob_t files;
    int bad = 0, status;
    if (argc != 3)
        return 2;
    const int nprocesses = atoi(argv[1]);
    clock_gettime(CLOCK_MONOTONIC, &begin);
    snprintf(pattern, sizeof(pattern), "%s/*.nc", argv[2]);
    if (glob(pattern, 0, NULL, &files) != 0)
        return 1;
    for (int p = 0; p < nprocesses; p++) {
        if (fork() != 0)
            continue;
        for (size_t i = (size_t)p; i < files.gl_pathc; i += (size_t)nprocesses)
            survey(files.gl_pathv[i]);
        _exit(0);
    }
    while (wait(&status) > 0)
        bad |= status;
    clock_gettime(CLOCK_MONOTONIC, &end);
    printf("{\"seconds\": %.6f}\n",
           (double)(end.tv_sec - begin.tv_sec) + (double)(end.tv_nsec - begin.tv_nsec) / 1e9);
    return bad != 0;
}

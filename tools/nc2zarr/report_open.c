/* The command that shows in Python what was made. */
#include "report_open.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../common/print.h"
#include "../common/repository.h"
#include "base/fileurl.h"
#include "base/outstream.h"
#include "store/zip.h"

/*
 * CODE as a command; frees it.  NULL: there was no memory for it.  RECTILINEAR: zarr-python reads
 * such grids where it is told to.
 */
static void print_python(char *code, bool rectilinear)
{
    if (code != NULL) {
        fputs(rectilinear ? "  ZARR_ARRAY__RECTILINEAR_CHUNKS=True python3 -c " : "  python3 -c ",
              stdout);
        cm_print_shell_word(code, stdout);
        putchar('\n');
    }
    free(code);
}

/* The line that opens GROUP (NULL: the root) of the store in xarray, quoted for a shell. */
static void print_open(const char *store, const char *group, size_t group_nbytes, bool consolidated,
                       bool rectilinear)
{
    cm_outtext t;
    FILE *f = cm_outtext_open(&t);
    if (!f)
        return;
    const bool zip = cm_zip_is_name(store);
    fputs(zip ? "import xarray, zarr; print(xarray.open_zarr(zarr.storage.ZipStore("
              : "import xarray; print(xarray.open_zarr(",
          f);
    cm_print_python_string(store, strlen(store), f);
    fputs(zip ? ", mode=\"r\")" : "", f);
    if (group) {
        fputs(", group=", f);
        cm_print_python_string(group, group_nbytes, f);
    }
    fputs(consolidated ? "))" : ", consolidated=False))", f);
    print_python(cm_outtext_close(&t), rectilinear);
}

static bool any_rectilinear(const cm_transform_report *r)
{
    for (size_t i = 0; i < r->nvariables; i++)
        if (r->variable[i].rectilinear)
            return true;
    return false;
}

/* The document of references that TARGET names. */
static void print_document(const char *target)
{
    cm_outtext t;
    FILE *f = cm_outtext_open(&t);
    if (f == NULL)
        return;
    fputs("import xarray; print(xarray.open_dataset(\"reference://\", engine=\"zarr\", "
          "backend_kwargs={\"consolidated\": False, \"storage_options\": {\"fo\": ",
          f);
    cm_print_python_string(target, strlen(target), f);
    fputs("}}))", f);
    print_python(cm_outtext_close(&t), false);
}

/* The group that the first variable lies in; NULL: one lies in the root. */
static const char *group_of(const cm_transform_report *r, size_t *nbytes)
{
    for (size_t i = 0; i < r->nvariables; i++) {
        const char *slash = strrchr(r->variable[i].name, '/');
        if (slash == NULL || slash == r->variable[i].name)
            return NULL;
    }
    const char *name = r->nvariables > 0 ? r->variable[0].name : NULL;
    *nbytes = name != NULL ? (size_t)(strrchr(name, '/') - name) : 0;
    return name;
}

static void print_store(const cm_transform_options *options, const cm_transform_report *r)
{
    size_t nbytes = 0;
    const char *group = group_of(r, &nbytes);
    char *store = NULL;
    /* It was written to: there is no URL in it that cannot be read. */
    if (cm_fileurl_path(r->target ? r->target : options->target, &store, NULL) == CM_OK) {
        puts("\nOpen it:");
        print_open(store, group, nbytes, !options->no_consolidate, any_rectilinear(r));
    }
    free(store);
}

void nc2zarr_print_opening(const cm_transform_options *options, const cm_transform_report *r)
{
    const bool repository = cm_is_repository(options->target);
    if (!repository && options->refer == NULL) {
        print_store(options, r);
        return;
    }
    puts("\nOpen it:");
    if (repository)
        print_python(cm_repository_code(options->target, options->branch,
                                        options->refer != NULL || options->append != NULL),
                     false);
    else
        print_document(options->target);
}

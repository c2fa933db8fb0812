#include "repository.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/outstream.h"
#include "options/store_path.h"
#include "store/open.h"

#include "say.h"

bool cm_is_repository(const char *text)
{
    return cm_icechunk_path(text) != NULL;
}

const char *cm_repository_place(const char *text)
{
    const char *path = cm_icechunk_path(text);
    return path != NULL ? path : text;
}

void cm_print_python_string(const char *text, size_t nbytes, FILE *to)
{
    putc('"', to);
    for (const unsigned char *c = (const unsigned char *)text; nbytes > 0; c++, nbytes--) {
        if (*c == '"' || *c == '\\')
            cm_print(to, "\\%c", *c);
        else if (*c < 0x20 || *c == 0x7f)
            cm_print(to, "\\x%02x", *c);
        else
            putc(*c, to);
    }
    putc('"', to);
}

/* s3://BUCKET/PREFIX, or a folder. */
static void print_storage(const char *path, FILE *to)
{
    if (!cm_store_url_is_remote(path)) {
        fputs("icechunk.local_filesystem_storage(", to);
        cm_print_python_string(path, strlen(path), to);
    } else {
        const char *bucket = strstr(path, "://") + 3;
        const size_t n = strcspn(bucket, "/");
        fputs("icechunk.s3_storage(from_env=True, bucket=", to);
        cm_print_python_string(bucket, n, to);
        fputs(", prefix=", to);
        cm_print_python_string(bucket + n + (bucket[n] == '/'),
                               strlen(bucket + n + (bucket[n] == '/')), to);
    }
    putc(')', to);
}

char *cm_repository_code(const char *target, const char *branch, bool outside)
{
    cm_store_path at;
    cm_outtext t;
    FILE *f = cm_outtext_open(&t);
    if (f == NULL)
        return NULL;
    if (cm_store_path_split(cm_repository_place(target), &at, NULL) != CM_OK) {
        cm_store_path_release(&at);
        free(cm_outtext_close(&t));
        return NULL;
    }
    fputs("import icechunk, xarray; s = ", f);
    print_storage(at.path, f);
    fputs("; r = icechunk.Repository.open(s", f);
    if (outside)
        fputs(", authorize_virtual_chunk_access=icechunk.containers_credentials({p: "
              "icechunk.s3_from_env_credentials() if p.startswith(\"s3:\") else "
              /* from icechunk 2.3 on; None, which did the same before, makes a warning there */
              "getattr(icechunk.credentials, \"LocalFileSystemAccess\" if p.startswith(\"file:\") "
              "else \"HttpAccess\", None) "
              "for p in icechunk.Repository.open(s).config.virtual_chunk_containers or {}})",
              f);
    fputs("); print(xarray.open_zarr(r.readonly_session(", f);
    cm_print_python_string(branch != NULL ? branch : "main",
                           strlen(branch != NULL ? branch : "main"), f);
    fputs(").store, consolidated=False", f);
    if (*at.node != '\0') {
        fputs(", group=", f);
        cm_print_python_string(at.node, strlen(at.node), f);
    }
    fputs("))", f);
    cm_store_path_release(&at);
    return cm_outtext_close(&t);
}

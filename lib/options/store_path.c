#include "options/store_path.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/fileurl.h"
#include "base/mem.h"
#include "store/copies.h"
#include "store/open.h"

int cm_store_path_split(const char *text, cm_store_path *out, cm_error *err)
{
    struct stat st;
    bool is_url = false;
    *out = (cm_store_path){0};
    const bool remote = cm_store_url_is_remote(text);
    int rc = remote ? CM_OK : cm_fileurl_strip(text, &text, &is_url, err);
    if (rc != CM_OK)
        return rc;
    const char *mark = !remote && stat(text, &st) == 0 ? NULL : strstr(text, "::");
    size_t npath = mark == NULL ? strlen(text) : (size_t)(mark - text);
    const char *node = mark == NULL ? "" : mark + 2 + strspn(mark + 2, "/");
    size_t nnode = strlen(node);
    while (nnode > 0 && node[nnode - 1] == '/')
        nnode--;
    out->path = cm_asprintf(err, "%.*s", (int)npath, text);
    out->node = cm_asprintf(err, "%.*s", (int)nnode, node);
    if (out->path == NULL || out->node == NULL)
        return CM_ENOMEM;
    for (size_t n = remote ? strlen(out->path) : 0; n > 0 && out->path[n - 1] == '/'; n--)
        out->path[n - 1] = '\0';
    return is_url && !remote ? cm_fileurl_decode(out->path, err) : CM_OK;
}

int cm_store_path_plain(const char *text, char **out, cm_error *err)
{
    if (!cm_store_url_is_remote(text))
        return cm_fileurl_path(text, out, err);
    *out = cm_strdup(text, err);
    return *out == NULL ? CM_ENOMEM : CM_OK;
}

int cm_store_path_find(const char *text, cm_net *net, cm_store_path *out, cm_error *err)
{
    cm_place there;
    int rc = cm_store_path_split(text, out, err);
    if (rc == CM_OK)
        rc = cm_store_path_fetch(out, net, NULL, err);
    if (rc == CM_OK)
        rc = cm_store_probe(out->path, &(cm_store_options){.net = net}, &there, err);
    if (rc != CM_OK)
        return rc;
    if (there == CM_PLACE_NOTHING)
        return cm_fail(err, CM_ENOTFOUND, "%s: no such file or folder", out->path);
    out->is_folder = there == CM_PLACE_FOLDER;
    return CM_OK;
}

int cm_store_path_fetch(cm_store_path *p, cm_net *net, const char *folder, cm_error *err)
{
    if (net == NULL || !cm_store_url_is_remote(p->path) || !cm_store_url_is_file(p->path))
        return CM_OK;
    char path[CM_COPY_PATH_SIZE];
    bool taken;
    cm_copy *copy;
    cm_object_stat told;
    int rc = cm_copy_stat_url(net, p->path, &told, err);
    if (rc == CM_OK && (p->paged = cm_paged_create(NULL, err)) == NULL)
        rc = CM_ENOMEM;
    if (rc == CM_OK)
        rc = cm_copies_create(net, folder, 0, p->paged, &p->copies, err);
    if (rc == CM_OK)
        rc = cm_copies_add(p->copies, p->path, &told, &copy, err);
    if (rc == CM_OK)
        rc = cm_copy_take(copy, CM_COPY_NOW, &taken, path, err);
    if (rc != CM_OK)
        return rc;
    p->url = p->path;
    p->path = cm_strdup(path, err);
    return p->path != NULL ? CM_OK : CM_ENOMEM;
}

void cm_store_path_name(const cm_store_path *p, cm_error *err)
{
    char text[sizeof(err->text)];
    char *said = err != NULL ? err->text : NULL;
    const char *copy = said != NULL && p->url != NULL ? strstr(said, p->path) : NULL;
    if (copy == NULL)
        return;
    snprintf(text, sizeof(text), "%.*s%s%s", (int)(copy - said), said, p->url,
             copy + strlen(p->path));
    memcpy(said, text, sizeof(text));
}

void cm_store_path_release(cm_store_path *p)
{
    cm_copies_free(p->copies);
    cm_paged_free(p->paged);
    free(p->url);
    free(p->path);
    free(p->node);
    *p = (cm_store_path){0};
}

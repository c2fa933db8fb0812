#include "format/icechunk/containers.h"

#include <string.h>

#include "format/icechunk/file_read.h"
#include "format/icechunk/flex_read.h"

int cm_ice_config_read(cm_store *root, cm_buf *out, cm_error *err)
{
    cm_ice_read repo;
    out->nbytes = 0;
    int rc = cm_ice_file_view(root, "repo", CM_ICE_REPO_FILE, &cm_ice_repo, &repo, err);
    if (rc != CM_OK)
        return rc == CM_ENOTFOUND ? CM_OK : rc; /* version 1 names no containers */
    const cm_fb_value *config = &repo.tree.root->value[CM_ICE_REPO_CONFIG];
    if (config->there)
        rc = cm_buf_append(out, config->bytes, config->n, err);
    cm_ice_read_release(&repo);
    return rc;
}

/* The prefix of the container NAME of N bytes; NULL: there is none. */
static const char *find_prefix(const cm_buf *config, const char *name, size_t n, size_t *nprefix)
{
    const cm_flex root = cm_flex_root(config->data, config->nbytes);
    const cm_flex all = cm_flex_member(&root, "virtual_chunk_containers");
    const size_t count = cm_flex_count(&all);
    for (size_t i = 0; i < count; i++) {
        size_t have = 0;
        const cm_flex one = cm_flex_value(&all, i);
        const cm_flex own = cm_flex_member(&one, "name"), url = cm_flex_member(&one, "url_prefix");
        const char *text = cm_flex_text(&own, &have);
        if (text != NULL && have == n && memcmp(text, name, n) == 0)
            return cm_flex_text(&url, nprefix);
    }
    return NULL;
}

bool cm_ice_config_has(const cm_buf *config, const char *url)
{
    const cm_flex root = cm_flex_root(config->data, config->nbytes);
    const cm_flex all = cm_flex_member(&root, "virtual_chunk_containers");
    const size_t count = cm_flex_count(&all);
    bool has = false;
    for (size_t i = 0; i < count && !has; i++) {
        size_t n = 0;
        const cm_flex one = cm_flex_value(&all, i);
        const cm_flex prefix = cm_flex_member(&one, "url_prefix");
        const char *text = cm_flex_text(&prefix, &n);
        has = text != NULL && n > 0 && strncmp(url, text, n) == 0;
    }
    return has;
}

int cm_ice_container_url(const cm_buf *config, const char *location, char **out, cm_error *err)
{
    const char *name = strstr(location, "://") + 3;
    const size_t n = strcspn(name, "/");
    const char *rest = name + n + (name[n] == '/');
    size_t nprefix = 0;
    const char *prefix = n > 0 ? find_prefix(config, name, n, &nprefix) : NULL;
    *out = NULL;
    if (prefix == NULL || nprefix > INT32_MAX)
        return cm_fail(err, CM_EFORMAT,
                       "'%s': the repository's configuration has no container %.*s", location,
                       n < INT32_MAX ? (int)n : 0, name);
    *out = cm_asprintf(err, "%.*s%s%s", (int)nprefix, prefix,
                       nprefix > 0 && prefix[nprefix - 1] == '/' ? "" : "/", rest);
    return *out != NULL ? CM_OK : CM_ENOMEM;
}

#include "archive/survey/inputs_impl.h"

#include <dirent.h>
#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/fileurl.h"
#include "base/mem.h"
#include "base/path.h"
#include "options/glob.h"
#include "store/net/url.h"
#include "store/open.h"

enum {
    MAX_DEPTH = 64 /* folders in folders; a link that leads upwards ends here at the latest */
};

/* ---- what a text is ---- */

bool cm_input_is_pattern(const char *text)
{
    const char *bracket = strchr(text, '[');
    return strpbrk(text, "*?") != NULL || (bracket != NULL && strchr(bracket, ']') != NULL);
}

/* Fewer than outputs are named after: files of HDF4 end in .hdf, too. */
bool cm_input_is_netcdf(const char *name)
{
    static const char *const ENDINGS[] = {".nc", ".nc4", ".cdf", ".h5", ".hdf5", ".he5"};
    size_t n = strlen(name);
    for (size_t i = 0; i < sizeof(ENDINGS) / sizeof(ENDINGS[0]); i++) {
        size_t m = strlen(ENDINGS[i]);
        if (n > m && strcasecmp(name + n - m, ENDINGS[i]) == 0)
            return true;
    }
    return false;
}

/* A Zarr store has documents; its chunks are no inputs. */
bool cm_input_is_store(const char *folder)
{
    static const char *const DOCUMENT[] = {"zarr.json", ".zgroup", ".zarray", ".zmetadata"};
    char name[PATH_MAX];
    for (size_t i = 0; i < sizeof(DOCUMENT) / sizeof(DOCUMENT[0]); i++) {
        int n = snprintf(name, sizeof(name), "%s/%s", folder, DOCUMENT[i]);
        if (n > 0 && (size_t)n < sizeof(name) && access(name, F_OK) == 0)
            return true;
    }
    return false;
}

/* By its name: nothing is asked for. */
static bool is_store_url(const char *text)
{
    size_t n = strlen(text);
    while (n > 0 && text[n - 1] == '/')
        n--;
    return n > 5 && strncmp(text + n - 5, ".zarr", 5) == 0;
}

bool cm_input_is_many(const char *text)
{
    struct stat st;
    if (stat(text, &st) == 0)
        return S_ISDIR(st.st_mode) && !cm_input_is_store(text);
    if (cm_url_kind_of(text) == CM_URL_HTTP)
        return strchr(text, '*') != NULL; /* refused when it is looked for */
    if (cm_store_url_is_remote(text))
        return !is_store_url(text) && (text[strlen(text) - 1] == '/' || cm_input_is_pattern(text));
    if (strstr(text, "://") != NULL)
        return false;
    return text[0] == '@' || cm_input_is_pattern(text);
}

/* ---- the list ---- */

int cm_inputs_add(cm_inputs *in, const char *path, cm_input **out, cm_error *err)
{
    if (CM_GROW(in->item, in->n, err) != CM_OK)
        return CM_ENOMEM;
    while (path[0] == '.' && path[1] == '/' && path[2] != '/' && path[2] != '\0')
        path += 2;
    cm_input *item = &in->item[in->n];
    *item =
        (cm_input){.path = cm_paged_calloc(in->paged, strlen(path) + 1, 1, err), .given = in->n};
    if (item->path == NULL)
        return CM_ENOMEM;
    strcpy(item->path, path);
    *out = item;
    in->n++;
    return CM_OK;
}

static int add(cm_inputs *in, const char *path, const struct stat *st, cm_error *err)
{
    cm_input *item;
    int rc = cm_inputs_add(in, path, &item, err);
    if (rc == CM_OK && st != NULL) {
        item->dev = st->st_dev;
        item->ino = st->st_ino;
    }
    return rc;
}

static int by_name(const void *a, const void *b)
{
    const cm_input *x = a, *y = b;
    int order = strcmp(x->path, y->path);
    return order != 0 ? order : (x->given > y->given) - (x->given < y->given);
}

static int by_file(const void *a, const void *b)
{
    const cm_input *x = *(cm_input *const *)a, *y = *(cm_input *const *)b;
    if (x->dev != y->dev)
        return x->dev < y->dev ? -1 : 1;
    if (x->ino != y->ino)
        return x->ino < y->ino ? -1 : 1;
    return by_name(x, y);
}

/* Of names of one file the first stays. */
static int drop_repeated(cm_inputs *in, cm_error *err)
{
    size_t kept = 0;
    cm_input **order = cm_calloc(in->n + 1, sizeof(*order), err);
    if (order == NULL)
        return CM_ENOMEM;
    for (size_t i = 0; i < in->n; i++)
        order[i] = &in->item[i];
    qsort(order, in->n, sizeof(*order), by_file);
    for (size_t i = 1; i < in->n; i++) {
        bool there = order[i]->ino != 0;
        const cm_input *before = order[i - 1];
        if (there ? before->dev != order[i]->dev || before->ino != order[i]->ino
                  : before->ino != 0 || strcmp(before->path, order[i]->path) != 0)
            continue;
        /* The first of its names goes on to be compared with the next. */
        cm_input *again = order[i];
        order[i] = order[i - 1];
        if (in->repeated == NULL && (in->repeated = cm_strdup(again->path, err)) == NULL) {
            free(order);
            return CM_ENOMEM;
        }
        in->nrepeated++;
        again->path = NULL;
    }
    free(order);
    for (size_t i = 0; i < in->n; i++)
        if (in->item[i].path != NULL)
            in->item[kept++] = in->item[i];
    in->n = kept;
    return CM_OK;
}

/* ---- searching ---- */

typedef struct search {
    cm_inputs *in;
    const char *pattern; /* NULL: everything that ends like NetCDF */
    bool deep;           /* below the folders that the pattern names */
} search;

static int search_folder(const search *s, const char *folder, unsigned depth, cm_error *err);

static bool is_avoided(const cm_inputs *in, const struct stat *st)
{
    struct stat made;
    return in->avoid != NULL && stat(in->avoid, &made) == 0 && made.st_dev == st->st_dev &&
           made.st_ino == st->st_ino;
}

/* The pattern may match what lies below PATH, if that were a folder. */
static bool may_hold(const search *s, const char *path)
{
    if (s->pattern == NULL || s->deep)
        return true;
    const char *end = s->pattern;
    size_t depth = 1;
    for (const char *p = path; *p != '\0'; p++)
        depth += *p == '/';
    while (depth > 0 && (end = strchr(end, '/')) != NULL && --depth > 0)
        end++;
    char *above =
        end != NULL ? cm_asprintf(NULL, "%.*s", (int)(end - s->pattern), s->pattern) : NULL;
    const bool may = above != NULL && cm_glob_matches(above, path);
    free(above);
    return may;
}

/* PATH, found in a folder, whose name there is NAME. */
static int visit(const search *s, const char *path, const char *name, unsigned depth, cm_error *err)
{
    struct stat st;
    bool matches = s->pattern != NULL && cm_glob_matches(s->pattern, path);
    bool wanted = s->pattern != NULL ? matches : cm_input_is_netcdf(name);
    if (stat(path, &st) != 0) {
        const int errnum = errno;
        if (errnum == ENOENT && lstat(path, &st) != 0 && errno == ENOENT)
            return CM_OK; /* removed meanwhile */
        /* A link to nothing is a file that cannot be read, or a folder of files, as "2000" is. */
        if (wanted || (errnum == ENOENT && strchr(name, '.') == NULL && may_hold(s, path)))
            return add(s->in, path, NULL, err);
        return errnum == ENOENT ? CM_OK
                                : cm_fail_errno(err, errnum, "%s: cannot be searched", path);
    }
    if (!S_ISDIR(st.st_mode))
        return wanted ? add(s->in, path, &st, err) : CM_OK;
    if (is_avoided(s->in, &st) || cm_input_is_store(path))
        return CM_OK;
    if (matches && s->deep == false) {
        const search below = {.in = s->in};
        return search_folder(&below, path, depth + 1, err);
    }
    return search_folder(s, path, depth + 1, err);
}

static int by_text(const void *a, const void *b)
{
    return strcmp(*(char *const *)a, *(char *const *)b);
}

/* All names of FOLDER first, so that no descriptor stays open on the way down. */
static int read_names(const char *folder, char ***out, size_t *n, cm_error *err)
{
    DIR *dir = opendir(folder[0] == '\0' ? "." : folder);
    int rc = CM_OK;
    *out = NULL;
    *n = 0;
    if (dir == NULL)
        return cm_fail_errno(err, errno, "%s: cannot be searched", folder);
    for (const struct dirent *e; rc == CM_OK && (errno = 0, e = readdir(dir)) != NULL;) {
        if (e->d_name[0] == '.')
            continue;
        if (CM_GROW(*out, *n, err) != CM_OK || ((*out)[*n] = cm_strdup(e->d_name, err)) == NULL)
            rc = CM_ENOMEM;
        else
            ++*n;
    }
    if (rc == CM_OK && errno != 0)
        rc = cm_fail_errno(err, errno, "%s: cannot be searched", folder);
    closedir(dir);
    if (*n > 0)
        qsort(*out, *n, sizeof(**out), by_text);
    return rc;
}

static int search_folder(const search *s, const char *folder, unsigned depth, cm_error *err)
{
    char **name = NULL;
    size_t n = 0, length = strlen(folder);
    if (depth > MAX_DEPTH)
        return cm_fail(err, CM_EINVAL, "%s: more than %d folders in folders; a link leads upwards",
                       folder, MAX_DEPTH);
    int rc = read_names(folder, &name, &n, err);
    const char *slash = length == 0 || folder[length - 1] == '/' ? "" : "/";
    for (size_t i = 0; i < n; i++) {
        char *path = rc == CM_OK ? cm_asprintf(err, "%s%s%s", folder, slash, name[i]) : NULL;
        if (rc == CM_OK)
            rc = path == NULL ? CM_ENOMEM : visit(s, path, name[i], depth, err);
        free(path);
        free(name[i]);
    }
    free(name);
    return rc;
}

/* The folder that holds all that PATTERN can match: its parts before the first that is none. */
static char *fixed_folder(const char *pattern, cm_error *err)
{
    size_t n = strcspn(pattern, "*?[");
    while (n > 0 && pattern[n - 1] != '/')
        n--;
    return cm_asprintf(err, "%.*s", (int)n, pattern);
}

static int find_pattern(cm_inputs *in, const char *pattern, cm_error *err)
{
    struct stat st;
    size_t before = in->n;
    while (pattern[0] == '.' && pattern[1] == '/' && pattern[2] != '/')
        pattern += 2;
    const search s = {.in = in, .pattern = pattern, .deep = strstr(pattern, "**") != NULL};
    char *folder = fixed_folder(pattern, err);
    if (folder == NULL)
        return CM_ENOMEM;
    bool there = true;
    int rc = folder[0] != '\0' ? cm_path_stat(folder, &st, &there, err) : CM_OK;
    if (rc == CM_OK && !there)
        rc = cm_fail(err, CM_ENOTFOUND, "%s: there is no folder %s", pattern, folder);
    if (rc == CM_OK)
        rc = search_folder(&s, folder, 0, err);
    free(folder);
    if (rc == CM_OK && in->n == before)
        return cm_fail(err, CM_ENOTFOUND, "%s: no file matches the pattern", pattern);
    return rc;
}

static int find_folder(cm_inputs *in, const char *folder, cm_error *err)
{
    const search s = {.in = in};
    size_t before = in->n;
    if (cm_input_is_store(folder))
        return cm_fail(err, CM_EINVAL,
                       "%s: is a Zarr store; only files are joined, or added to a store", folder);
    int rc = search_folder(&s, folder, 0, err);
    if (rc == CM_OK && in->n == before)
        return cm_fail(err, CM_ENOTFOUND,
                       "%s: holds no file whose name ends in " CM_INPUT_ENDINGS
                       "; name others by a quoted pattern, as in '%s/*'",
                       folder, folder);
    return rc;
}

/* ---- lists ---- */

static int find_text(cm_inputs *in, const char *text, bool from_list, cm_error *err);

static int read_list(cm_inputs *in, FILE *from, const char *name, cm_error *err)
{
    char *line = NULL;
    size_t capacity = 0, before = in->n;
    int rc = CM_OK, separator = in->zero ? '\0' : '\n';
    for (ssize_t n; rc == CM_OK && (n = getdelim(&line, &capacity, separator, from)) >= 0;) {
        if (n > 0 && line[n - 1] == (char)separator)
            line[--n] = '\0';
        if (!in->zero && n > 0 && line[n - 1] == '\r')
            line[--n] = '\0';
        if (!in->zero && strlen(line) != (size_t)n)
            rc = cm_fail(err, CM_EINVAL, "%s: a path holds a NUL; the list may be separated by NUL",
                         name);
        else if (n > 0)
            rc = find_text(in, line, true, err);
    }
    if (rc == CM_OK && ferror(from))
        rc = cm_fail_errno(err, errno, "%s: cannot be read", name);
    if (rc == CM_OK && in->n == before)
        rc = cm_fail(err, CM_ENOTFOUND, "%s: the list is empty", name);
    free(line);
    return rc;
}

static int find_list(cm_inputs *in, const char *text, cm_error *err)
{
    if (strcmp(text, "@-") == 0) {
        FILE *from = in->standard;
        in->standard = NULL;
        return from == NULL ? cm_fail(err, CM_EINVAL, "@-: standard input is read once")
                            : read_list(in, from, "standard input", err);
    }
    FILE *from = fopen(text + 1, "re");
    if (from == NULL)
        return cm_fail_errno(err, errno, "%s: the list %s cannot be opened", text, text + 1);
    int rc = read_list(in, from, text + 1, err);
    (void)fclose(from); /* it was only read */
    return rc;
}

static int find_text(cm_inputs *in, const char *text, bool from_list, cm_error *err)
{
    struct stat st;
    char *path = NULL;
    if (stat(text, &st) != 0) {
        if (text[0] == '@' && !from_list)
            return find_list(in, text, err);
        if (cm_store_url_is_remote(text))
            return cm_inputs_find_remote(in, text, from_list, err);
        if (cm_input_is_pattern(text))
            return find_pattern(in, text, err);
    }
    if (cm_icechunk_path(text) != NULL)
        return cm_fail(err, CM_EINVAL,
                       "%s: is a repository; only files are joined, or added to a store", text);
    int rc = cm_fileurl_path(text, &path, err);
    if (rc == CM_OK && stat(path, &st) != 0) {
        if (strstr(path, "::") != NULL)
            rc = cm_fail(err, CM_EINVAL, "%s: of several inputs each is a whole file", path);
        else if (from_list) /* the survey names it, and what is to be done */
            rc = add(in, path, NULL, err);
        else
            rc = cm_fail_errno(err, errno, "%s", path);
    } else if (rc == CM_OK) {
        rc = S_ISDIR(st.st_mode) ? find_folder(in, path, err) : add(in, path, &st, err);
    }
    free(path);
    return rc;
}

int cm_inputs_find(const cm_texts *texts, cm_inputs *out, cm_error *err)
{
    int rc = CM_OK;
    for (size_t i = 0; rc == CM_OK && i < texts->n; i++)
        rc = find_text(out, texts->text[i], false, err);
    if (rc == CM_OK)
        rc = cm_inputs_look(out, err);
    if (rc == CM_OK)
        rc = drop_repeated(out, err);
    if (rc == CM_OK && out->n > 0)
        qsort(out->item, out->n, sizeof(out->item[0]), by_name);
    return rc;
}

void cm_inputs_forget(cm_inputs *in)
{
    free(in->item);
    in->item = NULL;
    in->n = 0;
}

void cm_inputs_release(cm_inputs *in)
{
    free(in->item);
    free(in->repeated);
    *in = (cm_inputs){0};
}

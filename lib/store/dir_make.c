/* Makes the folders of a path that the user named. */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/glibc.h"
#include "store/dir.h"
#include "store/impl.h"

int cm_dir_explain_absence(int at)
{
    struct stat st;
    return fstat(at, &st) == 0 && st.st_nlink > 0 ? EPERM : ENOENT;
}

int cm_dir_make_folder(const char *path)
{
    if (mkdir(path, 0777) == 0 || errno == EEXIST)
        return 0;
    char above[PATH_MAX];
    size_t n = strlen(path);
    if (errno != ENOENT || n == 0 || n >= sizeof above)
        return errno;
    memcpy(above, path, n + 1);
    while (n > 1 && above[n - 1] == '/')
        above[--n] = '\0';
    char *slash = strrchr(above, '/');
    const char *name = path + (slash == NULL ? 0 : slash + 1 - above);
    if (slash != NULL)
        slash[slash == above] = '\0';
    const int at = open(slash == NULL ? "." : above, O_PATH | O_DIRECTORY | O_CLOEXEC);
    if (at < 0)
        return errno;
    int errnum = mkdirat(at, name, 0777) == 0 || errno == EEXIST ? 0 : errno;
    if (errnum == ENOENT)
        errnum = cm_dir_explain_absence(at);
    close(at);
    return errnum;
}

/*
 * Makes the first NBYTES of PATH, a folder as the user named it, with its missing parents: upwards
 * to the first folder whose parent exists, then down again.  0 or an errno; FOLDER (PATH_MAX) is
 * the name it refers to.
 */
static int try_root_folder(const char *path, size_t nbytes, char *folder)
{
    memcpy(folder, path, nbytes);
    folder[nbytes] = '\0';
    size_t end = nbytes;
    while (end > 0 && mkdir(folder, 0777) != 0 && errno != EEXIST) {
        size_t above = cm_key_folder(folder);
        if (errno != ENOENT || above == 0)
            return errno;
        folder[above] = '\0';
        end = above;
    }
    while (end < nbytes) {
        folder[end] = '/';
        end = strlen(folder);
        const int errnum = cm_dir_make_folder(folder);
        if (errnum != 0)
            return errnum;
    }
    return 0;
}

int cm_dir_make_above(const char *path, cm_error *err)
{
    char folder[PATH_MAX];
    size_t nbytes = cm_key_folder(path);
    if (nbytes >= sizeof folder)
        return cm_fail_errno(err, ENAMETOOLONG, "%s", path);
    int errnum = ENOENT;
    for (int i = 0; i < CM_DIR_MAX_TRIES && errnum == ENOENT; i++)
        errnum = try_root_folder(path, nbytes, folder);
    return errnum == 0 ? CM_OK
                       : cm_fail_errno(err, errnum, "%s: cannot make the folder %s", path, folder);
}

/* Places that untrusted documents may point to: those that the user allows. */
#ifndef CM_STORE_ALLOW_H
#define CM_STORE_ALLOW_H

#include <stdbool.h>

#include <chunkmill/error.h>
#include <chunkmill/texts.h>

/* CM_EINVAL if an entry of ALLOW, which may be NULL, is not a place. */
int cm_allow_check(const cm_texts *allow, cm_error *err);
/* Whether the local file PATH is at a place in ALLOW, which may be NULL. */
bool cm_allow_has_path(const cm_texts *allow, const char *path);
/* Whether the object KEY of ORIGIN ("s3://bucket", "https://host") is. */
bool cm_allow_has_object(const cm_texts *allow, const char *origin, const char *key);
/* The sentence that NAME, a path or URL, is refused for WHY, with the option that permits it. */
int cm_allow_refuse(const char *name, bool local, const char *why, cm_error *err);

/* True for an absolute path without "..", so that its prefix is where it lies. */
bool cm_allow_is_plain(const char *path);
/* True if PATH is below FOLDER, as written or without links. */
bool cm_allow_in_folder(const char *path, const char *folder);
/* True if two origins are the same server or bucket. */
bool cm_allow_same_origin(const char *a, const char *b);

#endif

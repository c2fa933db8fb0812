/*
 * "file://" URLs (RFC 8089), the one place that reads them: "file:///PATH" and
 * "file://localhost/PATH" name what lies on this machine; another host is refused.
 * "%41" stands for a byte, unless a file of the literal name is there, which wins.
 */
#ifndef CM_BASE_FILEURL_H
#define CM_BASE_FILEURL_H

#include <stdbool.h>

#include <chunkmill/error.h>

/*
 * *PATH becomes the part of TEXT that is a path, not yet decoded: all of TEXT where it
 * is no URL.  CM_EINVAL for another host and another scheme ("s3://") that no file of
 * that name stands for.
 */
int cm_fileurl_strip(const char *text, const char **path, bool *is_url, cm_error *err);

/* Decodes PATH in place, unless a file of that name is there.  CM_EINVAL for "%zz" and "%00". */
int cm_fileurl_decode(char *path, cm_error *err);

/* Both: the path that TEXT means, in *OUT, to be freed. */
int cm_fileurl_path(const char *text, char **out, cm_error *err);

#endif

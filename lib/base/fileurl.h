/*
 * "file://" URLs (RFC 8089), parsed only here: "file:///PATH" and "file://localhost/PATH" name
 * local files; another host is refused.  "%41" stands for a byte, unless a file of the literal name
 * exists, which wins.
 */
#ifndef CM_BASE_FILEURL_H
#define CM_BASE_FILEURL_H

#include <stdbool.h>

#include <chunkmill/error.h>

/*
 * Sets *PATH to the path in TEXT, not yet decoded: all of TEXT if it is not a URL.  CM_EINVAL for
 * another host or another scheme ("s3://"), unless a file of that name exists.
 */
int cm_fileurl_strip(const char *text, const char **path, bool *is_url, cm_error *err);

/* Decodes "%41" in place; invalid codes, and "%00", are kept. */
void cm_url_decode(char *text);
/* Decodes PATH in place, unless a file of that name exists.  CM_EINVAL for "%zz" and "%00". */
int cm_fileurl_decode(char *path, cm_error *err);

/* Strips and decodes TEXT into *OUT, to be freed. */
int cm_fileurl_path(const char *text, char **out, cm_error *err);

#endif

/* Ids that are new, and the names of a repository's files. */
#ifndef CM_FORMAT_ICECHUNK_KEY_H
#define CM_FORMAT_ICECHUNK_KEY_H

#include "format/icechunk/schema.h"

enum {
    CM_ICE_ID_TEXT = 20,                  /* letters of an id */
    CM_ICE_KEY_SIZE = 16 + CM_ICE_ID_TEXT /* of a key, with its NUL */
};

/* NBYTES that nobody else has. */
int cm_ice_id_random(uint8_t *id, size_t nbytes, cm_error *err);
/* The letters of ID in Crockford's base 32, and a NUL. */
void cm_ice_id_letters(const uint8_t id[CM_ICE_ID], char text[CM_ICE_ID_TEXT + 1]);
/* The id with these letters; false: they are not those of an id. */
bool cm_ice_id_parse(const char *text, uint8_t id[CM_ICE_ID]);
/*
 * TEXT, which WHAT names, may stand in a repository: readers refuse a whole file for a text that is
 * not UTF-8.  NULL is fine.
 */
int cm_ice_text_check(const char *what, const char *text, cm_error *err);
/* NAME may be a branch, and be named behind a path and '@'. */
int cm_ice_branch_check(const char *name, cm_error *err);
/* "FOLDER/LETTERS". */
void cm_ice_key(const char *folder, const uint8_t id[CM_ICE_ID], char key[CM_ICE_KEY_SIZE]);

#endif

#include "format/icechunk/key.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/glibc.h"
#include "base/utf8.h"

int cm_ice_id_random(uint8_t *id, size_t nbytes, cm_error *err)
{
    for (size_t got = 0; got < nbytes;) {
        ssize_t n = getrandom(id + got, nbytes - got, 0);
        if (n < 0 && errno != EINTR)
            return cm_fail_errno(err, errno, "no random numbers");
        got += n > 0 ? (size_t)n : 0;
    }
    return CM_OK;
}

static const char LETTERS[] = "0123456789ABCDEFGHJKMNPQRSTVWXYZ";

bool cm_ice_id_parse(const char *text, uint8_t id[CM_ICE_ID])
{
    char again[CM_ICE_ID_TEXT + 1];
    unsigned bits = 0, nbits = 0, n = 0;
    if (strlen(text) != CM_ICE_ID_TEXT)
        return false;
    for (unsigned i = 0; i < CM_ICE_ID_TEXT; i++) {
        const char *at = strchr(LETTERS, text[i]);
        bits = bits << 5 | (at != NULL ? (unsigned)(at - LETTERS) : 0);
        for (nbits += 5; nbits >= 8 && n < CM_ICE_ID; nbits -= 8)
            id[n++] = (uint8_t)(bits >> (nbits - 8));
    }
    cm_ice_id_letters(id, again); /* letters that are none, or bits behind the last */
    return strcmp(again, text) == 0;
}

void cm_ice_id_letters(const uint8_t id[CM_ICE_ID], char text[CM_ICE_ID_TEXT + 1])
{
    unsigned bits = 0, nbits = 0, n = 0;
    for (unsigned i = 0; i < CM_ICE_ID; i++) {
        bits = bits << 8 | id[i];
        for (nbits += 8; nbits >= 5; nbits -= 5)
            text[n++] = LETTERS[bits >> (nbits - 5) & 31];
    }
    text[n++] = LETTERS[bits << (5 - nbits) & 31];
    text[n] = '\0';
}

int cm_ice_text_check(const char *what, const char *text, cm_error *err)
{
    if (text == NULL || (*text != '\0' && cm_utf8_is_valid(text, strlen(text))))
        return CM_OK;
    return cm_fail(err, CM_EINVAL, *text == '\0' ? "%s: is empty" : "%s: is not UTF-8", what);
}

int cm_ice_branch_check(const char *name, cm_error *err)
{
    static const char tag[] = "tag:";
    int rc = cm_ice_text_check("`branch`", name, err);
    if (rc != CM_OK || name == NULL)
        return rc;
    if (strchr(name, '@') != NULL || strstr(name, "::") != NULL ||
        strncmp(name, tag, strlen(tag)) == 0)
        return cm_fail(err, CM_EINVAL,
                       "`branch` %s: a name with '@', '::' or tag: in front cannot be told from "
                       "other versions behind a path",
                       name);
    return CM_OK;
}

void cm_ice_key(const char *folder, const uint8_t id[CM_ICE_ID], char key[CM_ICE_KEY_SIZE])
{
    char text[CM_ICE_ID_TEXT + 1];
    cm_ice_id_letters(id, text);
    snprintf(key, CM_ICE_KEY_SIZE, "%s/%s", folder, text);
}

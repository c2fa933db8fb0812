#include "format/icechunk/key.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/glibc.h"

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

void cm_ice_key(const char *folder, const uint8_t id[CM_ICE_ID], char key[CM_ICE_KEY_SIZE])
{
    char text[CM_ICE_ID_TEXT + 1];
    cm_ice_id_letters(id, text);
    snprintf(key, CM_ICE_KEY_SIZE, "%s/%s", folder, text);
}

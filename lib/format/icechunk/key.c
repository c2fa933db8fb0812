#include "format/icechunk/key.h"

#include <errno.h>
#include <stdio.h>
#include <sys/random.h>

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

void cm_ice_id_letters(const uint8_t id[CM_ICE_ID], char text[CM_ICE_ID_TEXT + 1])
{
    static const char letter[] = "0123456789ABCDEFGHJKMNPQRSTVWXYZ";
    unsigned bits = 0, nbits = 0, n = 0;
    for (unsigned i = 0; i < CM_ICE_ID; i++) {
        bits = bits << 8 | id[i];
        for (nbits += 8; nbits >= 5; nbits -= 5)
            text[n++] = letter[bits >> (nbits - 5) & 31];
    }
    text[n++] = letter[bits << (5 - nbits) & 31];
    text[n] = '\0';
}

void cm_ice_key(const char *folder, const uint8_t id[CM_ICE_ID], char key[CM_ICE_KEY_SIZE])
{
    char text[CM_ICE_ID_TEXT + 1];
    cm_ice_id_letters(id, text);
    snprintf(key, CM_ICE_KEY_SIZE, "%s/%s", folder, text);
}

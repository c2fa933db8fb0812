#include "store/net/secret.h"

#include <string.h>

enum {
    LEAST = 8,   /* shortest part of a secret to hide */
    SHORTEST = 4 /* anything shorter is not a secret, and occurs in any sentence */
};

/*
 * The number of characters at the start of TEXT that occur in a row in SECRET; 0: fewer than LEAST.
 */
static size_t repeated(const char *text, size_t nbytes, const char *secret, size_t length)
{
    const size_t least = length < LEAST ? length : LEAST;
    size_t most = 0;
    for (const char *p = secret; nbytes >= least && p + least <= secret + length; p++) {
        p = memmem(p, (size_t)(secret + length - p), text, least);
        if (p == NULL)
            break;
        size_t n = least;
        while (n < nbytes && p + n < secret + length && p[n] == text[n])
            n++;
        most = n > most ? n : most;
    }
    return most;
}

static bool hide(char *text, const char *secret)
{
    static const char MARK[] = "***";
    const size_t length = secret != NULL ? strlen(secret) : 0;
    size_t left = strlen(text), n;
    char *to = text;
    bool found = false;
    for (const char *p = text; length >= SHORTEST && left > 0; p += n, left -= n) {
        const size_t secrets = repeated(p, left, secret, length);
        const size_t nshown = secrets > 0 ? strlen(MARK) : 1;
        n = secrets > 0 ? secrets : 1;
        found = found || secrets > 0;
        memmove(to, secrets > 0 ? MARK : p, nshown);
        to += nshown;
    }
    if (found)
        *to = '\0';
    return found;
}

bool cm_secret_hide(char *text, const cm_http *r)
{
    const cm_http_signer none = {0}, *s = r->signer != NULL ? r->signer : &none;
    const char *const secrets[] = {s->token, s->secret, s->key, r->secret};
    bool found = false;
    for (size_t i = 0; i < sizeof secrets / sizeof *secrets; i++)
        found = hide(text, secrets[i]) || found;
    return found;
}

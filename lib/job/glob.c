#include "job/glob.h"

#include <string.h>

#include "base/utf8.h"

/* One character of TEXT; a byte that is no UTF-8 is one, too. */
static size_t character(const char *text)
{
    size_t n = cm_utf8_length((const uint8_t *)text, strlen(text));
    return n == 0 ? 1 : n;
}

/* A character is compared by its bytes, whose order in UTF-8 is that of the characters. */
static bool lies_between(const char *c, size_t n, const char *low, size_t nlow, const char *high,
                         size_t nhigh)
{
    int above = memcmp(c, low, n < nlow ? n : nlow), below = memcmp(c, high, n < nhigh ? n : nhigh);
    return (above > 0 || (above == 0 && n >= nlow)) && (below < 0 || (below == 0 && n <= nhigh));
}

/*
 * Is C, a character of N bytes, in the set that begins at P, behind its '['?
 * Returns what follows the ']'; NULL: there is none, or it lies in another part.
 */
static const char *find_in_set(const char *p, const char *c, size_t n, bool *found)
{
    bool negated = *p == '!' || *p == '^';
    const char *first = p += negated;
    *found = negated;
    while (*p != ']' || p == first) {
        p += *p == '\\' && p[1] != '\0';
        if (*p == '\0' || *p == '/')
            return NULL;
        const char *low = p, *high = p;
        size_t nlow = character(p), nhigh = nlow;
        p += nlow;
        if (p[0] == '-' && p[1] != ']' && p[1] != '\0' && p[1] != '/') {
            high = p + 1;
            nhigh = character(high);
            p = high + nhigh;
        }
        if (lies_between(c, n, low, nlow, high, nhigh))
            *found = !negated;
    }
    return p + 1;
}

/* The first character of T, which is not at its end, against what P begins with; returns what follows in P, or NULL. */
static const char *match_one(const char *p, const char *t)
{
    bool found = false;
    const char *behind = NULL;
    if (*p == '[' && *t != '/')
        behind = find_in_set(p + 1, t, character(t), &found);
    if (behind != NULL)
        return found ? behind : NULL;
    if (*p == '?')
        return *t != '/' ? p + 1 : NULL;
    p += *p == '\\' && p[1] != '\0';
    size_t n = character(p);
    return strncmp(p, t, n) == 0 ? p + n : NULL;
}

static bool is_any_parts(const char *p, const char *begin)
{
    return p[0] == '*' && p[1] == '*' && (p[2] == '/' || p[2] == '\0') &&
           (p == begin || p[-1] == '/');
}

/* P, the rest of the pattern that begins at BEGIN, against T. */
static bool match(const char *begin, const char *p, const char *t)
{
    for (; p != NULL && *p != '\0'; t += character(t)) {
        if (is_any_parts(p, begin)) {
            if (p[2] == '\0')
                return *t != '\0';
            while (!match(begin, p + 3, t)) {
                if ((t = strchr(t, '/')) == NULL)
                    return false;
                t++;
            }
            return true;
        }
        if (*p == '*') {
            for (; !match(begin, p + 1, t); t += character(t))
                if (*t == '\0' || *t == '/')
                    return false;
            return true;
        }
        if (*t == '\0')
            return false;
        p = match_one(p, t);
    }
    return p != NULL && *t == '\0';
}

bool cm_glob_matches(const char *pattern, const char *path)
{
    return match(pattern, pattern, path);
}

#include "options/glob.h"

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

/*
 * The first character of T, which is not at its end, against what P begins with; returns what
 * follows in P, or NULL.
 */
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

/* Where to go on when what follows a star did not match: one character, or one part, later. */
typedef struct retreat {
    const char *p; /* behind the star; NULL: there was none */
    const char *t;
} retreat;

/*
 * Only the last "*" and the last "**" are tried again.  An earlier star of the same kind could
 * take more, too, but then the later one could take less: what they leave is the same.
 */
bool cm_glob_matches(const char *pattern, const char *path)
{
    const char *p = pattern, *t = path, *next;
    retreat star = {0}, parts = {0};
    for (;;) {
        if (is_any_parts(p, pattern) && p[2] == '/') {
            parts = (retreat){p += 3, t};
            star.p = NULL;
        } else if (is_any_parts(p, pattern) && *t != '\0') {
            return true;
        } else if (*p == '*' && !is_any_parts(p, pattern)) {
            star = (retreat){++p, t};
        } else if (*p == '\0' && *t == '\0') {
            return true;
        } else if (*p != '\0' && *t != '\0' && (next = match_one(p, t)) != NULL) {
            p = next;
            t += character(t);
        } else if (star.p != NULL && *star.t != '\0' && *star.t != '/') {
            star.t += character(star.t);
            p = star.p;
            t = star.t;
        } else if (parts.p != NULL && (parts.t = strchr(parts.t, '/')) != NULL) {
            p = parts.p;
            t = ++parts.t;
            star.p = NULL;
        } else {
            return false;
        }
    }
}

/*
 * Options "for one variable": "[VAR:]VALUE", repeated, the later wins.
 *
 * The text before the first unescaped ':' is a variable (or a glob of variables)
 * unless it is one of the option's own keywords; '\' escapes ':', ',', '=', '*', '@'.
 * Globs are those of glob.h; one without '/' is held against the last part of a
 * variable's path too, so that "t*" means "ocean/tos" as well as "tas".
 */
#ifndef CM_OPTIONS_VAROPT_H
#define CM_OPTIONS_VAROPT_H

#include <stdbool.h>

#include <chunkmill/error.h>
#include <chunkmill/texts.h>

typedef struct cm_varopt {
    char *pattern; /* NULL: for every variable */
    char *value;
    bool used;
} cm_varopt;

typedef struct cm_varopts {
    const char *option; /* "`chunks`", for messages */
    cm_varopt *item;
    size_t n;
} cm_varopts;

/* KEYWORDS (NULL-terminated, or NULL) never name a variable. */
int cm_varopts_parse(const char *option, const cm_texts *texts, const char *const *keywords,
                     cm_varopts *out, cm_error *err);
void cm_varopts_release(cm_varopts *opts);

/*
 * The value for the variable NAME, or NULL.  Values without VAR: count only when
 * GENERAL.  *named (may be NULL) tells whether the value was for this variable
 * by name.
 */
const char *cm_varopts_get(cm_varopts *opts, const char *name, bool general, bool *named);

/* "NAME:VALUE", with NAME escaped so that it means that variable; to be freed.  NULL: no memory. */
char *cm_varopt_make(const char *name, const char *value, cm_error *err);

/* CM_EINVAL, naming the pattern, when one with VAR: matched no variable that was asked for. */
int cm_varopts_check_used(const cm_varopts *opts, cm_error *err);

/*
 * True when NAME, a variable's path, matches PATTERN (a glob, as above): its last
 * part does where PATTERN is one part.  "/PATTERN" is the whole path, and "/" the root.
 */
bool cm_name_matches(const char *pattern, const char *name);

/*
 * Splits TEXT at each unescaped SEPARATOR and calls VISIT with every part, its
 * escapes kept; stops at, and returns, the first non-zero value.
 */
typedef int cm_part_visit(void *context, char *part, cm_error *err);
int cm_split(const char *text, char separator, cm_part_visit *visit, void *context, cm_error *err);

/*
 * Sets CHOSEN of each of N names (NULL: not to be chosen) that one of the patterns of LIST, "A,B",
 * matches.  CM_EINVAL "OPTION B: WHERE has no such array" for a pattern that none does.
 */
int cm_names_choose(const char *option, const char *list, const char *where,
                    const char *const *name, size_t n, bool *chosen, cm_error *err);

/* The first unescaped C in TEXT, or NULL. */
char *cm_find_unescaped(const char *text, char c);
/* Removes the escapes, in place. */
void cm_unescape(char *text);

#endif

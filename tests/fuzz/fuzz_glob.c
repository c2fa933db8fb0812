/* Patterns of variables' paths: matching ends, and obeys the rules that need no second matcher. */
#include "fuzz.h"
#include "options/glob.h"

static char *joined(const char *a, const char *b)
{
    char *text = malloc(strlen(a) + strlen(b) + 1);
    REQUIRE(text != NULL);
    return strcat(strcpy(text, a), b);
}

/* PATH with every character escaped. */
static char *escaped(const char *path)
{
    char *text = malloc(2 * strlen(path) + 1), *to = text;
    REQUIRE(text != NULL);
    for (; *path != '\0'; path++) {
        if (strchr("*?[]\\", *path) != NULL)
            *to++ = '\\';
        *to++ = *path;
    }
    *to = '\0';
    return text;
}

static void check(const char *pattern, const char *path)
{
    char *literal = escaped(path), *longer = joined(literal, "?"), *deep = joined("**/", pattern);
    char *below = joined("x/", path);
    const bool matches = cm_glob_matches(pattern, path);
    REQUIRE(cm_glob_matches(literal, path));
    REQUIRE(!cm_glob_matches(longer, path));
    REQUIRE(cm_glob_matches("**", path) == (*path != '\0'));
    if (strcmp(pattern, "**") != 0 && strncmp(pattern, "**/", 3) != 0) {
        /* Behind "**" the pattern stands for itself, at any depth. */
        REQUIRE(!matches || cm_glob_matches(deep, path));
        REQUIRE(!matches || cm_glob_matches(deep, below));
    }
    free(literal);
    free(longer);
    free(deep);
    free(below);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t nbytes)
{
    fuzz_input in = {data, nbytes < 512 ? nbytes : 512};
    char *pattern = fuzz_line(&in), *path = fuzz_line(&in);
    check(pattern, path);
    free(pattern);
    free(path);
    return 0;
}

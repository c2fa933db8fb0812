/*
 * nc2zarr with a join that is wrong on purpose (archive/planted.h): CHUNKMILL_PLANTED names
 * which, by letters: Z, R, P, M, W, S in its order.
 */
#include <stdlib.h>
#include <string.h>

#include "archive/planted.h"

void __real_cm_run_prepare(void); /* NOLINT: the linker's name */
void __wrap_cm_run_prepare(void); /* NOLINT */

void __wrap_cm_run_prepare(void)
{
    static const char LETTERS[] = "ZRPMWS";
    const char *planted = getenv("CHUNKMILL_PLANTED");
    for (unsigned i = 0; planted != NULL && LETTERS[i] != '\0'; i++)
        if (strchr(planted, LETTERS[i]) != NULL)
            cm_join_planted |= 1u << i;
    __real_cm_run_prepare();
}

#include "base/xxh128.h"

#include <stdio.h>

/* All of it is in the header: nothing has to be linked. */
#define XXH_INLINE_ALL
#include <xxhash.h>

_Static_assert(sizeof(XXH3_state_t) <= sizeof(((cm_xxh128 *)NULL)->state), "its state fits");
_Static_assert(_Alignof(XXH3_state_t) <= _Alignof(cm_xxh128), "its state is aligned");

void cm_xxh128_begin(cm_xxh128 *x)
{
    XXH3_128bits_reset((XXH3_state_t *)x);
}

void cm_xxh128_add(cm_xxh128 *x, const void *data, size_t nbytes)
{
    XXH3_128bits_update((XXH3_state_t *)x, data, nbytes);
}

char *cm_xxh128_text(const cm_xxh128 *x, char text[CM_XXH128_TEXT])
{
    XXH128_canonical_t digest;
    XXH128_canonicalFromHash(&digest, XXH3_128bits_digest((const XXH3_state_t *)x));
    for (unsigned i = 0; i < sizeof(digest.digest); i++)
        snprintf(text + 2 * i, 3, "%02x", digest.digest[i]);
    return text;
}

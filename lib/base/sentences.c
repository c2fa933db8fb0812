#include "base/sentences.h"

#include <stdio.h>
#include <stdlib.h>

#include "base/mem.h"

int cm_sentences_add(char ***list, size_t *n, cm_error *err, const char *format, va_list args)
{
    if (CM_GROW(*list, *n, err) != CM_OK)
        return CM_ENOMEM;
    if (vasprintf(&(*list)[*n], format, args) < 0)
        return cm_fail(err, CM_ENOMEM, "no memory for the report");
    (*n)++;
    return CM_OK;
}

void cm_sentences_free(char **list, size_t n)
{
    for (size_t i = 0; i < n; i++)
        free(list[i]);
    free(list);
}

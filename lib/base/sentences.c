#include "base/sentences.h"

#include <stdio.h>
#include <stdlib.h>

int cm_sentences_add(char ***list, size_t *n, cm_error *err, const char *format, va_list args)
{
    char **bigger = realloc(*list, (*n + 1) * sizeof(bigger[0]));
    if (bigger == NULL)
        return cm_fail(err, CM_ENOMEM, "no memory for the report");
    *list = bigger;
    if (vasprintf(&bigger[*n], format, args) < 0)
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

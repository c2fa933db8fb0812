/* A JSON document as YAML: the same tree, readable without a parser. */
#ifndef CM_TOOLS_READBENCH_YAML_H
#define CM_TOOLS_READBENCH_YAML_H

#include <stdio.h>

#include "base/json.h"

/*
 * Blocks for objects and arrays.  Texts are quoted unless they are plain words that
 * YAML 1.1 and 1.2 both take for text; numbers have the form that both take for numbers.
 */
void readbench_print_yaml(const cm_json *j, FILE *to);

#endif

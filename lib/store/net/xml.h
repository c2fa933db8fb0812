/* Reads XML answers of object stores as a sequence of texts. */
#ifndef CM_STORE_NET_XML_H
#define CM_STORE_NET_XML_H

#include "base/mem.h"

/* PATH: the names from the root, "ListBucketResult/Contents/Key"; called when the element ends. */
typedef int cm_xml_visit(void *context, const char *path, const char *text, cm_error *err);

/* CM_EFORMAT if TEXT is not XML; a non-zero VISIT stops. */
int cm_xml_read(const void *text, size_t nbytes, cm_xml_visit *visit, void *context, cm_error *err);

/* The text of the element PATH, cut to SIZE; false, and "", if there is none. */
bool cm_xml_find(const void *text, size_t nbytes, const char *path, char *out, size_t size);

/* Version of the XML library, cut to SIZE. */
char *cm_xml_version(char *buf, size_t size);

#endif

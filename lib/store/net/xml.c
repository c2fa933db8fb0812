#include "store/net/xml.h"

#include <expat.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>

enum {
    MAX_DEPTH = 16,
    MAX_TEXT = 64 << 10 /* per element */
};

typedef struct reading {
    XML_Parser parser;
    cm_xml_visit *visit;
    void *context;
    char path[1024];
    unsigned depth;
    cm_buf text;
    int rc;
    cm_error *err;
} reading;

static void stop(reading *r, int rc)
{
    r->rc = rc;
    XML_StopParser(r->parser, XML_FALSE);
}

static void on_start(void *user, const XML_Char *name, const XML_Char **attribute)
{
    reading *r = user;
    size_t n = strlen(r->path), more = strlen(name) + (n > 0);
    (void)attribute;
    if (++r->depth > MAX_DEPTH || n + more >= sizeof(r->path)) {
        stop(r, cm_fail(r->err, CM_EFORMAT, "is nested too deeply"));
        return;
    }
    snprintf(r->path + n, sizeof(r->path) - n, "%s%s", n > 0 ? "/" : "", name);
    r->text.nbytes = 0;
}

static void on_text(void *user, const XML_Char *text, int nbytes)
{
    reading *r = user;
    if (r->text.nbytes + (size_t)nbytes > MAX_TEXT)
        stop(r, cm_fail(r->err, CM_EFORMAT, "holds a text that is too long"));
    else if (cm_buf_append(&r->text, text, (size_t)nbytes, r->err) != CM_OK)
        stop(r, CM_ENOMEM);
}

static void on_end(void *user, const XML_Char *name)
{
    reading *r = user;
    (void)name;
    int rc = cm_buf_append(&r->text, "", 1, r->err);
    if (rc == CM_OK)
        rc = r->visit(r->context, r->path, (const char *)r->text.data, r->err);
    if (rc != CM_OK)
        stop(r, rc);
    char *slash = strrchr(r->path, '/');
    *(slash != NULL ? slash : r->path) = '\0';
    r->depth--;
    r->text.nbytes = 0;
}

/* Refuse document types: no answer needs one, and entities can grow without end. */
static void on_doctype(void *user, const XML_Char *name, const XML_Char *system,
                       const XML_Char *public, int internal)
{
    reading *r = user;
    (void)name, (void)system, (void)public, (void)internal;
    stop(r, cm_fail(r->err, CM_EFORMAT, "declares a document type"));
}

int cm_xml_read(const void *text, size_t nbytes, cm_xml_visit *visit, void *context, cm_error *err)
{
    reading r = {.parser = XML_ParserCreate(NULL), .visit = visit, .context = context, .err = err};
    if (r.parser == NULL)
        return cm_fail(err, CM_ENOMEM, "no memory for XML");
    XML_SetUserData(r.parser, &r);
    XML_SetElementHandler(r.parser, on_start, on_end);
    XML_SetCharacterDataHandler(r.parser, on_text);
    XML_SetStartDoctypeDeclHandler(r.parser, on_doctype);
    if (nbytes > INT_MAX)
        r.rc = cm_fail(err, CM_EFORMAT, "is too long");
    else if (XML_Parse(r.parser, text, (int)nbytes, 1) != XML_STATUS_OK && r.rc == CM_OK)
        r.rc =
            cm_fail(err, CM_EFORMAT, "is not XML: %s", XML_ErrorString(XML_GetErrorCode(r.parser)));
    XML_ParserFree(r.parser);
    cm_buf_release(&r.text);
    return r.rc;
}

char *cm_xml_version(char *buf, size_t size)
{
    XML_Expat_Version v = XML_ExpatVersionInfo();
    snprintf(buf, size, "%d.%d.%d", v.major, v.minor, v.micro);
    return buf;
}

typedef struct search {
    const char *path;
    char *out;
    size_t size;
    bool found;
} search;

static int take(void *context, const char *path, const char *text, cm_error *err)
{
    search *s = context;
    (void)err;
    if (s->found || strcmp(path, s->path) != 0)
        return CM_OK;
    snprintf(s->out, s->size, "%s", text);
    s->found = true;
    return CM_OK;
}

bool cm_xml_find(const void *text, size_t nbytes, const char *path, char *out, size_t size)
{
    search s = {.path = path, .out = out, .size = size};
    out[0] = '\0';
    (void)cm_xml_read(text, nbytes, take, &s, NULL);
    return s.found;
}

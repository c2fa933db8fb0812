/*
 * Documents of references that nobody wrote: a table whose keys are well-formed and in order, and
 * whose ranges lie in its texts or end below 2^63, or a sentence.
 */
#include <sys/mman.h>
#include <unistd.h>

#include "fuzz.h"
#include "store/net/url.h"
#include "store/references.h"

static int document;
static char path[64];

int LLVMFuzzerInitialize(int *argc, char ***argv)
{
    (void)argc;
    (void)argv;
    document = memfd_create("references", MFD_CLOEXEC);
    REQUIRE(document >= 0);
    snprintf(path, sizeof path, "/proc/self/fd/%d", document);
    return 0;
}

static void check(const cm_reference_table *t)
{
    for (size_t i = 0; i < t->n; i++) {
        const cm_reference *r = &t->item[i];
        const char *key = cm_reference_key(t, r);
        REQUIRE(cm_key_check(key, NULL) == CM_OK);
        REQUIRE(i == 0 || strcmp(cm_reference_key(t, &t->item[i - 1]), key) < 0);
        if (r->file == CM_REFERENCE_INLINE) {
            REQUIRE(r->offset + r->nbytes < t->texts.nbytes);
            continue;
        }
        REQUIRE(r->file < t->nfiles && r->offset + r->nbytes <= INT64_MAX);
        const cm_reference_file *f = &t->file[r->file];
        if (f->origin != CM_REFERENCE_LOCAL) {
            REQUIRE(f->origin < t->norigins && cm_key_check(f->key, NULL) == CM_OK);
            REQUIRE(cm_url_scheme(t->origin[f->origin]) != CM_URL_LOCAL);
            continue;
        }
        REQUIRE(f->key == NULL && (strstr(f->name, "/../") == NULL || f->name[0] == '/'));
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t nbytes)
{
    cm_reference_table table;
    cm_error err = {0};
    REQUIRE(ftruncate(document, 0) == 0);
    REQUIRE(pwrite(document, data, nbytes, 0) == (ssize_t)nbytes);
    if (cm_references_read(path, &(cm_store_options){0}, &table, &err) == CM_OK)
        check(&table);
    else
        REQUIRE(err.text[0] != '\0');
    cm_references_release(&table);
    return 0;
}

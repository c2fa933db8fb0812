/*
 * Zip files that nobody wrote: a store whose keys are well-formed and in order and whose objects
 * lie in the file and do not overlap, each of which is read or refused; or a sentence.
 */
#include <sys/mman.h>
#include <unistd.h>

#include "fuzz.h"
#include "store/zip_impl.h"

static int file;
static char path[64];

int LLVMFuzzerInitialize(int *argc, char ***argv)
{
    (void)argc;
    (void)argv;
    file = memfd_create("zip", MFD_CLOEXEC);
    REQUIRE(file >= 0);
    snprintf(path, sizeof path, "/proc/self/fd/%d", file);
    return 0;
}

static void check(cm_store *store, size_t nbytes)
{
    const cm_zip_table *t = &((cm_zip_store *)store)->table;
    uint64_t total = 0;
    cm_buf buf = {0};
    for (size_t i = 0; i < t->n; i++) {
        const char *key = cm_zip_key(t, &t->item[i]);
        cm_error err = {0};
        REQUIRE(cm_key_check(key, NULL) == CM_OK);
        REQUIRE(i == 0 || strcmp(cm_zip_key(t, &t->item[i - 1]), key) < 0);
        REQUIRE(t->item[i].offset + t->item[i].nbytes <= nbytes);
        total += t->item[i].nbytes;
        if (cm_store_get(store, key, nbytes, &buf, &err) == CM_OK)
            REQUIRE(buf.nbytes == t->item[i].nbytes);
        else
            REQUIRE(err.text[0] != '\0');
    }
    REQUIRE(total <= nbytes);
    cm_buf_release(&buf);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t nbytes)
{
    cm_store *store = NULL;
    cm_error err = {0};
    REQUIRE(ftruncate(file, 0) == 0);
    REQUIRE(pwrite(file, data, nbytes, 0) == (ssize_t)nbytes);
    if (cm_store_open_zip(path, "", &store, &err) == CM_OK)
        check(store, nbytes);
    else
        REQUIRE(err.text[0] != '\0');
    cm_store_free(store);
    return 0;
}

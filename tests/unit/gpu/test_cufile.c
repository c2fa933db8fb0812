/* What is said of GPUDirect Storage, with a fake of cuFile and without any. */
#include <dlfcn.h>
#include <stdio.h>

#include "../../support/lib/fake_cufile.h"
#include "../unit.h"

static char library[4096];
static fake_cufile_state *fake;

static void test_sentences(void **state)
{
    static const struct {
        int open_error, properties_error;
        unsigned major, minor, status, control;
        bool possible;
        const char *text;
    } rows[] = {
        {0, 0, 2, 17, 1u << 4, 0, true,
         "possible for NVMe (nvidia-fs 2.17), and not used: the host proves stored bytes"},
        {0, 0, 2, 17, 1u << 0 | 1u << 2 | 1u << 4, 2, true,
         "possible for Lustre, NFS, NVMe (nvidia-fs 2.17), and not used: the host proves stored "
         "bytes"},
        {0, 0, 0, 0, 0, 2, false,
         "no: the kernel's nvidia-fs driver is not loaded: cuFile itself would read by the host"},
        {0, 0, 0, 0, 1u << 4, 0, false, "no: the kernel's nvidia-fs driver is not loaded"},
        {0, 0, 2, 0, 0, 0, false, "no: nvidia-fs 2.0 supports no file system here"},
        {5010, 0, 2, 17, 1u << 4, 0, false,
         "no: cuFile does not open: the kernel's nvidia-fs driver reports an error (error 5010)"},
        {5007, 0, 2, 17, 1u << 4, 0, false,
         "no: cuFile does not open: this platform is not supported (error 5007)"},
        {9999, 0, 2, 17, 1u << 4, 0, false,
         "no: cuFile does not open: an error of its own (error 9999)"},
        {-1, 0, 2, 17, 1u << 4, 0, false,
         "no: cuFile does not open: an error of its own (error -1)"},
        {0, 5002, 2, 17, 1u << 4, 0, false,
         "no: cuFile tells no properties: its driver has odd properties (error 5002)"},
    };
    char text[256];
    (void)state;
    for (size_t r = 0; r < sizeof rows / sizeof *rows; r++) {
        *fake = (fake_cufile_state){.open_error = rows[r].open_error,
                                    .properties_error = rows[r].properties_error};
        fake->properties.kernel.major = rows[r].major;
        fake->properties.kernel.minor = rows[r].minor;
        fake->properties.kernel.status_flags = rows[r].status;
        fake->properties.kernel.control_flags = rows[r].control;
        assert_int_equal(cm_cufile_describe(library, text, sizeof text), rows[r].possible);
        assert_string_equal(text, rows[r].text);
        /* What was opened is closed again. */
        assert_int_equal(fake->nopen, 1);
        assert_int_equal(fake->nclose, rows[r].open_error == 0);
    }
}

static void test_no_library(void **state)
{
    char text[256], small[24];
    (void)state;
    assert_false(cm_cufile_describe("/nonexistent/libcufile.so.0", text, sizeof text));
    assert_string_equal(text, "no: NVIDIA's cuFile (/nonexistent/libcufile.so.0) is not installed");
    assert_false(cm_cufile_describe("libm.so.6", text, sizeof text));
    assert_string_equal(text, "no: libm.so.6 lacks functions of cuFile");
    assert_false(cm_cufile_describe("/nonexistent/libcufile.so.0", small, sizeof small));
    assert_string_equal(small, "no: NVIDIA's cuFile (/n");
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_sentences),
        cmocka_unit_test(test_no_library),
    };
    (void)argc;
    const char *slash = strrchr(argv[0], '/');
    snprintf(library, sizeof library, "%.*s../../lib/fake_cufile.so",
             slash != NULL ? (int)(slash - argv[0]) + 1 : 0, argv[0]);
    void *loaded = dlopen(library, RTLD_NOW | RTLD_LOCAL);
    if (loaded == NULL || (fake = dlsym(loaded, "fake_cufile")) == NULL) {
        fprintf(stderr, "%s: %s\n", library, dlerror());
        return 1;
    }
    return cmocka_run_group_tests(tests, NULL, NULL);
}

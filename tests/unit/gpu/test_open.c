#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

#include "../unit.h"
#include "gpu/device_impl.h"
#include "gpu/stage.h"

static void test_texts(void **state)
{
    (void)state;
    static const char *const bad[] = {"",           "none",
                                      "Host",       "host:0",
                                      "cuda:",      "cuda:x",
                                      "cuda0",      "cuda:-1",
                                      "cuda:1024",  "cuda:1 ",
                                      "cuda: 1",    "gpu",
                                      "cuda:00001", "cuda:18446744073709551616"};
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        cm_device *d;
        cm_error err = {0};
        char text[80];
        assert_int_equal(cm_device_open(bad[i], NULL, &d, &err), CM_EINVAL);
        assert_null(d);
        snprintf(text, sizeof text, "'%s' is not a device: host, cuda or cuda:N", bad[i]);
        assert_string_equal(err.text, text);
    }
    cm_device_close(NULL);
}

static void test_no_driver(void **state)
{
    (void)state;
    cm_device *d;
    cm_error err = {0};
    const cm_device_hooks hooks = {.cuda_driver = "/nonexistent/libcuda.so.1"};
    assert_int_equal(cm_device_open("cuda:3", &hooks, &d, &err), CM_ENOTFOUND);
    assert_null(d);
    assert_non_null(strstr(err.text, "no NVIDIA driver on this machine: "));
    const cm_device_hooks other = {.cuda_driver = "libm.so.6"};
    assert_int_equal(cm_device_open("cuda", &other, &d, &err), CM_EUNSUPPORTED);
    assert_string_equal(err.text, "libm.so.6 is not a CUDA driver: it has no cuDriverGetVersion");
}

static void test_host_says_that_it_is_not_locked(void **state)
{
    (void)state;
    cm_device *d;
    cm_lock_report r;
    void *p;
    const cm_device_hooks hooks = {.refuse_lock = true};
    assert_int_equal(cm_device_open("host", &hooks, &d, NULL), CM_OK);
    assert_int_equal(cm_device_alloc_locked(d, 4096, &p, &r, NULL), CM_OK);
    assert_false(r.locked);
    assert_non_null(strstr(r.note, "memory is not page-locked: Cannot allocate memory"));
    const cm_stage_options options = {.device = d, .batch_nbytes = 4096};
    cm_stage *s;
    assert_int_equal(cm_stage_open(&options, &s, NULL), CM_OK);
    assert_true(cm_stage_locked(s)->locked);
    assert_int_equal(cm_stage_lock(s, p, 4096, NULL), CM_OK);
    assert_false(cm_stage_locked(s)->locked);
    assert_string_equal(cm_stage_locked(s)->note, r.note);
    assert_int_equal(cm_stage_locked(s)->nbytes, 4096);
    /* It is staged all the same. */
    assert_int_equal(cm_stage_begin(s, CM_VALIDATE_FULL, NULL), CM_OK);
    assert_int_equal(cm_stage_submit(s, 0, p, 4096, NULL), CM_OK);
    cm_staged staged;
    assert_int_equal(cm_stage_wait(s, &staged, NULL), CM_OK);
    assert_int_equal(cm_stage_validate(s, NULL, 0, NULL, NULL), CM_OK);
    cm_stage_free(s);
    cm_device_free_locked(d, p, 4096);
    cm_device_close(d);
}

static void test_host_memory_ends(void **state)
{
    (void)state;
    cm_device *d;
    cm_device_memory *first, *second;
    cm_error err;
    const cm_device_hooks hooks = {.memory_nbytes = 1 << 20};
    assert_int_equal(cm_device_open("host", &hooks, &d, NULL), CM_OK);
    assert_int_equal(cm_device_alloc(d, 1 << 19, &first, NULL), CM_OK);
    assert_int_equal(cm_device_alloc(d, (1 << 19) + 1, &second, &err), CM_ENOMEM);
    assert_string_equal(err.text,
                        "host: 512.00 KiB of device memory were asked for, 512.00 KiB are free");
    cm_stage *s;
    const cm_stage_options options = {.device = d, .batch_nbytes = 300000};
    assert_int_equal(cm_stage_open(&options, &s, &err), CM_ENOMEM);
    assert_null(s);
    cm_device_free(first);
    assert_int_equal(cm_device_alloc(d, 1 << 20, &first, NULL), CM_OK);
    assert_int_equal(cm_device_memory_nbytes(first), 1 << 20);
    cm_device_free(first);
    cm_device_free(NULL);
    cm_device_close(d);
}

static void write_file(const char *folder, const char *name, const char *text)
{
    char path[512];
    snprintf(path, sizeof path, "%s/%s", folder, name);
    FILE *f = fopen(path, "w");
    assert_non_null(f);
    fputs(text, f);
    assert_int_equal(fclose(f), 0);
}

static void test_link(void **state)
{
    (void)state;
    char root[] = "/tmp/cm_sysfs_XXXXXX", folder[256];
    assert_non_null(mkdtemp(root));
    static const char *const parts[] = {"bus", "bus/pci", "bus/pci/devices",
                                        "bus/pci/devices/0000:3b:00.0"};
    for (size_t i = 0; i < 4; i++) {
        snprintf(folder, sizeof folder, "%s/%s", root, parts[i]);
        assert_int_equal(mkdir(folder, 0700), 0);
    }
    static const struct {
        const char *speed;
        unsigned generation;
    } rows[] = {{"2.5 GT/s PCIe\n", 1},  {"5 GT/s\n", 2},
                {"8.0 GT/s PCIe\n", 3},  {"16.0 GT/s PCIe", 4},
                {"32.0 GT/s PCIe\n", 5}, {"64.0 GT/s PCIe\n", 6},
                {"Unknown\n", 0},        {"", 0}};
    write_file(folder, "current_link_width", "8\n");
    write_file(folder, "max_link_speed", "32.0 GT/s PCIe\n");
    write_file(folder, "max_link_width", "16\n");
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        write_file(folder, "current_link_speed", rows[i].speed);
        const cm_device_link l = cm_pci_link(root, "0000:3b:00.0");
        assert_int_equal(l.generation, rows[i].generation);
        assert_int_equal(l.width, 8);
        assert_int_equal(l.max_generation, 5);
        assert_int_equal(l.max_width, 16);
    }
    const cm_device_link none = cm_pci_link(root, "0000:00:00.0");
    assert_true(none.generation == 0 && none.width == 0 && none.max_width == 0);
    static const char *const files[] = {"current_link_speed", "current_link_width",
                                        "max_link_speed", "max_link_width"};
    for (size_t i = 0; i < 4; i++) {
        char path[512];
        snprintf(path, sizeof path, "%s/%s", folder, files[i]);
        unlink(path);
    }
    for (size_t i = 4; i-- > 0;) {
        snprintf(folder, sizeof folder, "%s/%s", root, parts[i]);
        rmdir(folder);
    }
    assert_int_equal(rmdir(root), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_texts),
        cmocka_unit_test(test_no_driver),
        cmocka_unit_test(test_host_says_that_it_is_not_locked),
        cmocka_unit_test(test_host_memory_ends),
        cmocka_unit_test(test_link),
    };
    return cmocka_run_group_tests_name("open", tests, NULL, NULL);
}

/* Real files: what we read by ourselves is what netCDF-C reads, byte for byte. */
#include <dirent.h>

#include "nc_support.h"

static const char *const access_name[] = {"index", "locked", "arithmetic", "library"};

/* A filter that this machine's HDF5 cannot decode leaves nothing to compare with. */
static bool library_can_read(cm_nc_file *file, cm_nc_var *var)
{
    cm_box box = {.rank = var->array.rank};
    uint8_t element[64];
    cm_error err;
    for (unsigned j = 0; j < box.rank; j++) {
        box.shape[j] = 1;
        if (var->array.shape[j] == 0)
            return true;
    }
    if (cm_nc_read_library(file, var, &box, element, &err) == CM_OK)
        return true;
    print_message("    SKIPPED: %s\n", err.text);
    return false;
}

static void compare_strings(cm_nc_file *file, cm_nc_var *var)
{
    cm_strings own = {0}, library = {0};
    cm_error err;
    cm_box box = whole(&var->array);
    ASSERT_OK(var->array.ops->read_strings(&var->array, &box, &own, &err), err);
    ASSERT_OK(cm_nc_read_library_strings(file, var, &box, &library, &err), err);
    assert_int_equal(own.nelem, library.nelem);
    for (size_t i = 0; i < own.nelem; i++) {
        size_t n, m;
        const char *a = cm_strings_get(&own, i, &n), *b = cm_strings_get(&library, i, &m);
        assert_int_equal(n, m);
        assert_memory_equal(a, b, n);
    }
    cm_strings_release(&own);
    cm_strings_release(&library);
}

static void compare_file(const char *path)
{
    cm_error err;
    cm_nc_file *file;
    ASSERT_OK(cm_nc_open(path, NULL, &file, &err), err);
    print_message("  %s: %s, %zu variables\n", path, cm_nc_format_name(file), cm_nc_nvars(file));
    for (size_t i = 0; i < cm_nc_nvars(file); i++) {
        cm_nc_var *var = cm_nc_var_at(file, i);
        if (var->unsupported) {
            print_message("    %s: %s\n", var->array.name, var->unsupported);
            assert_int_equal(cm_nc_var_prepare(file, var, &err), CM_EUNSUPPORTED);
            continue;
        }
        ASSERT_OK(cm_nc_var_prepare(file, var, &err), err);
        print_message("    %s: %s%s%s\n", var->array.name, access_name[var->access],
                      var->access_reason ? ", " : "", var->access_reason ? var->access_reason : "");
        if (cm_dtype_is_vlen(&var->array.dtype))
            compare_strings(file, var);
        else if (library_can_read(file, var))
            assert_same_as_library(file, var);
    }
    for (size_t i = 0; i < cm_nc_nwarnings(file); i++)
        print_message("    warning: %s\n", cm_nc_warning_at(file, i));
    cm_nc_close(file);
}

static void compare_folder(const char *folder)
{
    DIR *d = opendir(folder);
    if (!d) {
        print_message("  SKIPPED: %s is not there\n", folder);
        skip();
    }
    const struct dirent *entry;
    while ((entry = readdir(d))) {
        char path[512];
        if (entry->d_name[0] == '.')
            continue;
        snprintf(path, sizeof path, "%s/%s", folder, entry->d_name);
        compare_file(path);
    }
    closedir(d);
}

static void test_netcdf(void **state)
{
    (void)state;
    compare_folder("../shared/data/netcdf");
}

static void test_hdf5(void **state)
{
    (void)state;
    compare_folder("../shared/data/hdf5");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_netcdf),
        cmocka_unit_test(test_hdf5),
    };
    return cmocka_run_group_tests_name("nc_data", tests, NULL, NULL);
}

/* Settings that messages of the library name, as options of the program. */

#include "../../../tools/common/naming.h"
#include "../../../tools/nc2zarr/nc2zarr.h"
#include "../../../tools/readbench/readbench.h"
#include "../../../tools/rechunk/rechunk.h"
#include "../unit.h"

static void test_a_field_becomes_its_option(void **state)
{
    static const struct {
        const cm_tool *tool;
        const char *text, *expected;
    } row[] = {
        {&NC2ZARR, "raise `memory` or choose smaller `chunks`",
         "raise --memory or choose smaller --chunks"},
        {&NC2ZARR, "`fill_value` a:1: not a value", "--fill-value a:1: not a value"},
        {&NC2ZARR, "`certificate` needs `verify` full, or `check`",
         "--certificate needs --verify full, or --check"},
        {&NC2ZARR, "`unpack` x", "--unpack x"}, /* --packing fills a field of that name, too */
        {&RECHUNK, "`resume`", "--resume"},
        {&READBENCH, "`window` needs `loader` planned", "--shuffle-window needs --loader planned"},
        {&READBENCH, "`nthreads` 4: too few", "--threads 4: too few"},
        {&READBENCH, "`cache_dir`", "--cache-dir"},
        {&READBENCH, "`char_mode`", "`char_mode`"}, /* another program's */
        {&NC2ZARR, "it`s a `strange` name.nc", "it`s a `strange` name.nc"},
        {&NC2ZARR, "`", "`"},
        {&NC2ZARR, "``", "``"},
        {&NC2ZARR, "` `resume`", "` --resume"},
        {&NC2ZARR, "`o.resume`", "`o.resume`"},
        {&NC2ZARR, "", ""},
        {&NC2ZARR, "`memory`.nc: exists; `overwrite` replaces it",
         "`memory`.nc: exists; --overwrite replaces it"},
        {&NC2ZARR, "dir/`memory`: no `chunks`, (`codec`)", "dir/`memory`: no --chunks, (--codec)"},
    };
    (void)state;
    for (size_t i = 0; i < sizeof(row) / sizeof(row[0]); i++) {
        char *text = cm_tool_name_options(row[i].tool, row[i].text);
        assert_string_equal(text, row[i].expected);
        free(text);
    }
}

static void test_errors_and_lists(void **state)
{
    cm_error err = {0};
    char *text[] = {strdup("`overwrite` replaces it"), NULL, strdup("plain")};
    (void)state;
    cm_fail(&err, CM_EEXIST, "out: exists; `overwrite` replaces it");
    cm_tool_name_error(&NC2ZARR, &err);
    assert_string_equal(err.text, "out: exists; --overwrite replaces it");
    assert_int_equal(err.status, CM_EEXIST);
    cm_tool_name_error(&NC2ZARR, NULL);
    cm_tool_name_texts(&NC2ZARR, text, 3);
    assert_string_equal(text[0], "--overwrite replaces it");
    assert_null(text[1]);
    assert_string_equal(text[2], "plain");
    free(text[0]);
    free(text[2]);
    /* A text that gets too long loses its end. */
    memset(err.text, 'x', sizeof err.text);
    memcpy(err.text, "`window` ", 9);
    err.text[sizeof err.text - 1] = '\0';
    cm_tool_name_error(&READBENCH, &err);
    assert_memory_equal(err.text, "--shuffle-window xx", 19);
    assert_int_equal(strlen(err.text), sizeof err.text - 1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_a_field_becomes_its_option),
        cmocka_unit_test(test_errors_and_lists),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

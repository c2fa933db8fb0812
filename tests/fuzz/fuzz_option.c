/*
 * Values of --chunks, --shards, --codec and "[VAR:]VALUE": what is understood can be said
 * again and means the same.
 */
#include "base/mem.h"
#include "fuzz.h"
#include "options/codec_option.h"
#include "options/layout_option.h"
#include "options/shape_option.h"
#include "options/varopt.h"

/* NAME with the characters escaped that mean something in a shape. */
static void append_name(cm_buf *text, const char *name)
{
    for (; *name != '\0'; name++) {
        if (strchr("\\,=:*", *name) != NULL)
            REQUIRE(cm_buf_append(text, "\\", 1, NULL) == CM_OK);
        REQUIRE(cm_buf_append(text, name, 1, NULL) == CM_OK);
    }
}

static void append_shape(cm_buf *text, const cm_shape_option *shape)
{
    for (unsigned i = 0; i < shape->n; i++) {
        const cm_shape_item *item = &shape->item[i];
        if (i > 0)
            REQUIRE(cm_buf_append(text, shape->by_name ? "," : "x", 1, NULL) == CM_OK);
        if (shape->by_name) {
            append_name(text, item->name);
            REQUIRE(cm_buf_append(text, "=", 1, NULL) == CM_OK);
        }
        if (item->length == 0)
            REQUIRE(cm_buf_printf(text, NULL, "full") == CM_OK);
        else
            REQUIRE(cm_buf_printf(text, NULL, "%llu", (unsigned long long)item->length) == CM_OK);
    }
    REQUIRE(cm_buf_append(text, "", 1, NULL) == CM_OK);
}

static void check_shape(const char *value)
{
    static const uint64_t extent[] = {100, 7, 0};
    static char *const dim_name[] = {(char *)"time", (char *)"x", NULL};
    cm_shape_option shape, again;
    cm_buf text = {0};
    uint64_t length[CM_MAX_RANK];
    if (cm_shape_option_parse(value, &shape, NULL) != CM_OK)
        return;
    append_shape(&text, &shape);
    REQUIRE(cm_shape_option_parse((const char *)text.data, &again, NULL) == CM_OK);
    REQUIRE(again.n == shape.n && again.by_name == shape.by_name);
    for (unsigned i = 0; i < shape.n; i++)
        REQUIRE(again.item[i].length == shape.item[i].length &&
                (!shape.by_name || strcmp(again.item[i].name, shape.item[i].name) == 0));
    (void)cm_shape_option_fits(&shape, 3, dim_name);
    cm_shape_option_apply(&shape, 3, extent, dim_name, NULL, length);
    for (unsigned j = 0; j < 3; j++)
        REQUIRE(length[j] <= (extent[j] > 0 ? extent[j] : 1));
    cm_shape_option_release(&shape);
    cm_shape_option_release(&again);
    cm_buf_release(&text);
}

static void check_codec(const char *value)
{
    static const cm_dtype types[] = {{.kind = CM_KIND_FLOAT, .nbytes = 4},
                                     {.kind = CM_KIND_INT, .nbytes = 1},
                                     {.kind = CM_KIND_STRING}};
    cm_codec_choice choice, again;
    char text[64], text2[64];
    if (cm_codec_choice_parse(value, &choice, NULL) != CM_OK)
        return;
    cm_codec_choice_text(&choice, text, sizeof text);
    REQUIRE(strlen(text) < sizeof text - 1);
    REQUIRE(cm_codec_choice_parse(text, &again, NULL) == CM_OK);
    REQUIRE(strcmp(cm_codec_choice_text(&again, text2, sizeof text2), text) == 0);
    for (size_t i = 0; i < sizeof types / sizeof *types && !choice.keep; i++) {
        cm_codec_spec *specs;
        size_t n;
        cm_chain *chain;
        const uint64_t shape[] = {8, 16};
        if (cm_codec_choice_specs(&choice, &types[i], &specs, &n, NULL) != CM_OK)
            continue;
        if (cm_chain_create(specs, n, &types[i], 2, shape, &chain, NULL) == CM_OK)
            cm_chain_free(chain);
        cm_codec_specs_free(specs, n);
    }
}

static void check_layout(const char *value)
{
    static const uint64_t extent[] = {100, 7, 9}, chunk[] = {10, 7, 4};
    static char *const dim_name[] = {(char *)"time", (char *)"x", NULL};
    const cm_layout_array a = {"variable", "tas", 3, extent, dim_name, 4, true, {10, 7, 4}, NULL};
    uint64_t length[CM_MAX_RANK], nbytes = 1 << 20;
    bool fits;
    switch (cm_layout_kind_of(value)) {
    case CM_LAYOUT_AUTO:
        (void)cm_layout_auto("--chunks", value, &nbytes, NULL);
        break;
    case CM_LAYOUT_SHAPE:
        (void)cm_layout_shape("--chunks", value, true, &a, length, &fits, NULL);
        if (cm_layout_shards(value, true, &a, chunk, 1 << 20, length, &fits, NULL) == CM_OK && fits)
            for (unsigned j = 0; j < 3; j++)
                REQUIRE(length[j] % chunk[j] == 0 && length[j] > 0);
        break;
    default:
        break;
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t nbytes)
{
    static const char *const names[] = {"tas", "ocean/tos", "a:b", "", "x"};
    fuzz_input in = {data, nbytes};
    char *line[4];
    for (size_t i = 0; i < 4; i++)
        line[i] = fuzz_line(&in);
    const cm_texts texts = {(const char *const *)line, 4};
    cm_varopts opts;
    if (cm_varopts_parse("--codec", &texts, cm_codec_keywords, &opts, NULL) == CM_OK) {
        for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
            bool named;
            const char *value = cm_varopts_get(&opts, names[i], i % 2 == 0, &named);
            if (value != NULL) {
                check_shape(value);
                check_codec(value);
                check_layout(value);
            }
        }
        (void)cm_varopts_check_used(&opts, NULL);
    }
    cm_varopts_release(&opts);
    for (size_t i = 0; i < 4; i++)
        free(line[i]);
    return 0;
}

/* Places of chunks in the files that a variable is referred to in, by the chunks' numbers. */

#include "convert/layout/refer.h"
#include "convert/sink/icechunk/refer_places.h"
#include "job_fixture.h"

enum {
    MOST_PARTS = 6,
    MOST_CHUNKS = 64
};

/* One file's share: elements ORIGIN to + COUNT, which are FIRST of LENGTH in the file. */
typedef struct made_part {
    const char *path;
    uint64_t origin[3], first[3], count[3], length[3];
    cm_located_kind kind; /* of chunks, number I of the file is at 100 * I, of I + 1 bytes */
} made_part;

typedef struct made_places {
    const char *name;
    unsigned rank;
    uint64_t shape[3], chunk[3];
    made_part part[MOST_PARTS];
    const char *places; /* of all chunks: "a0 a1 - b0", file and chunk of it; "a+40" of a slab */
} made_places;

#define CHUNKS CM_LOCATED_CHUNKS
static const made_places ROWS[] = {
    {"one file", 1, {6}, {2}, {{"a", {0}, {0}, {6}, {6}, CHUNKS}}, "a0 a1 a2"},
    {"whose last chunk is cut", 1, {5}, {2}, {{"a", {0}, {0}, {5}, {5}, CHUNKS}}, "a0 a1 a2"},
    {"two",
     1,
     {6},
     {2},
     {{"a", {0}, {0}, {4}, {4}, CHUNKS}, {"b", {4}, {0}, {2}, {2}, CHUNKS}},
     "a0 a1 b0"},
    {"in another order",
     1,
     {6},
     {2},
     {{"b", {4}, {0}, {2}, {2}, CHUNKS}, {"a", {0}, {0}, {4}, {4}, CHUNKS}},
     "a0 a1 b0"},
    {"elements behind others of their file",
     1,
     {4},
     {2},
     {{"a", {0}, {4}, {4}, {12}, CHUNKS}},
     "a2 a3"},
    {"a hole between them",
     1,
     {8},
     {2},
     {{"a", {0}, {0}, {2}, {2}, CHUNKS}, {"b", {6}, {2}, {2}, {4}, CHUNKS}},
     "a0 - - b1"},
    {"nothing", 1, {4}, {2}, {{NULL, {0}, {0}, {0}, {0}, CHUNKS}}, "- -"},
    {"a part without elements",
     1,
     {4},
     {2},
     {{"a", {2}, {0}, {0}, {4}, CHUNKS}, {"b", {0}, {0}, {4}, {4}, CHUNKS}},
     "b0 b1"},
    {"one that was never written",
     1,
     {4},
     {2},
     {{"a", {0}, {0}, {2}, {2}, CM_LOCATED_UNWRITTEN}, {"b", {2}, {0}, {2}, {2}, CHUNKS}},
     "- b0"},
    {"rows of chunks",
     2,
     {4, 6},
     {2, 3},
     {{"a", {0, 0}, {0, 0}, {4, 6}, {4, 6}, CHUNKS}},
     "a0 a1 a2 a3"},
    {"columns",
     2,
     {4, 6},
     {2, 2},
     {{"a", {0, 0}, {0, 0}, {4, 2}, {4, 2}, CHUNKS}, {"b", {0, 2}, {0, 0}, {4, 4}, {4, 4}, CHUNKS}},
     "a0 b0 b1 a1 b2 b3"},
    {"tiles, one of which is not there",
     2,
     {4, 4},
     {2, 2},
     {{"a", {0, 0}, {0, 0}, {2, 2}, {2, 2}, CHUNKS},
      {"b", {0, 2}, {0, 0}, {2, 2}, {2, 2}, CHUNKS},
      {"c", {2, 0}, {0, 2}, {2, 2}, {2, 4}, CHUNKS}},
     "a0 b0 c1 -"},
    {"a column beside a tile",
     2,
     {4, 4},
     {2, 2},
     {{"a", {0, 0}, {0, 0}, {4, 2}, {4, 2}, CHUNKS}, {"b", {0, 2}, {0, 0}, {2, 2}, {2, 2}, CHUNKS}},
     "a0 b0 a1 -"},
    {"a box within a file",
     2,
     {4, 4},
     {2, 2},
     {{"a", {0, 0}, {2, 4}, {4, 4}, {8, 10}, CHUNKS}},
     "a7 a8 a12 a13"},
    {"three dimensions",
     3,
     {2, 4, 2},
     {1, 2, 1},
     {{"a", {0, 0, 0}, {0, 0, 0}, {1, 4, 2}, {1, 4, 2}, CHUNKS},
      {"b", {1, 2, 0}, {0, 2, 0}, {1, 2, 2}, {1, 4, 2}, CHUNKS}},
     "a0 a1 a2 a3 - - b2 b3"},
    {"a number", 0, {0}, {0}, {{"a", {0}, {0}, {0}, {0}, CHUNKS}}, "a0"},
    {"rows that lie one behind the other",
     2,
     {4, 3},
     {2, 3},
     {{"a", {0, 0}, {3, 0}, {4, 3}, {9, 3}, CM_LOCATED_SLAB}},
     "a+18 a+30"},
    {"a number in a header", 0, {0}, {0}, {{"a", {0}, {0}, {0}, {0}, CM_LOCATED_SLAB}}, "a+0"},
};

/* The parts of ROW, and chunks that lie behind one another. */
typedef struct placed {
    cm_job_var v;
    cm_refer refer;
    cm_refer_part part[MOST_PARTS];
    cm_form form[MOST_PARTS];
    cm_located located[MOST_PARTS];
    cm_chunk_place place[MOST_CHUNKS];
    struct cm_refer_url url[3];
    cm_refer_urls urls;
} placed;

static const char PATHS[3][2] = {"a", "b", "c"}; /* in the order of their addresses */

static void make_placed(placed *p, const made_places *row)
{
    *p = (placed){.v = {.view = {.rank = row->rank, .type = cm_dtype_make(CM_KIND_INT, 2)},
                        .layout.refer = &p->refer}};
    memcpy(p->v.view.shape, row->shape, sizeof row->shape);
    memcpy(p->v.layout.chunk, row->chunk, sizeof row->chunk);
    for (size_t i = 0; i < MOST_CHUNKS; i++)
        p->place[i] = (cm_chunk_place){.address = 100 * i, .nbytes = i + 1};
    for (size_t i = 0; i < 3; i++)
        p->url[i] = (struct cm_refer_url){
            .path = PATHS[i], .url = (char *)(uintptr_t)PATHS[i], .modified_s = 70 + (uint32_t)i};
    p->urls = (cm_refer_urls){.item = p->url, .n = 3};
    for (size_t i = 0; i < MOST_PARTS && row->part[i].path != NULL; i++) {
        const made_part *m = &row->part[i];
        p->form[i].kind = m->kind;
        p->located[i] = (cm_located){.form = &p->form[i],
                                     .place = p->place,
                                     .nplaces = MOST_CHUNKS,
                                     .begin = 0,
                                     .row_stride = 6};
        p->part[i] = (cm_refer_part){.path = PATHS[m->path[0] - 'a'], .located = &p->located[i]};
        memcpy(p->part[i].origin, m->origin, sizeof m->origin);
        memcpy(p->part[i].first, m->first, sizeof m->first);
        memcpy(p->part[i].count, m->count, sizeof m->count);
        memcpy(p->part[i].length, m->length, sizeof m->length);
        p->refer.nparts = i + 1;
    }
    p->refer.part = p->part;
}

static void say_place(cm_buf *text, const cm_ice_place *place)
{
    if (place->where == CM_ICE_NOWHERE) {
        tell(text, "-");
        return;
    }
    assert_int_equal(place->where, CM_ICE_OUTSIDE);
    const char *file = PATHS[place->location];
    if (place->nbytes == place->offset / 100 + 1) /* a chunk of its own length */
        tell(text, "%s%u", file, (unsigned)(place->offset / 100));
    else
        tell(text, "%s+%u", file, (unsigned)place->offset);
}

static void places(void **state)
{
    unsigned bad = 0;
    cm_buf text = {0};
    (void)state;
    for (size_t i = 0; i < COUNT(ROWS); i++) {
        placed p;
        cm_refer_places all;
        cm_ice_places got;
        cm_ice_place place[MOST_CHUNKS], some[MOST_CHUNKS + 1];
        uint64_t n = 1;
        make_placed(&p, &ROWS[i]);
        OK(cm_refer_places_create(&p.v, &p.urls, &all, err));
        cm_refer_places_get(&all, &got);
        assert_int_equal(got.rank, ROWS[i].rank);
        for (unsigned j = 0; j < got.rank; j++)
            n *= got.shape[j];
        OK(got.find(got.context, 0, n, place, err));
        tell_begin(&text);
        for (uint64_t k = 0; k < n; k++) {
            tell(&text, "%s", k > 0 ? " " : "");
            say_place(&text, &place[k]);
        }
        tell_compare(ROWS[i].name, (const char *)text.data, ROWS[i].places, &bad);
        /* Any run of them is a run of those. */
        for (uint64_t first = 0; first < n; first++)
            for (uint64_t end = first; end <= n; end++) {
                some[end - first].location = 99;
                OK(got.find(got.context, first, end - first, some, err));
                assert_int_equal(some[end - first].location, 99);
                for (uint64_t k = first; k < end; k++)
                    if (some[k - first].where != place[k].where ||
                        (place[k].where == CM_ICE_OUTSIDE &&
                         (some[k - first].offset != place[k].offset ||
                          some[k - first].location != place[k].location)))
                        fail_msg("%s: chunk %u of %u to %u", ROWS[i].name, (unsigned)k,
                                 (unsigned)first, (unsigned)end);
            }
        cm_refer_places_release(&all);
    }
    cm_buf_release(&text);
    assert_int_equal(bad, 0);
}

/* A chunk without bytes is nowhere; a slab's has those of its elements. */
static void bytes(void **state)
{
    placed p;
    cm_refer_places all;
    cm_ice_places got;
    cm_ice_place place[3];
    cm_ice_location location;
    (void)state;
    make_placed(&p, &ROWS[0]);
    p.place[1].nbytes = 0;
    OK(cm_refer_places_create(&p.v, &p.urls, &all, err));
    cm_refer_places_get(&all, &got);
    OK(got.find(got.context, 0, 3, place, err));
    assert_int_equal(place[0].where, CM_ICE_OUTSIDE);
    assert_int_equal(place[0].nbytes, 1);
    assert_int_equal(place[1].where, CM_ICE_NOWHERE);
    assert_int_equal(place[2].where, CM_ICE_OUTSIDE);
    OK(got.locate(got.context, 2, &location, err));
    assert_string_equal(location.url, "c");
    assert_int_equal(location.modified_s, 72);
    assert_null(location.etag);
    cm_refer_places_release(&all);

    make_placed(&p, &ROWS[COUNT(ROWS) - 2]); /* of int16, two rows of three */
    p.located[0].begin = 1000;
    OK(cm_refer_places_create(&p.v, &p.urls, &all, err));
    cm_refer_places_get(&all, &got);
    OK(got.find(got.context, 1, 1, place, err));
    assert_int_equal(place[0].offset, 1000 + (3 + 2) * 6);
    assert_int_equal(place[0].nbytes, 12);
    cm_refer_places_release(&all);
    cm_refer_places_release(&all); /* zeroed */
}

/* A file that is not among the inputs is a bug, whose name is told. */
static void another_file(void **state)
{
    static const char OTHER[] = "other.nc";
    placed p;
    cm_refer_places all;
    cm_ice_places got;
    cm_ice_place place[3];
    cm_error why = {0};
    (void)state;
    make_placed(&p, &ROWS[0]);
    p.part[0].path = OTHER;
    OK(cm_refer_places_create(&p.v, &p.urls, &all, err));
    cm_refer_places_get(&all, &got);
    assert_int_equal(got.find(got.context, 0, 3, place, &why), CM_EINTERNAL);
    assert_non_null(strstr(why.text, "other.nc: is no input"));
    cm_refer_places_release(&all);
}

/* Chunks of the array as it was keep their places, along whichever dimension it grows. */
static void kept(void **state)
{
    static const struct {
        unsigned axis;
        uint64_t nkept;
        const char *places; /* of four by three chunks: k is kept */
    } c[] = {
        {0, 0, "............"}, {0, 1, "kkk........."}, {0, 3, "kkkkkkkkk..."},
        {1, 1, "k..k..k..k.."}, {1, 2, "kk.kk.kk.kk."},
    };
    static const made_places none = {"nothing", 2, {4, 6}, {1, 2}, {{NULL}}, ""};
    (void)state;
    for (size_t i = 0; i < COUNT(c); i++) {
        placed p;
        cm_refer_places all;
        cm_ice_places got;
        cm_ice_place place[12];
        make_placed(&p, &none);
        OK(cm_refer_places_create(&p.v, &p.urls, &all, err));
        all.axis = c[i].axis;
        all.nkept = c[i].nkept;
        cm_refer_places_get(&all, &got);
        for (uint64_t first = 0; first < 12; first++)
            for (uint64_t n = 0; n <= 12 - first; n++) {
                OK(got.find(got.context, first, n, place, err));
                for (uint64_t k = 0; k < n; k++)
                    assert_int_equal(place[k].where,
                                     c[i].places[first + k] == 'k' ? CM_ICE_KEPT : CM_ICE_NOWHERE);
            }
        cm_refer_places_release(&all);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(places), cmocka_unit_test(bytes),
                                       cmocka_unit_test(kept), cmocka_unit_test(another_file)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}

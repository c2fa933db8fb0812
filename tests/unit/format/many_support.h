/* Chunks fetched together are what they are alone. */
#ifndef TESTS_MANY_SUPPORT_H
#define TESTS_MANY_SUPPORT_H

#include "../unit.h"
#include "format/array.h"

static inline void compare_with_alone(cm_array *a, const cm_fetch_many *many)
{
    cm_error err = {0};
    cm_buf alone = {0};
    uint64_t nbytes = 0;
    for (size_t i = 0; i < many->n; i++) {
        const cm_fetch_item *item = &many->item[i];
        cm_fetch f;
        if (a->ops->fetch(a, item->number, &alone, &f, &err) != CM_OK)
            fail_msg("%s", err.text);
        assert_int_equal(item->present, f.present);
        assert_int_equal(item->skip, f.skip);
        assert_int_equal(item->nbytes, f.present ? alone.nbytes : 0);
        if (!f.present)
            assert_null(item->data);
        else if (item->nbytes)
            assert_memory_equal(item->data, alone.data, item->nbytes);
        assert_int_equal(f.nbytes, f.present ? alone.nbytes : 0); /* every index is at hand now */
        nbytes += i > 0 && item->number == many->item[i - 1].number ? 0 : f.nbytes;
    }
    assert_true(many->nbytes >= nbytes);
    cm_buf_release(&alone);
}

/* All chunks of A in several orders, with one MANY that other arrays may have used. */
static inline void check_fetch_many(cm_array *a, cm_fetch_many *many)
{
    enum {
        ORDERS = 5
    };
    size_t n = (size_t)a->grid.nchunks;
    cm_error err = {0};
    many->item = calloc(n + 1, sizeof *many->item);
    for (int order = 0; order < ORDERS; order++) {
        static const size_t step[] = {1, 7, 11, 13}; /* prime to most counts */
        many->n = n;
        for (size_t i = 0; i < n; i++)
            many->item[i].number = order == 4 ? n - 1 - i : i * step[order] % n;
        if (order == 3 && n > 0) /* one of them twice */
            many->item[many->n++].number = many->item[n - 1].number;
        if (cm_array_fetch_many(a, many, &err) != CM_OK)
            fail_msg("%s", err.text);
        compare_with_alone(a, many);
    }
    const uint8_t *data = many->buf.data;
    void *state = many->state;
    if (cm_array_fetch_many(a, many, &err) != CM_OK)
        fail_msg("%s", err.text);
    assert_ptr_equal(many->buf.data, data); /* nothing grows any more */
    assert_ptr_equal(many->state, state);
    free(many->item);
    many->item = NULL;
}

#endif

/*
 * A passport while elements pass: what each variable is, then its elements in boxes, then the
 * result.
 *
 *     create -> attributes, describe each -> settle -> watch -> see, from any thread -> finish
 */
#ifndef CM_PASSPORT_DRAFT_H
#define CM_PASSPORT_DRAFT_H

#include <chunkmill/passport.h>

#include "base/json.h"
#include "model/box.h"

typedef struct cm_draft cm_draft;

/* A variable as it is stored; all borrowed while it is described. */
typedef struct cm_draft_source {
    const char *name;
    cm_dtype type;
    unsigned rank;
    const uint64_t *shape;
    char *const *dim_name; /* an entry may be NULL */
    const cm_json *attrs;
    const uint8_t *masked; /* one element that the format itself says is missing; or NULL */
    const uint8_t *fill;   /* what elements are that are not stored; or NULL: zero */
    bool is_other;         /* text, or something else that is not counted */
} cm_draft_source;

/* For NVARS variables. */
int cm_draft_create(size_t nvars, cm_draft **out, cm_error *err);
void cm_draft_free(cm_draft *d); /* NULL accepted */

int cm_draft_attributes(cm_draft *d, const cm_json *attrs, cm_error *err);
int cm_draft_describe(cm_draft *d, size_t i, const cm_draft_source *s, cm_error *err);
/* When all are described: along which dimension each is counted. */
void cm_draft_settle(cm_draft *d);
/* Bytes that counting takes. */
uint64_t cm_draft_nbytes(const cm_draft *d);
/* Variable I is counted, now from the beginning.  *COUNTED: it is one of numbers. */
int cm_draft_watch(cm_draft *d, size_t i, bool *counted, cm_error *err);
/* As cm_counter_see. */
void cm_draft_see(cm_draft *d, size_t i, const cm_box *box, const uint64_t *extent,
                  const uint8_t *data);
/* Nothing of variable I is stored: all of it is the fill value. */
void cm_draft_see_nothing(cm_draft *d, size_t i);
/* Variable I could not be read to its end, which WHY tells: nothing of it is counted. */
int cm_draft_give_up(cm_draft *d, size_t i, const char *why, cm_error *err);
/* For a reader that knows more of it. */
cm_passport_variable *cm_draft_variable(cm_draft *d, size_t i);
/* The passport, with its findings; the counts are freed. */
int cm_draft_finish(cm_draft *d, cm_passport **out, cm_error *err);

#endif

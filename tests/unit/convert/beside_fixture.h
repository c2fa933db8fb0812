/* The folder beside an output, with files and locks that rows of tests describe. */
#ifndef TESTS_CONVERT_BESIDE_FIXTURE_H
#define TESTS_CONVERT_BESIDE_FIXTURE_H

#include "../fixtures/made_dataset.h"
#include "../fixtures/made_folder.h"
#include "base/json.h"
#include "convert/beside/holder.h"
#include "convert/beside/parts_files.h"

typedef struct made_beside {
    made_folder folder;
    char out[240]; /* the output, of which nothing is there */
    cm_beside beside;
} made_beside;

static inline void made_beside_begin(made_beside *m)
{
    made_folder_begin(&m->folder);
    snprintf(m->out, sizeof m->out, "%s/out.zarr", m->folder.path);
    OK(cm_beside_find(m->out, NULL, &m->beside, err));
    OK(cm_beside_open(&m->beside, true, err));
}

static inline void made_beside_end(made_beside *m)
{
    cm_beside_release(&m->beside);
    made_folder_end(&m->folder);
}

static inline void beside_put(const cm_beside *b, const char *name, const char *text)
{
    OK(cm_store_put(b->in, name, text, strlen(text), err));
}

static inline bool beside_has(const cm_beside *b, const char *name)
{
    return cm_store_size(b->in, name, NULL, NULL) == CM_OK;
}

/* A lock of a part: this process's, or one's that has ended. */
static inline void beside_put_lock(const cm_beside *b, const char *name, bool ended)
{
    cm_buf text = {0};
    cm_json *json;
    OK(cm_holder_write(true, true, &text, err));
    OK(cm_json_parse(text.data, text.nbytes, &json, err));
    if (ended)
        OK(cm_json_set(json, "process start", cm_json_u64(1), err));
    text.nbytes = 0;
    OK(cm_json_write(json, false, &text, err));
    OK(cm_buf_append(&text, "\n", 1, err));
    OK(cm_store_put(b->in, name, text.data, text.nbytes, err));
    cm_json_free(json);
    cm_buf_release(&text);
}

/* The note NAME about the plan HASH, of the members of MORE, with ' for ". */
static inline void beside_note(const cm_beside *b, const char *name, const char *hash,
                               const char *more)
{
    OK(cm_part_note(b, name, hash, more != NULL ? made_json(more) : NULL, err));
}

#endif

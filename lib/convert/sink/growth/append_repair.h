/*
 * Coordinates that have one value a chunk, as other programs write them: every reader fetches
 * all of those before anything else.  A store of Zarr 3 that grows gives such a coordinate one
 * chunk with room, under a name that the old document does not use; so the document of the array,
 * changed in one rename, shows the old values or the new ones.
 *
 * The old chunks stay for readers of the old document.  The file `append-left` beside the store, a
 * JSON object, notes before anything is written which names the array has had and will have.  It is
 * written again when the document has changed, and its age is that of the change: the first append
 * an hour later removes chunks that the document does not use.
 */
#ifndef CM_CONVERT_SINK_GROWTH_APPEND_REPAIR_H
#define CM_CONVERT_SINK_GROWTH_APPEND_REPAIR_H

#include "convert/sink/growth/append.h"

#define CM_REPAIR_NOTE "append-left"

/*
 * G->chunk and G->separator, where T, which grows, is to be repaired.  A warning where it should
 * be, and Zarr 2 has no other names for its chunks.
 */
int cm_repair_choose(cm_job *job, const cm_append_state *s, const cm_variable *t, cm_growth *g,
                     cm_error *err);
/* META, of the array as it was, gets the chunks of G; nothing where G has none. */
void cm_repair_apply(const cm_growth *g, cm_zarr_meta *meta);

int cm_repair_read_note(cm_append *a, cm_error *err);
/* Adds what S repairs to the note. */
int cm_repair_write_note(const cm_append_state *s, cm_error *err);
/*
 * Removes chunks that no document uses: at once where none ever did, else after an hour.  The note
 * goes with the last of them.
 */
int cm_repair_remove_left(const cm_append_state *s, cm_error *err);
/* Of a store that has been erased: chunks of all names in the note, which may be damaged. */
int cm_repair_remove_all(cm_store *store, const cm_beside *beside, cm_error *err);

#endif

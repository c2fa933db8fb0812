/* The file "repo": what it says, and its next state. */
#ifndef CM_FORMAT_ICECHUNK_REPO_WRITE_H
#define CM_FORMAT_ICECHUNK_REPO_WRITE_H

#include "base/json.h"
#include "format/icechunk/schema.h"

enum {
    CM_ICE_BACKUP_SIZE = 64 /* of the name of a copy of the old state */
};

/* A commit that becomes the tip of a branch. */
typedef struct cm_ice_tip {
    const char *branch;
    uint8_t id[CM_ICE_ID], parent[CM_ICE_ID];
    const char *message;
    const cm_json *metadata; /* or NULL */
    uint64_t now_us;
    const char *backup; /* the name of the copy of the old state; NULL: there is none */
} cm_ice_tip;

/* A repository with the initial snapshot alone, as CONFIG (an object, or NULL) says. */
int cm_ice_repo_initial(cm_fb_tree *repo, const cm_json *config, uint64_t now_us, cm_error *err);
/* The branch or tag NAME of a list of them; NULL: there is none. */
cm_fb_table *cm_ice_repo_ref(const cm_fb_value *refs, const char *name);
/* The id of snapshot INDEX; NULL: there are not so many. */
const uint8_t *cm_ice_repo_snapshot(const cm_fb_table *repo, uint64_t index);
/* The id of the snapshot at the tip of BRANCH; NULL: there is no such branch. */
const uint8_t *cm_ice_repo_tip(const cm_fb_table *repo, const char *branch);
/* Whether snapshot ID is one of the repository's. */
bool cm_ice_repo_has(const cm_fb_table *repo, const uint8_t id[CM_ICE_ID]);
/* CM_EUNSUPPORTED, CM_EINVAL: nothing can be committed, for another version or its status. */
int cm_ice_repo_check(const cm_fb_table *repo, cm_error *err);
/* Adds the commit; a branch that is not there is made. */
int cm_ice_repo_commit(cm_fb_tree *repo, const cm_ice_tip *tip, cm_error *err);
/* Time of the newest update, in microseconds. */
uint64_t cm_ice_repo_updated(const cm_fb_table *repo);

#endif

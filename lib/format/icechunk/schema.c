#include "format/icechunk/schema.h"

/* ---- kinds of fields ---- */

#define LIST(...) ((const cm_fb_schema *const[]){__VA_ARGS__})

#define U8                                                                                         \
    {                                                                                              \
        .kind = CM_FB_SCALAR, .nbytes = 1, .align = 1                                              \
    }
#define U16                                                                                        \
    {                                                                                              \
        .kind = CM_FB_SCALAR, .nbytes = 2, .align = 2                                              \
    }
#define U32                                                                                        \
    {                                                                                              \
        .kind = CM_FB_SCALAR, .nbytes = 4, .align = 4                                              \
    }
#define U64                                                                                        \
    {                                                                                              \
        .kind = CM_FB_SCALAR, .nbytes = 8, .align = 8                                              \
    }
#define BYTES_OF(n)                                                                                \
    {                                                                                              \
        .kind = CM_FB_SCALAR, .nbytes = (n), .align = 1, .required = true                          \
    }
#define ID      BYTES_OF(CM_ICE_ID)
#define NODE_ID BYTES_OF(CM_ICE_NODE_ID)
#define MAYBE_ID                                                                                   \
    {                                                                                              \
        .kind = CM_FB_SCALAR, .nbytes = CM_ICE_ID, .align = 1                                      \
    }
#define TEXT                                                                                       \
    {                                                                                              \
        .kind = CM_FB_STRING, .required = true                                                     \
    }
#define MAYBE_TEXT                                                                                 \
    {                                                                                              \
        .kind = CM_FB_STRING                                                                       \
    }
#define TEXTS                                                                                      \
    {                                                                                              \
        .kind = CM_FB_STRINGS, .required = true                                                    \
    }
#define BYTES                                                                                      \
    {                                                                                              \
        .kind = CM_FB_VECTOR, .nbytes = 1, .align = 1, .required = true                            \
    }
#define EXTRA                                                                                      \
    {                                                                                              \
        .kind = CM_FB_VECTOR, .nbytes = 1, .align = 1                                              \
    }
#define FLAGS                                                                                      \
    {                                                                                              \
        .kind = CM_FB_VECTOR, .nbytes = 2, .align = 2                                              \
    }
#define IDS                                                                                        \
    {                                                                                              \
        .kind = CM_FB_VECTOR, .nbytes = CM_ICE_ID, .align = 1                                      \
    }
/* Structs of two numbers. */
#define RANGES                                                                                     \
    {                                                                                              \
        .kind = CM_FB_VECTOR, .nbytes = 8, .align = 4, .required = true                            \
    }
#define PAIRS                                                                                      \
    {                                                                                              \
        .kind = CM_FB_VECTOR, .nbytes = 16, .align = 8, .required = true                           \
    }
/* ManifestFileInfo: an id, padded to 16 bytes, 8 bytes and, padded, 4. */
#define FILES_1                                                                                    \
    {                                                                                              \
        .kind = CM_FB_VECTOR, .nbytes = CM_ICE_FILE_1_NBYTES, .align = 8, .required = true         \
    }
#define TABLE(t)                                                                                   \
    {                                                                                              \
        .kind = CM_FB_TABLE, .table = LIST(&(t)), .ntables = 1, .required = true                   \
    }
#define MAYBE(t)                                                                                   \
    {                                                                                              \
        .kind = CM_FB_TABLE, .table = LIST(&(t)), .ntables = 1                                     \
    }
#define TABLES(t)                                                                                  \
    {                                                                                              \
        .kind = CM_FB_TABLES, .table = LIST(&(t)), .ntables = 1, .required = true                  \
    }
#define SOME(t)                                                                                    \
    {                                                                                              \
        .kind = CM_FB_TABLES, .table = LIST(&(t)), .ntables = 1                                    \
    }
#define UNION(t)                                                                                   \
    {                                                                                              \
        .kind = CM_FB_UNION, .table = (t), .ntables = sizeof(t) / sizeof((t)[0]), .required = true \
    }

/* ---- common ---- */

const cm_fb_schema cm_ice_item = {"MetadataItem", 2, {TEXT, BYTES}};

/* ---- the repository ---- */

const cm_fb_schema cm_ice_ref = {"Ref", 2, {TEXT, U32}};
const cm_fb_schema cm_ice_info = {"SnapshotInfo", 6, {ID, U32, U64, TEXT, SOME(cm_ice_item), IDS}};
const cm_fb_schema cm_ice_status = {"RepoStatus", 3, {U8, U64, MAYBE_TEXT}};

const cm_fb_schema cm_ice_empty_update = {"Update", 0, {{0}}};
static const cm_fb_schema migrated = {"RepoMigratedUpdate", 2, {U8, U8}};
static const cm_fb_schema status_changed = {"RepoStatusChangedUpdate", 1, {MAYBE(cm_ice_status)}};
const cm_fb_schema cm_ice_branch_update = {"BranchCreatedUpdate", 1, {TEXT}};
static const cm_fb_schema ref_removed = {"BranchDeletedUpdate", 2, {TEXT, ID}};
const cm_fb_schema cm_ice_commit_update = {"NewCommitUpdate", 2, {TEXT, ID}};
static const cm_fb_schema amended = {"CommitAmendedUpdate", 3, {TEXT, ID, ID}};
static const cm_fb_schema detached = {"NewDetachedSnapshotUpdate", 1, {ID}};
static const cm_fb_schema flag_changed = {"FeatureFlagChangedUpdate", 3, {U16, U8, U8}};

/* By type, from 1. */
static const cm_fb_schema *const updates[] = {
    &cm_ice_empty_update, /* RepoInitialized */
    &migrated,
    &cm_ice_empty_update,  /* ConfigChanged */
    &cm_ice_empty_update,  /* MetadataChanged */
    &cm_ice_branch_update, /* TagCreated */
    &ref_removed,          /* TagDeleted */
    &cm_ice_branch_update, /* BranchCreated */
    &ref_removed,          /* BranchDeleted */
    &ref_removed,          /* BranchReset */
    &cm_ice_commit_update, /* NewCommit */
    &amended,
    &detached,
    &cm_ice_empty_update, /* GCRan */
    &cm_ice_empty_update, /* ExpirationRan */
    &flag_changed,
    &status_changed,
};
const cm_fb_schema cm_ice_update = {"Update", 4, {U8, UNION(updates), U64, MAYBE_TEXT}};

const cm_fb_schema cm_ice_repo = {"Repo",
                                  13,
                                  {U8, TABLES(cm_ice_ref), TABLES(cm_ice_ref), TEXTS,
                                   TABLES(cm_ice_info), TABLE(cm_ice_status), SOME(cm_ice_item),
                                   TABLES(cm_ice_update), MAYBE_TEXT, EXTRA, FLAGS, FLAGS, EXTRA}};

/* ---- snapshots ---- */

const cm_fb_schema cm_ice_file_info = {"ManifestFileInfoV2", 4, {MAYBE_ID, U64, U32, EXTRA}};
const cm_fb_schema cm_ice_manifest_ref = {"ManifestRef", 2, {ID, RANGES}};
const cm_fb_schema cm_ice_shape = {"DimensionShapeV2", 2, {U64, U32}};
const cm_fb_schema cm_ice_dimension = {"DimensionName", 1, {MAYBE_TEXT}};
const cm_fb_schema cm_ice_group = {"GroupNodeData", 0, {{0}}};
const cm_fb_schema cm_ice_array = {
    "ArrayNodeData",
    4,
    {PAIRS, SOME(cm_ice_dimension), TABLES(cm_ice_manifest_ref), SOME(cm_ice_shape)}};

static const cm_fb_schema *const nodes[] = {&cm_ice_array, &cm_ice_group};
const cm_fb_schema cm_ice_node = {
    "NodeSnapshot", 6, {NODE_ID, TEXT, BYTES, U8, UNION(nodes), EXTRA}};

const cm_fb_schema cm_ice_snapshot = {"Snapshot",
                                      9,
                                      {ID, MAYBE_ID, TABLES(cm_ice_node), U64, TEXT,
                                       TABLES(cm_ice_item), FILES_1, SOME(cm_ice_file_info),
                                       EXTRA}};

/*
 * The schemas of Icechunk's metadata, versions 1, 2 and 2.1 (its flatbuffers, *.fbs): slots of
 * tables.  Manifests are read and written without a tree (manifest_read.h, manifest_write.h).
 */
#ifndef CM_FORMAT_ICECHUNK_SCHEMA_H
#define CM_FORMAT_ICECHUNK_SCHEMA_H

#include "format/icechunk/tree.h"

#define CM_ICE_IDENTIFIER "Ichk" /* of every flatbuffer */

enum {
    CM_ICE_ID = 12,     /* bytes of the id of a snapshot, a manifest or a chunk file */
    CM_ICE_NODE_ID = 8, /* bytes of that of a node */
    CM_ICE_VERSION = 2
};

enum { /* MetadataItem */
    CM_ICE_ITEM_NAME,
    CM_ICE_ITEM_VALUE
};
enum { /* Ref */
    CM_ICE_REF_NAME,
    CM_ICE_REF_SNAPSHOT
};
enum { /* SnapshotInfo */
    CM_ICE_INFO_ID,
    CM_ICE_INFO_PARENT,
    CM_ICE_INFO_FLUSHED,
    CM_ICE_INFO_MESSAGE,
    CM_ICE_INFO_METADATA,
    CM_ICE_INFO_PRUNED
};
enum { /* RepoStatus */
    CM_ICE_STATUS_AVAILABILITY,
    CM_ICE_STATUS_SET_AT,
    CM_ICE_STATUS_REASON
};
enum { /* Update */
    CM_ICE_UPDATE_TYPE,
    CM_ICE_UPDATE_DATA,
    CM_ICE_UPDATE_TIME,
    CM_ICE_UPDATE_BACKUP
};
enum { /* types of updates */
    CM_ICE_UPDATE_INITIALIZED = 1,
    CM_ICE_UPDATE_CONFIG = 3,
    CM_ICE_UPDATE_BRANCH_CREATED = 7,
    CM_ICE_UPDATE_COMMIT = 10
};
enum { /* NewCommitUpdate */
    CM_ICE_COMMIT_BRANCH,
    CM_ICE_COMMIT_SNAPSHOT
};
enum { /* Repo */
    CM_ICE_REPO_VERSION,
    CM_ICE_REPO_TAGS,
    CM_ICE_REPO_BRANCHES,
    CM_ICE_REPO_DELETED_TAGS,
    CM_ICE_REPO_SNAPSHOTS,
    CM_ICE_REPO_STATUS,
    CM_ICE_REPO_METADATA,
    CM_ICE_REPO_UPDATES,
    CM_ICE_REPO_BEFORE,
    CM_ICE_REPO_CONFIG,
    CM_ICE_REPO_ENABLED,
    CM_ICE_REPO_DISABLED,
    CM_ICE_REPO_EXTRA
};
enum { /* Snapshot */
    CM_ICE_SNAPSHOT_ID,
    CM_ICE_SNAPSHOT_PARENT,
    CM_ICE_SNAPSHOT_NODES,
    CM_ICE_SNAPSHOT_FLUSHED,
    CM_ICE_SNAPSHOT_MESSAGE,
    CM_ICE_SNAPSHOT_METADATA,
    CM_ICE_SNAPSHOT_MANIFESTS_1,
    CM_ICE_SNAPSHOT_MANIFESTS,
    CM_ICE_SNAPSHOT_EXTRA
};
enum { /* NodeSnapshot */
    CM_ICE_NODE_NODE_ID,
    CM_ICE_NODE_PATH,
    CM_ICE_NODE_DOCUMENT,
    CM_ICE_NODE_TYPE,
    CM_ICE_NODE_DATA,
    CM_ICE_NODE_EXTRA
};
enum { /* types of nodes */
    CM_ICE_IS_ARRAY = 1,
    CM_ICE_IS_GROUP = 2
};
enum { /* ArrayNodeData */
    CM_ICE_ARRAY_SHAPE_1,
    CM_ICE_ARRAY_DIMENSIONS,
    CM_ICE_ARRAY_MANIFESTS,
    CM_ICE_ARRAY_SHAPE
};
enum { /* DimensionShapeV2 */
    CM_ICE_SHAPE_LENGTH,
    CM_ICE_SHAPE_CHUNKS
};
enum { /* ManifestRef */
    CM_ICE_MANIFEST_REF_ID,
    CM_ICE_MANIFEST_REF_EXTENTS
};
enum { /* ManifestFileInfoV2 */
    CM_ICE_FILE_ID,
    CM_ICE_FILE_NBYTES,
    CM_ICE_FILE_NREFS,
    CM_ICE_FILE_EXTRA
};
enum { /* ManifestFileInfo, a struct: its size, and where a member lies */
    CM_ICE_FILE_1_NBYTES = 32,
    CM_ICE_FILE_1_NREFS = 24
};
enum { /* Manifest */
    CM_ICE_MANIFEST_ID,
    CM_ICE_MANIFEST_ARRAYS,
    CM_ICE_MANIFEST_DICTIONARY,
    CM_ICE_MANIFEST_COMPRESSION
};
enum { /* ArrayManifest */
    CM_ICE_REFS_NODE,
    CM_ICE_REFS_LIST
};
enum { /* ChunkRef */
    CM_ICE_CHUNK_INDEX,
    CM_ICE_CHUNK_INLINE,
    CM_ICE_CHUNK_OFFSET,
    CM_ICE_CHUNK_LENGTH,
    CM_ICE_CHUNK_ID,
    CM_ICE_CHUNK_LOCATION,
    CM_ICE_CHUNK_ETAG,
    CM_ICE_CHUNK_MODIFIED,
    CM_ICE_CHUNK_PACKED /* the location, compressed */
};
enum { /* TransactionLog */
    CM_ICE_LOG_ID,
    CM_ICE_LOG_NEW_GROUPS,
    CM_ICE_LOG_NEW_ARRAYS,
    CM_ICE_LOG_DELETED_GROUPS,
    CM_ICE_LOG_DELETED_ARRAYS,
    CM_ICE_LOG_UPDATED_ARRAYS,
    CM_ICE_LOG_UPDATED_GROUPS,
    CM_ICE_LOG_CHUNKS,
    CM_ICE_LOG_MOVED,
    CM_ICE_LOG_EXTRA
};
enum { /* ArrayUpdatedChunks */
    CM_ICE_CHUNKS_NODE,
    CM_ICE_CHUNKS_LIST
};

extern const cm_fb_schema cm_ice_repo;
extern const cm_fb_schema cm_ice_snapshot;

/* Tables that are made. */
extern const cm_fb_schema cm_ice_item, cm_ice_ref, cm_ice_info, cm_ice_status, cm_ice_update,
    cm_ice_commit_update, cm_ice_branch_update, cm_ice_empty_update, cm_ice_node, cm_ice_array,
    cm_ice_group, cm_ice_shape, cm_ice_dimension, cm_ice_manifest_ref, cm_ice_file_info;

#endif

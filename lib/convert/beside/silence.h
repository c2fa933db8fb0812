/*
 * Holders of locks that cannot be seen from here, and whether they have been silent for so long
 * that they have ended.
 *
 * Ages of locks are told by the clock of the file system or server, which may be set while a lock
 * is held: then every lock looks old, or new for ever.  So an age alone ends nobody.  A lock that
 * looks old is watched for some beats by the monotonic clock of this process first; and one that is
 * watched for the whole time of silence has ended, whatever its age.
 */
#ifndef CM_CONVERT_BESIDE_SILENCE_H
#define CM_CONVERT_BESIDE_SILENCE_H

#include "convert/beside/holder.h"

/* Beats of a holder, and how long one that looks old is watched: more than two beats. */
#define CM_BEAT_NS         UINT64_C(4000000000)
#define CM_WATCH_NS        UINT64_C(10000000000)
#define CM_REMOTE_BEAT_NS  UINT64_C(20000000000) /* each is a request that writes */
#define CM_REMOTE_WATCH_NS UINT64_C(50000000000)
#define CM_SILENCE_S       300

/* The locks that a process has looked at, by name.  Not for concurrent use. */
typedef struct cm_silence cm_silence;

cm_silence *cm_silence_create(cm_error *err);
void cm_silence_free(cm_silence *s);

/*
 * The state of H, the holder of the lock NAME, which was judged STATE without its beats: an
 * unseen one whose AGE_S, by the clock of the place, or whose watched time says so is
 * CM_HOLDER_SILENT or CM_HOLDER_ENDED.  NOW_NS: the monotonic clock.  Without memory nobody ends.
 */
cm_holder_state cm_silence_judge(cm_silence *s, const char *name, const cm_holder *h, int64_t age_s,
                                 bool remote, uint64_t now_ns, cm_holder_state state);

#endif

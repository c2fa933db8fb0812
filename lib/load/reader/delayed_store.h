/*
 * A store that is as slow as an imitated one: for a cache on a faster disk, whose
 * hits cost nothing of that.  Elsewhere the reader waits (load/reader/reader.h), once for
 * all chunks that it fetches together.
 */
#ifndef CM_LOAD_READER_DELAYED_STORE_H
#define CM_LOAD_READER_DELAYED_STORE_H

#include "load/reader/delay.h"
#include "store/store.h"

/*
 * Reads STORE; both it and DELAY are borrowed.  Every object or range that is read
 * takes the requests that STORE makes for it.  Sizes, times of change and listings
 * are not delayed: file systems keep them.  Reads only.
 */
int cm_store_open_delayed(cm_store *store, cm_delay *delay, cm_store **out, cm_error *err);

#endif

/*
 * Memory: overflow-checked sizes, aligned blocks, and the one growing buffer.
 */
#ifndef CM_BASE_MEM_H
#define CM_BASE_MEM_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <chunkmill/error.h>

/* *out = a * b, or a + b; false, and *out unchanged, on overflow. */
bool cm_mul_size(size_t a, size_t b, size_t *out);
bool cm_add_size(size_t a, size_t b, size_t *out);
bool cm_mul_u64(uint64_t a, uint64_t b, uint64_t *out);

/* Product of N factors (1 for none); false when it overflows. */
bool cm_product_u64(size_t n, const uint64_t *factor, uint64_t *out);

/*
 * COUNT zeroed elements of SIZE bytes; NULL and an error when there is no memory.  free()
 * releases it.
 */
void *cm_calloc(size_t count, size_t size, cm_error *err);

/*
 * Makes room for more than N ITEMS in an array with capacity *CAPACITY, of SIZE bytes each: returns
 * ITEMS, or the new address of an array with twice the capacity (FIRST if it was 0).  NULL: no
 * memory, and ITEMS are unchanged.  free() releases them.
 */
void *cm_make_room(void *items, size_t n, size_t *capacity, size_t size, size_t first);

/*
 * Makes room for one more in LIST, a pointer to N items that has grown in no other way: its room is
 * a power of two, so N, which may also fall, says when it is full.  CM_ENOMEM and an error when
 * there is no memory, and LIST is unchanged.  free() releases it.
 */
#define CM_GROW(list, n, err) cm_grow(&(list), n, sizeof(*(list)), err)
int cm_grow(void *list, size_t n, size_t size, cm_error *err);

/* A copy of TEXT, NULL and an error when there is no memory.  free() releases it. */
char *cm_strdup(const char *text, cm_error *err);

/* printf into a new string; NULL and an error when there is no memory.  free() releases it. */
char *cm_asprintf(cm_error *err, const char *format, ...) __attribute__((format(printf, 2, 3)));

/*
 * A buffer that grows up to a declared maximum.  Zero-initialise it, or call
 * cm_buf_init to set the maximum (0: no limit but the address space).  Its data
 * is aligned to 64 bytes.  Not for concurrent use.
 */
typedef struct cm_buf {
    uint8_t *data;
    size_t nbytes;     /* in use */
    size_t capacity;   /* allocated */
    size_t max_nbytes; /* growing past this is CM_EBUDGET; 0: unlimited */
} cm_buf;

void cm_buf_init(cm_buf *buf, size_t max_nbytes);
/* Makes room for CAPACITY bytes in total; keeps the contents. */
int cm_buf_reserve(cm_buf *buf, size_t capacity, cm_error *err);
/* Sets nbytes to NBYTES, growing if needed; new bytes are undefined. */
int cm_buf_resize(cm_buf *buf, size_t nbytes, cm_error *err);
int cm_buf_append(cm_buf *buf, const void *data, size_t nbytes, cm_error *err);
int cm_buf_printf(cm_buf *buf, cm_error *err, const char *format, ...)
    __attribute__((format(printf, 3, 4)));
bool cm_buf_equal(const cm_buf *a, const cm_buf *b);
/* Frees the data and leaves an empty buffer with the same maximum.  NULL is accepted. */
void cm_buf_release(cm_buf *buf);

/* Unaligned little- and big-endian loads and stores. */
uint16_t cm_load_le16(const void *p);
uint32_t cm_load_le32(const void *p);
uint64_t cm_load_le64(const void *p);
uint32_t cm_load_be32(const void *p);
uint64_t cm_load_be64(const void *p);
void cm_store_le32(void *p, uint32_t v);
void cm_store_le64(void *p, uint64_t v);
void cm_store_be32(void *p, uint32_t v);

#endif

#include "store/cache_copy.h"

#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "store/checksum.h"

enum {
    TOUCH_NS = 20 * 1000 * 1000 /* a use so soon after the last need not be recorded */
};

#define MAGIC 0x317970f4635f6d63u

typedef struct header {
    uint64_t magic;
    uint64_t sum; /* of the rest of the head */
    uint64_t nbytes;
    uint64_t changed_ns;
    uint64_t inode;
    uint64_t names_nbytes;
} header;

static size_t names_nbytes(const cm_cache_key *k)
{
    return strlen(k->store) + strlen(k->key) + 2;
}

static size_t table_offset(const cm_cache_key *k)
{
    return (sizeof(header) + names_nbytes(k) + 7) / 8 * 8;
}

void cm_cache_name(const cm_cache_key *k, char *name)
{
    uint64_t low = 1, high = 2;
    low = cm_checksum64(k->key, strlen(k->key), cm_checksum64(k->store, strlen(k->store), low));
    high = cm_checksum64(k->key, strlen(k->key), cm_checksum64(k->store, strlen(k->store), high));
    snprintf(name, CM_CACHE_NAME_SIZE, "%02x/%014llx%016llx", (unsigned)(high >> 56),
             (unsigned long long)(high << 8 >> 8), (unsigned long long)low);
}

uint64_t cm_cache_head_nbytes(const cm_cache_key *k)
{
    uint64_t nblocks =
        k->identity.nbytes / CM_CACHE_BLOCK + (k->identity.nbytes % CM_CACHE_BLOCK != 0);
    return table_offset(k) + 8 * nblocks;
}

void cm_cache_head_fill(const cm_cache_key *k, uint8_t *head)
{
    header h = {.magic = MAGIC,
                .nbytes = k->identity.nbytes,
                .changed_ns = (uint64_t)k->identity.changed_ns,
                .inode = k->identity.inode,
                .names_nbytes = names_nbytes(k)};
    memset(head, 0, table_offset(k));
    memcpy(head, &h, sizeof h);
    memcpy(head + sizeof h, k->store, strlen(k->store) + 1);
    memcpy(head + sizeof h + strlen(k->store) + 1, k->key, strlen(k->key) + 1);
}

/* The sum includes the block's number, so that swapped blocks are detected. */
static uint64_t sum_of(const uint8_t *data, size_t nbytes, uint64_t block)
{
    return cm_checksum64(data, nbytes, block);
}

void cm_cache_head_sum(const cm_cache_key *k, uint8_t *head, uint64_t offset, const void *data,
                       size_t nbytes)
{
    uint8_t *table = head + table_offset(k);
    const uint8_t *p = data;
    for (uint64_t block = offset / CM_CACHE_BLOCK; nbytes > 0; block++) {
        size_t n = nbytes < CM_CACHE_BLOCK ? nbytes : CM_CACHE_BLOCK;
        cm_store_le64(table + 8 * block, sum_of(p, n, block));
        p += n;
        nbytes -= n;
    }
}

bool cm_cache_head_holds(const cm_cache_key *k, const uint8_t *head, uint64_t offset,
                         const void *data, size_t nbytes)
{
    const uint8_t *table = head + table_offset(k);
    const uint8_t *p = data;
    for (uint64_t block = offset / CM_CACHE_BLOCK; nbytes > 0; block++) {
        size_t n = nbytes < CM_CACHE_BLOCK ? nbytes : CM_CACHE_BLOCK;
        if (cm_load_le64(table + 8 * block) != sum_of(p, n, block))
            return false;
        p += n;
        nbytes -= n;
    }
    return true;
}

static uint64_t sum_of_head(const cm_cache_key *k, const uint8_t *head)
{
    size_t from = offsetof(header, nbytes);
    return cm_checksum64(head + from, (size_t)cm_cache_head_nbytes(k) - from, MAGIC);
}

void cm_cache_head_seal(const cm_cache_key *k, uint8_t *head)
{
    cm_store_le64(head + offsetof(header, sum), sum_of_head(k, head));
}

bool cm_cache_head_check(const cm_cache_key *k, const uint8_t *head)
{
    header h;
    memcpy(&h, head, sizeof h);
    const char *names = (const char *)head + sizeof h;
    return h.magic == MAGIC && h.nbytes == k->identity.nbytes &&
           h.changed_ns == (uint64_t)k->identity.changed_ns && h.inode == k->identity.inode &&
           h.names_nbytes == names_nbytes(k) &&
           memcmp(names, k->store, strlen(k->store) + 1) == 0 &&
           memcmp(names + strlen(k->store) + 1, k->key, strlen(k->key) + 1) == 0 &&
           h.sum == sum_of_head(k, head);
}

int cm_cache_open_copy(const cm_cache_dir *dir, const cm_cache_key *k)
{
    char name[CM_CACHE_NAME_SIZE];
    struct stat st;
    struct timespec now;
    cm_cache_name(k, name);
    int fd = openat(dir->fd, name, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
    if (fd < 0)
        return -1;
    if (fstat(fd, &st) != 0 ||
        (uint64_t)st.st_size != cm_cache_head_nbytes(k) + k->identity.nbytes) {
        close(fd);
        return -1;
    }
    clock_gettime(CLOCK_REALTIME, &now);
    int64_t age =
        (int64_t)(now.tv_sec - st.st_mtim.tv_sec) * 1000000000 + (now.tv_nsec - st.st_mtim.tv_nsec);
    if (age < 0 || age > TOUCH_NS)
        /* May fail for another user's file, which is then evicted sooner. */
        (void)!futimens(fd, NULL);
    return fd;
}

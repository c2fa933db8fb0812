#include "format/icechunk/records.h"

#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/crc32c.h"
#include "base/fd.h"

enum {
    RECORD = CM_ICE_RECORD_NBYTES,
    NAME = 1 + CM_ICE_ID + 4, /* kind, id, checksum */
    BATCH = 256
};

static uint32_t sum_of(const void *data, size_t nbytes)
{
    return cm_crc32c(cm_cpu_simd(), data, nbytes);
}

/* ---- records as bytes ---- */

void cm_ice_record_pack(const cm_ice_record *r, uint64_t number, uint8_t *out)
{
    memset(out, 0, RECORD);
    out[0] = (uint8_t)r->state;
    out[1] = r->summed;
    cm_store_le32(out + 4, r->sum);
    cm_store_le64(out + 8, r->offset);
    cm_store_le64(out + 16, r->nbytes);
    memcpy(out + 24, r->id, CM_ICE_ID);
    cm_store_le32(out + RECORD - 4, sum_of(out, RECORD - 4) ^ (uint32_t)number);
}

void cm_ice_record_unpack(const uint8_t *in, uint64_t number, cm_ice_record *out)
{
    *out = (cm_ice_record){0};
    if (in[0] == CM_ICE_UNKNOWN || in[0] > CM_ICE_SMALL ||
        cm_load_le32(in + RECORD - 4) != (sum_of(in, RECORD - 4) ^ (uint32_t)number))
        return;
    out->state = (cm_ice_state)in[0];
    out->summed = in[1] != 0;
    out->sum = cm_load_le32(in + 4);
    out->offset = cm_load_le64(in + 8);
    out->nbytes = cm_load_le64(in + 16);
    memcpy(out->id, in + 24, CM_ICE_ID);
}

/* ---- files ---- */

static int write_at(int fd, const void *data, size_t nbytes, uint64_t offset, cm_error *err)
{
    int errnum = cm_fd_write_at(fd, data, nbytes, offset);
    return errnum == 0 ? CM_OK : cm_fail_errno(err, errnum, "the journal");
}

int cm_ice_records_open(cm_ice_records *r, int chunks, int small, int files, cm_error *err)
{
    struct stat st[2];
    if (fstat(small, &st[0]) != 0 || fstat(files, &st[1]) != 0)
        return cm_fail(err, CM_EIO, "the journal cannot be read");
    *r = (cm_ice_records){.chunks = chunks, .small = small, .files = files};
    atomic_init(&r->nsmall, (uint64_t)st[0].st_size);
    atomic_init(&r->nfiles, ((uint64_t)st[1].st_size + NAME - 1) / NAME);
    return CM_OK;
}

int cm_ice_records_set(cm_ice_records *r, uint64_t number, const cm_ice_record *record,
                       cm_error *err)
{
    uint8_t bytes[RECORD];
    cm_ice_record_pack(record, number, bytes);
    return write_at(r->chunks, bytes, RECORD, number * RECORD, err);
}

int cm_ice_records_get(const cm_ice_records *r, uint64_t first, size_t n, cm_ice_record *out,
                       cm_error *err)
{
    uint8_t bytes[BATCH * RECORD];
    for (size_t i = 0; i < n;) {
        size_t batch = n - i < BATCH ? n - i : BATCH, got;
        int errnum = cm_fd_read_at(r->chunks, bytes, batch * RECORD, (first + i) * RECORD, &got);
        if (errnum != 0)
            return cm_fail_errno(err, errnum, "the journal");
        memset(bytes + got, 0, batch * RECORD - got);
        for (size_t k = 0; k < batch; k++, i++)
            cm_ice_record_unpack(bytes + k * RECORD, first + i, &out[i]);
    }
    return CM_OK;
}

int cm_ice_records_keep(cm_ice_records *r, uint64_t number, const void *data, size_t nbytes,
                        cm_error *err)
{
    const cm_ice_record record = {.state = CM_ICE_SMALL,
                                  .summed = true,
                                  .sum = sum_of(data, nbytes),
                                  .offset = atomic_fetch_add(&r->nsmall, nbytes),
                                  .nbytes = nbytes};
    int rc = write_at(r->small, data, nbytes, record.offset, err);
    return rc == CM_OK ? cm_ice_records_set(r, number, &record, err) : rc;
}

int cm_ice_records_small(const cm_ice_records *r, const cm_ice_record *record, void *out,
                         cm_error *err)
{
    size_t got;
    int errnum = cm_fd_read_at(r->small, out, record->nbytes, record->offset, &got);
    if (errnum != 0)
        return cm_fail_errno(err, errnum, "the journal");
    if (got != record->nbytes || sum_of(out, got) != record->sum)
        return cm_fail(err, CM_EFORMAT, "the journal: a small chunk is damaged");
    return CM_OK;
}

/* ---- names ---- */

int cm_ice_records_name(cm_ice_records *r, char kind, const uint8_t id[CM_ICE_ID], cm_error *err)
{
    uint8_t bytes[NAME] = {(uint8_t)kind};
    memcpy(bytes + 1, id, CM_ICE_ID);
    cm_store_le32(bytes + NAME - 4, sum_of(bytes, NAME - 4));
    return write_at(r->files, bytes, NAME, atomic_fetch_add(&r->nfiles, 1) * NAME, err);
}

bool cm_ice_records_named(const cm_ice_records *r, uint64_t i, char *kind, uint8_t id[CM_ICE_ID])
{
    static const uint8_t unwritten[NAME];
    uint8_t bytes[NAME];
    size_t got;
    const int errnum = cm_fd_read_at(r->files, bytes, NAME, i * NAME, &got);
    *kind = errnum != 0 || memcmp(bytes, unwritten, got) != 0 ? CM_ICE_UNREADABLE : 0;
    if (errnum != 0 || got != NAME || cm_load_le32(bytes + NAME - 4) != sum_of(bytes, NAME - 4))
        return false;
    *kind = (char)bytes[0];
    memcpy(id, bytes + 1, CM_ICE_ID);
    return true;
}

#include <stdio.h>
#include <string.h>

#include "gpu/stage_impl.h"

/* Fills OUT with the first byte that differs and the number that do; counts those never written. */
static uint64_t compare(const uint8_t *expected, const uint8_t *found, size_t nbytes,
                        cm_mismatch *out)
{
    enum {
        BLOCK = 4096
    };
    uint64_t nunwritten = 0;
    for (size_t at = 0; at < nbytes; at += BLOCK) {
        const size_t n = nbytes - at < BLOCK ? nbytes - at : BLOCK;
        if (memcmp(expected + at, found + at, n) == 0)
            continue;
        for (size_t i = at; i < at + n; i++) {
            if (expected[i] == found[i])
                continue;
            if (out->nbytes++ == 0) {
                out->offset = i;
                out->expected = expected[i];
                out->found = found[i];
            }
            nunwritten += found[i] == CM_STAGE_POISON;
        }
    }
    return nunwritten;
}

static void name_span(const cm_stage_span *spans, size_t nspans, cm_mismatch *m)
{
    for (size_t i = 0; i < nspans; i++)
        if (m->offset >= spans[i].offset && m->offset - spans[i].offset < spans[i].nbytes) {
            m->name = spans[i].name;
            m->span_offset = m->offset - spans[i].offset;
            return;
        }
}

static int fail_differ(const cm_stage *s, const cm_mismatch *m, uint64_t nunwritten, cm_error *err)
{
    const char *device = cm_device_get_info(s->options.device)->text;
    const unsigned long long tag = m->tag;
    if (m->nbytes == 0)
        return cm_fail(
            err, CM_EDIFFER,
            "batch %llu: its checksum on %s is wrong, but its bytes, copied back, are right", tag,
            device);
    char where[320];
    if (m->name != NULL)
        snprintf(where, sizeof where, "variable %.200s, offset %llu (%llu of the batch)", m->name,
                 (unsigned long long)m->span_offset, (unsigned long long)m->offset);
    else
        snprintf(where, sizeof where, "offset %llu", (unsigned long long)m->offset);
    return cm_fail(err, CM_EDIFFER,
                   "batch %llu, %s: 0x%02x was read and 0x%02x is on %s; %llu bytes of the batch "
                   "differ%s",
                   tag, where, m->expected, m->found, device, (unsigned long long)m->nbytes,
                   nunwritten == m->nbytes ? ", as if never written" : "");
}

/* *SAME is false when the device's checksum is another. */
static int compare_checksums(cm_stage *s, const stage_buffer *b, bool *same, cm_error *err)
{
    cm_checksum found;
    const size_t nbytes = b->batch.nbytes;
    const int rc = cm_stream_checksum(s->copying, b->memory, 0, nbytes, &found, err);
    if (rc == CM_OK)
        *same = cm_checksum_equal(found, cm_checksum_of(b->batch.host, nbytes));
    return rc;
}

int cm_stage_validate(cm_stage *s, const cm_stage_span *spans, size_t nspans, cm_mismatch *out,
                      cm_error *err)
{
    cm_mismatch unused;
    if (out == NULL)
        out = &unused;
    *out = (cm_mismatch){0};
    if (!s->waited)
        return cm_fail(err, CM_EINVAL, "no batch was waited for");
    if (s->validate == CM_VALIDATE_NONE)
        return cm_fail(err, CM_EINVAL, "this pass validates nothing");
    const stage_buffer *b = stage_buffer_of(s, s->nreleased);
    const size_t nbytes = b->batch.nbytes;
    bool same = false;
    int rc = CM_OK;
    out->tag = b->batch.tag;
    if (s->validate == CM_VALIDATE_CHECKSUM)
        rc = compare_checksums(s, b, &same, err);
    if (rc == CM_OK && !same) {
        rc = cm_stream_copy_out(s->copying, s->back, b->memory, 0, nbytes, err);
        if (rc == CM_OK)
            rc = cm_stream_sync(s->copying, err);
    }
    if (rc != CM_OK) {
        cm_error_prefix(err, "batch %llu", (unsigned long long)out->tag);
        return rc;
    }
    s->report.validated_nbytes += nbytes;
    if (same)
        return CM_OK;
    const uint64_t nunwritten = compare(b->batch.host, s->back, nbytes, out);
    if (out->nbytes == 0 && s->validate == CM_VALIDATE_FULL)
        return CM_OK;
    name_span(spans, nspans, out);
    s->report.nmismatches++;
    return fail_differ(s, out, nunwritten, err);
}

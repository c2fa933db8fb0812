/*
 * A file of survey records that somebody else wrote.  Any bytes are believed as a whole or not
 * at all, and what is believed can be read to its end.  The second half of the inputs are the
 * payloads of frames whose checksums and digests are put right here, so that what is behind
 * these is reached.
 */
#include <chunkmill/version.h>

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "archive/survey/cache.h"
#include "archive/survey/check.h"
#include "archive/survey/records.h"
#include "codec/codec.h"
#include "fuzz.h"

enum {
    NFILES = 2,
    MAX_FRAMES = 40
};

static char base[64], cache_path[80], file_path[NFILES][80];
static struct stat file_stat[NFILES];

static void remove_all(void)
{
    for (size_t i = 0; i < NFILES; i++)
        (void)unlink(file_path[i]);
    (void)unlink(cache_path);
    (void)rmdir(base);
}

static void write_file(const char *path, const void *data, size_t nbytes)
{
    int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
    REQUIRE(fd >= 0 && write(fd, data, nbytes) == (ssize_t)nbytes && close(fd) == 0);
}

int LLVMFuzzerInitialize(int *argc, char ***argv)
{
    struct stat st;
    (void)argc;
    (void)argv;
    snprintf(base, sizeof base, "%s/fuzz-survey-XXXXXX",
             stat("/dev/shm", &st) == 0 ? "/dev/shm" : "/tmp");
    REQUIRE(mkdtemp(base) != NULL);
    snprintf(cache_path, sizeof cache_path, "%s/cache", base);
    for (size_t i = 0; i < NFILES; i++) {
        snprintf(file_path[i], sizeof file_path[i], "%s/f%zu", base, i);
        write_file(file_path[i], "data", 4);
        REQUIRE(stat(file_path[i], &file_stat[i]) == 0);
    }
    atexit(remove_all);
    return 0;
}

/* ---- frames that are whole ---- */

static void append(cm_buf *out, const void *data, size_t nbytes)
{
    REQUIRE(cm_buf_append(out, data, nbytes, NULL) == CM_OK);
}

static void append_frame(cm_buf *out, uint32_t kind, const cm_buf *payload)
{
    const cm_frame f = {kind, cm_frame_check(payload->data, payload->nbytes), payload->nbytes};
    append(out, &f, sizeof f);
    append(out, payload->data, payload->nbytes);
}

/*
 * A record may name what was shared before it, by its place among these: 16 bytes that begin
 * with 0xd1 0x9e 0x57 and that place become its digest.
 */
static void name_digests(cm_buf *p, const cm_digest *known, size_t nknown)
{
    for (size_t at = 0; nknown > 0 && at + sizeof(cm_digest) <= p->nbytes; at++) {
        static const uint8_t sign[] = {0xd1, 0x9e, 0x57};
        if (memcmp(p->data + at, sign, sizeof sign) != 0)
            continue;
        memcpy(p->data + at, &known[p->data[at + 3] % nknown], sizeof(cm_digest));
        at += sizeof(cm_digest) - 1;
    }
}

static void put_identity(cm_buf *p, size_t i)
{
    const struct stat *st = &file_stat[i];
    cm_wire_out w = {p, CM_OK, NULL};
    cm_wire_put_u64(&w, 0);
    cm_wire_put_u64(&w, st->st_dev);
    cm_wire_put_u64(&w, st->st_ino);
    cm_wire_put_u64(&w, (uint64_t)st->st_size);
    cm_wire_put_u64(&w, cm_look_ns(&st->st_mtim));
    cm_wire_put_u64(&w, cm_look_ns(&st->st_ctim));
    cm_wire_put_u32(&w, CM_OK);
}

/* Of each frame: its kind, two bytes of length, and its payload. */
static void make_whole(fuzz_input *in, const uint8_t *head, size_t nhead, cm_buf *out)
{
    cm_digest known[MAX_FRAMES];
    size_t nknown = 0;
    uint64_t n = 1;
    append(out, head, nhead);
    for (; in->nbytes > 0 && n < MAX_FRAMES; n++) {
        cm_buf p = {0};
        const uint8_t kind = (uint8_t)fuzz_number(in, 1);
        size_t want = (size_t)fuzz_number(in, 2), nbytes = want < in->nbytes ? want : in->nbytes;
        cm_buf rest = {0};
        append(&rest, in->data, nbytes);
        name_digests(&rest, known, nknown);
        if (kind % 2 == 0) {
            const cm_digest d = cm_wire_digest(rest.data, rest.nbytes);
            append(&p, &d, sizeof d);
            append(&p, rest.data, rest.nbytes);
            append_frame(out, CM_FRAME_SHARED, &p);
            known[nknown++] = d;
        } else {
            const char *path = file_path[kind / 2 % NFILES];
            append(&p, path, strlen(path) + 1);
            append_frame(out, CM_FRAME_PATH, &p);
            p.nbytes = 0;
            put_identity(&p, kind / 2 % NFILES);
            append(&p, rest.data, rest.nbytes);
            append_frame(out, CM_FRAME_FILE, &p);
            n++;
        }
        in->data += nbytes;
        in->nbytes -= nbytes;
        cm_buf_release(&rest);
        cm_buf_release(&p);
    }
    uint8_t count[sizeof(uint64_t)];
    cm_buf end = {0};
    cm_store_le64(count, n);
    append(&end, count, sizeof count);
    append_frame(out, CM_FRAME_END, &end);
    cm_buf_release(&end);
}

/* ---- reading ---- */

static void use_record(cm_survey *s, cm_surveyed *f)
{
    cm_error err;
    cm_surveyed_var v;
    volatile uint64_t sum = 0;
    size_t n = 0;
    for (cm_surveyed_iter it = cm_surveyed_begin(f); cm_surveyed_next(&it, &v); n++) {
        size_t nbytes = 0;
        const uint8_t *values = v.has_values ? cm_survey_values(s, v.values, &nbytes) : NULL;
        REQUIRE(v.has_values == (values != NULL));
        for (size_t i = 0; i < nbytes; i++)
            sum += values[i];
        for (uint64_t i = 0; v.is_located && i < v.located.nplaces; i++)
            sum += v.located.place[i].address;
        const cm_form *form = NULL;
        if (v.is_located) {
            cm_chain *chain = NULL;
            REQUIRE(cm_survey_form(s, v.form, &form, &err) == CM_OK);
            if (form->kind == CM_LOCATED_CHUNKS)
                (void)cm_chain_create(form->codecs, form->ncodecs, &form->dtype, form->rank,
                                      form->chunk, &chain, &err);
            cm_chain_free(chain);
        }
    }
    REQUIRE(n == f->skeleton->nvars);
}

/* As cm_survey_run does it, but for the children. */
static void load(const uint8_t *data, size_t nbytes)
{
    cm_survey s = {0};
    cm_survey_cache c;
    cm_error err;
    cm_spot spot[NFILES] = {0};
    cm_surveyed file[NFILES] = {0};
    write_file(cache_path, data, nbytes);
    int rc = cm_survey_cache_open(&c, cache_path, NULL, &err);
    REQUIRE(rc == CM_OK || rc == CM_EEXIST);
    if (rc == CM_EEXIST) { /* no mark: none of ours */
        cm_survey_cache_release(&c);
        return;
    }
    /* The other file is one that the survey is not about. */
    s.file = file;
    s.nfiles = NFILES - 1;
    REQUIRE((s.paged = cm_paged_create(base, &err)) != NULL);
    REQUIRE(cm_records_create(base, s.paged, &s.records, &err) == CM_OK);
    for (size_t i = 0; i < s.nfiles; i++) {
        const struct stat *st = &file_stat[i];
        file[i] = (cm_surveyed){.path = file_path[i],
                                .dev = st->st_dev,
                                .ino = st->st_ino,
                                .nbytes = (uint64_t)st->st_size};
        spot[i] = (cm_spot){.mtime_ns = cm_look_ns(&st->st_mtim),
                            .ctime_ns = cm_look_ns(&st->st_ctim),
                            .regular = true};
    }
    REQUIRE(cm_survey_cache_load(&c, &s, spot, &err) == CM_OK);
    REQUIRE(cm_records_map(s.records, &err) == CM_OK);
    for (size_t i = 0; i < s.nfiles; i++) {
        REQUIRE(s.cache_refused == NULL || spot[i].offset == 0);
        if (spot[i].offset == 0)
            continue;
        REQUIRE(cm_surveyed_read(&s, &file[i], &spot[i], &err) == CM_OK);
        use_record(&s, &file[i]);
    }
    /* A cache that was accepted is accepted again after it was written. */
    bool believed = s.cache_refused == NULL;
    c.is_old = true;
    REQUIRE(cm_survey_cache_save(&c, &s, spot, &err) == CM_OK);
    cm_survey_cache_release(&c);
    cm_records_clear(s.records);
    free(s.cache_refused);
    s.cache_refused = NULL;
    bool was = spot[0].offset != 0;
    spot[0].offset = 0;
    REQUIRE(cm_survey_cache_open(&c, cache_path, NULL, &err) == CM_OK);
    REQUIRE(cm_survey_cache_load(&c, &s, spot, &err) == CM_OK);
    REQUIRE(s.cache_refused == NULL && (spot[0].offset != 0) == (was && believed));
    cm_survey_cache_release(&c);
    cm_records_free(s.records);
    cm_paged_free(s.paged);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t nbytes)
{
    cm_buf head = {0}, whole = {0};
    fuzz_input in = {data, nbytes};
    cm_wire_out w = {&head, CM_OK, NULL};
    if (nbytes > 0 && data[0] == 'w') { /* whole frames */
        (void)fuzz_number(&in, 1);
        cm_wire_put_u32(&w, CM_SURVEY_CACHE_FORMAT);
        cm_wire_put_text(&w, cm_version());
        append(&whole, CM_MARK_SURVEY, sizeof CM_MARK_SURVEY - 1);
        append_frame(&whole, CM_FRAME_HEAD, &head);
        const size_t nhead = whole.nbytes;
        cm_buf all = {0};
        make_whole(&in, whole.data, nhead, &all);
        load(all.data, all.nbytes);
        cm_buf_release(&all);
    } else {
        load(data, nbytes);
    }
    cm_buf_release(&head);
    cm_buf_release(&whole);
    return 0;
}

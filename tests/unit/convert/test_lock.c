/* Locks that may be taken: each row of the tables is a file that describes a holder. */
#include <fcntl.h>
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "../fixtures/ok.h"
#include "base/json.h"
#include "convert/beside/lock.h"

enum {
    NWRITERS = 8,
    NROUNDS = 20
};

static char folder[64], out[80], file[120];
static cm_beside beside;

static int make_folder(void **state)
{
    (void)state;
    strcpy(folder, "/tmp/cm-lock-XXXXXX");
    if (mkdtemp(folder) == NULL)
        return -1;
    sprintf(out, "%s/out.zarr", folder);
    sprintf(file, "%s.chunkmill/lock", out);
    return cm_beside_find(out, NULL, &beside, NULL);
}

static int remove_folder(void **state)
{
    char command[80];
    (void)state;
    cm_beside_release(&beside);
    sprintf(command, "rm -rf %s", folder);
    return system(command);
}

static bool exists(const char *path)
{
    struct stat st;
    return lstat(path, &st) == 0;
}

static bool folder_exists(void)
{
    char path[120];
    sprintf(path, "%s.chunkmill", out);
    return exists(path);
}

/* Makes the lock a file that says TEXT. */
static void write_lock(const char *text)
{
    OK(cm_beside_open(&beside, true, err));
    OK(cm_store_put(beside.in, "lock", text, strlen(text), err));
    cm_beside_close(&beside);
}

/* This process's lock: an object to change. */
static cm_json *own_lock(void)
{
    cm_lock *lock;
    char *note;
    cm_buf text = {0};
    cm_json *j;
    OK(cm_lock_take(&beside, false, &lock, &note, err));
    assert_null(note);
    OK(cm_store_get(beside.in, "lock", 4096, &text, err));
    OK(cm_json_parse(text.data, text.nbytes, &j, err));
    cm_lock_release(lock, &beside);
    cm_buf_release(&text);
    return j;
}

static void write_json(const cm_json *j)
{
    cm_buf text = {0};
    OK(cm_json_write(j, false, &text, err));
    OK(cm_buf_append(&text, "\n", 2, err)); /* and a NUL */
    write_lock((const char *)text.data);
    cm_buf_release(&text);
}

/* Whether it can be taken; MESSAGE is in the error, or in the note. */
static void expect(bool breaks, bool taken, const char *message)
{
    cm_lock *lock;
    char *note;
    cm_error err = {0}, peeked = {0};
    int peek = cm_lock_peek(&beside, breaks, &peeked);
    assert_true(exists(file)); /* which it did not touch */
    int rc = cm_lock_take(&beside, breaks, &lock, &note, &err);
    assert_int_equal(peek, rc);
    assert_int_equal(rc, taken ? CM_OK : CM_EEXIST);
    const char *said = taken ? note : err.text;
    if (said == NULL || strstr(said, message) == NULL)
        fail_msg("\"%s\" is not in \"%s\"", message, said == NULL ? "" : said);
    if (!taken)
        assert_string_equal(peeked.text, err.text);
    assert_true(exists(file)); /* another's, or ours */
    cm_lock_release(lock, &beside);
    free(note);
    assert_int_equal(folder_exists(), !taken);
}

/* ---- taking and giving back ---- */

static void test_take_and_release(void **state)
{
    (void)state;
    cm_lock *lock;
    char *note;
    OK(cm_lock_peek(&beside, false, err));
    assert_false(folder_exists());
    OK(cm_lock_take(&beside, false, &lock, &note, err));
    assert_null(note);
    assert_true(exists(file));
    cm_lock_release(lock, &beside);
    assert_false(folder_exists());
    cm_lock_release(NULL, &beside);
}

static void test_it_tells_who(void **state)
{
    (void)state;
    char host[256] = "";
    int64_t process = 0;
    uint64_t start = 0;
    cm_json *j = own_lock();
    gethostname(host, sizeof(host) - 1);
    assert_string_equal(cm_json_text(cm_json_member(j, "host"), NULL), host);
    assert_true(cm_json_get_i64(cm_json_member(j, "process"), &process));
    assert_true(cm_json_get_u64(cm_json_member(j, "process start"), &start));
    assert_int_equal(process, getpid());
    assert_true(start > 0);
    assert_int_equal(strlen(cm_json_text(cm_json_member(j, "time"), NULL)), 20);
    cm_json_free(j);
}

/* A run that was killed left temporaries, and a foreign file is there: the first go. */
static void test_temporaries_go_with_the_lock(void **state)
{
    (void)state;
    static const struct {
        const char *name;
        bool goes;
    } row[] = {{".chunkmill-17-1.tmp", true},
               {".chunkmill-17-1795349295346433071.tmp", true},
               {".chunkmill-x-1.tmp", false},
               {"journal", false},
               {"notes.tmp", false}};
    for (size_t i = 0; i < COUNT(row); i++) {
        char path[200];
        cm_lock *lock;
        char *note;
        OK(cm_lock_take(&beside, false, &lock, &note, err));
        sprintf(path, "%s.chunkmill/%s", out, row[i].name);
        FILE *f = fopen(path, "w");
        assert_non_null(f);
        fclose(f);
        cm_lock_release(lock, &beside);
        assert_false(exists(file));
        assert_int_equal(exists(path), !row[i].goes);
        assert_int_equal(folder_exists(), !row[i].goes);
        unlink(path);
    }
}

/* ---- holders ---- */

static int64_t ended_process(void)
{
    pid_t child = fork();
    if (child == 0)
        _exit(0);
    assert_int_equal(waitpid(child, NULL, 0), child);
    return child;
}

/* Members about the holder that differ from this process's own. */
typedef struct holder_row {
    const char *member[2], *value[2];
    bool ended, again; /* of the process: has ended; its number was given again */
    bool taken;        /* without breaking it */
    bool broken;       /* with */
    const char *message;
} holder_row;

static cm_json *change(const cm_json *own, const holder_row *row)
{
    uint64_t start = 0;
    cm_json *j = cm_json_copy(own);
    for (size_t i = 0; i < 2 && row->member[i] != NULL; i++)
        OK(cm_json_set(j, row->member[i], cm_json_string(row->value[i]), err));
    if (row->ended)
        OK(cm_json_set(j, "process", cm_json_i64(ended_process()), err));
    assert_true(cm_json_get_u64(cm_json_member(j, "process start"), &start));
    if (row->again)
        OK(cm_json_set(j, "process start", cm_json_u64(start - 1), err));
    return j;
}

static void test_holders(void **state)
{
    (void)state;
    static const char took[] = "took over the lock of process ";
    static const char unseen[] = "which cannot be seen from here; break the lock only";
    static const holder_row row[] = {
        {.message = "another run is writing it (process "},
        {.ended = true, .taken = true, .broken = true, .message = took},
        {.again = true, .taken = true, .broken = true, .message = took},
        {{"machine", "boot"}, {"another", "earlier"}, .broken = true, .message = unseen},
        {{"machine", "boot"}, {"", "earlier"}, .broken = true, .message = unseen},
        {{"host"}, {"elsewhere.example"}, .broken = true, .message = "on elsewhere.example since "},
        {{"host"}, {"elsewhere.example"}, .ended = true, .broken = true, .message = unseen},
        {{"host"}, {""}, .ended = true, .broken = true, .message = "does not say by whom"},
        {{"process space"}, {"pid:[1]"}, .ended = true, .broken = true, .message = unseen},
    };
    cm_json *own = own_lock();
    for (size_t i = 0; i < COUNT(row); i++) {
        cm_json *j = change(own, &row[i]);
        write_json(j);
        expect(false, row[i].taken, row[i].message);
        write_json(j);
        expect(true, row[i].broken, row[i].broken ? took : row[i].message);
        unlink(file);
        cm_json_free(j);
    }
    cm_json_free(own);
}

/* This machine, started again: where it has an identity, nobody else can be meant. */
static void test_an_earlier_boot_has_ended(void **state)
{
    (void)state;
    cm_json *j = own_lock();
    bool known = *cm_json_text(cm_json_member(j, "machine"), NULL) != '\0';
    OK(cm_json_set(j, "boot", cm_json_string("earlier"), err));
    write_json(j);
    expect(false, known, known ? "took over" : "cannot be seen from here");
    cm_json_free(j);
}

static void test_a_zombie_has_ended(void **state)
{
    (void)state;
    siginfo_t info;
    cm_json *j = own_lock();
    pid_t child = fork();
    if (child == 0)
        _exit(0);
    assert_int_equal(waitid(P_PID, (id_t)child, &info, WEXITED | WNOWAIT), 0);
    OK(cm_json_set(j, "process", cm_json_i64(child), err));
    write_json(j);
    expect(false, true, "took over");
    waitpid(child, NULL, 0);
    cm_json_free(j);
}

static void test_what_does_not_say(void **state)
{
    (void)state;
    static const char *const row[] = {
        "",
        "\n",
        "a letter to a friend\n",
        "{}\n",
        "{\"chunkmill lock\":1}\n",
        "{\"chunkmill lock\":1,\"process\":0,\"process start\":1}\n",
        "{\"chunkmill lock\":1,\"process\":-1,\"process start\":1}\n",
        "{\"chunkmill lock\":1,\"process\":\"1\",\"process start\":1}\n",
        "{\"chunkmill lock\":1,\"process\":1,\"process start\":-1}\n",
        "{\"process\":1,\"process start\":1}\n",
        "{\"chunkmill lock\":1,\"process\":1,\"process start\":1}", /* cut */
    };
    for (size_t i = 0; i < COUNT(row); i++) {
        write_lock(row[i]);
        expect(false, false, "does not say by whom");
        expect(true, true, "took over");
    }
}

static void test_cut_at_each_byte(void **state)
{
    (void)state;
    cm_buf text = {0};
    cm_json *j = own_lock();
    OK(cm_json_write(j, false, &text, err));
    OK(cm_buf_append(&text, "", 1, err));
    for (size_t n = text.nbytes - 1; n-- > 0;) {
        text.data[n] = '\0';
        write_lock((const char *)text.data);
        expect(false, false, "does not say by whom");
    }
    unlink(file);
    cm_buf_release(&text);
    cm_json_free(j);
}

static void test_strange_files_are_never_broken(void **state)
{
    (void)state;
    cm_lock *lock;
    char *note;
    for (int kind = 0; kind < 3; kind++)
        for (int breaks = 0; breaks < 2; breaks++) {
            cm_error why = {0};
            OK(cm_beside_open(&beside, true, err));
            cm_beside_close(&beside);
            if (kind == 0)
                assert_int_equal(mkfifo(file, 0600), 0);
            else
                assert_int_equal(symlink(kind == 1 ? "nothing" : "/etc/passwd", file), 0);
            assert_int_equal(cm_lock_peek(&beside, breaks, &why), CM_EEXIST);
            assert_int_equal(cm_lock_take(&beside, breaks, &lock, &note, &why), CM_EEXIST);
            assert_non_null(strstr(why.text, "no regular file"));
            assert_true(exists(file));
            unlink(file);
        }
}

/* ---- several at once ---- */

/* Takes it over in a process of its own, and holds it until told to end. */
static pid_t start_writer(int go, int said)
{
    pid_t child = fork();
    if (child != 0)
        return child;
    cm_beside own;
    cm_lock *lock;
    char *note, c;
    bool fine = cm_beside_find(out, NULL, &own, NULL) == CM_OK && read(go, &c, 1) == 1;
    c = fine && cm_lock_take(&own, false, &lock, &note, NULL) == CM_OK ? '1' : '0';
    fine = fine && write(said, &c, 1) == 1;
    pause();
    _exit(fine);
}

static void test_of_several_one_takes_over(void **state)
{
    (void)state;
    cm_json *j = own_lock();
    OK(cm_json_set(j, "process", cm_json_i64(ended_process()), err));
    for (int round = 0; round < NROUNDS; round++) {
        pid_t writer[NWRITERS];
        int go[2], said[2], winners = 0;
        char c;
        write_json(j);
        assert_int_equal(pipe(go), 0);
        assert_int_equal(pipe(said), 0);
        for (int i = 0; i < NWRITERS; i++)
            writer[i] = start_writer(go[0], said[1]);
        assert_int_equal(write(go[1], "12345678", NWRITERS), NWRITERS);
        for (int i = 0; i < NWRITERS; i++) {
            assert_int_equal(read(said[0], &c, 1), 1);
            winners += c == '1';
        }
        for (int i = 0; i < NWRITERS; i++) {
            kill(writer[i], SIGKILL);
            waitpid(writer[i], NULL, 0);
        }
        for (int i = 0; i < 2; i++) {
            close(go[i]);
            close(said[i]);
        }
        assert_int_equal(winners, 1);
        expect(false, true, "took over"); /* of the one that was killed now */
    }
    cm_json_free(j);
}

/* Whoever takes a lock over does so alone: while anybody else is at it, it is not replaced. */
static void test_nobody_takes_over_beside_another(void **state)
{
    (void)state;
    cm_json *j = own_lock();
    cm_lock *lock;
    char *note;
    OK(cm_json_set(j, "process", cm_json_i64(ended_process()), err));
    write_json(j);
    int fd = open(file, O_RDONLY | O_CLOEXEC);
    assert_int_equal(flock(fd, LOCK_SH), 0);
    assert_int_equal(cm_lock_take(&beside, false, &lock, &note, NULL), CM_EEXIST);
    close(fd);
    expect(false, true, "took over");
    cm_json_free(j);
}

#define ON_DISK(test) cmocka_unit_test_setup_teardown(test, make_folder, remove_folder)

int main(void)
{
    const struct CMUnitTest tests[] = {
        ON_DISK(test_take_and_release),
        ON_DISK(test_it_tells_who),
        ON_DISK(test_temporaries_go_with_the_lock),
        ON_DISK(test_holders),
        ON_DISK(test_an_earlier_boot_has_ended),
        ON_DISK(test_a_zombie_has_ended),
        ON_DISK(test_what_does_not_say),
        ON_DISK(test_cut_at_each_byte),
        ON_DISK(test_strange_files_are_never_broken),
        ON_DISK(test_of_several_one_takes_over),
        ON_DISK(test_nobody_takes_over_beside_another),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

#include "convert/beside/holder.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/json.h"

/* ---- this process, and others ---- */

/* The first line of the file PATH, cut to SIZE; "" where it cannot be read. */
static void read_line(const char *path, char *out, size_t size)
{
    FILE *f = fopen(path, "re");
    out[0] = '\0';
    if (f != NULL) {
        if (fgets(out, (int)size, f) == NULL)
            out[0] = '\0';
        fclose(f);
    }
    out[strcspn(out, "\n")] = '\0';
}

/* When PROCESS was started; false where /proc does not tell.  *ended: a zombie. */
static bool start_of(int64_t process, uint64_t *start, bool *ended)
{
    char path[64], text[1024];
    snprintf(path, sizeof(path), "/proc/%lld/stat", (long long)process);
    read_line(path, text, sizeof(text));
    const char *p = strrchr(text, ')'); /* of the name, which may hold anything */
    if (p == NULL || p[1] != ' ')
        return false;
    p += 2;
    *ended = *p == 'Z' || *p == 'X';
    for (int field = 3; field < 22; field++)
        if ((p = strchr(p, ' ')) == NULL)
            return false;
        else
            p++;
    *start = strtoull(p, NULL, 10);
    return true;
}

static void describe_self(cm_holder *h)
{
    bool ended;
    *h = (cm_holder){.process = getpid()};
    if (gethostname(h->host, sizeof(h->host) - 1) != 0)
        h->host[0] = '\0';
    read_line("/proc/sys/kernel/random/boot_id", h->boot, sizeof(h->boot));
    read_line("/etc/machine-id", h->machine, sizeof(h->machine));
    if (readlink("/proc/self/ns/pid", h->space, sizeof(h->space) - 1) < 0)
        h->space[0] = '\0';
    start_of(h->process, &h->start, &ended);
    time_t now = time(NULL);
    struct tm utc;
    if (gmtime_r(&now, &utc) != NULL)
        strftime(h->time, sizeof(h->time), "%Y-%m-%dT%H:%M:%SZ", &utc);
}

cm_holder_state cm_holder_judge(const cm_holder *h)
{
    cm_holder self;
    uint64_t start;
    bool ended = false;
    describe_self(&self);
    if (h->host[0] == '\0' || strcmp(h->host, self.host) != 0)
        return CM_HOLDER_ELSEWHERE;
    if (strcmp(h->boot, self.boot) != 0) /* a host that was started again, or another of its name */
        return h->machine[0] != '\0' && strcmp(h->machine, self.machine) == 0 ? CM_HOLDER_ENDED
                                                                              : CM_HOLDER_ELSEWHERE;
    if (strcmp(h->space, self.space) != 0)
        return CM_HOLDER_ELSEWHERE; /* in a container, where processes have other numbers */
    if (kill((pid_t)h->process, 0) != 0 && errno == ESRCH)
        return CM_HOLDER_ENDED;
    if (!start_of(h->process, &start, &ended))
        return CM_HELD;
    return ended || start != h->start ? CM_HOLDER_ENDED : CM_HELD;
}

/* ---- its text ---- */

int cm_holder_write(bool of_part, bool beats, cm_buf *text, cm_error *err)
{
    cm_holder h;
    describe_self(&h);
    cm_json *j = cm_json_object();
    const struct {
        const char *name, *value;
    } member[] = {{"host", h.host},
                  {"boot", h.boot},
                  {"machine", h.machine},
                  {"process space", h.space},
                  {"time", h.time}};
    int rc = cm_json_set(j, "chunkmill lock", cm_json_i64(1), err);
    for (size_t i = 0; rc == CM_OK && i < sizeof(member) / sizeof(member[0]); i++)
        rc = cm_json_set(j, member[i].name, cm_json_string(member[i].value), err);
    if (rc == CM_OK)
        rc = cm_json_set(j, "process", cm_json_i64(h.process), err);
    if (rc == CM_OK)
        rc = cm_json_set(j, "process start", cm_json_u64(h.start), err);
    if (rc == CM_OK)
        rc = cm_json_set(j, "beats", cm_json_bool(beats), err);
    if (rc == CM_OK && of_part)
        rc = cm_json_set(j, "part", cm_json_bool(true), err);
    if (rc == CM_OK)
        rc = cm_json_write(j, false, text, err);
    if (rc == CM_OK)
        rc = cm_buf_append(text, "\n", 1, err);
    cm_json_free(j);
    return rc;
}

static void copy_text(const cm_json *j, const char *name, char *out, size_t size)
{
    const char *text = cm_json_text(cm_json_member(j, name), NULL);
    snprintf(out, size, "%s", text == NULL ? "" : text);
}

cm_holder_state cm_holder_read(const char *text, size_t n, cm_holder *h)
{
    cm_json *j = NULL;
    *h = (cm_holder){0};
    bool whole = n > 0 && text[n - 1] == '\n' && cm_json_parse(text, n, &j, NULL) == CM_OK &&
                 cm_json_has(j, "chunkmill lock") &&
                 cm_json_get_i64(cm_json_member(j, "process"), &h->process) && h->process > 0 &&
                 cm_json_get_u64(cm_json_member(j, "process start"), &h->start);
    copy_text(j, "host", h->host, sizeof(h->host));
    copy_text(j, "boot", h->boot, sizeof(h->boot));
    copy_text(j, "machine", h->machine, sizeof(h->machine));
    copy_text(j, "process space", h->space, sizeof(h->space));
    copy_text(j, "time", h->time, sizeof(h->time));
    (void)cm_json_get_bool(cm_json_member(j, "part"), &h->of_part);
    (void)cm_json_get_bool(cm_json_member(j, "beats"), &h->beats);
    cm_json_free(j);
    whole = whole && h->host[0] != '\0';
    return whole ? CM_HELD : CM_HOLDER_UNCLEAR;
}

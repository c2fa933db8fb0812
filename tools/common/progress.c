#include "progress.h"

#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/number.h"
#include "base/ticker.h"
#include "print.h"
#include "say.h"

#define SECOND 1000000000ull

enum {
    POLL_MS = 100,
    NSAMPLES = 64, /* 6.4 s at one each poll: long enough to be steady, short enough to follow */
    LINE_S = 10,   /* between plain lines */
    STALL_S = 60,
    BAR_MIN = 8, /* columns; a narrower bar says nothing */
    BAR_MAX = 30,
    TEXT_COLUMNS = 70 /* that the text beside the bar may need */
};

typedef struct sample {
    uint64_t at_ns;
    uint64_t done_nbytes;
} sample;

struct cm_progress {
    const char *tool;
    cm_monitor *monitor;
    bool bar;    /* redraw one line of a terminal */
    bool always; /* plain lines also when a phase begins, and at the end */
    cm_ticker ticker;

    /* Of the ticker alone, while it runs. */
    sample window[NSAMPLES]; /* a ring of the present phase */
    size_t nsamples;         /* ever taken in this phase */
    cm_phase phase;
    uint64_t line_ns;    /* when the last plain line was printed */
    cm_phase line_phase; /* what it was about */
    uint64_t stalls;     /* minutes of the present stall that were reported */
    bool line_printed;   /* any at all */
    bool drawn;          /* a bar stands on the terminal */
};

/* Of all parts where this process tells of them, while any moves data. */
static uint64_t done_of(const cm_snapshot *s)
{
    return s->nparts > 0 ? s->all_done_nbytes : s->done_nbytes;
}

static uint64_t total_of(const cm_snapshot *s)
{
    return s->nparts > 0 ? s->all_total_nbytes : s->total_nbytes;
}

static void take_sample(cm_progress *p, const cm_snapshot *s, uint64_t now)
{
    if (s->phase != p->phase) {
        p->phase = s->phase;
        p->nsamples = 0;
    }
    p->window[p->nsamples++ % NSAMPLES] = (sample){now, done_of(s)};
}

/* Bytes a second over the window; 0 while it is too short to tell. */
static double recent_rate(const cm_progress *p)
{
    if (p->nsamples < 2)
        return 0;
    size_t n = p->nsamples < NSAMPLES ? p->nsamples : NSAMPLES;
    const sample *last = &p->window[(p->nsamples - 1) % NSAMPLES];
    const sample *first = &p->window[(p->nsamples - n) % NSAMPLES];
    double seconds = (double)(last->at_ns - first->at_ns) / 1e9;
    if (seconds < 0.25 || last->done_nbytes <= first->done_nbytes)
        return 0;
    return (double)(last->done_nbytes - first->done_nbytes) / seconds;
}

static void format_left(double seconds, char *buf, size_t size)
{
    unsigned long long s = (unsigned long long)(seconds + 1);
    if (seconds > 1e9)
        snprintf(buf, size, "years left");
    else if (s < 60)
        snprintf(buf, size, "%llu s left", s);
    else if (s < 3600)
        snprintf(buf, size, "%llu min %02llu s left", s / 60, s % 60);
    else
        snprintf(buf, size, "%llu h %02llu min left", s / 3600, s % 3600 / 60);
}

static bool counts(const cm_snapshot *s)
{
    return total_of(s) > 0 && (s->phase == CM_PHASE_WORKING || s->phase == CM_PHASE_MEASURING ||
                               s->phase == CM_PHASE_VERIFYING || s->phase == CM_PHASE_SURVEYING);
}

/* Bytes, or of a survey files. */
static void format_amount(const cm_snapshot *s, uint64_t n, char *buf, size_t size)
{
    if (s->phase == CM_PHASE_SURVEYING)
        snprintf(buf, size, "%llu file%s", (unsigned long long)n, cm_of_count(n, "", "s"));
    else
        cm_format_size(n, buf, size);
}

static void format_speed(const cm_snapshot *s, double rate, char *buf, size_t size)
{
    if (s->phase == CM_PHASE_SURVEYING)
        snprintf(buf, size, "%.0f files/s", rate);
    else
        cm_format_rate(rate, buf, size);
}

static uint64_t stalled_s(const cm_snapshot *s)
{
    uint64_t seconds = s->since_change_ns / SECOND;
    return s->phase != CM_PHASE_DONE && seconds >= STALL_S ? seconds : 0;
}

/* "converting: 41.2 MiB of 1.00 GiB (4 %), 312 MB/s, 3 s left". */
static void format_state(const cm_progress *p, const cm_snapshot *s, char *buf, size_t size)
{
    char done[32], total[32], percent[16], rate[32], left[48];
    if (!counts(s)) {
        bool what = s->what[0] && s->phase != CM_PHASE_DONE;
        snprintf(buf, size, "%s%s%.200s", cm_phase_name(s->phase), what ? ": " : "",
                 what ? s->what : "");
        return;
    }
    char parts[64] = "";
    if (s->nparts > 0)
        snprintf(parts, sizeof(parts), ", %llu of %llu parts done",
                 (unsigned long long)s->parts_done, (unsigned long long)s->nparts);
    double r = recent_rate(p);
    format_amount(s, done_of(s), done, sizeof(done));
    format_amount(s, total_of(s), total, sizeof(total));
    format_speed(s, r, rate, sizeof(rate));
    int n = snprintf(
        buf, size, "%s: %s of %s (%s)%s", cm_phase_name(s->phase), done, total,
        cm_format_percent((double)done_of(s), (double)total_of(s), percent, sizeof(percent)),
        parts);
    if (r <= 0 || n < 0 || (size_t)n >= size)
        return;
    uint64_t rest = total_of(s) > done_of(s) ? total_of(s) - done_of(s) : 0;
    format_left((double)rest / r, left, sizeof(left));
    /* A first second says nothing about the rest: caches are cold, workers start. */
    bool tell = s->phase_ns > SECOND && rest > 0;
    snprintf(buf + n, size - (size_t)n, ", %s%s%s", rate, tell ? ", " : "", tell ? left : "");
}

static void print_line(cm_progress *p, const cm_snapshot *s, uint64_t now)
{
    char text[512];
    format_state(p, s, text, sizeof(text));
    cm_say(p->tool, "%s", text);
    p->line_ns = now;
    p->line_phase = s->phase;
    p->line_printed = true;
}

/* ---- the bar -------------------------------------------------------------------------------- */

static void erase_bar(cm_progress *p)
{
    if (p->drawn)
        fputs("\r\033[K", stderr);
    p->drawn = false;
}

static void draw_bar(cm_progress *p, const cm_snapshot *s)
{
    char text[512];
    struct winsize w = {0};
    int columns = ioctl(STDERR_FILENO, TIOCGWINSZ, &w) == 0 && w.ws_col > 0 ? w.ws_col : 80;
    if (stalled_s(s))
        snprintf(text, sizeof(text), "no progress for %llu s: %.200s",
                 (unsigned long long)stalled_s(s), s->what);
    else
        format_state(p, s, text, sizeof(text));
    for (char *c = text; *c; c++) /* a line that is redrawn shows no escapes */
        if ((unsigned char)*c < 0x20 || *c == 0x7f)
            *c = '?';
    /* The bar comes first and keeps its width, so that it does not jump as the text changes. */
    int bar = columns - TEXT_COLUMNS < BAR_MAX ? columns - TEXT_COLUMNS : BAR_MAX;
    if (!counts(s) || stalled_s(s) || bar < BAR_MIN)
        bar = 0;
    flockfile(stderr);
    putc('\r', stderr);
    if (bar) {
        double share = (double)done_of(s) / (double)total_of(s);
        int full = (int)((double)bar * (share > 1 ? 1 : share));
        putc('[', stderr);
        for (int i = 0; i < bar; i++)
            putc(i < full ? '=' : i == full ? '>' : ' ', stderr);
        fputs("] ", stderr);
    }
    /* The last column stays free: writing there makes some terminals wrap. */
    cm_print(stderr, "%.*s", columns - 1 - (bar ? bar + 3 : 0), text);
    fputs("\033[K", stderr);
    fflush(stderr);
    funlockfile(stderr);
    p->drawn = true;
}

static void report(cm_progress *p, const cm_snapshot *s, uint64_t now)
{
    if (p->bar) {
        draw_bar(p, s);
        return;
    }
    uint64_t stall = stalled_s(s) / STALL_S;
    if (stall > p->stalls)
        cm_say(p->tool, "no progress for %llu s; waiting for: %s", (unsigned long long)stalled_s(s),
               s->what[0] ? s->what : cm_phase_name(s->phase));
    p->stalls = stall;
    if (s->phase == CM_PHASE_DONE) /* also of a run that fails: cm_progress_stop knows */
        return;
    bool begins = p->always && (!p->line_printed || s->phase != p->line_phase);
    if (begins || now - p->line_ns >= LINE_S * SECOND)
        print_line(p, s, now);
}

static uint64_t look(void *context)
{
    cm_progress *p = context;
    cm_snapshot s;
    cm_monitor_snapshot(p->monitor, &s);
    uint64_t now = cm_now_ns();
    take_sample(p, &s, now);
    report(p, &s, now);
    return POLL_MS * UINT64_C(1000000);
}

cm_progress *cm_progress_start(const char *tool, cm_monitor *monitor, cm_progress_mode mode)
{
    if (mode == CM_PROGRESS_NEVER)
        return NULL;
    cm_progress *p = calloc(1, sizeof(*p));
    if (!p)
        return NULL;
    const char *term = getenv("TERM");
    p->tool = tool;
    p->monitor = monitor;
    p->bar = isatty(STDERR_FILENO) && term && strcmp(term, "dumb") != 0;
    p->always = mode == CM_PROGRESS_ALWAYS;
    p->line_ns = cm_now_ns();
    if (p->always)
        look(p);
    if (cm_ticker_start(&p->ticker, POLL_MS * UINT64_C(1000000), look, p, NULL) != CM_OK) {
        free(p);
        return NULL;
    }
    return p;
}

void cm_progress_stop(cm_progress *progress, bool well)
{
    if (!progress)
        return;
    cm_ticker_stop(&progress->ticker);
    erase_bar(progress);
    if (well && progress->always && !progress->bar) {
        cm_snapshot s;
        cm_monitor_snapshot(progress->monitor, &s);
        print_line(progress, &s, cm_now_ns());
    }
    fflush(stderr);
    free(progress);
}

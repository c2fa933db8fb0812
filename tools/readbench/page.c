#include "page.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include <chunkmill/version.h>

#include "base/number.h"
#include "items.h"
#include "remedy.h"

/*
 * From the doctype to the opening of main; SENTENCE is its heading.  S: the only session that it is
 * about, or NULL.
 */
static void begin(const readbench_run *run, const cm_readbench_session *s, const char *title,
                  const char *how, const char *emulation, const char *sentence, FILE *to)
{
    char buf[READBENCH_WHY];

    fputs("<!doctype html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n"
          "<meta name=\"viewport\" content=\"width=device-width,initial-scale=1\">\n"
          "<link rel=\"icon\" href=\"data:,\">\n<title>readbench: ",
          to);
    page_text(title, to);
    fprintf(to, "%s</title>\n<style>\n%s", emulation ? " (EMULATED)" : "", PAGE_STYLE);
    page_colours(to);
    fputs("</style>\n</head>\n<body>\n<header>\n<p class=\"kicker\"><b>readbench</b> · ", to);
    page_text(title, to);
    if (run->started) {
        fputs(" · ", to);
        page_text(run->started, to);
    }
    /* A setting or a store's name that is typed in small letters stays so. */
    bool name = strcspn(sentence, "=./") < strcspn(sentence, " ");
    fputs("</p>\n", to);
    if (s == NULL)
        page_line("lead", readbench_lead(run->report, buf, sizeof(buf)), to);
    fprintf(to, "<h1 class=\"%s%s\">", strlen(sentence) > 120 ? "long" : "short",
            name ? " asis" : "");
    page_prose(sentence, to);
    fputs("</h1>\n", to);
    if (s != NULL)
        page_line("why", readbench_why(s, buf, sizeof(buf)), to);
    fputs("<p class=\"how\">", to);
    page_text(how, to);
    fputs("</p>\n", to);
    if (emulation) {
        fputs("<p class=\"emulated\"><b>EMULATED</b>: a local store was delayed as another "
              "storage would. ",
              to);
        page_text(emulation, to);
        fputs("</p>\n", to);
    }
    if (run->failure && run->failure->status != CM_OK) {
        fputs("<p class=\"emulated\"><b>Not complete</b>: ", to);
        page_text(run->failure->text, to);
        fputs("</p>\n", to);
    }
    fputs("</header>\n<main>\n", to);
}

static void end(const readbench_run *run, FILE *to)
{
    fprintf(to, "</main>\n<footer>\n<p>Chunkmill %s", cm_version());
    if (run->command) {
        fputs(" · <code>", to);
        page_text(run->command, to);
        fputs("</code>", to);
    }
    fprintf(to, "</p>\n</footer>\n<script>%s</script>\n</body>\n</html>\n", PAGE_SCRIPT);
}

/* ---- a session ------------------------------------------------------------------------------ */

static const struct tile {
    const char *item, *label;
} TILES[] = {
    {"samples/s", "samples a second"},
    {"accelerator utilisation", "accelerator utilisation"},
    {"accelerators fed at 90 %", "accelerators fed at 90 %"},
    {"p95", "wait for a batch, p95"},
    {"logical (before any cast)", "throughput, logical"},
    {"bytes decoded over bytes used", "bytes decoded for each used"},
    {"time to first batch", "time to first batch"},
    {"peak memory", "peak memory"},
};

static const char *tile_class(const char *label, const cm_readbench_session *s)
{
    if (strcmp(label, "accelerators fed at 90 %") == 0)
        return s->accelerators.fed < s->accelerators.n ? " bad" : " good";
    if (strcmp(label, "accelerator utilisation") == 0)
        return s->utilisation < 0.9 ? " bad" : " good";
    return "";
}

static void tile_note(const char *label, const cm_readbench_session *s, FILE *to)
{
    char a[32], b[32];
    if (strcmp(label, "accelerators fed at 90 %") == 0)
        fprintf(to, "<small>needs %s, got %s</small>",
                cm_format_rate(s->accelerators.needed, a, sizeof(a)),
                cm_format_rate(s->accelerators.got, b, sizeof(b)));
    else if (strcmp(label, "throughput, logical") == 0 && s->rates.capacity > 0)
        fprintf(to, "<small>the loader could give %s</small>",
                cm_format_rate(s->rates.capacity, a, sizeof(a)));
    else if (strcmp(label, "wait for a batch, p95") == 0)
        fprintf(to, "<small>longest %s</small>", cm_format_time(s->wait.max, a, sizeof(a)));
    else if (strcmp(label, "samples a second") == 0)
        fprintf(to, "<small>%s a batch of %llu</small>",
                cm_format_size(s->batch_nbytes, a, sizeof(a)), (unsigned long long)s->batch);
    else if (strcmp(label, "time to first batch") == 0)
        fprintf(to, "<small>after %s of set-up</small>",
                cm_format_time(s->setup_seconds, a, sizeof(a)));
}

static void page_tiles(const cm_readbench_session *s, FILE *to)
{
    char buf[READBENCH_ITEM];

    fputs("<dl class=\"tiles\">\n", to);
    for (size_t k = 0; k < sizeof(TILES) / sizeof(TILES[0]); k++)
        for (const readbench_item *item = READBENCH_ITEMS; item->label; item++) {
            if (strcmp(item->label, TILES[k].item) != 0 || !item->value(s, buf, sizeof(buf)))
                continue;
            fprintf(to, "<div class=\"tile%s\"><dt>%s</dt><dd>", tile_class(TILES[k].label, s),
                    TILES[k].label);
            page_text(buf, to);
            tile_note(TILES[k].label, s, to);
            fputs("</dd></div>\n", to);
        }
    fputs("</dl>\n", to);
}

/* PAGE_SCRIPT puts a button beside it.  Takes COMMAND, which may be NULL. */
static void page_command(char *command, FILE *to)
{
    if (command != NULL) {
        fputs("<pre class=\"try\">", to);
        page_text(command, to);
        fputs("</pre>", to);
    }
    free(command);
}

static void page_findings(const readbench_run *run, const cm_readbench_session *s, FILE *to)
{
    page_command(readbench_proposed_command(run, s), to);
    page_command(readbench_remedy(run, s, cm_readbench_cause_name(s->cause)), to);
    if (s->nfindings == 0 && s->first_failure == NULL)
        return;
    fputs("<section><h2>Findings</h2>\n<ul class=\"findings\">\n", to);
    if (s->first_failure) {
        fputs("<li><code>failed</code>", to);
        page_text(s->first_failure, to);
        fputs("</li>\n", to);
    }
    for (size_t i = 0; i < s->nfindings; i++) {
        fputs("<li><code>", to);
        page_text(s->finding[i].rule ? s->finding[i].rule : "", to);
        fputs("</code>", to);
        page_prose(s->finding[i].sentence ? s->finding[i].sentence : "", to);
        page_command(readbench_remedy(run, s, s->finding[i].rule ? s->finding[i].rule : ""), to);
        fputs("</li>\n", to);
    }
    fputs("</ul></section>\n", to);
}

static void page_warnings(const cm_readbench_report *r, FILE *to)
{
    if (r->nwarnings == 0)
        return;
    fputs("<section><h2>Warnings</h2>\n<ul class=\"findings\">\n", to);
    for (size_t i = 0; i < r->nwarnings; i++) {
        fputs("<li>", to);
        page_prose(r->warning[i], to);
        fputs("</li>\n", to);
    }
    fputs("</ul></section>\n", to);
}

static int page_plots(const cm_readbench_session *s, FILE *to, cm_error *err)
{
    int rc = CM_OK;
    for (const readbench_plot *p = READBENCH_PLOTS; p->name && rc == CM_OK; p++) {
        fprintf(to, "<section class=\"plot %s\"><h2>%s</h2>\n<figure><figcaption>%s</figcaption>\n",
                p->name, p->title, p->caption);
        rc = plot_inline(p, s, to, err);
        fputs("</figure></section>\n", to);
    }
    return rc;
}

static void page_files(const cm_readbench_session *s, bool alone, FILE *to)
{
    static const char *const FILES[] = {"summary.json", "summary.yaml", "config.yaml",
                                        "batches.csv",  "events.log",   "events_workers.log",
                                        "trace.json"};
    fputs("<section class=\"screen\"><h2>Files</h2>\n<ul class=\"files\">\n", to);
    if (!alone)
        fputs("<li><a href=\"../report.html\">all of this run</a></li>\n", to);
    for (size_t i = 0; i < sizeof(FILES) / sizeof(FILES[0]); i++)
        fprintf(to, "<li><a href=\"%s\">%s</a></li>\n", FILES[i], FILES[i]);
    if (s->nlogged > 0)
        fputs("<li><a href=\"samples.csv\">samples.csv</a></li>\n", to);
    for (const readbench_plot *p = READBENCH_PLOTS; p->name; p++)
        fprintf(to, "<li><a href=\"%s.svg\">%s.svg</a></li>\n", p->name, p->name);
    fputs("</ul></section>\n", to);
}

int readbench_session_page(const void *context, FILE *to, cm_error *err)
{
    const readbench_page *page = context;
    const cm_readbench_report *r = page->run->report;
    const cm_readbench_session *s = &r->session[page->session];
    const char *emulation = s->emulated ? (s->emulation ? s->emulation : "") : NULL;
    readbench_breakdown b;
    const char *name[] = {"mean"};
    char how[512];

    begin(page->run, s, s->label, readbench_how(s, how, sizeof(how)), emulation,
          s->sentence ? s->sentence : "Nothing was measured to the end.", to);
    page_tiles(s, to);
    page_findings(page->run, s, to);
    page_warnings(r, to);
    fputs("<div class=\"plots\">\n", to);
    int rc = page_plots(s, to, err);
    fputs("</div>\n", to);
    if (rc != CM_OK)
        return rc;
    readbench_break_down(s, page->run->host_share, &b);
    fputs("<section><h2>A step's time</h2>\n", to);
    page_breakdown(name, &b, 1, to);
    rc = page_batches(s, to, err);
    fputs("</section>\n<section class=\"numbers\"><h2>All numbers</h2>\n", to);
    page_items(r, page->session, 1, to);
    fputs("</section>\n", to);
    page_predicted(s, to);
    page_sample(s, to);
    page_settings(s, to);
    page_files(s, page->alone, to);
    end(page->run, to);
    return rc;
}

/* ---- several -------------------------------------------------------------------------------- */

char *page_folder(const char *label, char *buf, size_t size)
{
    size_t n = 0;
    for (; *label && n + 1 < size; label++) {
        unsigned char c = (unsigned char)*label;
        buf[n++] = c < 0x20 || c == 0x7f || strchr("/\\?#%\"'<>&*:|", c) ? '_' : (char)c;
    }
    buf[n] = '\0';
    if (n == 0 || buf[0] == '.')
        buf[0] = '_';
    return buf;
}

static void page_sessions(const cm_readbench_report *r, FILE *to)
{
    char folder[256], why[READBENCH_WHY];

    fputs("<section><h2>Each of them</h2>\n<ul class=\"findings\">\n", to);
    for (size_t i = 0; i < r->nsessions; i++) {
        const cm_readbench_session *s = &r->session[i];
        fputs("<li><a href=\"", to);
        page_text(page_folder(s->label, folder, sizeof(folder)), to);
        fputs("/report.html\">", to);
        page_text(s->label, to);
        fprintf(to, "</a>%s%s%s<br>", s->emulated ? " EMULATED" : "", i == r->best ? ", best" : "",
                i == r->baseline ? ", baseline" : "");
        page_prose(s->sentence ? s->sentence : "", to);
        page_line("why", readbench_why(s, why, sizeof(why)), to);
        fputs("</li>\n", to);
    }
    fputs("</ul></section>\n", to);
}

static void page_tuned(const readbench_run *run, FILE *to)
{
    const cm_readbench_report *r = run->report;
    readbench_breakdown b[2];
    char first[200], second[200];

    if (r->data_loader) {
        fputs("<section><h2>To paste</h2>\n<pre class=\"try\">", to);
        page_text(r->data_loader, to);
        fputs("</pre></section>\n", to);
    }
    if (r->baseline >= r->nsessions || r->best >= r->nsessions)
        return;
    snprintf(first, sizeof(first), "baseline: %.150s", r->session[r->baseline].label);
    snprintf(second, sizeof(second), "tuned: %.150s", r->session[r->best].label);
    const char *name[] = {first, second};
    readbench_break_down(&r->session[r->baseline], run->host_share, &b[0]);
    readbench_break_down(&r->session[r->best], run->host_share, &b[1]);
    fputs("<section><h2>Baseline against tuned</h2>\n<p class=\"note\">A step's time, mean, "
          "without each rank's first.</p>\n",
          to);
    page_breakdown(name, b, 2, to);
    fputs("</section>\n", to);
}

int readbench_index_page(const void *context, FILE *to, cm_error *err)
{
    (void)err;
    const readbench_page *page = context;
    const cm_readbench_report *r = page->run->report;
    const cm_readbench_session *s = readbench_main_session(r);
    char title[64], how[512];
    const char *emulation = NULL;

    for (size_t i = 0; i < r->nsessions && !emulation; i++)
        if (r->session[i].emulated)
            emulation = r->session[i].emulation ? r->session[i].emulation : "";
    snprintf(title, sizeof(title), "%zu measurements", r->nsessions);
    if (r->best < r->nsessions)
        snprintf(how, sizeof(how), "best of %zu: %.200s", r->nsessions, s->label);
    else
        snprintf(how, sizeof(how), "measured in turn, side by side");
    /* One session's sentence would not be about all of them. */
    const char *sentence = r->reason ? r->reason
                           : r->nsessions == 1
                               ? s->sentence
                               : "They cannot be compared: not every one was measured "
                                 "to the end without a failure.";
    begin(page->run, NULL, title, how, emulation, sentence ? sentence : "Nothing was measured.",
          to);
    for (const readbench_comparison *p = READBENCH_COMPARISONS; p->name; p++) {
        fprintf(to, "<section><h2>%s</h2>\n<figure><figcaption>%s</figcaption>\n", p->title,
                p->caption);
        plot_comparison_inline(p, r, to);
        fputs("</figure></section>\n", to);
    }
    page_tuned(page->run, to);
    page_sessions(r, to);
    page_warnings(r, to);
    fputs("<section><h2>All numbers</h2>\n", to);
    page_items(r, 0, r->nsessions, to);
    fputs("</section>\n<section class=\"screen\"><h2>Files</h2>\n<ul class=\"files\">\n"
          "<li><a href=\"summary.json\">summary.json</a></li>\n"
          "<li><a href=\"summary.yaml\">summary.yaml</a></li>\n"
          "<li><a href=\"config.yaml\">config.yaml</a></li>\n"
          "<li><a href=\"comparison.svg\">comparison.svg</a></li>\n"
          "<li><a href=\"comparison_time.svg\">comparison_time.svg</a></li>\n</ul></section>\n",
          to);
    end(page->run, to);
    return CM_OK;
}

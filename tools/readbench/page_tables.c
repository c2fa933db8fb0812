/* The tables of the pages: every plot's content is in one of them for those who cannot see it. */
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "../common/print.h"
#include "base/number.h"
#include "items.h"
#include "page.h"

enum {
    MAX_ROWS = 60 /* of the table of batches */
};

static void cell(const char *text, FILE *to)
{
    fputs("<td>", to);
    page_text(text, to);
    fputs("</td>", to);
}

static void head(const char *text, FILE *to)
{
    fputs("<th scope=\"col\">", to);
    page_text(text, to);
    fputs("</th>", to);
}

static void row(const char *text, FILE *to)
{
    fputs("<tr><th scope=\"row\">", to);
    page_text(text, to);
    fputs("</th>", to);
}

/* "0", "0 %", "0.0 of 2". */
static bool is_zero(const char *text)
{
    char *end;
    return strtod(text, &end) == 0 && end != text;
}

/* Whether ITEM tells something of one of the sessions. */
static bool tells(const readbench_item *item, const cm_readbench_report *r)
{
    char buf[READBENCH_ITEM];
    for (size_t i = 0; i < r->nsessions; i++)
        if (item->value(&r->session[i], buf, sizeof(buf)) && (item->zero || !is_zero(buf)))
            return true;
    return false;
}

static void item_head(const readbench_item *item, FILE *to)
{
    fputs("<tr><th scope=\"row\">", to);
    page_text(item->label, to);
    if (item->note != NULL)
        fprintf(to, "<small>%s</small>", item->note);
    fputs("</th>", to);
}

void page_items(const cm_readbench_report *r, size_t first, size_t n, FILE *to)
{
    cm_readbench_report part = {.session = r->session + first, .nsessions = n};
    char buf[READBENCH_ITEM];
    const char *group = NULL;
    bool open = false;

    fprintf(to, "<div class=\"scroll\"><table class=\"%s\" style=\"--n:%zu\">\n",
            n > 3   ? "data"
            : n > 1 ? "items some"
                    : "items",
            n);
    if (n > 1) {
        fputs("<thead><tr>", to);
        head("", to);
        for (size_t i = 0; i < n; i++)
            head(part.session[i].label, to);
        fputs("</tr></thead>\n", to);
    }
    for (const readbench_item *item = READBENCH_ITEMS; item->label; item++) {
        group = item->group ? item->group : group;
        if (!tells(item, &part))
            continue;
        if (group) {
            fprintf(to, "%s<tbody class=\"group\"><tr><th colspan=\"%zu\">%s</th></tr>\n",
                    open ? "</tbody>" : "", n + 1, group);
            open = true;
            group = NULL;
        }
        item_head(item, to);
        for (size_t i = 0; i < n; i++)
            cell(item->value(&part.session[i], buf, sizeof(buf)) ? buf : "–", to);
        fputs("</tr>\n", to);
    }
    fprintf(to, "%s</table></div>\n", open ? "</tbody>" : "");
}

static void counted(const char *name, const char *predicted, uint64_t count, bool bytes, FILE *to)
{
    char buf[48];
    row(name, to);
    cell(predicted, to);
    if (count == 0) /* who reads does not count */
        cell("–", to);
    else
        cell(bytes ? cm_format_size(count, buf, sizeof(buf))
                   : cm_format_count(count, buf, sizeof(buf)),
             to);
    fputs("</tr>\n", to);
}

static void timed(const char *name, double predicted, double measured, FILE *to)
{
    char buf[32];
    row(name, to);
    cell(cm_format_time(predicted, buf, sizeof(buf)), to);
    cell(cm_format_time(measured, buf, sizeof(buf)), to);
    fputs("</tr>\n", to);
}

void page_predicted(const cm_readbench_session *s, FILE *to)
{
    const cm_readbench_predicted *p = &s->predicted;
    char buf[64];

    const bool foreseen = s->measured.rounds > 0 && p->batch_seconds > 0;

    if (p->planned_chunks == 0 && !p->known && !foreseen)
        return;
    fputs("<section><h2>Predicted and measured</h2>\n<p class=\"note\">What the samples that were "
          "drawn must read, by arithmetic, beside what was counted while they were read. A cache "
          "and the planned loader decode less than that. A batch alone is read by one thread, "
          "without cache and step.</p>\n<div "
          "class=\"scroll\"><table><thead><tr>",
          to);
    head("", to);
    head("predicted", to);
    head("measured", to);
    fputs("</tr></thead><tbody>\n", to);
    if (foreseen) {
        timed("a batch alone", p->batch_seconds, s->measured.batch_seconds, to);
        timed("CPU time of it", p->batch_cpu_seconds, s->measured.batch_cpu_seconds, to);
    }
    counted("chunks", cm_format_count(p->planned_chunks, buf, sizeof(buf)), s->counts.chunks, false,
            to);
    counted("decoded bytes", cm_format_size(p->planned_decoded_nbytes, buf, sizeof(buf)),
            s->counts.decoded_nbytes, true, to);
    counted("chunks decoded", "–", s->counts.decoded, false, to);
    counted("requests", "–", s->counts.requests, false, to);
    fputs("</tbody></table></div>\n", to);
    if (p->known)
        fprintf(to,
                "<p class=\"note\">Over all offsets a sample meets %.3g %s with %.3g %s, "
                "and decodes %s.</p>\n",
                p->chunks, cm_of_mean(p->chunks, "chunk", "chunks"), p->requests,
                cm_of_mean(p->requests, "request", "requests"),
                cm_format_size((uint64_t)p->decoded_nbytes, buf, sizeof(buf)));
    fputs("</section>\n", to);
}

void page_sample(const cm_readbench_session *s, FILE *to)
{
    static const char *const HEADS[] = {"variable", "dimensions", "shape",     "sample",
                                        "chunk",    "shard",      "delivered", "bytes a sample"};
    char buf[256];

    if (s->nparts == 0)
        return;
    fputs("<section><h2>What a sample is</h2>\n<div class=\"scroll\"><table "
          "class=\"data\"><thead><tr>",
          to);
    for (size_t k = 0; k < sizeof(HEADS) / sizeof(HEADS[0]); k++)
        head(HEADS[k], to);
    fputs("</tr></thead><tbody>\n", to);
    for (size_t i = 0; i < s->nparts; i++) {
        const cm_readbench_part *p = &s->part[i];
        if (p->lag != 0)
            snprintf(buf, sizeof(buf), "%.200s, %" PRId64 " %s", p->variable,
                     p->lag < 0 ? -p->lag : p->lag, p->lag < 0 ? "earlier" : "later");
        else
            snprintf(buf, sizeof(buf), "%.200s%s", p->variable, p->is_static ? " (static)" : "");
        row(buf, to);
        size_t used = 0;
        buf[0] = '\0';
        for (unsigned d = 0; d < p->rank && used < sizeof(buf) - 40; d++)
            used += (size_t)snprintf(buf + used, 36, "%s%.30s", d ? ", " : "",
                                     p->dim_name[d] ? p->dim_name[d] : "–");
        cell(buf, to);
        cell(cm_format_shape(p->rank, p->shape, buf, sizeof(buf)), to);
        cell(cm_format_shape(p->rank, p->sample, buf, sizeof(buf)), to);
        cell(p->chunked ? cm_format_shape(p->rank, p->chunk, buf, sizeof(buf)) : "–", to);
        cell(p->sharded ? cm_format_shape(p->rank, p->shard, buf, sizeof(buf)) : "–", to);
        snprintf(buf, sizeof(buf), "%s", p->type ? p->type : "–");
        cell(buf, to);
        cell(cm_format_size(p->nbytes, buf, sizeof(buf)), to);
        fputs("</tr>\n", to);
    }
    fputs("</tbody></table></div></section>\n", to);
}

void page_settings(const cm_readbench_session *s, FILE *to)
{
    if (s->nsettings == 0)
        return;
    fputs("<section class=\"numbers\"><h2>Settings</h2>\n<div class=\"scroll\"><table "
          "class=\"left\"><tbody>\n",
          to);
    for (size_t i = 0; i < s->nsettings; i++) {
        row(s->setting[i].name, to);
        cell(s->setting[i].value ? s->setting[i].value : "–", to);
        fputs("</tr>\n", to);
    }
    fputs("</tbody></table></div></section>\n", to);
}

static void milliseconds(double seconds, FILE *to)
{
    char buf[32];
    snprintf(buf, sizeof(buf), seconds < 0.0995 ? "%.3f" : "%.1f", seconds * 1e3);
    cell(buf, to);
}

/* Means of batches FIRST to END as one row. */
static void batch_row(const cm_readbench_batch *const *sorted, size_t first, size_t end, FILE *to)
{
    double v[3 + CM_READBENCH_STAGES] = {0}, n = (double)(end - first), most = 0;
    char buf[64];

    for (size_t i = first; i < end; i++) {
        readbench_times t;
        readbench_batch_times(sorted[i], &t);
        v[0] += t.step / n;
        v[1] += t.loader / n;
        v[2] += t.memcpy / n;
        most = fmax(most, t.loader);
        for (size_t k = 0; k < CM_READBENCH_STAGES; k++)
            v[3 + k] += (double)sorted[i]->stage_ns[k] / 1e9 / n;
    }
    if (end - first > 1)
        snprintf(buf, sizeof(buf), "%zu to %zu", first + 1, end);
    else
        snprintf(buf, sizeof(buf), "%zu (epoch %u, rank %u, batch %u)", first + 1,
                 sorted[first]->epoch, sorted[first]->rank, sorted[first]->number);
    row(buf, to);
    milliseconds(v[0], to);
    milliseconds(v[1], to);
    milliseconds(most, to);
    for (size_t k = 2; k < 3 + CM_READBENCH_STAGES; k++)
        milliseconds(v[k], to);
    fputs("</tr>\n", to);
}

int page_batches(const cm_readbench_session *s, FILE *to, cm_error *err)
{
    static const char *const HEADS[] = {"batches",      "step",          "wait",
                                        "longest wait", "wait for copy", "storage",
                                        "decode",       "assemble",      "convert"};
    const cm_readbench_batch **sorted;
    int rc = plot_sorted(s, &sorted, err);
    if (rc != CM_OK)
        return rc;
    size_t each = s->nrecords / MAX_ROWS + (s->nrecords % MAX_ROWS != 0);
    fputs("<details><summary>The batches as a table, in milliseconds</summary>\n<div "
          "class=\"scroll\"><table class=\"data\"><caption>Means, in the order in which "
          "batches were wanted</caption><thead><tr>",
          to);
    for (size_t k = 0; k < sizeof(HEADS) / sizeof(HEADS[0]); k++)
        head(HEADS[k], to);
    fputs("</tr></thead><tbody>\n", to);
    for (size_t i = 0; i < s->nrecords; i += each)
        batch_row(sorted, i, i + each < s->nrecords ? i + each : s->nrecords, to);
    fputs("</tbody></table></div></details>\n", to);
    free(sorted);
    return CM_OK;
}

void page_breakdown(const char *const *name, const readbench_breakdown *b, size_t n, FILE *to)
{
    static const struct {
        const char *name;
        size_t offset;
    } ROWS[] = {{"step", offsetof(readbench_breakdown, step)},
                {"kernel", offsetof(readbench_breakdown, kernel)},
                {"memcpy", offsetof(readbench_breakdown, memcpy)},
                {"memset", offsetof(readbench_breakdown, memset)},
                {"runtime", offsetof(readbench_breakdown, runtime)},
                {"loader", offsetof(readbench_breakdown, loader)},
                {"CPU", offsetof(readbench_breakdown, cpu)},
                {"other", offsetof(readbench_breakdown, other)}};
    char time[32], percent[32];

    fputs("<div class=\"scroll\"><table class=\"tight\"><thead><tr>", to);
    head("", to);
    for (size_t i = 0; i < n; i++) {
        head(name[i], to);
        head("share", to);
    }
    fputs("</tr></thead><tbody>\n", to);
    for (size_t k = 0; k < sizeof(ROWS) / sizeof(ROWS[0]); k++) {
        bool any = false;
        for (size_t i = 0; i < n; i++)
            any = any || *(const double *)((const char *)&b[i] + ROWS[k].offset) > 0;
        if (!any)
            continue;
        row(ROWS[k].name, to);
        for (size_t i = 0; i < n; i++) {
            double v = *(const double *)((const char *)&b[i] + ROWS[k].offset);
            cell(cm_format_time(v, time, sizeof(time)), to);
            cell(cm_format_percent(v, b[i].step, percent, sizeof(percent)), to);
        }
        fputs("</tr>\n", to);
    }
    fputs("</tbody></table></div>\n", to);
}

#include "passport_page.h"

#include <math.h>
#include <string.h>
#include <strings.h>

#include <chunkmill/version.h>

#include "base/marks.h"
#include "base/number.h"
#include "page.h"

enum {
    MOST_DRAWN = 40 /* variables; the numbers of the others stand in a table */
};

/* Rules of this page, beside the style that all pages share. */
static const char STYLE[] =
    ".maps{display:grid;grid-template-columns:repeat(auto-fit,minmax(min(100%,14rem),1fr));"
    "gap:10px;margin:10px 0 4px}\n"
    ".map{display:block;width:100%;height:auto;image-rendering:pixelated;border:1px solid "
    "var(--line)}\n"
    ".scale{display:flex;align-items:center;gap:8px;color:var(--soft);font-size:.8125rem;"
    "font-variant-numeric:tabular-nums}\n"
    ".scale img{width:min(40%,16rem);height:10px}\n"
    ".grey{width:14px;height:10px;background:#b4b4b4;margin-left:10px}\n"
    ".findings a{color:inherit;text-decoration:none;font-weight:650}\n"
    ".findings li.fault{border-left-color:var(--bad)}\n"
    ".fault b.number{display:inline-block;min-width:1.6em;color:var(--bad)}\n"
    ".bad{color:var(--bad)}.good{color:var(--good)}\n"
    ".left th{text-align:left}.left td,.left th{padding-right:16px}\n"
    ".scroll td,.scroll th{white-space:nowrap;overflow-wrap:normal}.scroll td.prose{white-space:"
    "normal;min-width:12em}\n"
    "@media print{.maps{grid-template-columns:repeat(3,1fr)}.variable{break-inside:avoid}"
    ".scroll table{font-size:7pt}.map{max-height:32mm}.how,.note,figcaption{font-size:8.5pt}"
    "h3{font-size:10pt;margin:10px 0 2px}}\n";

static const char *attribute(const cm_passport *p, const char *name)
{
    for (size_t i = 0; i < p->nattributes; i++)
        if (strcasecmp(p->attribute[i].name, name) == 0 && p->attribute[i].text[0] != '\0')
            return p->attribute[i].text;
    return NULL;
}

static const char *title_of(const passport_facts *facts)
{
    const char *title = attribute(facts->passport, "title");
    if (title == NULL)
        title = attribute(facts->passport, "name");
    return title != NULL ? title : facts->target;
}

/* ---- the head ---- */

static void put_how(const cm_passport *p, const char *name, FILE *to)
{
    const char *text = attribute(p, name);
    page_line("how", text != NULL ? text : "", to);
}

static void begin(const passport_facts *facts, FILE *to)
{
    const char *title = title_of(facts);
    fputs(CM_MARK_PAGE "<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n"
                       "<meta name=\"viewport\" content=\"width=device-width,initial-scale=1\">\n"
                       "<link rel=\"icon\" href=\"data:,\">\n<title>",
          to);
    page_text(title, to);
    fprintf(to, " (passport)</title>\n<style>\n%s", PAGE_STYLE);
    page_colours(to);
    fprintf(to, "%s</style>\n</head>\n<body>\n<header>\n<p class=\"kicker\"><b>passport</b> · ",
            STYLE);
    page_text(facts->target, to);
    fprintf(to, "</p>\n<h1 class=\"%s asis\">", strlen(title) > 120 ? "long" : "short");
    page_text(title, to);
    fputs("</h1>\n", to);
    put_how(facts->passport, "source", to);
    put_how(facts->passport, "institution", to);
    fputs("</header>\n<main>\n", to);
}

static void put_period(const cm_passport *p, FILE *to)
{
    char note[64];
    if (p->first_time == NULL)
        return;
    snprintf(note, sizeof note, "to %.50s", p->last_time);
    page_tile("period", "", p->first_time, note, to);
}

static bool is_field(const cm_passport_variable *v)
{
    return !v->is_coordinate && (v->is_counted || v->unread != NULL);
}

static void put_counts(const cm_passport *p, FILE *to)
{
    char value[32], note[64];
    uint64_t count = 0, missing = 0;
    size_t n = 0;
    for (size_t i = 0; i < p->nvariables; i++)
        if (is_field(&p->variable[i])) {
            n++;
            count += p->variable[i].all.count;
            missing += p->variable[i].all.missing;
        }
    snprintf(value, sizeof value, "%zu", n);
    snprintf(note, sizeof note, "and %zu %s", p->nvariables - n,
             cm_of_count(p->nvariables - n, "coordinate or other", "coordinates or others"));
    page_tile("variables", "", value, note, to);
    snprintf(value, sizeof value, "%.3g %%",
             count + missing > 0 ? 100 * (double)missing / (double)(count + missing) : 0);
    snprintf(note, sizeof note, "of %llu %s", (unsigned long long)(count + missing),
             cm_of_count(count + missing, "value", "values"));
    page_tile("missing", "", value, note, to);
}

static void put_size(const passport_facts *facts, FILE *to)
{
    uint64_t decoded = 0, stored = 0;
    char value[32], note[64], size[32];
    if (facts->converted != NULL) {
        decoded = facts->converted->decoded_nbytes;
        /* A run that goes on knows only what it wrote itself. */
        stored = facts->options->resume ? 0 : facts->converted->stored_nbytes;
    }
    for (size_t i = 0; facts->converted == NULL && i < facts->passport->nvariables; i++) {
        decoded += facts->passport->variable[i].decoded_nbytes;
        stored += facts->passport->variable[i].stored_nbytes;
    }
    if (stored > 0)
        snprintf(note, sizeof note, "%s stored, %.2f times less",
                 cm_format_size(stored, size, sizeof size), (double)decoded / (double)stored);
    else
        note[0] = '\0';
    page_tile("size, decoded", "", cm_format_size(decoded, value, sizeof value), note, to);
}

static void put_findings_tile(const cm_passport *p, FILE *to)
{
    char value[32], note[64];
    size_t unread = 0;
    for (size_t i = 0; i < p->nvariables; i++)
        unread += p->variable[i].unread != NULL;
    snprintf(value, sizeof value, "%zu", p->nfindings);
    snprintf(note, sizeof note, "%zu %s could not be read", unread,
             cm_of_count(unread, "variable", "variables"));
    page_tile("findings",
              p->nfindings > 0 ? " bad"
              : unread > 0     ? ""
                               : " good",
              p->nfindings > 0 ? value : "none",
              unread > 0         ? note
              : p->nfindings > 0 ? "places to look at"
                                 : "no step is out of line",
              to);
}

static void put_tiles(const passport_facts *facts, FILE *to)
{
    const cm_passport *p = facts->passport;
    const cm_transform_report *r = facts->converted;
    fputs("<dl class=\"tiles\">\n", to);
    put_period(p, to);
    put_counts(p, to);
    put_size(facts, to);
    if (r != NULL && facts->options->verify != CM_VERIFY_NONE)
        page_tile("compared with its source",
                  r->ndifferences > 0 || r->unverified || r->not_compared ? " bad" : " good",
                  r->unverified         ? "not to the end"
                  : r->ndifferences > 0 ? "differs"
                  : r->not_compared     ? "not all of it"
                                        : "no difference",
                  facts->options->verify == CM_VERIFY_FULL ? "every element" : "a sample", to);
    passport_census_tile(facts, to);
    put_findings_tile(p, to);
    fputs("</dl>\n", to);
}

/* ---- findings ---- */

static void put_steps(const cm_passport_finding *f, FILE *to)
{
    if (!f->has_steps)
        return;
    const bool one = f->first == f->last;
    fprintf(to, ", step%s %llu", one ? "" : "s", (unsigned long long)f->first);
    if (!one)
        fprintf(to, " to %llu", (unsigned long long)f->last);
    if (f->from == NULL)
        return;
    fputs(" (", to);
    page_text(f->from, to);
    if (!one) {
        fputs(" to ", to);
        page_text(f->to, to);
    }
    putc(')', to);
}

static void put_findings(const cm_passport *p, FILE *to)
{
    if (p->nfindings == 0)
        return;
    fputs("<section><h2>Findings</h2>\n<p class=\"note\">Steps are counted from 0. A finding is "
          "something to look at, and may have its reason.</p>\n<ul class=\"findings\">\n",
          to);
    for (size_t i = 0; i < p->nfindings; i++) {
        const cm_passport_finding *f = &p->finding[i];
        fprintf(to, "<li class=\"fault\"><code>%s</code><b class=\"number\">%zu</b> <b>", f->kind,
                i + 1);
        page_text(f->variable[0] != '\0' ? f->variable : "/", to);
        fputs("</b>", to);
        put_steps(f, to);
        fputs(": ", to);
        page_text(f->sentence, to);
        fputs("</li>\n", to);
    }
    if (p->nleft_out > 0)
        fprintf(to, "<li>and %llu more of these kinds</li>\n", (unsigned long long)p->nleft_out);
    fputs("</ul></section>\n", to);
}

/* ---- a variable ---- */

static void put_name(const cm_passport_variable *v, FILE *to)
{
    fputs("<h3>", to);
    page_text(v->name[0] != '\0' ? v->name : "/", to);
    const char *what = v->long_name != NULL ? v->long_name : v->standard_name;
    if (what != NULL) {
        fputs(": ", to);
        page_text(what, to);
    }
    if (v->units != NULL) {
        fputs(" (", to);
        page_text(v->units, to);
        putc(')', to);
    }
    fputs("</h3>\n", to);
}

static void put_numbers(const cm_passport_variable *v, FILE *to)
{
    const cm_passport_step *a = &v->all;
    if (a->count + a->missing == 0)
        fputs("<p class=\"note\">It has no values.</p>\n", to);
    else if (a->count == 0)
        fprintf(to, "<p class=\"note\">%s%llu %s missing.</p>\n",
                cm_of_count(a->missing, "Its ", "All of its "), (unsigned long long)a->missing,
                cm_of_count(a->missing, "value is", "values are"));
    else
        fprintf(to,
                "<p class=\"note\">%llu %s, %llu missing; from %.6g to %.6g, mean %.6g, "
                "standard deviation %.6g.</p>\n",
                (unsigned long long)a->count, cm_of_count(a->count, "value", "values"),
                (unsigned long long)a->missing, a->min, a->max, a->mean, a->std);
}

static int put_variable(const cm_passport *p, const cm_passport_variable *v, bool drawn, FILE *to,
                        cm_error *err)
{
    fputs("<section class=\"variable\">", to);
    put_name(v, to);
    put_numbers(v, to);
    int rc = CM_OK;
    drawn = drawn && v->all.count > 0;
    if (drawn)
        rc = passport_maps(p, v, to, err);
    if (rc == CM_OK && drawn) {
        fputs("<figure><figcaption>each step: the mean (line) between the least and the largest "
              "value (band); below, the share of missing values",
              to);
        if (v->together > 1)
            fprintf(to, "; %llu neighbouring steps are one", (unsigned long long)v->together);
        fputs("</figcaption>\n", to);
        rc = passport_strip(p, v, to, err);
        fputs("</figure>\n", to);
    }
    fputs("</section>\n", to);
    return rc;
}

static void put_unread(const cm_passport_variable *v, FILE *to)
{
    fputs("<section class=\"variable\">", to);
    put_name(v, to);
    fputs("<p class=\"bad\">It could not be read to its end, so nothing of it was counted: ", to);
    page_text(v->unread, to);
    fputs("</p></section>\n", to);
}

static int put_variables(const cm_passport *p, FILE *to, cm_error *err)
{
    size_t n = 0;
    int rc = CM_OK;
    fputs("<section><h2>Values</h2></section>\n", to);
    for (size_t i = 0; i < p->nvariables && rc == CM_OK; i++)
        if (p->variable[i].unread != NULL)
            put_unread(&p->variable[i], to);
        else if (p->variable[i].is_counted && !p->variable[i].is_coordinate)
            rc = put_variable(p, &p->variable[i], n++ < MOST_DRAWN, to, err);
    return rc;
}

/* ---- the page ---- */

static void end(const passport_facts *facts, FILE *to)
{
    fprintf(to, "</main>\n<footer>\n<p>Chunkmill %s", cm_version());
    if (facts->source != NULL) {
        fputs(" · from ", to);
        page_text(facts->source, to);
    }
    if (facts->format != NULL) {
        fputs(" (", to);
        page_text(facts->format, to);
        putc(')', to);
    }
    if (facts->command != NULL) {
        fputs(" · <code>", to);
        page_text(facts->command, to);
        fputs("</code>", to);
    }
    fputs("</p>\n</footer>\n</body>\n</html>\n", to);
}

int passport_write(const passport_facts *facts, cm_outfile *file, cm_error *err)
{
    int rc = cm_outfile_open(file, err);
    FILE *to = rc == CM_OK ? cm_outfile_stream(file, err) : NULL;
    if (to == NULL)
        return rc != CM_OK ? rc : CM_ENOMEM;
    begin(facts, to);
    put_tiles(facts, to);
    put_findings(facts->passport, to);
    passport_variables(facts, to);
    rc = put_variables(facts->passport, to, err);
    if (rc == CM_OK)
        rc = passport_census(facts, to, err);
    passport_layout(facts, to);
    passport_verification(facts, to);
    passport_readers(facts, to);
    passport_attributes(facts, to);
    end(facts, to);
    return rc == CM_OK ? cm_outfile_commit(file, err) : rc;
}

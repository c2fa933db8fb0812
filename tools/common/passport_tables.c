/* The tables of a passport: attributes, variables, layout, verification, readers. */
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "base/number.h"
#include "page.h"
#include "passport_page.h"

static void cell(const char *text, FILE *to)
{
    fputs("<td>", to);
    page_text(text != NULL ? text : "", to);
    fputs("</td>", to);
}

static void head(const char *text, FILE *to)
{
    fputs("<th scope=\"row\">", to);
    page_text(text[0] != '\0' ? text : "/", to);
    fputs("</th>", to);
}

/* "time 256 × latitude 721" */
static void put_shape(const cm_passport_variable *v, FILE *to)
{
    for (unsigned j = 0; j < v->rank; j++) {
        fputs(j > 0 ? " × " : "", to);
        if (v->dim_name[j] != NULL)
            page_text(v->dim_name[j], to);
        fprintf(to, "%s%llu", v->dim_name[j] != NULL ? " " : "", (unsigned long long)v->shape[j]);
    }
    if (v->rank == 0)
        fputs("one value", to);
}

void passport_attributes(const passport_facts *facts, FILE *to)
{
    const cm_passport *p = facts->passport;
    bool any = false;
    for (size_t i = 0; i < p->nattributes; i++) {
        if (p->attribute[i].text[0] == '\0')
            continue;
        if (!any)
            fputs("<section><h2>What it says of itself</h2>\n<table class=\"left some\">"
                  "<tbody>\n",
                  to);
        any = true;
        fputs("<tr>", to);
        head(p->attribute[i].name, to);
        cell(p->attribute[i].text, to);
        fputs("</tr>\n", to);
    }
    if (any)
        fputs("</tbody></table></section>\n", to);
}

void passport_variables(const passport_facts *facts, FILE *to)
{
    const cm_passport *p = facts->passport;
    fputs("<section><h2>Variables</h2>\n<div class=\"scroll\" tabindex=\"0\" role=\"region\" "
          "aria-label=\"Variables\"><table class=\"left\"><thead><tr>"
          "<th scope=\"col\">name</th><th scope=\"col\">what it is</th>"
          "<th scope=\"col\">unit</th><th scope=\"col\">grid</th><th scope=\"col\">type</th>"
          "</tr></thead><tbody>\n",
          to);
    for (size_t i = 0; i < p->nvariables; i++) {
        const cm_passport_variable *v = &p->variable[i];
        fputs("<tr>", to);
        head(v->name, to);
        const char *what = v->long_name != NULL ? v->long_name : v->standard_name;
        fputs("<td class=\"prose\">", to);
        page_text(what != NULL ? what : "", to);
        fputs("</td>", to);
        cell(v->units, to);
        fputs("<td>", to);
        put_shape(v, to);
        fputs("</td>", to);
        cell(v->type, to);
        fputs("</tr>\n", to);
    }
    fputs("</tbody></table></div></section>\n", to);
}

/* ---- layout ---- */

/* How a variable is stored. */
typedef struct layout {
    const char *name, *codec;
    unsigned rank;
    const uint64_t *chunk, *shard;
    uint64_t nchunks, decoded_nbytes, stored_nbytes;
} layout;

static void put_lengths(unsigned rank, const uint64_t *length, FILE *to)
{
    fputs("<td>", to);
    for (unsigned j = 0; j < rank; j++)
        fprintf(to, "%s%llu", j > 0 ? " × " : "", (unsigned long long)length[j]);
    fputs("</td>", to);
}

static void put_layout(const layout *l, FILE *to)
{
    char text[32];
    fputs("<tr>", to);
    head(l->name, to);
    put_lengths(l->rank, l->chunk, to);
    if (l->rank > 0 && l->shard[0] > 0)
        put_lengths(l->rank, l->shard, to);
    else
        cell("none", to);
    cell(l->codec, to);
    fprintf(to, "<td>%llu</td>", (unsigned long long)l->nchunks);
    cell(cm_format_size(l->decoded_nbytes, text, sizeof text), to);
    if (l->stored_nbytes > 0)
        fprintf(to, "<td>%s</td><td>%.2f</td>", cm_format_size(l->stored_nbytes, text, sizeof text),
                (double)l->decoded_nbytes / (double)l->stored_nbytes);
    else
        fputs("<td></td><td></td>", to);
    fputs("</tr>\n", to);
}

void passport_layout(const passport_facts *facts, FILE *to)
{
    const cm_passport *p = facts->passport;
    const cm_transform_report *r = facts->converted;
    fputs("<section><h2>How it is stored</h2>\n<div class=\"scroll\" tabindex=\"0\" "
          "role=\"region\" aria-label=\"How it is stored\"><table class=\"left\"><thead><tr>"
          "<th scope=\"col\">name</th><th scope=\"col\">chunks</th><th scope=\"col\">shards</th>"
          "<th scope=\"col\">codec</th><th scope=\"col\">chunks in all</th>"
          "<th scope=\"col\">decoded</th><th scope=\"col\">stored</th>"
          "<th scope=\"col\">ratio</th></tr></thead><tbody>\n",
          to);
    for (size_t i = 0; r != NULL && i < r->nvariables; i++) {
        const cm_transform_variable *v = &r->variable[i];
        put_layout(&(layout){v->name, v->codec, v->rank, v->chunk, v->shard, v->nchunks,
                             v->decoded_nbytes, facts->options->resume ? 0 : v->stored_nbytes},
                   to);
    }
    for (size_t i = 0; r == NULL && i < p->nvariables; i++) {
        const cm_passport_variable *v = &p->variable[i];
        if (v->has_layout)
            put_layout(&(layout){v->name, v->codec, v->rank, v->chunk, v->shard, v->nchunks,
                                 v->decoded_nbytes, v->stored_nbytes},
                       to);
    }
    fputs("</tbody></table></div></section>\n", to);
}

/* ---- verification ---- */

static const char *digest_of(const passport_facts *facts, size_t i, const char **name)
{
    if (facts->converted != NULL) {
        *name = facts->converted->variable[i].name;
        return facts->converted->variable[i].digest;
    }
    *name = facts->passport->variable[i].name;
    return facts->passport->variable[i].digest;
}

static void put_digests(const passport_facts *facts, FILE *to)
{
    const size_t n =
        facts->converted != NULL ? facts->converted->nvariables : facts->passport->nvariables;
    bool any = false;
    for (size_t i = 0; i < n; i++) {
        const char *name, *digest = digest_of(facts, i, &name);
        if (digest == NULL)
            continue;
        if (!any)
            fputs("<p class=\"note\">Digests are of the values: equal values have equal digests in "
                  "any layout.</p>\n<table class=\"left some\"><tbody>\n",
                  to);
        any = true;
        fputs("<tr>", to);
        head(name, to);
        fputs("<td><code>", to);
        page_text(digest, to);
        fputs("</code></td></tr>\n", to);
    }
    if (any)
        fputs("</tbody></table>\n", to);
}

static void put_verified(const passport_facts *facts, FILE *to)
{
    const cm_transform_report *r = facts->converted;
    if (r == NULL) {
        fputs("<p>It was read once, and compared with nothing.</p>\n", to);
    } else if (facts->options->verify == CM_VERIFY_NONE) {
        fputs("<p>It was not compared with its source.</p>\n", to);
    } else if (r->unverified) {
        fputs("<p class=\"emulated\"><b>Not verified</b>: the comparison with the source did not "
              "come to an end.</p>\n",
              to);
    } else if (r->not_compared && r->nverified == 0) {
        fputs("<p class=\"emulated\"><b>Not verified</b>: no variable could be compared with the "
              "source.</p>\n",
              to);
    } else {
        fprintf(to, "<p>%llu %s compared with the source, %s: %s.%s</p>\n",
                (unsigned long long)r->nverified,
                cm_of_count(r->nverified, "element was", "elements were"),
                facts->options->verify == CM_VERIFY_FULL ? "all that there are" : "a sample",
                r->ndifferences > 0 ? "they differ" : "no difference",
                r->not_compared ? " Not all variables could be compared." : "");
        for (size_t i = 0; i < r->ndifferences; i++)
            page_line("bad", r->difference[i], to);
    }
}

void passport_verification(const passport_facts *facts, FILE *to)
{
    fputs("<section><h2>Verification</h2>\n", to);
    put_verified(facts, to);
    put_digests(facts, to);
    fputs("</section>\n", to);
}

/* ---- readers ---- */

/* The line about holes says what the section of the census shows. */
static bool is_shown(const char *holes, const char *warning)
{
    return holes != NULL && strcmp(holes, warning) == 0;
}

static bool has_readers(const passport_facts *facts, const char *holes, char **warning, size_t n)
{
    const cm_transform_report *r = facts->converted;
    for (size_t i = 0; i < n; i++)
        if (!is_shown(holes, warning[i]))
            return true;
    for (size_t i = 0; r != NULL && i < r->nvariables; i++)
        if (r->variable[i].readers != NULL)
            return true;
    return false;
}

static void put_readers(const passport_facts *facts, const char *holes, FILE *to)
{
    const cm_transform_report *r = facts->converted;
    const size_t n = r != NULL ? r->nwarnings : facts->passport->nwarnings;
    char **warning = r != NULL ? r->warning : facts->passport->warning;
    if (!has_readers(facts, holes, warning, n))
        return;
    fputs("<section><h2>Where readers disagree, and other warnings</h2>\n<ul class=\"findings\">\n",
          to);
    for (size_t i = 0; i < n; i++) {
        if (is_shown(holes, warning[i]))
            continue;
        fputs("<li>", to);
        page_prose(warning[i], to);
        fputs("</li>\n", to);
    }
    for (size_t i = 0; r != NULL && i < r->nvariables; i++) {
        if (r->variable[i].readers == NULL)
            continue;
        fputs("<li><b>", to);
        page_text(r->variable[i].name, to);
        fputs("</b> is opened by ", to);
        page_text(r->variable[i].readers, to);
        fputs("</li>\n", to);
    }
    fputs("</ul></section>\n", to);
}

void passport_readers(const passport_facts *facts, FILE *to)
{
    char *holes = NULL;
    cm_error unused; /* without memory for the line it is said twice */
    if (facts->census != NULL && cm_census_line(facts->census, &holes, &unused) != CM_OK)
        holes = NULL;
    put_readers(facts, holes, to);
    free(holes);
}

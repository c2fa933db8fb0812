/*
 * Which options a conversion needs: those that findings propose are tried on the same survey, since
 * a join finds more when it comes further.
 */
#include "survey.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../common/naming.h"
#include "../common/print.h"
#include "../common/say.h"
#include "base/mem.h"
#include "base/outstream.h"

enum {
    ROUNDS = 12 /* each with more options than the one before */
};

/* ---- what is decided ---- */

static int add_variable(nc2zarr_decision *d, const char *name, size_t nfiles, cm_error *err)
{
    for (size_t i = 0; i < d->nvariables; i++)
        if (strcmp(d->variable[i], name) == 0) {
            d->share[i].nfiles = nfiles > d->share[i].nfiles ? nfiles : d->share[i].nfiles;
            return CM_OK;
        }
    if (CM_GROW(d->variable, d->nvariables, err) != CM_OK ||
        CM_GROW(d->share, d->nvariables, err) != CM_OK)
        return CM_ENOMEM;
    d->share[d->nvariables] = (nc2zarr_share){.nfiles = nfiles};
    d->variable[d->nvariables] = cm_strdup(name, err);
    return d->variable[d->nvariables++] == NULL ? CM_ENOMEM : CM_OK;
}

/* The decision that O is a part of, made where there is none. */
static nc2zarr_decision *decision_of(nc2zarr_decisions *d, const nc2zarr_option *o,
                                     const cm_finding *f, bool *grown, cm_error *err)
{
    const bool tolerance = strcmp(o->name, "tolerance") == 0;
    for (size_t i = 0; i < d->n; i++) {
        nc2zarr_option *own = &d->of[i].option;
        if (strcmp(own->name, o->name) != 0 || (!tolerance && strcmp(own->value, o->value) != 0))
            continue;
        if (tolerance && strtod(o->value, NULL) > strtod(own->value, NULL)) {
            *own = *o;
            *grown = true;
        }
        return &d->of[i];
    }
    if (CM_GROW(d->of, d->n, err) != CM_OK)
        return NULL;
    d->of[d->n] = (nc2zarr_decision){.option = *o,
                                     .kind = f->kind,
                                     .of_store = f->of_store,
                                     .voluntary = f->weight != CM_WEIGHT_DECISION};
    *grown = true;
    return &d->of[d->n++];
}

static bool is_excluded(const nc2zarr_decisions *d, const char *name)
{
    for (size_t i = 0; i < d->n; i++)
        for (size_t k = 0; k < d->of[i].nvariables; k++)
            if (strcmp(d->of[i].option.name, "exclude") == 0 &&
                strcmp(d->of[i].variable[k], name) == 0)
                return true;
    return false;
}

static int take(nc2zarr_decisions *d, const cm_archive_report *r, const cm_finding *f, bool *grown,
                cm_error *err)
{
    nc2zarr_option o;
    /* Steps in several files: they are told apart where that can be done. */
    const bool apart = f->kind == CM_FINDING_OVERLAP && f->value != NULL && !f->decided;
    d->compares |= f->kind == CM_FINDING_OVERLAP && f->weight == CM_WEIGHT_NOTE && !apart;
    static const char *const OF_VALUES[] = {"static", "promote", "tolerance", NULL};
    if ((f->weight != CM_WEIGHT_DECISION && !apart) || !nc2zarr_option_of(f, &o) ||
        (nc2zarr_is_one_of(&o, OF_VALUES) && f->variable != NULL && is_excluded(d, f->variable)))
        return CM_OK;
    nc2zarr_decision *own = decision_of(d, &o, f, grown, err);
    if (own == NULL)
        return CM_ENOMEM;
    own->nfiles = f->nfiles > own->nfiles ? f->nfiles : own->nfiles;
    own->apart = f->apart > own->apart ? f->apart : own->apart;
    own->promotes = f->promotes;
    own->limits |= f->limits;
    own->shifts |= f->shifts;
    if (f->variable != NULL)
        nc2zarr_count_lost(own, r, f->variable, f);
    if (f->other != NULL && own->other == NULL && (own->other = cm_strdup(f->other, err)) == NULL)
        return CM_ENOMEM;
    return f->variable != NULL ? add_variable(own, f->variable, f->nfiles, err) : CM_OK;
}

/* Zarr has no compound and opaque types: their variables are left out, if there are others. */
static int take_types(nc2zarr_decisions *d, const cm_archive_report *r, bool *grown, cm_error *err)
{
    static const cm_finding LEFT_OUT = {.kind = CM_FINDING_TYPE, .weight = CM_WEIGHT_DECISION};
    size_t nothers = 0;
    int rc = CM_OK;
    for (size_t i = 0; i < r->nvariables; i++)
        nothers += strncmp(r->variable[i].type, "raw", 3) != 0;
    for (size_t i = 0; rc == CM_OK && i < r->nvariables && d->obstacle == NULL; i++) {
        const cm_archive_variable *v = &r->variable[i];
        nc2zarr_option o = {.name = "exclude"};
        if (strncmp(v->type, "raw", 3) != 0)
            continue;
        if (nothers == 0) {
            d->obstacle =
                cm_asprintf(err, "%s: Zarr has no type for it, and there is nothing else", v->name);
            return d->obstacle == NULL ? CM_ENOMEM : CM_OK;
        }
        snprintf(o.value, sizeof(o.value), "%s", v->name);
        nc2zarr_decision *own = decision_of(d, &o, &LEFT_OUT, grown, err);
        rc = own == NULL ? CM_ENOMEM : add_variable(own, v->name, v->nfiles, err);
    }
    return rc;
}

/* --exclude of all variables of R that have the dimension which F says differs in length. */
static int leave_out(nc2zarr_decisions *d, const cm_archive_report *r, const cm_finding *f,
                     bool *grown, cm_error *err)
{
    nc2zarr_option o = {.name = "exclude"};
    size_t nbytes = 0;
    for (size_t i = 0; i < r->nvariables; i++)
        if (nc2zarr_has_dim(&r->variable[i], f->variable)) {
            int n = snprintf(o.value + nbytes, sizeof(o.value) - nbytes, "%s%s",
                             nbytes > 0 ? "," : "", r->variable[i].name);
            if (n < 0 || (size_t)n >= sizeof(o.value) - nbytes)
                return CM_OK; /* too many to be typed */
            nbytes += (size_t)n;
        }
    nc2zarr_decision *own = nbytes == 0 ? NULL : decision_of(d, &o, f, grown, err);
    int rc = nbytes > 0 && own == NULL ? CM_ENOMEM : CM_OK;
    for (size_t i = 0; rc == CM_OK && own != NULL && i < r->nvariables; i++)
        if (nc2zarr_has_dim(&r->variable[i], f->variable)) {
            if (!is_excluded(d, r->variable[i].name))
                nc2zarr_count_lost(own, r, r->variable[i].name, f);
            rc = add_variable(own, r->variable[i].name, f->nfiles, err);
        }
    return rc;
}

/* The variables of --overlap: all whose elements it drops, whatever the findings were about. */
static int name_dropped(nc2zarr_decisions *d, const cm_archive_report *const *report, size_t n,
                        cm_error *err)
{
    int rc = CM_OK;
    for (size_t i = 0; i < d->n; i++) {
        nc2zarr_decision *own = &d->of[i];
        if (strcmp(own->option.name, "overlap") != 0)
            continue;
        while (own->nvariables > 0)
            free(own->variable[--own->nvariables]);
        for (size_t s = 0; s < n; s++)
            for (size_t k = 0; rc == CM_OK && k < report[s]->nvariables; k++)
                if (report[s]->variable[k].drops)
                    rc = add_variable(own, report[s]->variable[k].name, own->nfiles, err);
    }
    return rc;
}

/* "; where only the names differ, --rename A=B --rename C=D adds them", for PAIRS "A=B,C=D". */
static int say_pairs(nc2zarr_decisions *d, const char *pairs, cm_error *err)
{
    cm_outtext t;
    FILE *f = cm_outtext_open(&t);
    if (f == NULL)
        return cm_fail(err, CM_ENOMEM, "no memory for a sentence");
    cm_print(f, "%s; where only the names differ,", d->obstacle);
    for (pairs = *pairs == '\0' ? "NAME=STORED" : pairs; *pairs != '\0'; pairs += *pairs == ',') {
        const int n = (int)strcspn(pairs, ",");
        cm_print(f, " --rename %.*s", n, pairs);
        pairs += n;
    }
    fputs(" adds them", f);
    free(d->obstacle);
    d->obstacle = cm_outtext_close(&t);
    return d->obstacle == NULL ? CM_ENOMEM : CM_OK;
}

static int say_obstacle(nc2zarr_decisions *d, const cm_finding *f, cm_error *err)
{
    free(d->obstacle);
    d->apart = f->kind == CM_FINDING_LENGTH || f->kind == CM_FINDING_ALONG;
    d->asks = f->by == CM_DECIDER_RENAME && f->other != NULL;
    d->obstacle = cm_asprintf(err, "%s%s%s%s%s", f->file ? f->file : "", f->file ? ": " : "",
                              f->variable ? f->variable : "", f->variable ? ": " : "", f->text);
    if (d->obstacle == NULL)
        return CM_ENOMEM;
    return d->asks ? say_pairs(d, f->other, err) : CM_OK;
}

/* ---- rounds ---- */

typedef struct round {
    cm_archive_options options;
    cm_archive *archive;
    const cm_archive_report **report;
    size_t nstores, ndecisions;
} round;

static void end_round(round *r)
{
    cm_archive_close(r->archive);
    nc2zarr_release_options(&r->options);
    free(r->report);
    *r = (round){0};
}

static int begin_round(const archive_job *job, const nc2zarr_decisions *d, round *r, cm_error *err)
{
    *r = (round){0};
    int rc = nc2zarr_copy_options(&job->asked, d, &r->options, err);
    if (rc == CM_OK)
        rc = cm_archive_open_again(job->archive, &r->options, &r->archive, err);
    if (rc != CM_OK)
        return rc;
    r->nstores = cm_archive_nstores(r->archive);
    r->report = cm_calloc(r->nstores + 1, sizeof(*r->report), err);
    if (r->report == NULL)
        return CM_ENOMEM;
    for (size_t i = 0; rc == CM_OK && i < r->nstores; i++) {
        rc = cm_archive_join(r->archive, i, &r->report[i], err);
        r->ndecisions += r->report[i]->ndecisions;
    }
    return rc;
}

/*
 * Where another dimension is joined than that which was found, those that no option joins are left
 * out with all that lies along them.
 */
static bool is_left_out(const nc2zarr_decisions *d, const cm_finding *f)
{
    return d->instead && f->kind == CM_FINDING_LENGTH && f->weight == CM_WEIGHT_DECISION;
}

/* Takes what findings of N reports propose; *GROWN: there is more than before. */
static int take_all(const archive_job *job, nc2zarr_decisions *d,
                    const cm_archive_report *const *report, size_t n, bool *grown, cm_error *err)
{
    int rc = CM_OK;
    *grown = d->compares = false;
    for (size_t i = 0; rc == CM_OK && i < n && !job->v->o.skip_unsupported; i++)
        rc = take_types(d, report[i], grown, err);
    for (size_t i = 0; rc == CM_OK && i < n; i++)
        for (size_t k = 0; rc == CM_OK && k < report[i]->nfindings; k++)
            rc = is_left_out(d, &report[i]->finding[k])
                     ? leave_out(d, report[i], &report[i]->finding[k], grown, err)
                     : take(d, report[i], &report[i]->finding[k], grown, err);
    return rc;
}

/* The first finding that has no option, or whose option does not decide it. */
static int find_obstacle(nc2zarr_decisions *d, const cm_archive_report *const *report, size_t n,
                         cm_error *err)
{
    const cm_finding *found = NULL;
    nc2zarr_option o;
    if (d->obstacle != NULL)
        return CM_OK;
    for (size_t i = 0; i < n; i++)
        for (size_t k = 0; k < report[i]->nfindings; k++) {
            const cm_finding *f = &report[i]->finding[k];
            if (f->weight == CM_WEIGHT_DECISION && (found == NULL || !nc2zarr_option_of(f, &o))) {
                found = f;
                if (!nc2zarr_option_of(f, &o))
                    return say_obstacle(d, f, err);
            }
        }
    return found != NULL ? say_obstacle(d, found, err) : CM_OK;
}

/* ---- all ---- */

/* A join that options make impossible is no failure of the survey. */
static int note_refusal(nc2zarr_decisions *d, int rc, cm_error *why, cm_error *err)
{
    if (rc == CM_OK)
        return CM_OK;
    if (rc == CM_ENOMEM || rc == CM_ECANCELED) {
        *err = *why;
        return rc;
    }
    cm_tool_name_error(&NC2ZARR, why);
    free(d->obstacle);
    return (d->obstacle = cm_strdup(why->text, err)) == NULL ? CM_ENOMEM : CM_OK;
}

/* A store of nothing but files that are left out. */
static bool is_empty(const round *r)
{
    for (size_t i = 0; i < r->nstores; i++)
        if (r->report[i]->nfiles > r->report[i]->nskipped)
            return false;
    return true;
}

/* ---- options that others made needless ---- */

static void release_decision(nc2zarr_decision *d)
{
    for (size_t k = 0; k < d->nvariables; k++)
        free(d->variable[k]);
    free(d->variable);
    free(d->share);
    free(d->other);
    free(d->type[0]);
    free(d->type[1]);
}

/* Whether nothing is left to be decided without decision I of D. */
static int is_needless(const archive_job *job, nc2zarr_decisions *d, size_t i, bool *needless,
                       cm_error *err)
{
    const nc2zarr_decision own = d->of[i];
    cm_error why = {0};
    round r;
    memmove(&d->of[i], &d->of[i + 1], (d->n - i - 1) * sizeof(own));
    d->n--;
    const int rc = begin_round(job, d, &r, &why);
    *needless = rc == CM_OK && r.ndecisions == 0;
    end_round(&r);
    if (rc == CM_ENOMEM || rc == CM_ECANCELED)
        *err = why;
    if (!*needless) {
        memmove(&d->of[i + 1], &d->of[i], (d->n - i) * sizeof(own));
        d->of[i] = own;
        d->n++;
        return rc == CM_ENOMEM || rc == CM_ECANCELED ? rc : CM_OK;
    }
    nc2zarr_decision gone = own;
    release_decision(&gone);
    return CM_OK;
}

/* Whether variables are left out, or have got other dimensions. */
static bool changes_variables(const nc2zarr_decisions *d)
{
    static const char *const CHANGING[] = {"exclude", "new-dim",     "promote",
                                           "along",   "merge-along", NULL};
    bool changes = false;
    for (size_t i = 0; i < d->n; i++)
        changes |= nc2zarr_is_one_of(&d->of[i].option, CHANGING);
    return changes;
}

/*
 * Options about values that another made needless: a variable that is left out, or that has got
 * a new dimension, differs no more.  *ANY: there were some.
 */
static int drop_needless(const archive_job *job, nc2zarr_decisions *d, bool *any, cm_error *err)
{
    static const char *const TRIED[] = {"static",  "promote", "tolerance",
                                        "missing", "exclude", NULL};
    int rc = CM_OK;
    *any = false;
    for (size_t i = d->n; rc == CM_OK && i-- > 0 && d->n > 1 && changes_variables(d);) {
        bool needless = false;
        if (!d->of[i].voluntary && nc2zarr_is_one_of(&d->of[i].option, TRIED))
            rc = is_needless(job, d, i, &needless, err);
        *any |= needless;
    }
    return rc;
}

/* A join with all options so far; *DONE: it needs no more. */
static int try_round(const archive_job *job, nc2zarr_decisions *d, bool last, bool *done,
                     cm_error *err)
{
    cm_error why = {0};
    round r;
    bool grown = false;
    int rc = note_refusal(d, begin_round(job, d, &r, &why), &why, err);
    if (rc != CM_OK || d->obstacle != NULL) {
        end_round(&r);
        return rc;
    }
    if (is_empty(&r))
        rc = find_obstacle(d, job->survey, job->nstores, err);
    else
        rc = take_all(job, d, r.report, r.nstores, &grown, err);
    *done = r.ndecisions == 0 && (!grown || last);
    bool dropped = false;
    if (rc == CM_OK && *done)
        rc = drop_needless(job, d, &dropped, err);
    if (rc == CM_OK && dropped) {
        end_round(&r);
        rc = begin_round(job, d, &r, err);
    }
    if (rc == CM_OK && *done)
        d->cuts = nc2zarr_makes_stores(d) && nc2zarr_cuts_series(job, r.report, r.nstores);
    if (rc == CM_OK && *done)
        rc = name_dropped(d, r.report, r.nstores, err);
    if (rc == CM_OK && *done)
        rc = nc2zarr_count_costs(d, job, r.report, r.nstores, err);
    else if (rc == CM_OK && (!grown || last))
        rc = find_obstacle(d, r.report, r.nstores, err);
    if (rc == CM_OK && (*done || d->obstacle != NULL))
        rc = nc2zarr_find_rivals(d, job, r.report[0], err);
    end_round(&r);
    return rc;
}

static int try_rounds(const archive_job *job, nc2zarr_decisions *d, cm_error *err)
{
    bool done = false;
    int rc = CM_OK;
    for (unsigned i = 0; rc == CM_OK && !done && d->obstacle == NULL; i++)
        rc = try_round(job, d, i >= ROUNDS, &done, err);
    return rc;
}

static int try_options(const archive_job *job, nc2zarr_decisions *d, cm_error *err)
{
    bool grown = false;
    int rc = take_all(job, d, job->survey, job->nstores, &grown, err);
    if (rc == CM_OK && grown)
        return try_rounds(job, d, err);
    if (rc == CM_OK)
        rc = find_obstacle(d, job->survey, job->nstores, err);
    return rc == CM_OK && d->obstacle != NULL ? nc2zarr_find_rivals(d, job, job->survey[0], err)
                                              : rc;
}

/*
 * The decisions that follow from OPTION VALUE, instead of those that findings propose; NSTORES is
 * not 0 where it makes several stores.
 */
static int try_instead(const archive_job *job, const char *option, const char *value,
                       size_t nstores, nc2zarr_decisions *rival, cm_error *err)
{
    static const cm_finding ALONG = {.kind = CM_FINDING_ALONG, .weight = CM_WEIGHT_DECISION};
    nc2zarr_option o = {.name = option};
    bool grown;
    *rival = (nc2zarr_decisions){.instead = nstores == 0};
    snprintf(o.value, sizeof(o.value), "%s", value);
    nc2zarr_decision *d = decision_of(rival, &o, &ALONG, &grown, err);
    if (d == NULL)
        return CM_ENOMEM;
    d->nstores = nstores;
    return try_rounds(job, rival, err);
}

/* *BEST becomes RIVAL where that is BETTER; the other one is released. */
static void choose(nc2zarr_decisions *best, nc2zarr_decisions rival, bool better)
{
    nc2zarr_decisions worse = better ? *best : rival;
    *best = better ? rival : *best;
    nc2zarr_decisions_release(&worse);
}

/* Joins the files along NAME instead: in *BEST where that drops less. */
static int try_along(const archive_job *job, const char *name, nc2zarr_decisions *best,
                     cm_error *err)
{
    nc2zarr_decisions rival;
    const int rc = try_instead(job, "along", name, 0, &rival, err);
    choose(best, rival, rc == CM_OK && nc2zarr_is_better(&rival, best));
    return rc;
}

/* Tries all dimensions that may be joined instead of that which was found. */
static int try_rivals(const archive_job *job, nc2zarr_decisions *best, cm_error *err)
{
    char *name[NC2ZARR_RIVALS];
    const size_t n = best->nrivals;
    int rc = CM_OK;
    for (size_t i = 0; i < n; i++) {
        name[i] = best->rival[i];
        best->rival[i] = NULL;
    }
    for (size_t i = 0; i < n; i++) {
        if (rc == CM_OK)
            rc = try_along(job, name[i], best, err);
        free(name[i]);
    }
    return rc;
}

/*
 * One store for each kind of files, where that keeps all of them, in *BEST; of two files that
 * CLASH, if any do, in stores of their own.
 */
static int try_stores(const archive_job *job, const char *const *clash, nc2zarr_decisions *best,
                      cm_error *err)
{
    cm_store_pattern *list = NULL;
    size_t n = 0;
    bool found = false;
    int rc = CM_OK;
    if (nc2zarr_may_make_stores(job) && (clash != NULL || nc2zarr_may_be_several(job, best)))
        rc = cm_archive_store_patterns(job->archive, &list, &n, err);
    for (size_t i = 0; rc == CM_OK && !found && i < n; i++) {
        nc2zarr_decisions rival;
        bool apart = true;
        if (clash != NULL)
            rc = cm_archive_sets_apart(job->archive, list[i].text, clash[0], clash[1], &apart, err);
        if (rc != CM_OK || !apart)
            continue;
        rc = try_instead(job, "store-per", list[i].text, list[i].nstores, &rival, err);
        found = rc == CM_OK && nc2zarr_keeps_all(&rival);
        choose(best, rival, found);
    }
    cm_store_patterns_free(list, n);
    return rc;
}

void nc2zarr_explain_clash(const archive_job *job, cm_error *err)
{
    nc2zarr_decisions d = {0};
    cm_error why = {0};
    if (job->report.clash != NULL && try_stores(job, job->report.clash_path, &d, &why) == CM_OK &&
        nc2zarr_makes_stores(&d)) {
        cm_outtext t;
        FILE *f = cm_outtext_open(&t);
        if (f != NULL)
            nc2zarr_print_option(&d.of[0].option, f);
        char *option = f != NULL ? cm_outtext_close(&t) : NULL;
        if (option != NULL)
            cm_error_suffix(err, "; %s makes a store of each kind of files", option);
        free(option);
    }
    nc2zarr_decisions_release(&d);
}

/* Adds to the obstacle of D which files can be joined without the others. */
static int say_apart(const archive_job *job, nc2zarr_decisions *d, cm_error *err)
{
    nc2zarr_decisions rival;
    round r = {0};
    int rc = try_instead(job, "store-per", "", 1, &rival, err);
    if (rc == CM_OK && nc2zarr_keeps_all(&rival))
        rc = begin_round(job, &rival, &r, err);
    cm_outtext t;
    FILE *f = rc == CM_OK && r.nstores > 1 ? cm_outtext_open(&t) : NULL;
    if (f != NULL) {
        cm_print(f, "%s; these can be converted apart:", d->obstacle);
        for (size_t i = 0; i < r.nstores; i++) {
            fputs(i > 0 ? ", " : " ", f);
            cm_print_shell_word(r.report[i]->store, f);
        }
        free(d->obstacle);
        d->obstacle = cm_outtext_close(&t);
        rc = d->obstacle == NULL ? cm_fail(err, CM_ENOMEM, "no memory for a sentence") : CM_OK;
    }
    end_round(&r);
    nc2zarr_decisions_release(&rival);
    return rc;
}

int nc2zarr_decide(const archive_job *job, nc2zarr_decisions *out, cm_error *err)
{
    *out = (nc2zarr_decisions){0};
    int rc = try_options(job, out, err);
    /* Files of several grids are told apart before a dimension of the grids may join them. */
    if (rc == CM_OK)
        rc = try_stores(job, NULL, out, err);
    if (rc == CM_OK && !nc2zarr_makes_stores(out))
        rc = try_rivals(job, out, err);
    if (rc == CM_OK && out->obstacle != NULL && !out->asks && job->append == NULL &&
        job->asked.store_per == NULL)
        rc = say_apart(job, out, err);
    if (rc == CM_OK && out->obstacle == NULL &&
        (out->line = nc2zarr_command_line(job, out, err)) == NULL)
        rc = CM_ENOMEM;
    return rc;
}

bool nc2zarr_takes(const nc2zarr_decisions *d, const cm_finding *f)
{
    nc2zarr_option o;
    /* One that was tried, and does not join them. */
    if (d->obstacle != NULL && d->apart && f->kind == CM_FINDING_ALONG)
        return false;
    bool takes = (!d->instead && d->line == NULL) || f->weight != CM_WEIGHT_DECISION ||
                 !nc2zarr_option_of(f, &o);
    for (size_t i = 0; !takes && i < d->n; i++)
        takes = strcmp(d->of[i].option.name, o.name) == 0 &&
                (strcmp(o.name, "tolerance") == 0 || strcmp(d->of[i].option.value, o.value) == 0);
    return takes;
}

void nc2zarr_decisions_release(nc2zarr_decisions *d)
{
    for (size_t i = 0; i < d->nrivals; i++)
        free(d->rival[i]);
    for (size_t i = 0; i < d->n; i++)
        release_decision(&d->of[i]);
    free(d->of);
    free(d->obstacle);
    free(d->line);
    *d = (nc2zarr_decisions){0};
}

/*
 * Proposes an order for files without a joining coordinate: a scalar that counts time, a dimension
 * without a coordinate, or their names.  Proposes only an order that fits all files.
 */
#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "archive/axes/made.h"
#include "archive/axes/propose.h"
#include "archive/tables/described.h"
#include "archive/tables/reading.h"
#include "base/path.h"
#include "model/name_pattern.h"

/* The values of files, one after the other: whether each, with its list of variables, is new. */
typedef struct distinct {
    cm_known known;
    size_t n;
    bool repeated;
} distinct;

static bool add(distinct *d, const void *value, size_t nbytes, const void *skeleton)
{
    uint64_t before;
    cm_digest own = cm_wire_digest(value, nbytes), both = own;
    cm_digest_element(&both, 1, &skeleton, sizeof(skeleton));
    d->repeated |= cm_known_find(&d->known, both, &before);
    if (!d->repeated && cm_known_add(&d->known, both, 0, NULL) != CM_OK)
        return false;
    if (cm_known_find(&d->known, own, &before))
        return true;
    d->n++;
    return cm_known_add(&d->known, own, 0, NULL) == CM_OK;
}

/* ---- scalars ---- */

/* The number of distinct values of variable AT, a single number in all files; 0: not usable. */
static size_t count_scalar(const cm_join_input *in, const cm_join_tables *tables, uint32_t at)
{
    const cm_join_var *v = &tables->var[at];
    distinct d = {0};
    bool fine = v->wanted && v->nfiles == in->nfiles && v->rank == 0 && !v->like->is_char &&
                cm_dtype_is_number(&v->like->dtype) && strchr(v->name, '/') == NULL;
    for (uint32_t i = 0; fine && i < in->nfiles; i++) {
        cm_surveyed_var s;
        const cm_skeleton *k = cm_join_skeleton(in, i);
        fine = cm_join_record(in, tables, at, i, &s) && s.has_values;
        const cm_digest own = fine ? cm_join_meaning(in, tables, at, i, &s) : (cm_digest){0};
        fine = fine && add(&d, &own, sizeof(own), k);
    }
    cm_known_release(&d.known);
    return fine && !d.repeated && d.n > 1 ? d.n : 0;
}

/* The scalar that tells files apart, of those that count time or of the others. */
static const cm_join_var *find_scalar(const cm_join_input *in, const cm_join_tables *tables,
                                      bool time)
{
    const cm_join_var *best = NULL;
    size_t most = 0;
    for (uint32_t i = 0; i < tables->nvars; i++) {
        const cm_join_var *v = &tables->var[i];
        if (v->rank != 0 || cm_join_counts_time(v->like) != time)
            continue;
        size_t n = count_scalar(in, tables, i);
        const char *standard = n > 0 ? cm_join_text(v->like, "standard_name") : NULL;
        bool named = standard != NULL && strcmp(standard, "time") == 0;
        if (n > most || (n > 0 && n == most && named)) {
            best = v;
            most = n;
        }
    }
    return best;
}

/* ---- dates in names ---- */

static size_t ndigits(const char *p)
{
    size_t n = 0;
    while (isdigit((unsigned char)p[n]))
        n++;
    return n;
}

/* One of SEPARATORS and then N digits: LETTERS for them. */
static bool take(const char **p, char *out, const char *separators, size_t n, const char *letters)
{
    const char *at = *p;
    char separator[2] = {0};
    if (*at != '\0' && strchr(separators, *at) != NULL)
        separator[0] = *at++;
    else if (!isdigit((unsigned char)*at))
        return false;
    if (ndigits(at) != n)
        return false;
    snprintf(out + strlen(out), CM_MOST_PROPOSED - strlen(out), "%s%s", separator, letters);
    *p = at + n;
    return true;
}

/* The pattern of the date that begins at P, which is a digit; empty: there is none. */
static void read_date(const char *p, char *out)
{
    static const char *const COMPACT[] = {
        [4] = "%Y",          [6] = "%Y%m",        [7] = "%Y%j",
        [8] = "%Y%m%d",      [10] = "%Y%m%d%H",   [11] = "%Y%j%H%M",
        [12] = "%Y%m%d%H%M", [13] = "%Y%j%H%M%S", [14] = "%Y%m%d%H%M%S"};
    size_t n = ndigits(p);
    const char *letters = n < sizeof(COMPACT) / sizeof(COMPACT[0]) ? COMPACT[n] : NULL;
    snprintf(out, CM_MOST_PROPOSED, "%s", letters != NULL ? letters : "");
    p += n;
    if (n == 4 && take(&p, out, "-_.", 2, "%m"))
        n = take(&p, out, "-_.", 2, "%d") ? 8 : 6;
    if (n != 8 || (*p == '.' && ndigits(p + 1) == 0))
        return;
    if (take(&p, out, "T_-", 6, "%H%M%S") || take(&p, out, "T_-", 4, "%H%M") ||
        !take(&p, out, "T_-", 2, "%H"))
        return;
    if (take(&p, out, ":_-", 2, "%M"))
        (void)take(&p, out, ":_-", 2, "%S");
}

/* The part of a file's name that a pattern finds. */
typedef struct found {
    const void *value;
    size_t nbytes;
    int64_t us; /* VALUE may point here */
} found;
typedef bool find_in_name(const cm_name_pattern *pattern, const char *path, found *out);

/* An instant of these centuries. */
static bool find_time(const cm_name_pattern *pattern, const char *path, found *out)
{
    enum {
        FIRST_YEAR = 1500,
        LAST_YEAR = 2500
    };
    const int64_t year_us = INT64_C(31556952000000);
    out->value = &out->us;
    out->nbytes = sizeof(out->us);
    if (cm_name_pattern_time(pattern, CM_CALENDAR_PROLEPTIC_GREGORIAN, path, &out->us, NULL) !=
        CM_OK)
        return false;
    const int64_t year = 1970 + out->us / year_us;
    return year >= FIRST_YEAR && year <= LAST_YEAR;
}

static bool find_text(const cm_name_pattern *pattern, const char *path, found *out)
{
    const char *text;
    if (cm_name_pattern_value(pattern, path, &text, &out->nbytes, NULL) != CM_OK)
        return false;
    out->value = text;
    return true;
}

/* The first of the files, behind a store that they are added to. */
static uint32_t first_of(const cm_join_input *in)
{
    return in->has_base && in->nfiles > 1 ? 1 : 0;
}

/* Whether FIND finds something by PATTERN in the name of each file, and tells files apart by it. */
static bool tells_apart(const cm_join_input *in, const char *pattern, find_in_name *find)
{
    cm_name_pattern p;
    distinct d = {0};
    char option[CM_MOST_PROPOSED + 8];
    snprintf(option, sizeof(option), "x=%s", pattern);
    bool fine = cm_name_pattern_parse(option, &p, NULL) == CM_OK;
    for (uint32_t i = first_of(in); fine && i < in->nfiles; i++) {
        found own;
        fine = find(&p, in->file[i]->path, &own) &&
               add(&d, own.value, own.nbytes, cm_join_skeleton(in, i));
    }
    cm_known_release(&d.known);
    return fine && !d.repeated && d.n > (in->has_base ? 0 : 1);
}

/* Whether DATE, which begins at P in NAME, tells files apart: the pattern of it. */
static bool try_date(const cm_join_input *in, const char *name, const char *p, const char *date,
                     char *out)
{
    snprintf(out, CM_MOST_PROPOSED, "%s", date);
    if (*date == '\0' || tells_apart(in, out, find_time))
        return *date != '\0';
    /* Of several dates in a name one is told by what stands before it. */
    const char *begin = p;
    while (begin > name && !isdigit((unsigned char)begin[-1]) && strchr("_-. ", *begin) == NULL)
        begin--;
    int n = snprintf(out, CM_MOST_PROPOSED, "%.*s%s", (int)(p - begin), begin, date);
    return n > 0 && n < CM_MOST_PROPOSED && strcspn(out, "*?\\'") == (size_t)n &&
           tells_apart(in, out, find_time);
}

/* A pattern of dates that the names of all files have. */
static bool find_dates(const cm_join_input *in, char *out)
{
    char date[CM_MOST_PROPOSED];
    const char *name = cm_path_last(in->file[first_of(in)]->path);
    for (const char *p = name; *p != '\0'; p++) {
        if (!isdigit((unsigned char)*p) || (p > name && isdigit((unsigned char)p[-1])))
            continue;
        read_date(p, date);
        if (try_date(in, name, p, date, out))
            return true;
        /* The first and the last day with nothing between them: A20021852002192. */
        const char *both = ndigits(p) == 14 ? "%Y%j" : ndigits(p) == 16 ? "%Y%m%d" : "";
        if (try_date(in, name, p, both, out))
            return true;
    }
    return false;
}

/*
 * Whether DATE, which begins at P in the folder's name BEGIN, tells files apart: the pattern of it.
 * Of several dates one is told by what stands before it.
 */
static bool try_folder_date(const cm_join_input *in, const char *begin, const char *p,
                            const char *date, char *out)
{
    for (size_t before = 0; *date != '\0' && before <= (size_t)(p - begin); before++) {
        const char *from = p - before;
        if (strchr("*?%\\'", *from) != NULL)
            return false;
        const int n = snprintf(out, CM_MOST_PROPOSED, "%.*s%s*/", (int)before, from, date);
        if (n > 0 && n < CM_MOST_PROPOSED && tells_apart(in, out, find_time))
            return true;
    }
    return false;
}

/* A pattern of dates that the folders of all files have in their names, the nearest first. */
static bool find_folder_dates(const cm_join_input *in, char *out)
{
    char date[CM_MOST_PROPOSED];
    const char *path = in->file[first_of(in)]->path, *end = cm_path_last(path);
    while (end > path) {
        const char *begin = --end;
        while (begin > path && begin[-1] != '/')
            begin--;
        for (const char *p = begin; p < end; p++) {
            if (!isdigit((unsigned char)*p) || (p > begin && isdigit((unsigned char)p[-1])))
                continue;
            read_date(p, date);
            if (try_folder_date(in, begin, p, date, out))
                return true;
        }
        end = begin;
    }
    return false;
}

bool cm_join_find_dates(const cm_join_input *in, char *out)
{
    return find_dates(in, out) || find_folder_dates(in, out);
}

/* ---- anything else in names ---- */

bool cm_join_find_ends(const cm_join_input *in, const uint32_t *file, size_t n, bool whole,
                       cm_join_ends *out)
{
    const char *path = in->file[file == NULL ? 0 : file[0]]->path,
               *first = whole ? path : cm_path_last(path);
    const size_t length = strlen(first);
    size_t before = length, behind = length;
    for (size_t i = 1; i < n; i++) {
        path = in->file[file == NULL ? i : file[i]]->path;
        const char *name = whole ? path : cm_path_last(path);
        size_t m = strlen(name), k = 0;
        while (k < before && name[k] == first[k])
            k++;
        before = k;
        for (k = 0; k < behind && k < m && name[m - 1 - k] == first[length - 1 - k];)
            k++;
        behind = k;
    }
    while (before > 0 && isdigit((unsigned char)first[before - 1]))
        before--;
    while (behind > 0 && isdigit((unsigned char)first[length - behind]))
        behind--;
    *out = (cm_join_ends){first, length, before, behind};
    return before + behind < length;
}

/* The text before and behind what differs: "member_*.nc". */
static bool find_star(const cm_join_input *in, bool whole, char *out)
{
    cm_join_ends e;
    if (!cm_join_find_ends(in, NULL, in->nfiles, whole, &e))
        return false;
    /* Of a whole path: from the last folder on that is named so in all. */
    const char *begin = whole ? e.first + e.before : e.first;
    while (whole && begin > e.first && *begin != '/')
        begin--;
    int written = snprintf(out, CM_MOST_PROPOSED, "%.*s*%s", (int)(e.first + e.before - begin),
                           begin, e.first + e.length - e.behind);
    return written > 1 && written < CM_MOST_PROPOSED && strcspn(out, "%?\\'") == (size_t)written &&
           tells_apart(in, out, find_text);
}

/* ---- a dimension that is there ---- */

static bool is_short(const cm_join_input *in, const cm_join_dim *d)
{
    for (size_t i = 0; i < in->nfiles; i++)
        if (cm_file_count(d->length[i]) != 1)
            return false;
    return true;
}

/* Whether a field that has E lacks D: along D it would have one place in all files. */
static bool lies_without(const cm_join_tables *tables, const cm_join_dim *e, const cm_join_dim *d)
{
    for (size_t i = 0; i < tables->nvars; i++) {
        const cm_join_var *v = &tables->var[i];
        bool has_d = false, has_e = false;
        for (unsigned k = 0; k < v->rank; k++) {
            has_d |= &tables->dim[v->dim[k]] == d;
            has_e |= &tables->dim[v->dim[k]] == e;
        }
        if (v->wanted && !v->like->is_coordinate && has_e && !has_d)
            return true;
    }
    return false;
}

/*
 * Whether D is the first dimension of V, or stands behind some of one element in each file that
 * nothing has without it.
 */
static bool leads(const cm_join_input *in, const cm_join_tables *tables, const cm_join_dim *d,
                  const cm_join_var *v)
{
    for (unsigned i = 0; i < v->rank; i++) {
        const cm_join_dim *e = &tables->dim[v->dim[i]];
        if (e == d || !is_short(in, e) || lies_without(tables, e, d))
            return e == d;
    }
    return false;
}

static bool is_in_fields(const cm_join_input *in, const cm_join_tables *tables,
                         const cm_join_dim *d, unsigned rank)
{
    for (size_t i = 0; i < tables->nvars; i++)
        if (tables->var[i].wanted && tables->var[i].rank >= rank &&
            !tables->var[i].like->is_coordinate && leads(in, tables, d, &tables->var[i]))
            return true;
    return false;
}

static bool is_everywhere(const cm_join_input *in, const cm_join_dim *d)
{
    for (size_t i = 0; i < in->nfiles; i++)
        if (!cm_file_has(d->length[i]))
            return false;
    return true;
}

/* It has no coordinate, or one of texts, which have no order. */
static bool has_no_order(const cm_join_tables *tables, const cm_join_dim *d)
{
    uint32_t var = cm_join_var_named(tables, d->name);
    return var == CM_JOIN_NONE || cm_dtype_is_vlen(&tables->var[var].like->dtype);
}

static bool varies(const cm_join_input *in, const cm_join_dim *d)
{
    for (size_t f = 1; f < in->nfiles; f++)
        if (d->length[f].plus_one != d->length[0].plus_one)
            return true;
    return false;
}

/* Whether files differ in the length of no other dimension than D. */
static bool others_are_alike(const cm_join_input *in, const cm_join_tables *tables,
                             const cm_join_dim *d)
{
    for (size_t i = 0; i < tables->ndims; i++)
        if (&tables->dim[i] != d && !tables->dim[i].is_text && varies(in, &tables->dim[i]) &&
            cm_join_is_used(tables, &tables->dim[i]))
            return false;
    return true;
}

static bool has_elements(const cm_join_input *in, const cm_join_dim *d)
{
    for (size_t f = 0; f < in->nfiles; f++)
        if (cm_file_count(d->length[f]) > 0)
            return true;
    return false;
}

/*
 * The first dimension of fields that may have more elements, has one in each file, or varies.  One
 * beside which others vary, or without elements in any file, joins nothing.
 */
static const cm_join_dim *find_dimension(const cm_join_input *in, const cm_join_tables *tables)
{
    for (int turn = 0; turn < 3; turn++)
        for (size_t i = 0; i < tables->ndims; i++) {
            const cm_join_dim *d = &tables->dim[i];
            const bool fits = turn == 0   ? d->unlimited
                              : turn == 1 ? is_short(in, d)
                                          : varies(in, d);
            if (fits && is_everywhere(in, d) && has_elements(in, d) && has_no_order(tables, d) &&
                others_are_alike(in, tables, d) && is_in_fields(in, tables, d, turn == 1 ? 2 : 1))
                return d;
        }
    return NULL;
}

static int propose_scalar(cm_finding *f, const char *name, cm_error *err)
{
    f->by = CM_DECIDER_NEW_DIM;
    f->value = cm_asprintf(err, "%s=@%s", name, name);
    return f->value == NULL ? CM_ENOMEM : CM_OK;
}

/* ---- the joined dimension for what differs from file to file ---- */

/* Bytes of V, repeated for each step that its files have along D; UINT64_MAX: past counting. */
static uint64_t nbytes_along(const cm_join_tables *tables, const cm_join_var *v,
                             const cm_join_dim *d)
{
    uint64_t all = 0;
    for (size_t i = 0; i < v->nfiles; i++) {
        uint64_t n = v->dtype.nbytes;
        bool fine = cm_mul_u64(n, cm_file_count(d->length[v->file[i]]), &n);
        for (unsigned k = 0; fine && k < v->rank; k++)
            fine = cm_mul_u64(n, cm_file_count(tables->dim[v->dim[k]].length[v->file[i]]), &n);
        if (!fine || n > UINT64_MAX - all)
            return UINT64_MAX;
        all += n;
    }
    return all;
}

/*
 * Whether repeating V for each step of its file keeps all of it and takes no room to speak of: each
 * file is one step, or has some, and V is one number, or a text or a list whose copies are few: the
 * join has all of them in memory.
 */
static bool is_short_along(const cm_join_tables *tables, const cm_join_var *v, const cm_join_dim *d)
{
    enum {
        LIST_NBYTES = 16 << 20
    };
    bool one = true, some = true;
    for (size_t i = 0; i < v->nfiles; i++) {
        one &= cm_file_count(d->length[v->file[i]]) == 1;
        some &= cm_file_count(d->length[v->file[i]]) > 0;
    }
    return one || v->rank == 0 ||
           (some && v->rank - v->is_text <= 1 && v->bounds_of == CM_JOIN_NONE &&
            tables->dim[v->dim[0]].indexed_by == NULL && nbytes_along(tables, v, d) <= LIST_NBYTES);
}

/*
 * A value that changes once was corrected; one that differs in most files varies along the
 * dimension.
 */
static bool moves(const cm_join_input *in, const cm_join_tables *tables, const cm_join_axes *axes,
                  uint32_t at)
{
    const cm_join_var *v = &tables->var[at];
    cm_surveyed_var s;
    distinct d = {0};
    const uint32_t dim = cm_join_promotion_dim(in, tables, axes, v);
    bool fine = !in->has_base && dim != CM_JOIN_NONE && v->nlacking == 0 && v->widest == NULL &&
                !v->like->is_coordinate && is_short_along(tables, v, &tables->dim[dim]) &&
                (v->nfiles > 2 || v->rank == 0 || !cm_join_is_auxiliary(tables, at));
    for (size_t i = 0; fine && i < v->nfiles; i++) {
        fine = cm_join_record(in, tables, at, v->file[i], &s) && s.has_values;
        const cm_digest own =
            fine ? cm_join_meaning(in, tables, at, v->file[i], &s) : (cm_digest){0};
        fine = fine && add(&d, &own, sizeof(own), cm_join_skeleton(in, v->file[i]));
    }
    cm_known_release(&d.known);
    /* One number that differs tells, too, that steps which several files have are not the same. */
    return fine && d.n > v->nfiles / 2 &&
           (v->rank == 0 || cm_join_keeps_each_step(in, tables, at, dim));
}

int cm_join_propose_promotion(const cm_join_input *in, const cm_join_tables *tables,
                              const cm_join_axes *axes, uint32_t at, cm_finding *f, cm_error *err)
{
    if (f->weight != CM_WEIGHT_DECISION)
        return CM_OK;
    if (cm_join_value_splits(in, tables, axes, at) &&
        (f->value = cm_join_propose_apart(in, tables, axes, &f->by)) != NULL)
        return CM_OK;
    if (!moves(in, tables, axes, at))
        return CM_OK;
    f->by = CM_DECIDER_PROMOTE;
    return (f->value = cm_strdup(tables->var[at].name, err)) == NULL ? CM_ENOMEM : CM_OK;
}

/* ---- all ---- */

/* NAME, unless files have it. */
static const char *unused(const cm_join_tables *tables, const char *name, const char *otherwise)
{
    return cm_join_var_named(tables, name) == CM_JOIN_NONE &&
                   cm_join_dim_named(tables, name) == CM_JOIN_NONE
               ? name
               : otherwise;
}

static char *propose(const cm_join_input *in, const cm_join_tables *tables, cm_decider *by,
                     cm_error *err)
{
    char pattern[CM_MOST_PROPOSED];
    const cm_join_var *v = find_scalar(in, tables, true);
    *by = CM_DECIDER_NEW_DIM;
    if (v != NULL)
        return cm_asprintf(err, "%s=@%s", v->name, v->name);
    const cm_join_dim *d = find_dimension(in, tables);
    if (d != NULL && is_short(in, d) && find_dates(in, pattern))
        return cm_asprintf(err, "%s=%s", d->name, pattern);
    if (d != NULL) {
        *by = CM_DECIDER_ALONG;
        return cm_strdup(d->name, err);
    }
    if (cm_join_find_dates(in, pattern))
        return cm_asprintf(err, "%s=%s", unused(tables, "time", "date"), pattern);
    v = find_scalar(in, tables, false);
    if (v != NULL)
        return cm_asprintf(err, "%s=@%s", v->name, v->name);
    return find_star(in, false, pattern) || find_star(in, true, pattern)
               ? cm_asprintf(err, "%s=%s", unused(tables, "file", "input"), pattern)
               : NULL;
}

/* Two dimensions at once: F proposes the one, a finding of its own the other. */
static int propose_pair(const cm_join_tables *tables, cm_join_findings *findings, cm_finding *f,
                        uint32_t a, uint32_t b, cm_error *err)
{
    int rc = propose_scalar(f, tables->var[a].name, err);
    f = rc == CM_OK ? cm_join_find(findings, CM_FINDING_ALONG, CM_WEIGHT_DECISION, false,
                                   tables->var[b].name, 1, err,
                                   "files that have the same %s differ in it", tables->var[a].name)
                    : NULL;
    return f == NULL ? CM_ENOMEM : propose_scalar(f, tables->var[b].name, err);
}

int cm_join_propose(const cm_join_input *in, const cm_join_tables *tables,
                    cm_join_findings *findings, cm_finding *f, cm_error *err)
{
    cm_error why = {0};
    uint32_t a, b;
    f->by = CM_DECIDER_ALONG;
    if (in->options->along != NULL || in->options->new_dim.n > 0)
        return CM_OK;
    if (find_scalar(in, tables, true) == NULL && cm_join_find_pair(in, tables, &a, &b))
        return propose_pair(tables, findings, f, a, b, err);
    f->value = propose(in, tables, &f->by, &why);
    if (f->value == NULL && why.status != CM_OK)
        return cm_fail(err, CM_ENOMEM, "%s", why.text);
    return CM_OK;
}

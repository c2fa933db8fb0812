/*
 * Distinguishes files that have the same steps, and makes a second dimension of the difference:
 * members, levels, runs.  Proposes only a difference that leaves one file for each step of each
 * member.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "archive/axes/coordinate.h"
#include "archive/axes/made.h"
#include "archive/axes/propose.h"
#include "archive/tables/described.h"
#include "archive/tables/reading.h"
#include "model/name_pattern.h"

/* Whether each file has a cell of its own in a table, and no cell is left over. */
typedef struct table {
    cm_known row, column, cell;
    size_t nrows, ncolumns, ncells;
    bool fails;
} table;

static void count(table *t, cm_known *known, cm_digest digest, size_t *n)
{
    uint64_t before;
    if (cm_known_find(known, digest, &before))
        return;
    t->fails |= cm_known_add(known, digest, 0, NULL) != CM_OK;
    ++*n;
}

static void add(table *t, cm_digest row, cm_digest column)
{
    const cm_digest both[2] = {row, column};
    count(t, &t->row, row, &t->nrows);
    count(t, &t->column, column, &t->ncolumns);
    count(t, &t->cell, cm_wire_digest(both, sizeof(both)), &t->ncells);
}

static void release(table *t)
{
    cm_known_release(&t->row);
    cm_known_release(&t->column);
    cm_known_release(&t->cell);
}

/* Ends the table of N files. */
static bool is_full(table *t, size_t n)
{
    bool full = !t->fails && t->nrows > 1 && t->ncells == n && t->nrows * t->ncolumns == n;
    release(t);
    return full;
}

/* Of the names of FILE's variables: members may differ in attributes and in layout. */
static cm_digest names_of(const cm_join_input *in, const cm_join_tables *tables, uint32_t file)
{
    return tables->names[cm_join_skeleton(in, file)->index];
}

/* Which steps FILE has, and of which variables. */
static cm_digest steps_of(const cm_join_input *in, const cm_join_tables *tables,
                          const cm_join_axes *axes, uint32_t file)
{
    const cm_join_dim *d = &tables->dim[axes->axis[0]];
    const struct {
        cm_digest names;
        uint64_t steps;
    } id = {names_of(in, tables, file),
            d->at[file] == CM_JOIN_NONE ? UINT64_MAX : d->vec[d->at[file]].same};
    return cm_wire_digest(&id, sizeof(id));
}

/* ---- attributes and scalars ---- */

static bool attribute_tells(const cm_join_input *in, const cm_join_tables *tables,
                            const cm_join_axes *axes, const char *name)
{
    table t = {0};
    for (uint32_t i = 0; !t.fails && i < in->nfiles; i++) {
        char *text = NULL;
        t.fails = cm_join_read_attribute(in, i, name, &text, NULL) != CM_OK;
        if (!t.fails)
            add(&t, cm_wire_digest(text, strlen(text)), steps_of(in, tables, axes, i));
        free(text);
    }
    return is_full(&t, in->nfiles);
}

/* The value of AT in FILE; false: it has no usable one. */
static bool value_in(const cm_join_input *in, const cm_join_tables *tables, uint32_t at,
                     uint32_t file, cm_digest *out)
{
    cm_surveyed_var s;
    bool there = cm_join_record(in, tables, at, file, &s) && s.has_values;
    *out = there ? cm_join_meaning(in, tables, at, file, &s) : (cm_digest){0};
    return there;
}

static bool is_scalar(const cm_join_input *in, const cm_join_tables *tables, uint32_t at)
{
    const cm_join_var *v = &tables->var[at];
    return v->wanted && v->nfiles == in->nfiles && v->like->rank == 0 && v->rank == 0 &&
           !v->like->is_char && cm_dtype_is_number(&v->like->dtype) && strchr(v->name, '/') == NULL;
}

static bool value_tells(const cm_join_input *in, const cm_join_tables *tables,
                        const cm_join_axes *axes, uint32_t at)
{
    table t = {0};
    cm_digest own;
    for (uint32_t i = 0; !t.fails && i < in->nfiles; i++) {
        t.fails = !value_in(in, tables, at, i, &own);
        add(&t, own, steps_of(in, tables, axes, i));
    }
    return is_full(&t, in->nfiles);
}

static bool pair_tells(const cm_join_input *in, const cm_join_tables *tables, uint32_t a,
                       uint32_t b)
{
    table t = {0};
    cm_digest row, own;
    for (uint32_t i = 0; !t.fails && i < in->nfiles; i++) {
        t.fails = !value_in(in, tables, a, i, &row) || !value_in(in, tables, b, i, &own);
        const struct {
            cm_digest names, own;
        } column = {names_of(in, tables, i), own};
        add(&t, row, cm_wire_digest(&column, sizeof(column)));
    }
    const bool several = t.ncolumns > 1;
    return is_full(&t, in->nfiles) && several;
}

bool cm_join_find_pair(const cm_join_input *in, const cm_join_tables *tables, uint32_t *a,
                       uint32_t *b)
{
    for (*a = 0; *a < tables->nvars; ++*a)
        for (*b = 0; is_scalar(in, tables, *a) && cm_join_counts_time(tables->var[*a].like) &&
                     *b < tables->nvars;
             ++*b)
            if (is_scalar(in, tables, *b) && !cm_join_counts_time(tables->var[*b].like) &&
                pair_tells(in, tables, *a, *b))
                return true;
    return false;
}

/* ---- names ---- */

/*
 * The part of a name, between separators, in which the N files FILE differ, with MORE words round
 * it: "_r*i1p1f1_".
 */
static bool find_part(const cm_join_input *in, const uint32_t *file, size_t n, bool whole,
                      unsigned more, char *out)
{
    const char *separators = whole ? "/" : "_-.";
    cm_join_ends e;
    if (!cm_join_find_ends(in, file, n, whole, &e))
        return false;
    size_t begin = e.before, end = e.length - e.behind;
    for (unsigned k = 0; k <= (more + 1) / 2; k++)
        for (bool moved = false; begin > 0 && !(moved && strchr(separators, e.first[begin]));
             moved = true)
            begin--;
    for (unsigned k = 0; k <= more / 2; k++) {
        while (end < e.length && strchr(separators, e.first[end]) == NULL)
            end++;
        end += end < e.length;
    }
    int written =
        snprintf(out, CM_MOST_PROPOSED, "%.*s*%.*s", (int)(e.before - begin), e.first + begin,
                 (int)(end - (e.length - e.behind)), e.first + e.length - e.behind);
    return written > 1 && written < CM_MOST_PROPOSED && strcspn(out, "%?\\'") == (size_t)written;
}

/*
 * Tells files apart by the part of their names that PATTERN finds; where steps differ, by that
 * alone.
 */
static bool name_tells(const cm_join_input *in, const cm_join_tables *tables,
                       const cm_join_axes *axes, const char *pattern, bool same_steps)
{
    cm_name_pattern p;
    table t = {0};
    char option[CM_MOST_PROPOSED + 8];
    snprintf(option, sizeof(option), "x=%s", pattern);
    t.fails = cm_name_pattern_parse(option, &p, NULL) != CM_OK;
    for (uint32_t i = 0; !t.fails && i < in->nfiles; i++) {
        const char *text = NULL;
        size_t n = 0;
        t.fails = cm_name_pattern_value(&p, in->file[i]->path, &text, &n, NULL) != CM_OK;
        if (!t.fails)
            add(&t, cm_wire_digest(text, n),
                same_steps ? steps_of(in, tables, axes, i) : (cm_digest){0});
    }
    return is_full(&t, in->nfiles);
}

/* The part in which the N files FILE differ, of their names or else of their paths, if it tells. */
static bool find_telling(const cm_join_input *in, const cm_join_tables *tables,
                         const cm_join_axes *axes, const uint32_t *file, size_t n, bool same_steps,
                         char *out)
{
    enum {
        WORDS = 4 /* round it, where names have it more than once without them */
    };
    for (unsigned k = 0; k < 2 * (WORDS + 1); k++)
        if (find_part(in, file, n, k > WORDS, k % (WORDS + 1), out) &&
            name_tells(in, tables, axes, out, same_steps))
            return true;
    return false;
}

/* A part of the names that differs between files that have the steps of the first. */
static bool find_name(const cm_join_input *in, const cm_join_tables *tables,
                      const cm_join_axes *axes, char *out)
{
    const cm_digest like = steps_of(in, tables, axes, 0);
    uint32_t *file = cm_calloc(in->nfiles + 1, sizeof(*file), NULL);
    size_t n = 0;
    for (uint32_t i = 0; file != NULL && i < in->nfiles; i++)
        if (cm_wire_same(like, steps_of(in, tables, axes, i)))
            file[n++] = i;
    bool found = n > 1 && find_telling(in, tables, axes, file, n, true, out);
    free(file);
    return found;
}

/* ---- places ---- */

/* Whether V has one value in each file, or one text, along none of the joined dimensions. */
static bool is_single(const cm_join_input *in, const cm_join_tables *tables, const cm_join_var *v)
{
    bool single = v->rank == v->like->rank;
    for (unsigned i = 0; single && i < v->rank - v->is_text; i++) {
        const cm_join_dim *d = &tables->dim[v->dim[i]];
        single = d->joined < 0;
        for (size_t f = 0; single && f < in->nfiles; f++)
            single = cm_file_count(d->length[f]) == 1;
    }
    return single;
}

/* Whether AT is where the thing is that each file has: a number, of rank 0 or more. */
static bool is_place(const cm_join_input *in, const cm_join_tables *tables, uint32_t at)
{
    const cm_join_var *v = &tables->var[at];
    return v->wanted && v->nfiles == in->nfiles && cm_join_is_northing(v) &&
           is_single(in, tables, v) && cm_dtype_is_number(&v->like->dtype) && !v->like->is_char &&
           strchr(v->name, '/') == NULL;
}

/* The kind of thing that each file is, if V's single value or text identifies it; or NULL. */
static const char *identified_by(const cm_join_var *v)
{
    const char *role = cm_join_text(v->like, "cf_role");
    if (role == NULL)
        return cm_join_is_northing(v) ? "station" : NULL;
    if (strcmp(role, "timeseries_id") == 0)
        return "station";
    return strcmp(role, "trajectory_id") == 0 ? "trajectory" : NULL;
}

/* Whether AT has one value or text in each file, and most files have one of their own. */
static bool is_own(const cm_join_input *in, const cm_join_tables *tables, uint32_t at)
{
    const cm_join_var *v = &tables->var[at];
    table t = {0};
    cm_digest own;
    if (!v->wanted || v->nfiles < in->nfiles || !is_single(in, tables, v) ||
        strchr(v->name, '/') != NULL)
        return false;
    for (uint32_t i = 0; !t.fails && i < in->nfiles; i++) {
        t.fails = !value_in(in, tables, at, i, &own);
        add(&t, own, (cm_digest){0});
    }
    const bool most = !t.fails && t.nrows > in->nfiles / 2;
    (void)is_full(&t, in->nfiles);
    return most;
}

static bool is_unused(const cm_join_tables *tables, const char *name)
{
    return cm_join_var_named(tables, name) == CM_JOIN_NONE &&
           cm_join_dim_named(tables, name) == CM_JOIN_NONE;
}

/* A dimension of the stations, or trajectories, that the files are, by numbers or by names. */
static char *propose_places(const cm_join_input *in, const cm_join_tables *tables,
                            const cm_join_axes *axes)
{
    char pattern[CM_MOST_PROPOSED];
    const char *kind = NULL;
    for (uint32_t at = 0; kind == NULL && at < tables->nvars; at++) {
        const cm_join_var *v = &tables->var[at];
        const char *of = identified_by(v);
        if (of == NULL || !is_own(in, tables, at))
            continue;
        if (!cm_join_is_northing(v) && is_scalar(in, tables, at))
            return cm_asprintf(NULL, "%s=@%s", v->name, v->name);
        kind = of;
    }
    if (kind == NULL || !find_telling(in, tables, axes, NULL, in->nfiles, false, pattern))
        return NULL;
    return cm_asprintf(NULL, "%s%s=%s", kind, is_unused(tables, kind) ? "" : "_file", pattern);
}

/* ---- files that have some steps of others ---- */

/*
 * Whether files of the same variables, and of the same value of AT (CM_JOIN_NONE: of any), have the
 * same step.  True where that cannot be told.
 */
static bool shares_steps(const cm_join_input *in, const cm_join_tables *tables,
                         const cm_join_axes *axes, uint32_t at)
{
    const cm_join_dim *d = &tables->dim[axes->axis[0]];
    uint32_t *file = cm_calloc(in->nfiles, sizeof(*file), NULL);
    cm_digest *group = cm_calloc(in->nfiles, sizeof(*group), NULL);
    bool shared = file == NULL || group == NULL;
    for (uint32_t i = 0; !shared && i < in->nfiles; i++) {
        struct {
            cm_digest names, own;
        } id = {names_of(in, tables, i), {0}};
        shared = cm_axis_vec(in, d, i) == NULL ||
                 (at != CM_JOIN_NONE && !value_in(in, tables, at, i, &id.own));
        file[i] = i;
        group[i] = cm_wire_digest(&id, sizeof(id));
    }
    shared = shared || cm_axis_shares_steps(in, d, file, in->nfiles, group);
    free(file);
    free(group);
    return shared;
}

/*
 * The scalar whose files of one value have no step twice, though others do: a run of forecasts, a
 * basin.  NULL: there is none.
 */
static const cm_join_var *find_separating(const cm_join_input *in, const cm_join_tables *tables,
                                          const cm_join_axes *axes)
{
    if (!shares_steps(in, tables, axes, CM_JOIN_NONE))
        return NULL;
    for (int turn = 0; turn < 2; turn++)
        for (uint32_t i = 0; i < tables->nvars; i++)
            if (cm_join_counts_time(tables->var[i].like) == (turn == 0) &&
                is_scalar(in, tables, i) && !shares_steps(in, tables, axes, i))
                return &tables->var[i];
    return NULL;
}

/*
 * Whether all files hold the same variables and begin with the same step, and some have the same
 * steps throughout: series of several things, of which one ends before the others.
 */
static bool begins_alike(const cm_join_input *in, const cm_join_tables *tables,
                         const cm_join_axes *axes)
{
    const cm_join_dim *d = &tables->dim[axes->axis[0]];
    const cm_join_vec *first = cm_axis_vec(in, d, 0);
    size_t ndistinct = 0;
    for (uint32_t i = 0; i < in->nfiles; i++) {
        const cm_join_vec *v = cm_axis_vec(in, d, i);
        if (v == NULL || v->nruns == 0 || v->run[0].origin != first->run[0].origin ||
            !cm_wire_same(names_of(in, tables, i), names_of(in, tables, 0)))
            return false;
        ndistinct += v->file == i;
    }
    return ndistinct < in->nfiles;
}

/* Whether each file is a place of its own, by several numbers that fields have as coordinates. */
static bool are_places(const cm_join_input *in, const cm_join_tables *tables)
{
    size_t n = 0;
    for (uint32_t at = 0; at < tables->nvars; at++)
        n += cm_join_is_coordinate(tables, at) && !cm_join_counts_time(tables->var[at].like) &&
             is_scalar(in, tables, at) && is_own(in, tables, at);
    return n > 1;
}

/* Whether PATTERN finds one text for each value of AT, and another for each other value. */
static bool names_values(const cm_join_input *in, const cm_join_tables *tables, uint32_t at,
                         const char *pattern)
{
    cm_name_pattern p;
    table t = {0};
    char option[CM_MOST_PROPOSED + 8];
    snprintf(option, sizeof(option), "x=%s", pattern);
    t.fails = cm_name_pattern_parse(option, &p, NULL) != CM_OK;
    for (uint32_t i = 0; !t.fails && i < in->nfiles; i++) {
        const char *text = NULL;
        size_t n = 0;
        cm_digest value;
        t.fails = cm_name_pattern_value(&p, in->file[i]->path, &text, &n, NULL) != CM_OK ||
                  !value_in(in, tables, at, i, &value);
        if (!t.fails)
            add(&t, cm_wire_digest(text, n), value);
    }
    const bool alike = !t.fails && t.nrows == t.ncells && t.ncolumns == t.ncells;
    release(&t);
    return alike;
}

/* Whether AT is a place that files may have in common: the part of names that says it in OUT. */
static bool find_shared_place(const cm_join_input *in, const cm_join_tables *tables, uint32_t at,
                              char *out)
{
    cm_digest first, own;
    uint32_t pair[2] = {0, 0};
    if (!is_place(in, tables, at) || !value_in(in, tables, at, 0, &first))
        return false;
    for (uint32_t i = 1; pair[1] == 0 && i < in->nfiles; i++)
        if (value_in(in, tables, at, i, &own) && !cm_wire_same(own, first))
            pair[1] = i;
    for (unsigned k = 0; pair[1] > 0 && k < 4; k++)
        if (find_part(in, pair, 2, k > 1, k % 2, out) && names_values(in, tables, at, out))
            return true;
    return false;
}

/* A dimension of stations of which some have several files. */
static char *propose_shared_places(const cm_join_input *in, const cm_join_tables *tables)
{
    char pattern[CM_MOST_PROPOSED];
    for (uint32_t at = 0; is_unused(tables, "station") && at < tables->nvars; at++)
        if (find_shared_place(in, tables, at, pattern))
            return cm_asprintf(NULL, "station=%s", pattern);
    return NULL;
}

static char *propose_names(const cm_join_input *in, const cm_join_tables *tables,
                           const cm_join_axes *axes)
{
    char pattern[CM_MOST_PROPOSED];
    return find_telling(in, tables, axes, NULL, in->nfiles, false, pattern)
               ? cm_asprintf(NULL, "%s=%s", is_unused(tables, "file") ? "file" : "input", pattern)
               : NULL;
}

/* ---- a dimension that is there ---- */

/* Whether files that have one place of D each say the same of it, as far as the survey knows. */
static bool is_one_place(const cm_join_input *in, const cm_join_tables *tables, uint32_t d)
{
    cm_surveyed_var first, other;
    bool known = false;
    for (uint32_t at = 0; at < tables->nvars; at++) {
        const cm_join_var *v = &tables->var[at];
        if (!v->wanted || v->rank != 1 || v->dim[0] != d || v->like->unsupported != NULL ||
            !cm_join_record(in, tables, at, v->first, &first) || !first.has_values)
            continue;
        known = true;
        for (size_t i = 1; i < v->nfiles; i++)
            if (cm_join_record(in, tables, at, v->file[i], &other) && other.has_values &&
                !cm_join_same_values(in, tables, at, v->first, &first, v->file[i], &other, NULL))
                return false;
    }
    return known;
}

/* Whether each file is one place of D, which a string names, and all steps lie along it, too. */
static bool is_named_place(const cm_join_input *in, const cm_join_tables *tables, uint32_t d,
                           uint32_t joined)
{
    bool named = false;
    for (size_t i = 0; i < in->nfiles; i++)
        if (cm_file_count(tables->dim[d].length[i]) != 1)
            return false;
    for (uint32_t at = 0; at < tables->nvars; at++) {
        const cm_join_var *v = &tables->var[at];
        bool along = false, steps = false;
        for (unsigned k = 0; k < v->rank; k++) {
            along |= v->dim[k] == d;
            steps |= v->dim[k] == joined;
        }
        if (v->wanted && steps && !along && !v->like->is_coordinate &&
            !cm_join_is_auxiliary(tables, at))
            return false;
        named |= v->wanted && along && v->rank == 1 && v->nfiles == in->nfiles &&
                 cm_dtype_is_vlen(&v->like->dtype);
    }
    return named && !is_one_place(in, tables, d);
}

/*
 * Stations of a file each: their names, which a survey does not read, lie along a dimension of one
 * element, and would not get another.
 */
static const cm_join_dim *find_place(const cm_join_input *in, const cm_join_tables *tables,
                                     const cm_join_axes *axes)
{
    for (uint32_t i = 0; in->options->along == NULL && i < tables->ndims; i++)
        if (tables->dim[i].joined < 0 && tables->dim[i].kind == CM_KEY_NONE &&
            is_named_place(in, tables, i, axes->axis[0]))
            return &tables->dim[i];
    return NULL;
}

/* ---- all ---- */

bool cm_join_value_splits(const cm_join_input *in, const cm_join_tables *tables,
                          const cm_join_axes *axes, uint32_t at)
{
    const cm_join_var *v = &tables->var[at];
    if (in->has_base || axes->naxes != 1 || in->options->new_dim.n > 0 || !v->wanted ||
        v->nfiles < in->nfiles)
        return false;
    if (v->rank == 1 && !v->is_text && find_place(in, tables, axes) == &tables->dim[v->dim[0]])
        return true;
    if (v->like->is_coordinate || v->bounds_of != CM_JOIN_NONE)
        return false;
    if (v->like->rank == v->is_text && value_tells(in, tables, axes, at))
        return true;
    char *places = propose_places(in, tables, axes);
    if (places == NULL && begins_alike(in, tables, axes))
        places = propose_names(in, tables, axes);
    free(places);
    return places != NULL || find_separating(in, tables, axes) != NULL;
}

static char *propose(const cm_join_input *in, const cm_join_tables *tables,
                     const cm_join_axes *axes, cm_decider *by)
{
    static const char *const MEMBER[] = {
        "realization_index", "realization",     "variant_label",       "ensemble_member", "member",
        "ensemble",          "ensemble_number", "initialization_index"};
    char pattern[CM_MOST_PROPOSED];
    const cm_join_var *scalar = NULL;
    size_t nscalars = 0;
    const char *name = "member";
    for (size_t i = 0; is_unused(tables, name) && i < sizeof(MEMBER) / sizeof(MEMBER[0]); i++)
        if (attribute_tells(in, tables, axes, MEMBER[i]))
            return cm_asprintf(NULL, "member=@%s", MEMBER[i]);
    for (uint32_t i = 0; i < tables->nvars; i++) {
        const bool place = is_place(in, tables, i) && is_unused(tables, "station");
        if (!(place || is_scalar(in, tables, i)) || !value_tells(in, tables, axes, i))
            continue;
        if (is_scalar(in, tables, i))
            scalar = nscalars++ == 0 ? &tables->var[i] : scalar;
        name = place ? "station" : name;
    }
    char *places = nscalars == 0 ? propose_places(in, tables, axes) : NULL;
    if (places != NULL)
        return places;
    if (nscalars == 0 && cm_axis_is_index(in, tables, &tables->dim[axes->axis[0]])) {
        *by = CM_DECIDER_ORDER;
        return cm_strdup("name", NULL);
    }
    /* One is a coordinate, as a level; several describe the same things, as places of stations. */
    if (nscalars != 1 && is_unused(tables, name) && find_name(in, tables, axes, pattern))
        return cm_asprintf(NULL, "%s=%s", name, pattern);
    if (scalar == NULL)
        scalar = find_separating(in, tables, axes);
    const bool timed = scalar != NULL && cm_join_counts_time(scalar->like);
    const bool may_be_places = nscalars == 0 && !timed;
    if (may_be_places && (places = propose_shared_places(in, tables)) != NULL)
        return places;
    const bool by_names = (may_be_places && are_places(in, tables)) ||
                          (scalar == NULL && begins_alike(in, tables, axes));
    char *names = by_names ? propose_names(in, tables, axes) : NULL;
    if (names != NULL || scalar == NULL)
        return names;
    return cm_asprintf(NULL, "%s=@%s", scalar->name, scalar->name);
}

char *cm_join_propose_apart(const cm_join_input *in, const cm_join_tables *tables,
                            const cm_join_axes *axes, cm_decider *by)
{
    if (in->has_base || axes->naxes != 1 || in->options->new_dim.n > 0)
        return NULL;
    const cm_join_dim *place = find_place(in, tables, axes);
    cm_decider own = place != NULL ? CM_DECIDER_ALONG : CM_DECIDER_NEW_DIM;
    char *value = place != NULL ? cm_strdup(place->name, NULL) : propose(in, tables, axes, &own);
    if (value != NULL)
        *by = own;
    return value;
}

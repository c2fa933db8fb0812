#include "model/name_pattern.h"

#include <ctype.h>
#include <string.h>
#include <strings.h>

#include "base/path.h"
#include "model/days.h"

enum {
    MAX_STARS = 4 /* each may try every length of the name */
};

static const char WORD_END[] = "_./";

static const char *const MONTHS[] = {"January",   "February", "March",    "April",
                                     "May",       "June",     "July",     "August",
                                     "September", "October",  "November", "December"};

/* ---- the pattern itself --------------------------------------------------------------------- */

static int check_letters(const char *text, cm_error *err)
{
    bool year = false, month = false, day_of_year = false;
    for (const char *p = text; *p; p++) {
        if (*p != '%')
            continue;
        p++;
        if (!*p || strchr("YymbBdjHMSf%", *p) == NULL)
            return cm_fail(err, CM_EINVAL,
                           "'%%%.1s' is not one of %%Y %%y %%m %%b %%B %%d %%j %%H "
                           "%%M %%S %%f",
                           p);
        year |= *p == 'Y' || *p == 'y';
        month |= *p == 'm' || *p == 'b' || *p == 'B' || *p == 'd';
        day_of_year |= *p == 'j';
    }
    if (!year)
        return cm_fail(err, CM_EINVAL, "'%.200s' has no year (%%Y)", text);
    if (month && day_of_year)
        return cm_fail(err, CM_EINVAL, "'%.200s' has a day of the year (%%j) and a month or day",
                       text);
    return CM_OK;
}

int cm_name_pattern_parse(const char *option, cm_name_pattern *out, cm_error *err)
{
    const char *equals = strchr(option, '=');
    const size_t ndim = equals != NULL ? (size_t)(equals - option) : 0;
    if (ndim == 0 || ndim >= sizeof out->dim || !equals[1] ||
        strlen(equals + 1) >= sizeof out->text)
        return cm_fail(err, CM_EINVAL, "'%.200s' is not NAME=PATTERN", option);
    memset(out, 0, sizeof *out);
    memcpy(out->dim, option, ndim);
    strcpy(out->text, equals + 1);
    size_t stars = 0;
    for (const char *p = out->text; *p; p++)
        stars += *p == '*';
    if (stars > MAX_STARS)
        return cm_fail(err, CM_EINVAL, "'%.200s' has more than %d '*'", option, MAX_STARS);
    if (out->text[0] == '@') {
        memmove(out->text, out->text + 1, strlen(out->text));
        out->kind = CM_PATTERN_ATTRIBUTE;
        return out->text[0] ? CM_OK
                            : cm_fail(err, CM_EINVAL, "'%.200s' names no attribute", option);
    }
    if (strchr(out->text, '%') != NULL) {
        out->kind = CM_PATTERN_TIME;
        return check_letters(out->text, err);
    }
    out->kind = CM_PATTERN_TEXT;
    if (!stars || !strcmp(out->text, "*"))
        return cm_fail(
            err, CM_EINVAL,
            "'%.200s' must have %%Y (a date), one '*' (the value), or begin with '@' (an "
            "attribute)",
            out->text);
    return CM_OK;
}

/* ---- matching at one place ------------------------------------------------------------------ */

typedef struct stamp {
    int64_t year, day_of_year, hour, minute, second, us;
    int month, day;
} stamp;

typedef struct match {
    const cm_name_pattern *pattern;
    cm_calendar calendar;
    const char *name;
    stamp at;
    const char *star, *star_end; /* what the first `*` stands for */
    const char *end;
} match;

static size_t ndigits(const char *p, size_t most)
{
    size_t n = 0;
    while (n < most && isdigit((unsigned char)p[n]))
        n++;
    return n;
}

static bool read_number(const char **p, size_t least, size_t most, int64_t low, int64_t high,
                        int64_t *out)
{
    const size_t n = ndigits(*p, most);
    if (n < least)
        return false;
    *out = 0;
    for (size_t i = 0; i < n; i++)
        *out = *out * 10 + (*p)[i] - '0';
    *p += n;
    return *out >= low && *out <= high;
}

static bool read_month_name(const char **p, bool whole, int *out)
{
    for (int i = 0; i < 12; i++) {
        const size_t n = whole ? strlen(MONTHS[i]) : 3;
        if (!strncasecmp(*p, MONTHS[i], n)) {
            *p += n;
            *out = i + 1;
            return true;
        }
    }
    return false;
}

static bool read_fraction(const char **p, int64_t *us)
{
    const size_t n = ndigits(*p, 6);
    int64_t scale = 1000000;
    *us = 0;
    for (size_t i = 0; i < n; i++) {
        scale /= 10;
        *us += scale * ((*p)[i] - '0');
    }
    *p += n;
    return n > 0;
}

static bool read_letter(char letter, const char **p, stamp *at)
{
    int64_t v = 0;
    bool ok;
    switch (letter) {
    case 'Y':
        return read_number(p, 4, 4, 0, 9999, &at->year);
    case 'y':
        ok = read_number(p, 2, 2, 0, 99, &v);
        at->year = v + (v < 69 ? 2000 : 1900);
        return ok;
    case 'm':
        ok = read_number(p, 1, 2, 1, 12, &v);
        at->month = (int)v;
        return ok;
    case 'd':
        ok = read_number(p, 1, 2, 1, 31, &v);
        at->day = (int)v;
        return ok;
    case 'b':
    case 'B':
        return read_month_name(p, letter == 'B', &at->month);
    case 'j':
        return read_number(p, 3, 3, 1, 366, &at->day_of_year);
    case 'H':
        return read_number(p, 1, 2, 0, 23, &at->hour);
    case 'M':
        return read_number(p, 1, 2, 0, 59, &at->minute);
    case 'S':
        return read_number(p, 1, 2, 0, 59, &at->second);
    case 'f':
        return read_fraction(p, &at->us);
    default: /* %% */
        ok = **p == '%';
        *p += ok;
        return ok;
    }
}

static bool match_here(match *m, const char *t, const char *p);

/* `*`, the shortest text first. */
static bool match_star(match *m, const char *t, const char *p)
{
    const bool first = m->star == NULL, value = m->pattern->kind == CM_PATTERN_TEXT;
    const stamp at = m->at;
    for (const char *end = value && !*t ? p + strcspn(p, WORD_END) : p;; end++) {
        if (first) {
            m->star = p;
            m->star_end = end;
        }
        m->at = at;
        if ((end > p || !value) && match_here(m, t, end))
            return true;
        if (!*end || *end == '/')
            break;
    }
    if (first)
        m->star = m->star_end = NULL;
    return false;
}

static bool match_here(match *m, const char *t, const char *p)
{
    for (; *t; t++) {
        if (*t == '*')
            return match_star(m, t + 1, p);
        if (*t == '%' && m->pattern->kind == CM_PATTERN_TIME) {
            t++;
            if (!read_letter(*t, &p, &m->at))
                return false;
        } else if (*t == '?' ? !*p || *p == '/' : *p != *t) {
            return false;
        } else {
            p++;
        }
    }
    m->end = p;
    return true;
}

/* False when the calendar has no such day. */
static bool instant(const match *m, int64_t *us)
{
    const stamp *at = &m->at;
    cm_day date = {.year = at->year, .month = at->month, .day = at->day};
    int64_t days;
    if (!cm_days_from_date(m->calendar, &date, &days))
        return false;
    if (at->day_of_year) {
        days += at->day_of_year - 1;
        if (cm_days_to_date(m->calendar, days).year != at->year)
            return false;
    }
    *us = (((days * 24 + at->hour) * 60 + at->minute) * 60 + at->second) * 1000000 + at->us;
    return true;
}

/* ---- looking through the name --------------------------------------------------------------- */

static bool match_at(match *m, const cm_name_pattern *pattern, cm_calendar calendar,
                     const char *name, const char *p)
{
    *m = (match){.pattern = pattern, .calendar = calendar, .name = name};
    m->at.month = m->at.day = 1;
    return match_here(m, pattern->text, p);
}

/* Does a number at either end of the pattern go on in the name? */
static bool touches_digits(const match *m, const char *start)
{
    const char *t = m->pattern->text;
    const size_t n = strlen(t);
    const bool begins = t[0] == '%' && isalpha((unsigned char)t[1]);
    const bool ends = n >= 2 && t[n - 2] == '%' && isalpha((unsigned char)t[n - 1]);
    return (begins && start > m->name && isdigit((unsigned char)start[-1])) ||
           (ends && isdigit((unsigned char)*m->end));
}

static const char *matched_part(const cm_name_pattern *pattern, const char *path)
{
    return strchr(pattern->text, '/') != NULL ? path : cm_path_last(path);
}

static int no_match(const cm_name_pattern *pattern, const char *name, cm_error *err)
{
    return cm_fail(err, CM_ENOTFOUND, "the name '%.200s' does not match '%.200s'", name,
                   pattern->text);
}

int cm_name_pattern_time(const cm_name_pattern *pattern, cm_calendar calendar, const char *path,
                         int64_t *us, cm_error *err)
{
    const char *name = matched_part(pattern, path);
    bool found = false, clean = false, two = false;
    int64_t other = 0;
    for (const char *p = name; *p; p++) {
        match m;
        int64_t here;
        if (!match_at(&m, pattern, calendar, name, p) || !instant(&m, &here))
            continue;
        const bool is_clean = !touches_digits(&m, p);
        if (found && clean && !is_clean)
            continue;
        if (!found || (is_clean && !clean)) {
            *us = here;
            two = false;
        } else if (here != *us) {
            other = here;
            two = true;
        }
        found = true;
        clean = is_clean;
    }
    if (!found)
        return no_match(pattern, name, err);
    if (!two)
        return CM_OK;
    const cm_time_axis axis = {.calendar = calendar, .unit_us = 1, .per_us = 1};
    char a[40], b[40];
    return cm_fail(err, CM_EINVAL,
                   "the name '%.200s' matches '%.200s' twice, as %s and as %s; add some of the "
                   "text that stands before or behind the date",
                   name, pattern->text, cm_time_axis_text(&axis, *us, a, sizeof a),
                   cm_time_axis_text(&axis, other, b, sizeof b));
}

int cm_name_pattern_value(const cm_name_pattern *pattern, const char *path, const char **value,
                          size_t *nvalue, cm_error *err)
{
    const char *name = matched_part(pattern, path), *star = strchr(pattern->text, '*');
    const bool several = star != NULL && strchr(star + 1, '*') != NULL;
    bool found = false, two = false;
    for (const char *p = name; *p; p++) {
        match m;
        if (star == pattern->text && p > name && strchr(WORD_END, p[-1]) == NULL)
            continue;
        if (!match_at(&m, pattern, CM_CALENDAR_STANDARD, name, p))
            continue;
        const char *v = several ? p : m.star;
        const size_t n = (size_t)((several ? m.end : m.star_end) - v);
        if (!found || n < *nvalue) {
            *value = v;
            *nvalue = n;
            two = false;
        } else if (n == *nvalue && memcmp(v, *value, n) != 0) {
            two = true;
        }
        found = true;
    }
    if (!found)
        return no_match(pattern, name, err);
    if (two)
        return cm_fail(err, CM_EINVAL, "the name '%.200s' matches '%.200s' more than once", name,
                       pattern->text);
    return CM_OK;
}

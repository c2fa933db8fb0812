#include "model/step.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/number.h"
#include "model/days.h"

#define DAY_US    INT64_C(86400000000)
#define JITTER_US 1000

static int64_t distance(int64_t a, int64_t b)
{
    int64_t d;
    return __builtin_sub_overflow(b, a, &d) || d <= 0 ? 0 : d;
}

/* How many STEPs make D; 0 when no number does. */
static int64_t multiple(int64_t d, int64_t step, int64_t jitter)
{
    const int64_t k = (d + step / 2) / step;
    const int64_t off = d - k * step;
    return off <= jitter && off >= -jitter ? k : 0;
}

/* The smallest of N - 1 distances, where it is a step; else 0. */
static int64_t common_step(int64_t (*apart)(const void *values, uint64_t i), const void *values,
                           uint64_t n, int64_t jitter)
{
    int64_t step = INT64_MAX / 4;
    uint64_t equal = 0;
    for (uint64_t i = 1; i < n; i++) {
        const int64_t d = apart(values, i);
        step = d < step ? d : step;
    }
    if (step <= 2 * jitter)
        return 0;
    for (uint64_t i = 1; i < n; i++) {
        const int64_t k = multiple(apart(values, i), step, jitter);
        if (k == 0)
            return 0;
        equal += k == 1;
    }
    return 2 * equal >= n - 1 ? step : 0;
}

/* A step that is a second but for its jitter: the jitter of one would add up over many. */
static int64_t whole_second(int64_t step)
{
    const int64_t second = 1000000, whole = (step + second / 2) / second * second;
    return whole && llabs(whole - step) <= JITTER_US ? whole : step;
}

static int64_t apart_us(const void *values, uint64_t i)
{
    const int64_t *us = values;
    return distance(us[i - 1], us[i]);
}

/* ---- months --------------------------------------------------------------------------------- */

static int64_t floor_div(int64_t a, int64_t b)
{
    return a / b - (a % b < 0);
}

/* The months before the one that an instant lies in, from year 0. */
static int64_t month_of(cm_calendar calendar, int64_t us)
{
    const cm_day day = cm_days_to_date(calendar, floor_div(us, DAY_US));
    return day.year * 12 + day.month - 1;
}

static bool month_begin(cm_calendar calendar, int64_t month, int64_t *us)
{
    const cm_day first = {.year = floor_div(month, 12),
                          .month = (int)(month - floor_div(month, 12) * 12) + 1,
                          .day = 1};
    int64_t days;
    return cm_days_from_date(calendar, &first, &days) && !__builtin_mul_overflow(days, DAY_US, us);
}

typedef struct calendar_values {
    cm_calendar calendar;
    const int64_t *us;
} calendar_values;

static int64_t apart_months(const void *values, uint64_t i)
{
    const calendar_values *v = values;
    return month_of(v->calendar, v->us[i]) - month_of(v->calendar, v->us[i - 1]);
}

static bool at_phase(const cm_time_step *step, int64_t month, int64_t *us)
{
    int64_t begin, end;
    if (!month_begin(step->calendar, month, &begin) ||
        !month_begin(step->calendar, month + 1, &end))
        return false;
    switch (step->phase) {
    case CM_PHASE_BEGIN:
        *us = begin + step->phase_us;
        return *us < end;
    case CM_PHASE_END:
        *us = end - step->phase_us;
        return *us >= begin;
    case CM_PHASE_MIDDLE:
        *us = begin + (end - begin) / 2;
        return true;
    case CM_PHASE_UNKNOWN:
        break;
    }
    return false;
}

static bool phase_fits(const cm_time_step *step, const int64_t *us, uint64_t n)
{
    for (uint64_t i = 0; i < n; i++) {
        int64_t want;
        if (!at_phase(step, month_of(step->calendar, us[i]), &want) ||
            llabs(want - us[i]) > JITTER_US)
            return false;
    }
    return true;
}

static void find_phase(cm_time_step *step, const int64_t *us, uint64_t n)
{
    static const cm_time_step_phase PHASES[] = {CM_PHASE_BEGIN, CM_PHASE_END, CM_PHASE_MIDDLE};
    const int64_t month = month_of(step->calendar, us[0]);
    int64_t begin, end;
    if (!month_begin(step->calendar, month, &begin) ||
        !month_begin(step->calendar, month + 1, &end))
        return;
    for (size_t i = 0; i < sizeof PHASES / sizeof *PHASES; i++) {
        step->phase = PHASES[i];
        step->phase_us = step->phase == CM_PHASE_BEGIN ? us[0] - begin : end - us[0];
        if (phase_fits(step, us, n))
            return;
    }
    step->phase = CM_PHASE_UNKNOWN;
}

/* ---- steps ---------------------------------------------------------------------------------- */

bool cm_time_step_infer(cm_calendar calendar, const int64_t *us, uint64_t n, cm_time_step *out)
{
    const calendar_values values = {calendar, us};
    *out = (cm_time_step){.calendar = calendar};
    if (n < 2)
        return false;
    out->us = whole_second(common_step(apart_us, us, n, JITTER_US));
    if (out->us) {
        out->kind = CM_TIME_STEP_FIXED;
        return true;
    }
    out->months = common_step(apart_months, &values, n, 0);
    if (!out->months)
        return false;
    out->kind = CM_TIME_STEP_MONTHS;
    find_phase(out, us, n);
    return true;
}

uint64_t cm_time_step_missing(const cm_time_step *step, int64_t a_us, int64_t b_us)
{
    int64_t k = 0;
    const int64_t d = distance(a_us, b_us);
    if (step->kind == CM_TIME_STEP_FIXED && d && d < INT64_MAX / 4)
        k = multiple(d, step->us, JITTER_US);
    else if (step->kind == CM_TIME_STEP_MONTHS && d)
        k = multiple(month_of(step->calendar, b_us) - month_of(step->calendar, a_us), step->months,
                     0);
    return k > 0 ? (uint64_t)k - 1 : 0;
}

bool cm_time_step_add(const cm_time_step *step, int64_t a_us, uint64_t n, int64_t *out)
{
    int64_t by;
    if (n > INT64_MAX)
        return false;
    if (step->kind == CM_TIME_STEP_FIXED)
        return !__builtin_mul_overflow(step->us, (int64_t)n, &by) &&
               !__builtin_add_overflow(a_us, by, out);
    return step->kind == CM_TIME_STEP_MONTHS &&
           !__builtin_mul_overflow(step->months, (int64_t)n, &by) &&
           !__builtin_add_overflow(by, month_of(step->calendar, a_us), &by) &&
           at_phase(step, by, out);
}

bool cm_time_step_move(const cm_time_step *step, int64_t from_us, int64_t to_us, int64_t a_us,
                       int64_t *out)
{
    int64_t by, begin, end;
    if (step->kind == CM_TIME_STEP_FIXED)
        return !__builtin_sub_overflow(to_us, from_us, &by) &&
               !__builtin_add_overflow(a_us, by, out);
    const int64_t month = month_of(step->calendar, a_us);
    if (step->kind != CM_TIME_STEP_MONTHS || !month_begin(step->calendar, month, &begin) ||
        !month_begin(step->calendar, month + 1, &end))
        return false;
    cm_time_step edge = *step;
    edge.phase = a_us - begin <= end - a_us ? CM_PHASE_BEGIN : CM_PHASE_END;
    edge.phase_us = edge.phase == CM_PHASE_BEGIN ? a_us - begin : end - a_us;
    by = month_of(step->calendar, to_us) - month_of(step->calendar, from_us);
    return at_phase(&edge, month + by, out);
}

char *cm_time_step_text(const cm_time_step *step, char *buf, size_t size)
{
    static const struct {
        const char *name;
        int64_t us;
    } UNIT[] = {{"day", DAY_US}, {"hour", DAY_US / 24}, {"minute", 60000000}, {"second", 1000000}};
    if (step->kind == CM_TIME_STEP_NONE) {
        snprintf(buf, size, "no step");
        return buf;
    }
    if (step->kind == CM_TIME_STEP_MONTHS) {
        snprintf(buf, size, "%lld month%s", (long long)step->months,
                 cm_of_count(step->months, "", "s"));
        return buf;
    }
    size_t u = 0;
    while (u < 3 && step->us % UNIT[u].us)
        u++;
    char number[32];
    cm_format_double((double)step->us / (double)UNIT[u].us, number, sizeof number);
    if (step->us % UNIT[u].us == 0)
        snprintf(number, sizeof number, "%lld", (long long)(step->us / UNIT[u].us));
    snprintf(buf, size, "%s %s%s", number, UNIT[u].name, step->us == UNIT[u].us ? "" : "s");
    return buf;
}

/* ---- numbers -------------------------------------------------------------------------------- */

/* Numbers further apart have no step. */
#define MOST_STEPS 1000000000000000 /* 10^15, exact as a double */

static uint64_t number_multiple(double d, double step)
{
    const double k = rint(d / step);
    return k >= 1 && k < MOST_STEPS && fabs(d - k * step) <= 1e-6 * step * k ? (uint64_t)k : 0;
}

bool cm_number_step_infer(const double *values, uint64_t n, double *out)
{
    double step = INFINITY;
    uint64_t equal = 0;
    for (uint64_t i = 1; i < n; i++)
        step = fmin(step, values[i] - values[i - 1]);
    if (!(step > 0) || isinf(step))
        return false;
    for (uint64_t i = 1; i < n; i++) {
        const uint64_t k = number_multiple(values[i] - values[i - 1], step);
        if (k == 0)
            return false;
        equal += k == 1;
    }
    *out = step;
    return 2 * equal >= n - 1;
}

uint64_t cm_number_step_missing(double step, double a, double b)
{
    const uint64_t k = number_multiple(b - a, step);
    return k ? k - 1 : 0;
}

bool cm_integer_step_infer(const int64_t *values, uint64_t n, uint64_t *out)
{
    uint64_t step = UINT64_MAX, equal = 0;
    for (uint64_t i = 1; i < n; i++) {
        const uint64_t d = (uint64_t)values[i] - (uint64_t)values[i - 1];
        if (values[i] <= values[i - 1])
            return false;
        step = d < step ? d : step;
    }
    for (uint64_t i = 1; i < n; i++) {
        const uint64_t d = (uint64_t)values[i] - (uint64_t)values[i - 1];
        if (d % step != 0 || d / step >= MOST_STEPS)
            return false;
        equal += d == step;
    }
    *out = step;
    return n > 1 && 2 * equal >= n - 1;
}

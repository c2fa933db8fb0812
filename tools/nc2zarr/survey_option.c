/* Which option decides a finding. */
#include <stdio.h>
#include <string.h>

#include "../common/growth.h"
#include "base/number.h"
#include "survey.h"

/* Options that a store which grows allows do not decide what it keeps. */
static bool is_settled_by_store(const cm_finding *f)
{
    return f->of_store && (f->kind == CM_FINDING_PACKING || f->kind == CM_FINDING_TIME_UNITS);
}

static bool set(nc2zarr_option *o, const char *name, const char *value)
{
    o->name = name;
    int n = snprintf(o->value, sizeof(o->value), "%s", value);
    return n >= 0 && (size_t)n < sizeof(o->value);
}

/* The finding's own proposal. */
static bool take_proposed(const cm_finding *f, nc2zarr_option *o)
{
    static const char *const OPTION[] = {[CM_DECIDER_ALONG] = "along",
                                         [CM_DECIDER_NEW_DIM] = "new-dim",
                                         [CM_DECIDER_PROMOTE] = "promote",
                                         [CM_DECIDER_DTYPE] = "dtype",
                                         [CM_DECIDER_TOLERANCE] = "tolerance",
                                         [CM_DECIDER_ORDER] = "order",
                                         [CM_DECIDER_EXCLUDE] = "exclude",
                                         [CM_DECIDER_RENAME] = "rename",
                                         [CM_DECIDER_MERGE_ALONG] = "merge-along",
                                         [CM_DECIDER_CHAR] = "char"};
    /* A quote within quotes: no file name of an archive has one. */
    return f->value != NULL && strchr(f->value, '\'') == NULL && set(o, OPTION[f->by], f->value);
}

static bool propose(const cm_finding *f, nc2zarr_option *o)
{
    char text[sizeof(o->value)];
    if (f->by != CM_DECIDER_OF_KIND)
        return take_proposed(f, o);
    switch (f->kind) {
    case CM_FINDING_UNREADABLE:
        return set(o, "bad-file", "skip");
    case CM_FINDING_OFFLINE:
        return set(o, "offline", "skip");
    case CM_FINDING_PACKING:
        return set(o, "packing", "unpack");
    case CM_FINDING_TYPE: /* numbers and text: no type decides */
        return f->weight != CM_WEIGHT_DECISION && set(o, "dtype", "");
    case CM_FINDING_FILL:
        return set(o, "fill-value", "");
    case CM_FINDING_MISSING:
    case CM_FINDING_HOLES:
        return set(o, "missing", "fill");
    case CM_FINDING_STATIC:
        snprintf(text, sizeof(text), "%s:first", f->variable);
        return set(o, "static", text);
    case CM_FINDING_OVERLAP:
        return set(o, "overlap", "first");
    case CM_FINDING_GAP:
        return set(o, "gaps", "fill");
    case CM_FINDING_MEANING:
        return set(o, "attrs", "first");
    case CM_FINDING_TIME_UNITS:
        return f->weight != CM_WEIGHT_DECISION && set(o, "time-units", "UNITS");
    case CM_FINDING_NEW_VARIABLE:
        return set(o, "exclude", f->variable);
    case CM_FINDING_NAME:
        snprintf(text, sizeof(text), "%s=%s", f->variable, f->other);
        return set(o, "rename", text);
    case CM_FINDING_COORDINATE:
        return f->apart > 0 && set(o, "tolerance", cm_format_double(f->apart, text, sizeof(text)));
    default:
        return false;
    }
}

bool nc2zarr_option_of(const cm_finding *f, nc2zarr_option *o)
{
    return !is_settled_by_store(f) && propose(f, o) &&
           !(f->of_store && cm_growth_forbids(&NC2ZARR, o->name, true));
}

const char *nc2zarr_option_for(const cm_finding *f, char *buf, size_t size)
{
    nc2zarr_option o;
    if (!nc2zarr_option_of(f, &o))
        return "";
    /* Quoted where a shell would take it apart. */
    const bool plain = o.value[strcspn(o.value, " \t\n*?[]'\"\\$&;|<>()`!#~")] == '\0';
    snprintf(buf, size, plain ? "--%s%s%s" : "--%s%s'%s'", o.name, o.value[0] != '\0' ? " " : "",
             o.value);
    return buf;
}

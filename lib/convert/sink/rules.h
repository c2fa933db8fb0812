/*
 * Which options go with which sink.  The library refuses by this table what is set, and names
 * fields; programs refuse by it what was typed, before anything is opened.
 */
#ifndef CM_CONVERT_SINK_RULES_H
#define CM_CONVERT_SINK_RULES_H

#include <chunkmill/transform.h>

/* A field of the options, of what kind it is. */
typedef enum cm_sink_field {
    CM_SINK_NO_FIELD, /* programs alone know the option */
    CM_SINK_TEXTS,
    CM_SINK_TEXT,
    CM_SINK_CHOICE, /* set where it is not the first */
    CM_SINK_FLAG
} cm_sink_field;

/* Kinds of sinks, by which rules refuse options. */
typedef enum cm_sink_kind {
    CM_SINK_FREE, /* a store of its own, or a part of one */
    CM_SINK_GROWS,
    CM_SINK_REFERS,
    CM_SINK_COMMITS,  /* to a repository */
    CM_SINK_COMPARES, /* a store that is there */
    CM_SINK_KINDS
} cm_sink_kind;

/* To which sources a rule applies: many files that are one dataset, or one source. */
typedef enum cm_sink_source {
    CM_SINK_ANY,
    CM_SINK_FILES,
    CM_SINK_ONE
} cm_sink_source;

/* Why an option leaves a sink no choice; NULL where it does. */
typedef struct cm_sink_rule {
    const char *setting; /* "`chunks`", of the library, */
    cm_sink_field field;
    size_t at;          /* of it in cm_transform_options */
    const char *option; /* or "along", of the programs: these rows come last */
    cm_sink_source of;
    const char *why[CM_SINK_KINDS];
    const char *typed; /* why an option is none of a store that grows, after its name */
} cm_sink_rule;

/* Up to the one without a name. */
extern const cm_sink_rule cm_sink_rules[];
/* Whether R applies to a dataset of FILES, or to one source. */
bool cm_sink_rule_is_of(const cm_sink_rule *r, bool files);

/* CM_EINVAL, naming the option, where O asks for what a sink of KIND leaves no choice of. */
int cm_sink_check_options(const cm_transform_options *o, cm_sink_kind kind, cm_error *err);
/* The same of the table alone, before it is known what is opened: FILES, or one source. */
int cm_sink_check_rules(const cm_transform_options *o, cm_sink_kind kind, bool files,
                        cm_error *err);

#endif

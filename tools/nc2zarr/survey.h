/* A survey for people: findings, the options that decide them, and the command line. */
#ifndef CM_TOOLS_NC2ZARR_SURVEY_H
#define CM_TOOLS_NC2ZARR_SURVEY_H

#include "archive.h"

/* survey_line.c: the command line that converts the files, with D's options; NULL: no memory. */
char *nc2zarr_command_line(const archive_job *job, const nc2zarr_decisions *d, cm_error *err);

/* The option as it is typed. */
void nc2zarr_print_option(const nc2zarr_option *o, FILE *f);

/*
 * survey_findings.c: findings of WEIGHT, by their cause, each with the option that decides it, if D
 * has it.  ALL: lists are not cut.
 */
void nc2zarr_print_findings(FILE *to, unsigned columns, const cm_archive_report *r,
                            const nc2zarr_decisions *d, cm_finding_weight weight, bool all);
/* The beginning that file names share and findings of LEAST and more leave out. */
void nc2zarr_print_beginning(FILE *to, const cm_archive_report *r, cm_finding_weight least);

/* survey_text.c: a survey on standard output; why nothing is converted, on standard error. */
void nc2zarr_print_survey(const archive_job *job, const nc2zarr_decisions *d);
void nc2zarr_say_refused(const archive_job *job, const nc2zarr_decisions *d);

/* survey_decisions.c: what D costs, and the command line at the end. */
void nc2zarr_print_decisions(FILE *to, unsigned columns, const nc2zarr_decisions *d);

#endif

/* How a file's elements of a variable are read and converted. */
#ifndef CM_ARCHIVE_TABLES_READING_H
#define CM_ARCHIVE_TABLES_READING_H

#include "archive/join.h"
#include "model/meaning.h"

/*
 * Describes how variable AT of FILE, which has it, is decoded; bounds without units count as their
 * coordinate does in that file.  False: its elements are not decodable numbers.
 */
bool cm_join_reading(const cm_join_input *in, const cm_join_tables *tables, uint32_t at,
                     uint32_t file, cm_reading *out);

/* How the values of one file differ from those of another. */
typedef struct cm_join_difference {
    uint64_t element;        /* the first number or text that differs, */
    char one[64], other[64]; /* as it is in both */
    double most;  /* the largest difference; infinite: some are no numbers, or missing in one */
    bool is_time; /* it is in seconds */
} cm_join_difference;

/*
 * Whether AT has the same decoded values in two files; the padding of texts does not count.  OUT,
 * which may be NULL, says how they differ.  Both records have the values, with the dimensions in
 * one order.
 */
bool cm_join_same_values(const cm_join_input *in, const cm_join_tables *tables, uint32_t at,
                         uint32_t file, const cm_surveyed_var *a, uint32_t other,
                         const cm_surveyed_var *b, cm_join_difference *out);

/* A digest of the decoded values of AT, which FILE has in its record S. */
cm_digest cm_join_meaning(const cm_join_input *in, const cm_join_tables *tables, uint32_t at,
                          uint32_t file, const cm_surveyed_var *s);

/*
 * How FILE counts the times of AT, which are unpacked first, with NaN for missing ones.  An error
 * where its units do not count time.
 */
int cm_join_time_coding(const cm_join_input *in, const cm_join_tables *tables, uint32_t at,
                        uint32_t file, cm_time_coding *out, cm_error *err);

/*
 * The numbers that FILE counts the times of AT in, as cm_join_time_coding describes them: SRC, or
 * what is unpacked of it, in *OWN, which is then to be freed.
 */
int cm_join_time_numbers(const cm_join_input *in, const cm_join_tables *tables, uint32_t at,
                         uint32_t file, const void *src, uint64_t nelem, const void **out,
                         void **own, cm_error *err);

/* NELEM elements of variable AT, as FILE stores them, as those of the joined variable. */
int cm_join_convert(const cm_join_input *in, const cm_join_tables *tables, uint32_t at,
                    uint32_t file, const void *src, void *dst, uint64_t nelem, cm_error *err);

#endif

/*
 * The header of a NetCDF classic file: CDF-1, CDF-2 (64-bit offsets) and CDF-5 (64-bit data).
 *
 * Source: "NetCDF File Format Specifications", the BNF in netCDF-C's
 * docs/file_format_specifications.md; CDF-5 as PnetCDF defines it.  Only the places of the data are
 * read here; names, attributes and shapes come from netCDF-C, which is called after this parser has
 * found the header sound, but for attributes that netCDF-C does not find.
 */
#ifndef CM_FORMAT_NC_CLASSIC_HEADER_H
#define CM_FORMAT_NC_CLASSIC_HEADER_H

#include "format/nc/source.h"

typedef struct cm_classic_var {
    char *name;
    unsigned rank; /* including the record dimension */
    bool is_record;
    uint32_t itemsize;
    uint64_t nbytes; /* of the variable, or of one record of it; without padding */
    uint64_t begin;  /* of the variable, or of its first record */
} cm_classic_var;

/* An attribute whose name is not UTF-8: netCDF-C counts it, and finds none of its name. */
typedef struct cm_classic_attribute {
    int var;    /* its variable; -1: none, it is of the file */
    int number; /* among the attributes of its owner */
    int type;   /* an nc_type */
    uint64_t nelem;
    uint64_t begin; /* of its values, which are big-endian */
} cm_classic_attribute;

typedef struct cm_classic_header {
    int version; /* 1, 2, 5 */
    bool has_record_dim;
    bool streaming; /* the number of records was not written; it follows from the file's size */
    uint64_t nrecords;
    uint64_t record_nbytes; /* distance between records */
    uint64_t header_nbytes;
    uint64_t data_end; /* one past the last byte of data that the header promises */
    size_t nvars;
    cm_classic_var *var; /* numbered as netCDF-C numbers them */
    size_t nodd;
    cm_classic_attribute *odd; /* in the order of the file: its own, then those of each variable */
} cm_classic_header;

/*
 * Parses and checks the header: every count against what is left of the file,
 * every size for overflow, variables for overlap.  Does not compare data_end
 * with the size of the file.  CM_ENOTFOUND when the first four bytes are not
 * those of a classic file; CM_EFORMAT otherwise.
 */
int cm_classic_header_read(const cm_source *source, cm_classic_header *out, cm_error *err);
void cm_classic_header_release(cm_classic_header *h);

#endif

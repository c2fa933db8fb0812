/* What a test tells the fake of cuFile, and what it saw: the symbol `fake_cufile`. */
#ifndef FAKE_CUFILE_H
#define FAKE_CUFILE_H

#include "gpu/cufile.h"

typedef struct fake_cufile_state {
    int open_error, properties_error;
    cufile_properties properties;
    unsigned nopen, nclose;
} fake_cufile_state;

#endif

/* CALL, whose last argument is the error `err`, must succeed. */
#ifndef TESTS_JOB_OK_H
#define TESTS_JOB_OK_H

#include "../unit.h"

#define OK(call)                                                                                   \
    do {                                                                                           \
        cm_error e_ = {0}, *err = &e_;                                                             \
        if ((call) != CM_OK)                                                                       \
            fail_msg("%s: %s", #call, e_.text);                                                    \
    } while (0)

#endif

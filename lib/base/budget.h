/* Memory that every command counts besides its buffers. */
#ifndef CM_BASE_BUDGET_H
#define CM_BASE_BUDGET_H

enum {
    /* Thread stacks, small allocations, and memory that libraries keep between calls. */
    CM_BUDGET_RESERVE = 10 << 20,
    CM_BUDGET_PER_THREAD = 1 << 20
};

#endif

/* Interface that a format implements to be a dataset. */
#ifndef CM_FORMAT_DATASET_IMPL_H
#define CM_FORMAT_DATASET_IMPL_H

#include "format/located.h"

typedef struct cm_dataset_ops {
    int (*prepare)(cm_dataset *ds, cm_variable *var, cm_error *err);
    void (*unprepare)(cm_dataset *ds, cm_variable *var); /* NULL: when the dataset is closed */
    int (*read)(cm_dataset *ds, cm_variable *var, const cm_box *box, void *dst, cm_error *err);
    int (*read_strings)(cm_dataset *ds, cm_variable *var, const cm_box *box, cm_strings *out,
                        cm_error *err);
    /* NULL: no variable has addresses. */
    int (*locate)(cm_dataset *ds, cm_variable *var, cm_located *out, cm_error *err);
    /* These of a dataset laid over another are those below; NULL: it has none. */
    size_t (*nwarnings)(const cm_dataset *ds);
    const char *(*warning_at)(const cm_dataset *ds, size_t i);
    cm_store *(*store)(const cm_dataset *ds);
    void (*close)(cm_dataset *ds); /* frees all but what dataset.c made */
} cm_dataset_ops;

/* Allocates NVARS variables and NGROUPS groups, zeroed; the format sets the rest of DS. */
int cm_dataset_init(cm_dataset *ds, const char *path, size_t nvars, size_t ngroups, cm_error *err);
void cm_dataset_release(cm_dataset *ds);

int cm_nc_dataset_open(const char *path, const cm_dataset_options *options, cm_dataset **out,
                       cm_error *err);
int cm_zarr_dataset_open(const char *path, const char *node, const cm_dataset_options *options,
                         cm_dataset **out, cm_error *err);

#endif

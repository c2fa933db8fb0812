#include "format/nc/forgotten.h"

/* A new identifier; identifiers ascend.  This class has the fewest properties to copy. */
static hid_t next_number(void)
{
    hid_t list = H5Pcreate(H5P_STRING_CREATE);
    if (list >= 0)
        H5Pclose(list);
    return list;
}

void cm_nc_forgotten_find(hid_t mark, cm_nc_forgotten *out)
{
    enum {
        MOST_LOOKED_AT = 10000 /* identifiers to check; a file of usual size takes 20 */
    };
    hid_t end = mark >= 0 ? next_number() : -1;
    out->n = 0;
    if (end < mark || end - mark > MOST_LOOKED_AT)
        return;
    for (hid_t id = mark + 1; id < end && out->n < CM_NC_MOST_FORGOTTEN; id++)
        if (H5Iis_valid(id) > 0 && H5Iget_type(id) == H5I_GENPROP_LST &&
            H5Pisa_class(id, H5P_FILE_CREATE) > 0)
            out->list[out->n++] = id;
}

void cm_nc_forgotten_close(cm_nc_forgotten *f)
{
    for (unsigned i = 0; i < f->n; i++)
        if (H5Iis_valid(f->list[i]) > 0)
            H5Pclose(f->list[i]);
    f->n = 0;
}

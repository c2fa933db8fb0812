/* A fake of NVIDIA's cuFile, which tests name by its path. */
#include "fake_cufile.h"

fake_cufile_state fake_cufile;

cufile_error cuFileDriverOpen(void);
cufile_error cuFileDriverClose(void);
cufile_error cuFileDriverGetProperties(cufile_properties *out);

cufile_error cuFileDriverOpen(void)
{
    fake_cufile.nopen++;
    return (cufile_error){fake_cufile.open_error, 0};
}

cufile_error cuFileDriverClose(void)
{
    fake_cufile.nclose++;
    return (cufile_error){0, 0};
}

cufile_error cuFileDriverGetProperties(cufile_properties *out)
{
    *out = fake_cufile.properties;
    return (cufile_error){fake_cufile.properties_error, 0};
}

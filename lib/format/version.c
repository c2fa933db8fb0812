#include <chunkmill/version.h>

#include <stdio.h>

#include "codec/versions.h"
#include "format/nc/nc.h"
#include "store/net.h"

const char *cm_version(void)
{
    return CM_VERSION;
}

char *cm_library_versions(char *buf, size_t size)
{
    char hdf5[32], codecs[160], net[64];
    cm_nc_hdf5_version(hdf5, sizeof(hdf5));
    snprintf(buf, size, "netCDF %s, HDF5 %s, %s, %s", cm_nc_netcdf_version(), hdf5,
             cm_codec_versions(codecs, sizeof(codecs)), cm_net_versions(net, sizeof(net)));
    return buf;
}

#include "codec/versions.h"

#include <blosc.h>
#include <bzlib.h>
#include <libdeflate.h>
#include <lz4.h>
#include <stdio.h>
#include <string.h>
#include <zstd.h>

char *cm_codec_versions(char *buf, size_t size)
{
    const char *bz2 = BZ2_bzlibVersion(); /* "1.0.8, 13-Jul-2019" */
    snprintf(buf, size, "zstd %s, blosc %s, libdeflate %s, lz4 %s, bzip2 %.*s",
             ZSTD_versionString(), blosc_get_version_string(), LIBDEFLATE_VERSION_STRING,
             LZ4_versionString(), (int)strcspn(bz2, ","), bz2);
    return buf;
}

#include <curl/curl.h>
#include <stdio.h>

#include "store/net.h"
#include "store/net/xml.h"

char *cm_net_versions(char *buf, size_t size)
{
    char xml[32];
    snprintf(buf, size, "libcurl %s, expat %s", curl_version_info(CURLVERSION_NOW)->version,
             cm_xml_version(xml, sizeof(xml)));
    return buf;
}

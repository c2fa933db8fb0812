#include "store/net/trust.h"

#include <curl/curl.h>
#include <stdbool.h>
#include <unistd.h>

static bool exists(const char *path)
{
    return path != NULL && access(path, R_OK) == 0;
}

const char *cm_trust_choose(const cm_net_settings *settings, const char *file, const char *folder,
                            const char *const *places)
{
    static const char *const variables[] = {"AWS_CA_BUNDLE", "CURL_CA_BUNDLE", "SSL_CERT_FILE"};
    for (size_t i = 0; settings->variable != NULL && i < sizeof(variables) / sizeof(*variables);
         i++) {
        const char *value = settings->variable(variables[i]);
        if (value != NULL && *value != '\0')
            return value;
    }
    if (exists(file) || exists(folder))
        return NULL;
    while (*places != NULL && !exists(*places))
        places++;
    return *places;
}

const char *cm_trust_bundle(const cm_net_settings *settings)
{
    static const char *const places[] = {
        "/etc/ssl/certs/ca-certificates.crt",                /* Debian, Ubuntu, Arch, Alpine */
        "/etc/pki/ca-trust/extracted/pem/tls-ca-bundle.pem", /* Red Hat 7 and later, Fedora */
        "/etc/pki/tls/certs/ca-bundle.crt",                  /* older ones of these */
        "/etc/ssl/ca-bundle.pem",                            /* SUSE */
        NULL,
    };
    const curl_version_info_data *curl = curl_version_info(CURLVERSION_NOW);
    return cm_trust_choose(settings, curl->cainfo, curl->capath, places);
}

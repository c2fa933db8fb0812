/* LD_PRELOAD library: libcurl trusts the certificates in the file named by TRUSTCA alone. */
#define _GNU_SOURCE
#include <curl/curl.h>
#include <dlfcn.h>
#include <stdlib.h>

/* The program resets a handle before each request. */
void curl_easy_reset(CURL *easy)
{
    void (*reset)(CURL *) = (void (*)(CURL *))dlsym(RTLD_NEXT, "curl_easy_reset");
    reset(easy);
    curl_easy_setopt(easy, CURLOPT_CAINFO, getenv("TRUSTCA"));
}

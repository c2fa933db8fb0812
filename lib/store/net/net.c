/* A net: the settings of all requests, the thread that carries them, and credentials. */
#include "store/net.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>

#include "store/net/aws.h"
#include "store/net/loop.h"
#include "store/net/trust.h"
#include "store/net/xml.h"

char *cm_net_versions(char *buf, size_t size)
{
    char xml[32];
    snprintf(buf, size, "libcurl %s, expat %s", curl_version_info(CURLVERSION_NOW)->version,
             cm_xml_version(xml, sizeof(xml)));
    return buf;
}

static int make_tally(cm_net *net, cm_error *err)
{
    void *at =
        mmap(NULL, sizeof(*net->tally), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (at == MAP_FAILED)
        return cm_fail_errno(err, errno, "no memory for counts of requests");
    net->tally = at;
    return CM_OK;
}

static void forget_parent(cm_net *net)
{
    cm_aws_forget_parent(net->aws);
    cm_aws_forget_parent(net->google);
}

int cm_net_create(const cm_net_settings *settings, cm_net **out, cm_error *err)
{
    *out = NULL;
    if (curl_global_init(CURL_GLOBAL_ALL) != CURLE_OK)
        return cm_fail(err, CM_EINTERNAL, "libcurl cannot be used");
    cm_net *net = cm_calloc(1, sizeof(*net), err);
    if (net == NULL)
        return CM_ENOMEM;
    net->settings = *settings;
    net->trust = cm_trust_bundle(&net->settings);
    net->forget_parent = forget_parent;
    cm_loop_init(net);
    int rc = make_tally(net, err);
    if (rc == CM_OK)
        rc = cm_aws_create(net, &net->settings, false, &net->aws, err);
    if (rc == CM_OK)
        rc = cm_aws_create(net, &net->settings, true, &net->google, err);
    if (rc != CM_OK) {
        cm_net_free(net);
        return rc;
    }
    *out = net;
    return CM_OK;
}

unsigned cm_net_concurrency(const cm_net *net)
{
    return net->settings.concurrency;
}

const char *cm_net_scratch(const cm_net *net)
{
    return net->settings.scratch != NULL ? net->settings.scratch : "/tmp";
}

void cm_net_free(cm_net *net)
{
    if (net == NULL)
        return;
    cm_loop_stop(net);
    cm_aws_free(net->aws);
    cm_aws_free(net->google);
    if (net->tally != NULL)
        (void)munmap(net->tally, sizeof(*net->tally));
    free(net);
}

void cm_net_abandon(cm_net *net)
{
    if (net == NULL)
        return;
    atomic_store(&net->abandoned, true);
    cm_loop_wake(net);
}

cm_net_counts cm_net_count(cm_net *net)
{
    const cm_net_tally *t = net->tally;
    pthread_mutex_lock(&net->lock);
    const unsigned limit = net->limit;
    pthread_mutex_unlock(&net->lock);
    return (cm_net_counts){.get = t->get,
                           .head = t->head,
                           .put = t->put,
                           .post = t->post,
                           .remove = t->remove,
                           .list = t->list,
                           .received_nbytes = t->received_nbytes,
                           .sent_nbytes = t->sent_nbytes,
                           .nretries = t->nretries,
                           .nthrottled = t->nthrottled,
                           .throttled_ns = t->throttled_ns,
                           .nconnections = t->nconnections,
                           .nsummed = t->nsummed,
                           .nchecked = t->nchecked,
                           .first_byte_ns = t->first_byte_ns,
                           .ntimed = t->ntimed,
                           .concurrency = limit};
}

const cm_texts *cm_net_allow(const cm_net *net)
{
    return &net->settings.allow;
}

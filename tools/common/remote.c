#include "remote.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/number.h"
#include "options/store_path.h"
#include "repository.h"
#include "say.h"
#include "store/open.h"
#include "watch/monitor.h"

/* The library does not read the environment. */
static const char *variable(const char *name)
{
    return getenv(name);
}

static bool is_canceled(void *monitor)
{
    return cm_monitor_canceled(monitor);
}

static bool needs_net(const char *text)
{
    cm_store_path at = {0};
    bool needs = cm_store_path_split(text, &at, NULL) == CM_OK && cm_store_url_needs_net(at.path);
    cm_store_path_release(&at);
    return needs;
}

/* A path that is not there is told by whoever opens it. */
static bool is_there(const char *text)
{
    cm_store_path at = {0};
    bool there = cm_store_path_split(text, &at, NULL) == CM_OK &&
                 (access(at.path, F_OK) == 0 || strpbrk(text, "*?[") != NULL);
    cm_store_path_release(&at);
    return there;
}

/* An option that has no effect is refused. */
static int check_allow(const cm_net_settings *settings, const cm_texts *paths, const char *output,
                       cm_error *err)
{
    bool any = settings->allow.n > 0;
    for (size_t i = 0; i < paths->n; i++)
        any = any &&
              ((output != NULL && strcmp(output, paths->text[i]) == 0) || is_there(paths->text[i]));
    return any ? cm_fail(err, CM_EINVAL,
                         "--allow %s: is not used; no document of references and no repository is "
                         "read here",
                         settings->allow.text[0])
               : CM_OK;
}

int cm_remote_open(const cm_net_settings *settings, const cm_texts *paths, const char *output,
                   cm_monitor *monitor, cm_net **out, cm_error *err)
{
    cm_net_settings s = *settings;
    /* A repository that grows may have chunks elsewhere, and `allow` goes with the settings. */
    bool any = (output != NULL && cm_store_url_needs_net(cm_repository_place(output))) ||
               (cm_is_repository(output) && settings->allow.n > 0);
    /* A list may name what lies behind a network. */
    for (size_t i = 0; i < paths->n; i++)
        any = any || paths->text[i][0] == '@' || needs_net(paths->text[i]);
    *out = NULL;
    if (!any)
        return check_allow(settings, paths, output, err);
    s.variable = variable;
    if (s.scratch == NULL)
        s.scratch = getenv("TMPDIR");
    if (s.scratch != NULL && *s.scratch == '\0')
        s.scratch = NULL;
    s.canceled = monitor != NULL ? is_canceled : NULL;
    s.canceled_context = monitor;
    return cm_net_create(&s, out, err);
}

static bool was_asked(const cm_net_counts *c)
{
    return c->get + c->head + c->list + c->put + c->post + c->remove > 0;
}

void cm_remote_say(const cm_tool *tool, cm_net *net, const cm_common_options *common)
{
    char in[32], sent[32];
    if (net == NULL || common->verbosity <= 0)
        return;
    cm_net_counts c = cm_net_count(net);
    if (!was_asked(&c))
        return;
    const uint64_t n = c.get + c.head + c.list + c.put + c.post + c.remove;
    cm_say(tool->name,
           "network: %llu %s (GET %llu, HEAD %llu, LIST %llu, PUT %llu, POST %llu, DELETE "
           "%llu), %llu of them repeated; %s received, %s sent; %llu %s, up to %u "
           "%s at once",
           (unsigned long long)n, cm_of_count(n, "request", "requests"), (unsigned long long)c.get,
           (unsigned long long)c.head, (unsigned long long)c.list, (unsigned long long)c.put,
           (unsigned long long)c.post, (unsigned long long)c.remove, (unsigned long long)c.nretries,
           cm_format_size(c.received_nbytes, in, sizeof(in)),
           cm_format_size(c.sent_nbytes, sent, sizeof(sent)), (unsigned long long)c.nconnections,
           cm_of_count(c.nconnections, "connection", "connections"), c.concurrency,
           cm_of_count(c.concurrency, "request", "requests"));
    if (c.nsummed > 0)
        cm_say(tool->name,
               "network: %llu of %llu checksums of objects could be held against what servers say",
               (unsigned long long)c.nchecked, (unsigned long long)c.nsummed);
    if (c.nthrottled > 0)
        cm_say(tool->name, "network: servers asked %llu %s to slow down; %.1f s were waited",
               (unsigned long long)c.nthrottled, cm_of_count(c.nthrottled, "time", "times"),
               (double)c.throttled_ns * 1e-9);
}

void cm_remote_document(cm_document *doc, cm_json *o, cm_net *net)
{
    if (net == NULL)
        return;
    cm_net_counts c = cm_net_count(net);
    if (!was_asked(&c))
        return;
    cm_json *n = cm_json_object();
    cm_document_u64(doc, n, "get", c.get);
    cm_document_u64(doc, n, "head", c.head);
    cm_document_u64(doc, n, "list", c.list);
    cm_document_u64(doc, n, "put", c.put);
    cm_document_u64(doc, n, "post", c.post);
    cm_document_u64(doc, n, "delete", c.remove);
    cm_document_u64(doc, n, "retries", c.nretries);
    cm_document_u64(doc, n, "throttled", c.nthrottled);
    cm_document_put(doc, n, "throttled_seconds", cm_json_double((double)c.throttled_ns * 1e-9));
    cm_document_u64(doc, n, "received_bytes", c.received_nbytes);
    cm_document_u64(doc, n, "sent_bytes", c.sent_nbytes);
    cm_document_u64(doc, n, "connections", c.nconnections);
    cm_document_u64(doc, n, "checksums_compared", c.nchecked);
    cm_document_u64(doc, n, "concurrency", c.concurrency);
    cm_document_put(
        doc, n, "first_byte_seconds",
        cm_json_double(c.ntimed > 0 ? (double)c.first_byte_ns * 1e-9 / (double)c.ntimed : 0));
    cm_document_put(doc, o, "network", n);
}

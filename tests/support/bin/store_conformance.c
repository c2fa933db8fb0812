/*
 * The suite of all stores over a bucket: store_conformance s3://BUCKET/PREFIX [TESTS], with the
 * server and its keys from the environment.  TESTS is a pattern of names: only those run.  Each
 * test has a prefix of its own below PREFIX.
 */
#include "../../unit/store/conformance.h"

#include <chunkmill/net.h>

#include "store/open.h"

static const char *base;
static unsigned number;

static const char *variable(const char *name)
{
    return getenv(name);
}

static int open_bucket(fixture *f, const kind *k, cm_error *err)
{
    const cm_net_settings settings = {.variable = variable};
    char url[500];
    cm_net *net;
    (void)k;
    snprintf(url, sizeof url, "%s/%u", base, number++);
    int rc = cm_net_create(&settings, &net, err);
    f->more = net;
    if (rc == CM_OK)
        rc = cm_store_open(url, &(cm_store_options){.output = true, .net = net}, &f->store, err);
    f->writer = f->store;
    return rc;
}

static void close_bucket(fixture *f)
{
    cm_net_free(f->more);
}

int main(int argc, char **argv)
{
    static const kind kinds[] = {{.name = "bucket",
                                  .open = open_bucket,
                                  .close = close_bucket,
                                  .in_memory = true,
                                  .remote = true}};
    if (argc != 2 && argc != 3)
        return 2;
    base = argv[1];
    if (argc == 3)
        cmocka_set_test_filter(argv[2]);
    return run_conformance("bucket", kinds, 1);
}

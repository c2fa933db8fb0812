/* Which options go with which sink. */
#include "convert/sink/rules.h"

#include <string.h>
#include <strings.h>

#include "store/open.h"

/* Every chunk is counted while it is made, or found good when a run goes on. */
static int check_statistics(const cm_transform_options *o, cm_error *err)
{
    if (o->check)
        return cm_fail(err, CM_EINVAL, "`statistics` and `check`: nothing is written");
    if (o->refer != NULL)
        return cm_fail(err, CM_EINVAL,
                       "`statistics`: references are made without reading the data");
    if (o->target != NULL && strstr(o->target, "::") != NULL)
        return cm_fail(err, CM_EINVAL, "%s: `statistics` are of a store, not of a node in one",
                       o->target);
    return CM_OK;
}

static int check_combinations(const cm_transform_options *o, cm_error *err)
{
    if ((o->source == NULL && o->dataset == NULL) || (o->target == NULL && !o->dry_run))
        return cm_fail(err, CM_EINVAL, "a source and a target are needed");
    if (o->resume && o->overwrite)
        return cm_fail(err, CM_EINVAL, "`resume` and `overwrite` exclude each other");
    if (o->certificate != NULL && o->part.on && !o->check)
        return cm_fail(err, CM_EINVAL,
                       "a certificate is about a whole store: `check` makes one when all parts are "
                       "done");
    if (o->certificate != NULL && o->verify != CM_VERIFY_FULL && !o->check)
        return cm_fail(err, CM_EINVAL, "`certificate` needs `verify` full, or `check`");
    if (o->statistics_range.n > 0 && !o->statistics)
        return cm_fail(err, CM_EINVAL, "`statistics_range` needs `statistics`");
    if (o->statistics)
        return check_statistics(o, err);
    return CM_OK;
}

/* Why an option says nothing to a store that grows, or to references. */
enum {
    LAYOUT = 1, /* what a new store is like */
    VALUES = 2, /* what its values are */
    OTHER = 4,
    APPEND = LAYOUT | VALUES | OTHER,
    REFER = 8
};

/* The first option given that appending, or writing references, leaves no choice of; or NULL. */
static const char *option_without_choice(const cm_transform_options *o, bool refers, int *why)
{
    const struct {
        bool given;
        const char *text;
        int excluded_by;
    } row[] = {
        {o->chunks.n > 0, "`chunks`", LAYOUT | REFER},
        {o->shards.n > 0, "`shards`", LAYOUT | REFER},
        {o->codec.n > 0, "`codec`", LAYOUT | REFER},
        {o->sample != NULL, "`sample`", LAYOUT | REFER},
        {o->dtype.n > 0, "`dtype`", VALUES | REFER},
        {o->unpack.n > 0, "`unpack`", VALUES | REFER},
        {o->keepbits.n > 0, "`keepbits`", VALUES | REFER},
        {o->subset.n > 0, "`subset`", VALUES | REFER},
        {o->fill_value.n > 0, "`fill_value`", LAYOUT | REFER},
        {o->stack.n > 0, "`stack`", VALUES | REFER},
        {o->merge_along.n > 0, "`merge_along`", REFER},
        {o->variable.n > 0 && o->dataset != NULL, "`variable`", OTHER},
        {o->overwrite, "`overwrite`", OTHER},
        {o->no_consolidate, "`no_consolidate`", LAYOUT},
        {o->resume, "`resume`", REFER},
        {o->check, "`check`", OTHER | REFER},
        {o->refer != NULL, "`refer`", OTHER},
        {o->certificate != NULL, "`certificate`", OTHER | REFER},
        {o->part.on, "`part`", REFER},
        {o->statistics, "`statistics`", OTHER},
        {o->skip_unsupported && o->dataset == NULL, "`skip_unsupported`", OTHER},
    };
    for (size_t i = 0; i < sizeof(row) / sizeof(row[0]); i++)
        if (row[i].given && (row[i].excluded_by & (refers ? REFER : APPEND)) != 0) {
            *why = row[i].excluded_by;
            return row[i].text;
        }
    return NULL;
}

static int check_grows(const cm_transform_options *o, cm_error *err)
{
    int why = 0;
    const char *given = option_without_choice(o, false, &why);
    if (given == NULL)
        return CM_OK;
    if ((why & LAYOUT) != 0)
        return cm_fail(err, CM_EINVAL, "%s: a store that grows keeps its layout", given);
    if ((why & VALUES) != 0 && o->dataset != NULL)
        return cm_fail(err, CM_EINVAL,
                       "%s: files are added as they are, to a store that keeps its dimensions and "
                       "types",
                       given);
    if ((why & VALUES) != 0)
        return cm_fail(err, CM_EINVAL,
                       "%s: a source is added as it is; make another store of it with this option "
                       "first, and add from that one",
                       given);
    return cm_fail(err, CM_EINVAL, "%s: not possible while a store grows", given);
}

static int check_append(const cm_transform_options *o, cm_error *err)
{
    if (o->append != NULL && o->part.on && o->dataset == NULL)
        return cm_fail(err, CM_EINVAL,
                       "`append` and `part`: parts can add files to a store, not another store");
    if (o->append != NULL && o->part.on && cm_store_url_is_remote(o->target))
        return cm_fail(err, CM_EINVAL,
                       "%s: `append` and `part`: to a store behind a network one process adds",
                       o->target);
    return o->append != NULL ? check_grows(o, err) : CM_OK;
}

static int check_refer(const cm_transform_options *o, cm_error *err)
{
    if (cm_store_url_is_remote(o->target))
        return cm_fail(err, CM_EINVAL, "%s: references can only be written to a local file",
                       o->target);
    int why;
    const char *given = option_without_choice(o, true, &why);
    if (given != NULL)
        return cm_fail(err, CM_EINVAL,
                       "%s: references point to the files' own bytes and cannot change them",
                       given);
    if (o->base_url != NULL && strstr(o->base_url, "://") == NULL)
        return cm_fail(err, CM_EINVAL, "`base_url` %s: is not a URL", o->base_url);
    return strcmp(o->refer, "json") == 0
               ? CM_OK
               : cm_fail(err, CM_EINVAL, "`refer` %s: references are written as json", o->refer);
}

int cm_sink_check_options(const cm_transform_options *o, cm_error *err)
{
    int rc = check_combinations(o, err);
    if (rc != CM_OK)
        return rc;
    if (o->zarr_format != 0 && o->zarr_format != 2 && o->zarr_format != 3)
        return cm_fail(err, CM_EINVAL, "the Zarr format must be 2 or 3, not %d", o->zarr_format);
    if (o->target != NULL && !o->check && cm_store_url_is_remote(o->target) &&
        strncasecmp(o->target, "s3:", 3) != 0)
        return cm_fail(err, CM_EINVAL,
                       "%s: nothing can be written over HTTP; a bucket is s3://BUCKET/PREFIX",
                       o->target);
    if (o->append != NULL && (rc = check_append(o, err)) != CM_OK)
        return rc;
    return o->refer != NULL ? check_refer(o, err) : CM_OK;
}

/*
 * PyCapsules: a tensor as Python's libraries take it (the array API's __dlpack__), and what holds
 * batches and loaders for the package.
 *
 * A capsule's destructor runs each time one goes; written in Python it cost more than all else
 * that the package does for a batch.  Python's functions are those of the process, if it is one of
 * Python: no header and no library of Python is needed.
 */
#include <stdlib.h>

#include "load/loader_impl.h"

#define OF_THE_PROCESS extern __attribute__((weak, visibility("default")))
OF_THE_PROCESS void *PyCapsule_New(void *pointer, const char *name, void (*destructor)(void *));
OF_THE_PROCESS void *PyCapsule_GetPointer(void *capsule, const char *name);
OF_THE_PROCESS int PyCapsule_IsValid(void *capsule, const char *name);
OF_THE_PROCESS void PyErr_SetString(void *type, const char *text);
OF_THE_PROCESS void *PyExc_ValueError;

/* A consumer renames the capsule that it takes. */
static const char VERSIONED[] = "dltensor_versioned", LEGACY[] = "dltensor";

static bool has_python(cm_error *err)
{
    if (PyCapsule_New != NULL && PyCapsule_GetPointer != NULL && PyCapsule_IsValid != NULL &&
        PyErr_SetString != NULL && &PyExc_ValueError != NULL)
        return true;
    (void)cm_fail(err, CM_EUNSUPPORTED, "this process has no Python to make a capsule with");
    return false;
}

/* For ctypes, which takes NULL for an object where no exception says that there is none. */
static void *no_object(const cm_error *err)
{
    PyErr_SetString(PyExc_ValueError, err != NULL ? err->text : "no object");
    return NULL;
}

/* ---- tensors ------------------------------------------------------------------------------- */

/* Releases the batch with a capsule that no consumer took. */
static void drop(void *capsule)
{
    if (PyCapsule_IsValid(capsule, VERSIONED))
        cm_loader_delete_versioned(PyCapsule_GetPointer(capsule, VERSIONED));
    else if (PyCapsule_IsValid(capsule, LEGACY))
        cm_loader_delete_legacy(PyCapsule_GetPointer(capsule, LEGACY));
}

void *cm_batch_capsule(cm_batch *b, size_t i, bool versioned, cm_error *err)
{
    struct DLManagedTensorVersioned *v = NULL;
    struct DLManagedTensor *l = NULL;
    if (!has_python(err))
        return NULL;
    const int rc =
        versioned ? cm_batch_dlpack(b, i, &v, err) : cm_batch_dlpack_legacy(b, i, &l, err);
    if (rc != CM_OK)
        return no_object(err);
    void *capsule = versioned ? PyCapsule_New(v, VERSIONED, drop) : PyCapsule_New(l, LEGACY, drop);
    if (capsule != NULL)
        return capsule;
    cm_loader_delete_versioned(v);
    cm_loader_delete_legacy(l);
    (void)cm_fail(err, CM_ENOMEM, "Python has no memory for a capsule");
    return no_object(err);
}

/* ---- batches and loaders ------------------------------------------------------------------- */

static const char BATCH[] = "chunkmill.batch", LOADER[] = "chunkmill.loader";

void cm_batch_clear(cm_batch **place)
{
    cm_batch_release(__atomic_exchange_n(place, NULL, __ATOMIC_ACQ_REL));
}

void cm_loader_clear(cm_loader **place)
{
    cm_loader_close(__atomic_exchange_n(place, NULL, __ATOMIC_ACQ_REL));
}

static void drop_batch(void *capsule)
{
    cm_batch **place = PyCapsule_GetPointer(capsule, BATCH);
    cm_batch_clear(place);
    free(place);
}

static void drop_loader(void *capsule)
{
    cm_loader **place = PyCapsule_GetPointer(capsule, LOADER);
    cm_loader_clear(place);
    free(place);
}

static void *holder(void *place, const char *name, void (*destructor)(void *), cm_error *err)
{
    void *capsule = place != NULL ? PyCapsule_New(place, name, destructor) : NULL;
    if (capsule == NULL) {
        free(place);
        (void)cm_fail(err, CM_ENOMEM, "Python has no memory for a capsule");
        return no_object(err);
    }
    return capsule;
}

void *cm_batch_holder(cm_batch ***place, cm_error *err)
{
    if (!has_python(err))
        return NULL;
    *place = calloc(1, sizeof **place);
    return holder(*place, BATCH, drop_batch, err);
}

void *cm_loader_holder(cm_loader ***place, cm_error *err)
{
    if (!has_python(err))
        return NULL;
    *place = calloc(1, sizeof **place);
    return holder(*place, LOADER, drop_loader, err);
}

#include <chunkmill/error.h>

#include <errno.h>
#include <stdio.h>
#include <string.h>

/* Arguments may point into err->text, so the sentence is made beside it first. */
static void set_text(cm_error *err, const char *text)
{
    size_t n = strnlen(text, sizeof err->text - 1);
    memcpy(err->text, text, n);
    err->text[n] = 0;
}

int cm_fail(cm_error *err, cm_status status, const char *format, ...)
{
    if (err != NULL) {
        char text[sizeof err->text];
        va_list args;
        va_start(args, format);
        vsnprintf(text, sizeof text, format, args);
        va_end(args);
        set_text(err, text);
        err->status = status;
        err->placed = err->passes = 0;
    }
    return status;
}

static cm_status status_of_errno(int errnum)
{
    switch (errnum) {
    case ENOENT:
        return CM_ENOTFOUND;
    case EEXIST:
        return CM_EEXIST;
    case ENOSPC:
    case EDQUOT:
        return CM_ENOSPC;
    case ENOMEM:
        return CM_ENOMEM;
    default:
        return CM_EIO;
    }
}

int cm_fail_errno(cm_error *err, int errnum, const char *format, ...)
{
    const cm_status status = status_of_errno(errnum);
    if (err != NULL) {
        char text[sizeof err->text];
        char reason[128];
        va_list args;
        va_start(args, format);
        vsnprintf(text, sizeof text, format, args);
        va_end(args);
        const char *why = strerror_r(errnum, reason, sizeof reason);
        /* A sentence too long loses its own end rather than the reason. */
        const size_t room = sizeof err->text - strlen(why) - 3;
        snprintf(err->text, sizeof err->text, "%.*s: %s", (int)room, text, why);
        err->status = status;
        err->placed = err->passes = 0;
    }
    return status;
}

void cm_error_prefix(cm_error *err, const char *format, ...)
{
    if (err == NULL)
        return;
    char text[sizeof err->text];
    va_list args;
    va_start(args, format);
    vsnprintf(text, sizeof text, format, args);
    va_end(args);
    /* Names come first and are worth more than the end of a reason too long to fit. */
    char whole[2 * sizeof err->text + 2];
    snprintf(whole, sizeof whole, "%s: %s", text, err->text);
    set_text(err, whole);
}

void cm_error_suffix(cm_error *err, const char *format, ...)
{
    if (err == NULL)
        return;
    char more[sizeof err->text];
    va_list args;
    va_start(args, format);
    int n = vsnprintf(more, sizeof more, format, args);
    va_end(args);
    /* Shorten the message, keep the hint: the addition is short, and says what to do. */
    const size_t length = n < 0 ? 0 : strlen(more), room = sizeof err->text - 1 - length;
    size_t at = strlen(err->text);
    at = at < room ? at : room;
    memcpy(err->text + at, more, length + 1);
}

void cm_error_place(cm_error *err, const char *place)
{
    if (err == NULL || place == NULL || err->placed)
        return;
    const size_t n = strlen(place);
    if (strncmp(err->text, place, n) != 0 || err->text[n] != ':')
        cm_error_prefix(err, "%s", place);
    err->placed = 1;
}

const char *cm_status_name(cm_status status)
{
    switch (status) {
    case CM_OK:
        return "ok";
    case CM_EINVAL:
        return "invalid";
    case CM_ENOMEM:
        return "no-memory";
    case CM_EIO:
        return "io";
    case CM_ENOSPC:
        return "no-space";
    case CM_ENOTFOUND:
        return "not-found";
    case CM_EEXIST:
        return "exists";
    case CM_EFORMAT:
        return "format";
    case CM_EUNSUPPORTED:
        return "unsupported";
    case CM_EBUDGET:
        return "budget";
    case CM_ECANCELED:
        return "canceled";
    case CM_EDIFFER:
        return "differ";
    case CM_EINTERNAL:
        return "internal";
    }
    return "unknown";
}

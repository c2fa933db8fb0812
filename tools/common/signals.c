#include "signals.h"

#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* A handler gets no argument of ours, so these two are the process's own state. */
static cm_monitor *volatile watched;
static volatile sig_atomic_t caught;

static const int SIGNALS[] = {SIGINT, SIGTERM, SIGHUP};

static void on_signal(int number)
{
    if (caught || !watched) {
        /* Delivered when this handler returns, and the default action ends the process. */
        signal(number, SIG_DFL);
        raise(number);
        return;
    }
    caught = number;
    cm_monitor_cancel(watched);
}

void cm_signals_catch(cm_monitor *monitor)
{
    watched = monitor;
    for (size_t i = 0; i < sizeof(SIGNALS) / sizeof(SIGNALS[0]); i++) {
        struct sigaction before, action;
        memset(&action, 0, sizeof(action));
        action.sa_handler = on_signal;
        action.sa_flags = SA_RESTART;
        if (sigaction(SIGNALS[i], NULL, &before) == 0 && before.sa_handler != SIG_IGN)
            sigaction(SIGNALS[i], &action, NULL);
    }
    signal(SIGXFSZ, SIG_IGN);
}

void cm_signals_release(void)
{
    for (size_t i = 0; i < sizeof(SIGNALS) / sizeof(SIGNALS[0]); i++) {
        struct sigaction before;
        if (sigaction(SIGNALS[i], NULL, &before) == 0 && before.sa_handler == on_signal)
            signal(SIGNALS[i], SIG_DFL);
    }
    watched = NULL;
}

int cm_signals_caught(void)
{
    return caught;
}

const char *cm_signals_name(void)
{
    return caught == SIGINT ? "SIGINT" : caught == SIGHUP ? "SIGHUP" : "SIGTERM";
}

_Noreturn void cm_signals_end(void)
{
    signal(caught, SIG_DFL);
    raise(caught);
    _exit(128 + caught);
}

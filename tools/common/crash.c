#include "crash.h"

#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "format/nc/at_work.h"

static const int SIGNALS[] = {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGABRT};
enum {
    NSIGNALS = sizeof(SIGNALS) / sizeof(SIGNALS[0]),
    STACK_NBYTES = 64 << 10
};

/* A handler gets no argument of ours, so these are the process's own state. */
static const char *program;
static struct sigaction before[NSIGNALS];
static char stack[STACK_NBYTES]; /* a library may have filled the main thread's */

static void say(const char *text)
{
    ssize_t written = write(STDERR_FILENO, text, strlen(text));
    (void)written;
}

static void say_number(int number)
{
    const char text[] = {(char)('0' + number / 10), (char)('0' + number % 10), '\0'};
    say(number < 10 ? text + 1 : text);
}

static void on_crash(int number)
{
    bool here;
    const char *path = cm_nc_at_work(&here);
    if (path == NULL || (!here && number != SIGABRT)) {
        /* It happens again when this returns; a signal that was sent, too. */
        for (int i = 0; i < NSIGNALS; i++)
            sigaction(SIGNALS[i], &before[i], NULL);
        raise(number);
        return;
    }
    say(program);
    say(": ");
    say(path);
    say(here ? ": a library crashed while it worked on it (signal "
             : ": the memory of this process was damaged after a library opened it (signal ");
    say_number(number);
    say("); the file is damaged\n");
    _exit(1); /* what is written so far stays as after a kill, and can be resumed */
}

void cm_crash_catch(const char *tool)
{
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
    (void)tool; /* a sanitizer reports more */
    return;
#endif
    const stack_t own = {.ss_sp = stack, .ss_size = sizeof(stack)};
    struct sigaction action = {.sa_handler = on_crash, .sa_flags = SA_ONSTACK};
    program = tool;
    (void)sigaltstack(&own, NULL);
    for (int i = 0; i < NSIGNALS; i++)
        sigaction(SIGNALS[i], &action, &before[i]);
}

"""Threads and descriptors of this process."""

import os

EXITING = 0x4  # PF_EXITING of Linux's include/linux/sched.h


def threads():
    """
    The numbers of those that have not begun to end.  The kernel lists a thread until it has removed it, which may be
    after pthread_join returned; one that can be joined has the flag.
    """
    found = set()
    for task in os.listdir("/proc/self/task"):
        try:
            with open(f"/proc/self/task/{task}/stat", "rb") as f:
                words = f.read().rsplit(b")", 1)[1].split()
        except (FileNotFoundError, ProcessLookupError):
            continue
        if not int(words[6]) & EXITING:
            found.add(int(task))
    return found


def descriptors():
    """Their numbers, and what each is of."""
    found = set()
    for fd in os.listdir("/proc/self/fd"):
        try:
            found.add((int(fd), os.readlink(f"/proc/self/fd/{fd}")))
        except FileNotFoundError:  # that of the listing
            continue
    return found


def held():
    """
    To be compared by what is new: what other libraries in this process hold, such as threads of an executor that was
    just collected, may go at any time.
    """
    return {("thread", n) for n in threads()} | {("descriptor", *d) for d in descriptors()}

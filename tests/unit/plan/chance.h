/* Repeatable random numbers for the property tests of lib/plan. */
#ifndef TESTS_PLAN_CHANCE_H
#define TESTS_PLAN_CHANCE_H

static uint64_t state = 88172645463325252u;

/* 0 ... N - 1, by xorshift64. */
static uint64_t random_below(uint64_t n)
{
    state ^= state << 13;
    state ^= state >> 7;
    state ^= state << 17;
    return state % n;
}

#endif

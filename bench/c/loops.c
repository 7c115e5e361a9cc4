/* The loops that a C programmer would write for one word, repeated as often per iteration as the compiled loop repeats
 * them. `passes` is a positive multiple of 8; `state` is what the step remembers from one call to the next. */
#include <stdint.h>

#define EIGHT_TIMES(pass) pass(1) pass(2) pass(3) pass(4) pass(5) pass(6) pass(7) pass(8)

const uint64_t c_passes_per_iteration = 8;

void c_load(uint64_t *target, uint64_t passes, uint64_t *state)
{
    volatile uint64_t *word = target;
    (void)state;
    do {
#define PASS(n) (void)*word;
        EIGHT_TIMES(PASS)
#undef PASS
    } while (passes -= 8);
}

void c_store(uint64_t *target, uint64_t passes, uint64_t *state)
{
    volatile uint64_t *word = target;
    uint64_t made = *state;
    do {
#define PASS(n) *word = made + n;
        EIGHT_TIMES(PASS)
#undef PASS
        made += 8;
    } while (passes -= 8);
    *state = made;
}

void c_bump(uint64_t *target, uint64_t passes, uint64_t *state)
{
    volatile uint64_t *word = target;
    (void)state;
    do {
#define PASS(n) *word = *word + 1;
        EIGHT_TIMES(PASS)
#undef PASS
    } while (passes -= 8);
}

void c_add(uint64_t *word, uint64_t passes, uint64_t *state)
{
    (void)state;
    do {
#define PASS(n) __atomic_fetch_add(word, 1, __ATOMIC_SEQ_CST);
        EIGHT_TIMES(PASS)
#undef PASS
    } while (passes -= 8);
}

void c_cas(uint64_t *word, uint64_t passes, uint64_t *state)
{
    uint64_t expected = *state;
    do {
#define PASS(n)                                                                                                        \
    if (__atomic_compare_exchange_n(word, &expected, expected + 1, 0, __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST))             \
        expected += 1;
        EIGHT_TIMES(PASS)
#undef PASS
    } while (passes -= 8);
    *state = expected;
}

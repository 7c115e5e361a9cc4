/* A wall clock that is set at every look at it: an hour forward, an hour back, right again. For LD_PRELOAD: the machine's
 * own clock stays as it is, and every other clock is passed through. */
#define _GNU_SOURCE
#include <stddef.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

static unsigned looks;

static time_t step(void)
{
    static const time_t steps[] = { 0, 3600, -3600 };
    return steps[__atomic_fetch_add(&looks, 1, __ATOMIC_RELAXED) % 3];
}

int clock_gettime(clockid_t clock, struct timespec *now)
{
    int result = (int)syscall(SYS_clock_gettime, clock, now);
    if (result == 0 && clock == CLOCK_REALTIME)
        now->tv_sec += step();
    return result;
}

int gettimeofday(struct timeval *restrict now, void *restrict zone)
{
    (void)zone;
    struct timespec precise;
    int result = clock_gettime(CLOCK_REALTIME, &precise);
    now->tv_sec = precise.tv_sec;
    now->tv_usec = precise.tv_nsec / 1000;
    return result;
}

time_t time(time_t *out)
{
    struct timespec precise;
    clock_gettime(CLOCK_REALTIME, &precise);
    if (out != NULL)
        *out = precise.tv_sec;
    return precise.tv_sec;
}

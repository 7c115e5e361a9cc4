/* A program that the lab did not write, for `bench -- attach` to watch: it counts in a segment until it is told to end
 * (SIGTERM), and then prints how often it went round.
 *
 *   target FILE padded|packed|convoy|shared|huge NUMBER CPU
 *
 * maps FILE, 4096 bytes or of huge 1 GiB, behind a decoy whose size depends on its NUMBER, 0 or 1, and says `ready`. The bytes:
 *
 * | offset | padded, packed | convoy |
 * |---|---|---|
 * | 0 | what process 0 counts | the mutex |
 * | 8 | packed: what process 1 counts | |
 * | 128 | padded: what process 1 counts | what the mutex guards |
 * | 1024 + 128 NUMBER | | what that process counts |
 *
 * With `shared` both count on the word at 0, with `huge` each on the word NUMBER of the lines at 256 and 768 MiB. */
#define _GNU_SOURCE
#include <fcntl.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <unistd.h>

enum { HUGE = 1 << 30, IN_HUGE = 256 << 20, BYTES = 4096, PAIR = 128, OWN = 1024, HOLD = 500, THINK = 1500 };

static volatile sig_atomic_t stop;

static void end(int signal)
{
    (void)signal;
    stop = 1;
}

static void fail(const char *what)
{
    perror(what);
    exit(1);
}

/* So many turns of a loop that touches no memory. */
static void work(unsigned turns)
{
    while (turns-- > 0)
        __asm__ volatile("");
}

__attribute__((noinline)) static uint64_t count(volatile uint64_t *word)
{
    uint64_t passes = 0;
    for (; !stop; passes++)
        *word += 1;
    return passes;
}

__attribute__((noinline)) static uint64_t count_together(uint64_t *word)
{
    uint64_t passes = 0;
    for (; !stop; passes++)
        __atomic_fetch_add(word, 1, __ATOMIC_RELAXED);
    return passes;
}

__attribute__((noinline)) static uint64_t count_twice(volatile uint64_t *word, volatile uint64_t *other)
{
    uint64_t passes = 0;
    for (; !stop; passes++) {
        *word += 1;
        *other += 1;
    }
    return passes;
}

__attribute__((noinline)) static uint64_t
convoy(pthread_mutex_t *mutex, volatile uint64_t *guarded, volatile uint64_t *own)
{
    uint64_t passes = 0;
    for (; !stop; passes++) {
        pthread_mutex_lock(mutex);
        *guarded += 1;
        work(HOLD);
        pthread_mutex_unlock(mutex);
        *own += 1;
        work(THINK);
    }
    return passes;
}

static void make(pthread_mutex_t *mutex)
{
    pthread_mutexattr_t attributes;
    pthread_mutexattr_init(&attributes);
    pthread_mutexattr_setpshared(&attributes, PTHREAD_PROCESS_SHARED);
    if (pthread_mutex_init(mutex, &attributes))
        fail("pthread_mutex_init");
}

int main(int argc, char **argv)
{
    if (argc != 5)
        return 2;
    int number = atoi(argv[3]);
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    cpu_set_t cpus;
    CPU_ZERO(&cpus);
    CPU_SET(atoi(argv[4]), &cpus);
    if (sched_setaffinity(0, sizeof cpus, &cpus))
        fail("sched_setaffinity");
    if (mmap(NULL, (number + 1) * 16 * BYTES, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0) == MAP_FAILED)
        fail("mmap");
    int file = open(argv[1], O_RDWR);
    int huge = !strcmp(argv[2], "huge"), shared = !strcmp(argv[2], "shared");
    char *segment = mmap(NULL, huge ? HUGE : BYTES, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
    if (file < 0 || segment == MAP_FAILED)
        fail(argv[1]);
    int convoys = !strcmp(argv[2], "convoy"), padded = !strcmp(argv[2], "padded");
    if (convoys && number == 0)
        make((pthread_mutex_t *)segment);
    signal(SIGTERM, end);
    puts("ready");
    fflush(stdout);
    uint64_t passes;
    if (convoys)
        passes = convoy((pthread_mutex_t *)segment, (uint64_t *)(segment + PAIR),
                        (uint64_t *)(segment + OWN + number * PAIR));
    else if (shared)
        passes = count_together((uint64_t *)segment);
    else if (huge)
        passes = count_twice((uint64_t *)(segment + IN_HUGE) + number, (uint64_t *)(segment + 3L * IN_HUGE) + number);
    else
        passes = count((uint64_t *)(segment + number * (padded ? PAIR : 8)));
    printf("%llu\n", (unsigned long long)passes);
    return 0;
}

/* A process of a foreign application: maps a segment at an address of its own and uses it as its role says, until its
 * standard input ends. Then it prints how often it went round and what it counted. */
#define _GNU_SOURCE
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <signal.h>
#include <time.h>
#include <unistd.h>

static volatile sig_atomic_t stop;
static char *base;
static uint64_t passes;

static void *watch_input(void *unused) {
    char byte;
    while (read(0, &byte, 1) > 0) {
    }
    stop = 1;
    return unused;
}

__attribute__((noinline)) static void think(unsigned turns) {
    for (volatile unsigned turn = 0; turn < turns; turn++) {
    }
}

/* A plain load and store of a counter. */
__attribute__((noinline)) static void bump(volatile uint64_t *word) {
    while (!stop) {
        *word += 1;
        passes++;
    }
}

__attribute__((noinline)) static void bump_half(volatile uint32_t *word) {
    while (!stop) {
        *word += 1;
        passes++;
    }
}

/* An atomic addition. */
__attribute__((noinline)) static void add(_Atomic uint64_t *word, unsigned turns) {
    while (!stop) {
        atomic_fetch_add(word, 1);
        think(turns);
        passes++;
    }
}

__attribute__((noinline)) static uint64_t look(volatile uint64_t *word) {
    uint64_t sum = 0;
    while (!stop) {
        sum += *word;
        passes++;
    }
    return sum;
}

/* Takes a process-shared lock, counts beside it, and gives it back. */
__attribute__((noinline)) static void convoy(pthread_mutex_t *mutex, volatile uint64_t *counter) {
    while (!stop) {
        pthread_mutex_lock(mutex);
        *counter += 1;
        think(200);
        pthread_mutex_unlock(mutex);
        passes++;
    }
}

/* A lock of test and set, taken with looks and pauses between. */
__attribute__((noinline)) static void spin(atomic_int *lock, volatile uint64_t *counter) {
    while (!stop) {
        while (atomic_exchange_explicit(lock, 1, memory_order_acquire)) {
            while (atomic_load_explicit(lock, memory_order_relaxed) && !stop) {
                __builtin_ia32_pause();
            }
        }
        *counter += 1;
        think(300);
        atomic_store_explicit(lock, 0, memory_order_release);
        passes++;
    }
}

static void *bump_thread(void *word) {
    bump(word);
    return NULL;
}

static long life_ms;

static long now_ms(void) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return now.tv_sec * 1000 + now.tv_nsec / 1000000;
}

/* Adds for so many milliseconds and ends. */
static void *short_life(void *word) {
    for (long begin = now_ms(); now_ms() < begin + life_ms;) {
        for (int turn = 0; turn < 1000; turn++) {
            atomic_fetch_add((_Atomic uint64_t *)word, 1);
        }
    }
    return NULL;
}

int main(int argc, char **argv) {
    if (argc < 6) {
        return 2;
    }
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (getenv("TOUCHER_CPU")) {
        cpu_set_t cpus;
        CPU_ZERO(&cpus);
        CPU_SET(atoi(getenv("TOUCHER_CPU")), &cpus);
        if (sched_setaffinity(0, sizeof cpus, &cpus)) {
            return 6;
        }
    }
    const char *name = argv[1], *role = argv[2];
    size_t bytes = strtoull(argv[3], NULL, 0), at = strtoull(argv[4], NULL, 0), decoy = strtoull(argv[5], NULL, 0);
    size_t other = argc > 6 ? strtoull(argv[6], NULL, 0) : 0;
    if (decoy && mmap(NULL, decoy * 4096, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0) == MAP_FAILED) {
        return 3;
    }
    int fd = shm_open(name, O_RDWR, 0600);
    if (fd < 0 || (base = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0)) == MAP_FAILED) {
        return 4;
    }
    if (!strcmp(role, "make-mutex")) {
        pthread_mutexattr_t attributes;
        pthread_mutexattr_init(&attributes);
        pthread_mutexattr_setpshared(&attributes, PTHREAD_PROCESS_SHARED);
        return pthread_mutex_init((pthread_mutex_t *)(base + at), &attributes);
    }
    life_ms = (long)other;
    pthread_t reader;
    pthread_create(&reader, NULL, watch_input, NULL);
    printf("ready %lu\n", (unsigned long)base);
    fflush(stdout);
    if (!strcmp(role, "bump")) {
        bump((volatile uint64_t *)(base + at));
    } else if (!strcmp(role, "bump-half")) {
        bump_half((volatile uint32_t *)(base + at));
    } else if (!strcmp(role, "add")) {
        add((_Atomic uint64_t *)(base + at), 0);
    } else if (!strcmp(role, "add-slowly")) {
        add((_Atomic uint64_t *)(base + at), (unsigned)other);
    } else if (!strcmp(role, "look")) {
        look((volatile uint64_t *)(base + at));
    } else if (!strcmp(role, "convoy")) {
        convoy((pthread_mutex_t *)(base + at), (volatile uint64_t *)(base + other));
    } else if (!strcmp(role, "spin")) {
        spin((atomic_int *)(base + at), (volatile uint64_t *)(base + other));
    } else if (!strcmp(role, "kernel")) {
        /* The kernel writes for it. */
        int zero = open("/dev/zero", O_RDONLY);
        while (!stop && read(zero, base + at, 8) == 8) {
            passes++;
        }
    } else if (!strcmp(role, "two-threads")) {
        pthread_t thread;
        pthread_create(&thread, NULL, bump_thread, base + other);
        bump((volatile uint64_t *)(base + at));
        pthread_join(thread, NULL);
    } else if (!strcmp(role, "births")) {
        while (!stop) {
            pthread_t thread;
            pthread_create(&thread, NULL, short_life, base + at);
            pthread_join(thread, NULL);
        }
    } else if (!strcmp(role, "exec")) {
        short_life(base + at);
        execl("/bin/sleep", "sleep", "1000", NULL);
    } else {
        return 5;
    }
    printf("%lu %lu\n", (unsigned long)passes, (unsigned long)*(uint64_t *)(base + at));
    return 0;
}

/* Processes that share locks, each mapping the segment at an address of its own. The first argument says what to do; the
 * second is the segment's file. A process tells on standard output how far it is, a line each time, and goes on when it is
 * sent a line, or at the end of its input. */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <linux/futex.h>
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#define BYTES 8192

struct shared {
    char head[192];
    pthread_mutex_t mutex; /* at 192 */
    char rest[320 - 192 - sizeof(pthread_mutex_t)];
    uint32_t word;  /* at 320: of a lock of three states */
    uint32_t other; /* at 324 */
};

static struct shared *shared;

static void die(const char *what) {
    perror(what);
    exit(2);
}

static void map(const char *path) {
    /* As many pages more as the process's number says: no two lie at one address. */
    size_t decoy = 4096 * (size_t)(1 + getpid() % 1000);
    if (mmap(0, decoy, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0) == MAP_FAILED) die("decoy");
    int file = open(path, O_RDWR | O_CREAT, 0600);
    if (file < 0 || ftruncate(file, BYTES)) die("segment");
    shared = mmap(0, BYTES, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
    if (shared == MAP_FAILED) die("mmap");
}

static void say(const char *what) {
    puts(what);
    fflush(stdout);
}

/* 0 at the end of the input. */
static int told(void) {
    char line[64];
    return fgets(line, sizeof line, stdin) != 0;
}

static void rest_for(long us) {
    struct timespec time = {us / 1000000, us % 1000000 * 1000};
    if (us > 0) nanosleep(&time, 0);
}

static long futex(uint32_t *word, int operation, uint32_t value) {
    return syscall(SYS_futex, word, operation, value, 0, 0, -1);
}

/* A marker as the lab's workers have them: an instruction that does nothing, and a note that says where it is and in which
 * registers lie the lock's number, the worker's, and the lock's address. */
#ifdef __x86_64__
#define MARKER(name, address)                                                                                          \
    __asm__ volatile(".balign 8\n990: .byte 0x0f, 0x1f, 0x44, 0x00, 0x00\n"                                            \
                     ".pushsection .note.stapsdt, \"\", \"note\"\n.balign 4\n"                                          \
                     ".4byte 992f - 991f, 994f - 993f, 3\n991: .asciz \"stapsdt\"\n992: .balign 4\n"                   \
                     "993: .8byte 990b\n.8byte marker_base\n.8byte 0\n"                                                \
                     ".asciz \"contention_lab\"\n.asciz \"" name "\"\n.asciz \"4@%%eax 4@%%edx 8@%0\"\n"              \
                     "994: .balign 4\n.popsection\n"                                                                  \
                     :                                                                                                 \
                     : "r"((uint64_t)(uintptr_t)(address))                                                             \
                     : "memory")
__asm__(".pushsection .stapsdt.base, \"aR\", \"progbits\"\nmarker_base: .space 1\n.popsection\n");
#else
#define MARKER(name, address) (void)(address)
#endif

/* A lock of one word: free, taken, taken and waited for. */
static void three_state_lock(void) {
    uint32_t seen = 0;
    if (__atomic_compare_exchange_n(&shared->word, &seen, 1, 0, __ATOMIC_ACQUIRE, __ATOMIC_RELAXED)) return;
    MARKER("lock_contended", &shared->word);
    while (__atomic_exchange_n(&shared->word, 2, __ATOMIC_ACQUIRE)) futex(&shared->word, FUTEX_WAIT, 2);
    MARKER("lock_acquired", &shared->word);
}

static void three_state_unlock(void) {
    if (__atomic_exchange_n(&shared->word, 0, __ATOMIC_RELEASE) == 2) futex(&shared->word, FUTEX_WAKE, 1);
}

static long hold_us, rest_us, rounds;
static int three_states;

static void *go_round(void *none) {
    for (long round = 0; round < rounds; round++) {
        three_states ? three_state_lock() : (void)pthread_mutex_lock(&shared->mutex);
        rest_for(hold_us);
        three_states ? three_state_unlock() : (void)pthread_mutex_unlock(&shared->mutex);
        rest_for(rest_us);
    }
    return none;
}

/* init FILE KIND: makes the mutex, plain, robust, pi, or private to each process. */
static void init(const char *kind) {
    pthread_mutexattr_t attributes;
    pthread_mutexattr_init(&attributes);
    if (strcmp(kind, "private")) pthread_mutexattr_setpshared(&attributes, PTHREAD_PROCESS_SHARED);
    if (!strcmp(kind, "robust")) pthread_mutexattr_setrobust(&attributes, PTHREAD_MUTEX_ROBUST);
    if (!strcmp(kind, "pi")) pthread_mutexattr_setprotocol(&attributes, PTHREAD_PRIO_INHERIT);
    pthread_mutex_init(&shared->mutex, &attributes);
}

/* rounds FILE HOLD_US REST_US ROUNDS THREADS LOCK: takes the lock so often, once told. */
static void take_rounds(char **arguments) {
    hold_us = atol(arguments[0]), rest_us = atol(arguments[1]), rounds = atol(arguments[2]);
    long threads = atol(arguments[3]);
    three_states = !strcmp(arguments[4], "word");
    say("ready");
    told();
    pthread_t others[64];
    for (long other = 1; other < threads; other++) pthread_create(&others[other], 0, go_round, 0);
    go_round(0);
    for (long other = 1; other < threads; other++) pthread_join(others[other], 0);
    say("done");
}

/* own FILE: takes the lock and keeps it until told. */
static void own(void) {
    int got = pthread_mutex_lock(&shared->mutex);
    say(got == EOWNERDEAD ? "taken over" : "taken");
    if (told()) pthread_mutex_unlock(&shared->mutex);
    say("done");
}

/* fork FILE: begins a process, once told, that takes the lock and gives it back; says that process's number. */
static void fork_then_own(void) {
    say("ready");
    told();
    pid_t child = fork();
    if (child == 0) {
        pthread_mutex_lock(&shared->mutex);
        pthread_mutex_unlock(&shared->mutex);
        say("done");
        for (;;) pause();
    }
    printf("%d\n", child);
    fflush(stdout);
}

/* any FILE: waits at two words at once, by futex_waitv. */
static void wait_at_both(void) {
    struct futex_waitv words[2] = {
        {.val = 0, .uaddr = (uintptr_t)&shared->word, .flags = FUTEX_32},
        {.val = 0, .uaddr = (uintptr_t)&shared->other, .flags = FUTEX_32},
    };
    say("ready");
    told();
    long woken = syscall(SYS_futex_waitv, words, 2, 0, 0, 0);
    if (woken < 0) die("futex_waitv");
    say("done");
}

/* ping FILE: calls a futex on that value again and again, until its input ends. */
static void *ping(void *none) {
    for (;;) {
        futex(&shared->other, FUTEX_WAKE, 77123);
        usleep(1000);
    }
    return none;
}

static void *sleep_on(void *none) {
    for (;;) pause();
    return none;
}

int main(int count, char **arguments) {
    if (count < 3) return 2;
    /* A process of one thread unlocks its private mutexes without asking whether anybody waits. */
    pthread_t other;
    pthread_create(&other, 0, sleep_on, 0);
    const char *what = arguments[1];
    map(arguments[2]);
    if (!strcmp(what, "init")) {
        init(arguments[3]);
        say("ready");
    } else if (!strcmp(what, "rounds")) {
        take_rounds(arguments + 3);
    } else if (!strcmp(what, "own")) {
        own();
    } else if (!strcmp(what, "fork")) {
        fork_then_own();
    } else if (!strcmp(what, "exec")) {
        say("ready");
        told();
        execl("/proc/self/exe", arguments[0], "own", arguments[2], (char *)0);
        die("exec");
    } else if (!strcmp(what, "any")) {
        wait_at_both();
    } else if (!strcmp(what, "wake")) {
        say("ready");
        told();
        __atomic_store_n(&shared->other, 1, __ATOMIC_SEQ_CST);
        futex(&shared->other, FUTEX_WAKE, 10);
        say("done");
    } else if (!strcmp(what, "ping")) {
        pthread_t pings;
        pthread_create(&pings, 0, ping, 0);
    } else {
        return 2;
    }
    while (told()) {
    }
    return 0;
}

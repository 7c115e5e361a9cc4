/* A program that the lab did not start: it maps a segment and does what it is told.
 *
 *   sharer posix NAME | memfd NAME | sysv ID | file PATH | anonymous
 *
 * maps 16 KiB behind a decoy whose size depends on its pid, so that the address differs from process to process, and
 * says `ready PATH-OR-ID ADDRESS`. Then it reads commands from standard input, one a line, and answers each with a line
 * when it is done. It ends with standard input, so that none outlives its test. */
#define _GNU_SOURCE
#include <fcntl.h>
#include <linux/futex.h>
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/shm.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum { BYTES = 16384, PAGE = 4096 };

static volatile uint64_t *segment;
static char handle[4096];
static long chosen;

static void fail(const char *what)
{
    perror(what);
    exit(1);
}

static void *map(const char *kind, const char *name)
{
    int fd = -1;
    snprintf(handle, sizeof handle, "%s", name);
    if (!strcmp(kind, "posix"))
        fd = shm_open(name, O_CREAT | O_RDWR, 0600);
    else if (!strcmp(kind, "file"))
        fd = open(name, O_CREAT | O_RDWR, 0600);
    else if (!strcmp(kind, "memfd")) {
        fd = memfd_create(name, 0);
        snprintf(handle, sizeof handle, "/proc/%d/fd/%d", getpid(), fd);
    } else if (!strcmp(kind, "sysv")) {
        int id = atoi(name);
        if (id < 0) {
            id = shmget(IPC_PRIVATE, BYTES, 0600);
            snprintf(handle, sizeof handle, "%d", id);
        }
        void *at = shmat(id, NULL, 0);
        if (at == (void *)-1)
            fail("shmat");
        return at;
    } else
        return mmap(NULL, BYTES, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (fd < 0 || ftruncate(fd, BYTES))
        fail(name);
    return mmap(NULL, BYTES, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
}

/* Touches so many pages of its own for the first time. */
static void fault(long pages)
{
    volatile char *fresh = mmap(NULL, pages * PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    madvise((void *)fresh, pages * PAGE, MADV_NOHUGEPAGE);
    for (long page = 0; page < pages; page++)
        fresh[page * PAGE] = 1;
    munmap((void *)fresh, pages * PAGE);
}

static void nap(long times)
{
    struct timespec moment = {0, 1000000};
    while (times-- > 0)
        nanosleep(&moment, NULL);
}

/* Asks for waits that the kernel refuses at once: the word does not hold what it is said to. */
static void futex(long times)
{
    while (times-- > 0)
        syscall(SYS_futex, &segment[8], FUTEX_WAIT, (uint32_t)segment[8] + 1, NULL, NULL, 0);
}

static long used(void)
{
    struct timespec now;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
    return now.tv_sec * 1000000 + now.tv_nsec / 1000;
}

/* Adds so many to the chosen word, one at a time. */
__attribute__((noinline)) static void add(long times)
{
    while (times-- > 0)
        segment[chosen]++;
}

/* Spends so many milliseconds of CPU time on adding to the chosen word. */
__attribute__((noinline)) static void spin(long milliseconds)
{
    long begin = used();
    do
        for (int turn = 0; turn < 1000; turn++)
            segment[chosen]++;
    while (used() < begin + milliseconds * 1000);
}

/* Adds to a word as long as the process lives. */
__attribute__((noinline)) static void *beside(void *word)
{
    for (;;)
        segment[(long)word]++;
    return NULL;
}

static void *threaded_fault(void *pages)
{
    fault((long)pages);
    return NULL;
}

static void say(const char *word, long number)
{
    printf("%s %ld\n", word, number);
    fflush(stdout);
}

/* A child that maps the segment as this process does, until standard input ends. */
static long child(void)
{
    pid_t pid = fork();
    if (pid == 0) {
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        segment[1]++;
        pause();
        _exit(0);
    }
    return pid;
}

static void obey(char *word, long number, char **argv)
{
    pthread_t thread;
    if (!strcmp(word, "fault"))
        fault(number);
    else if (!strcmp(word, "nap"))
        nap(number);
    else if (!strcmp(word, "futex"))
        futex(number);
    else if (!strcmp(word, "word"))
        chosen = number;
    else if (!strcmp(word, "add"))
        add(number);
    else if (!strcmp(word, "spin"))
        spin(number);
    else if (!strcmp(word, "thread")) {
        if (pthread_create(&thread, NULL, threaded_fault, (void *)number) || pthread_join(thread, NULL))
            fail("thread");
    } else if (!strcmp(word, "beside")) {
        if (pthread_create(&thread, NULL, beside, (void *)number))
            fail("beside");
    } else if (!strcmp(word, "fork"))
        number = child();
    else if (!strcmp(word, "kill")) {
        kill(number, SIGKILL);
        waitpid(number, NULL, 0);
    } else if (!strcmp(word, "unmap"))
        munmap((void *)segment, BYTES);
    else if (!strcmp(word, "exec"))
        execl("/bin/cat", "cat", NULL);
    else if (!strcmp(word, "again"))
        execv(argv[0], argv);
    else if (!strcmp(word, "exit"))
        exit(0);
    say("done", number);
}

int main(int argc, char **argv)
{
    if (argc < 3)
        return 2;
    size_t decoy = (getpid() % 61 + 1) * PAGE * 16;
    if (mmap(NULL, decoy, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0) == MAP_FAILED)
        fail("decoy");
    segment = map(argv[1], argv[2]);
    if (segment == MAP_FAILED)
        fail("map");
    segment[0]++;
    printf("ready %s %llu\n", handle, (unsigned long long)(uintptr_t)segment);
    fflush(stdout);
    char line[256], word[64];
    while (fgets(line, sizeof line, stdin)) {
        long number = 0;
        if (sscanf(line, "%63s %ld", word, &number) >= 1)
            obey(word, number, argv);
    }
    return 0;
}

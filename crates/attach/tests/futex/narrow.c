/* A program of 32 bits without a C library: maps the segment, waits twice at its word for 20 ms each, wakes nobody once. The
 * segment is descriptor 3. It begins when its input ends. */

static long call(long number, long a, long b, long c, long d, long e, long f) {
    long result;
    long six[2] = {number, f};
    __asm__ volatile("push %%ebp\n mov 4(%%eax), %%ebp\n mov (%%eax), %%eax\n int $0x80\n pop %%ebp"
                     : "=a"(result)
                     : "a"(six), "b"(a), "c"(b), "d"(c), "S"(d), "D"(e)
                     : "memory");
    return result;
}

enum { READ = 3, WRITE = 4, MMAP2 = 192, FUTEX = 240, EXIT = 1 };

void _start(void) {
    unsigned *shared = (unsigned *)call(MMAP2, 0, 8192, 3 /* to read and write */, 1 /* shared */, 3, 0);
    char byte;
    call(WRITE, 1, (long)"ready\n", 6, 0, 0, 0);
    call(READ, 0, (long)&byte, 1, 0, 0, 0);
    long time[2] = {0, 20000000};
    for (int wait = 0; wait < 2; wait++) call(FUTEX, (long)&shared[80], 0, 0, (long)time, 0, 0);
    call(FUTEX, (long)&shared[80], 0, 1 /* other than it holds: refused */, 0, 0, 0);
    call(FUTEX, (long)&shared[80], 1, 1, 0, 0, 0);
    call(WRITE, 1, (long)"done\n", 5, 0, 0, 0);
    call(READ, 0, (long)&byte, 1, 0, 0, 0);
    call(EXIT, 0, 0, 0, 0, 0, 0);
}

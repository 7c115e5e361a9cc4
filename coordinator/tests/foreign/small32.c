/* A process of 32 bits, without a C library, which few machines of 64 bits have for it: maps the file that is its standard
 * output, says nothing, and ends with standard input. Built with -m32 -nostdlib -static. */

enum { SYS_exit = 1, SYS_read = 3, SYS_mmap2 = 192 };
enum { PROT_READ_WRITE = 3, MAP_SHARED = 1, PAGE = 4096 };

static int call(int number, int a, int b, int c, int d, int e)
{
    int result;
    __asm__ volatile("push %%ebp; xor %%ebp, %%ebp; int $0x80; pop %%ebp"
                     : "=a"(result)
                     : "a"(number), "b"(a), "c"(b), "d"(c), "S"(d), "D"(e)
                     : "memory");
    return result;
}

void _start(void)
{
    char byte;
    volatile int *segment = (volatile int *)call(SYS_mmap2, 0, PAGE, PROT_READ_WRITE, MAP_SHARED, 1);
    segment[0] = 32;
    while (call(SYS_read, 0, (int)&byte, 1, 0, 0) == 1)
        segment[0]++;
    call(SYS_exit, 0, 0, 0, 0, 0);
}

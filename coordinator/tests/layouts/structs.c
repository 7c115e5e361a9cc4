// Structs whose layouts are read out of the program that this makes, twenty of them by `import` and by pahole, too.
// pahole 1.24 gives `_Atomic` members no size, and puts a packed bit-field in a word that it reaches out of.
#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>

enum colour { RED, GREEN };
typedef struct { int x; char y; } pair_t;

struct numbers { char a; short b; int c; long d; long long e; float f; double g; long double h; bool i;
                 enum colour j; };
struct two_lines { uint64_t head; char name[56]; uint64_t tail; };
struct straddling { char name[60]; void *pointer; uint32_t count; } __attribute__((packed));
struct one_hole { char a; uint64_t b; char c; };
struct aligned_member { int a; _Alignas(64) int b; _Alignas(128) long c; };
struct arrays { char a[3]; int b[2][3]; void *c[4]; pair_t d[5]; double e; };
struct flexible { int n; uint64_t values[]; };
struct bits { unsigned a : 3; unsigned b : 7; unsigned c : 22; long d : 33; char e : 1; char f; };
struct bits_between { char a; int b : 5; int c : 27; short d : 3; long e; };
struct nested { pair_t a; struct one_hole b; char c; };
struct anonymous { int a; union { long b; char c; struct { short d; int e; }; }; struct { char f; double g; } h; };
struct functions { int (*a)(int, const char *); void (*b)(void); void (**c)(struct functions *, ...); };
struct pointers { const char *a; char *const b; volatile int *c; struct pointers *d; const void *const *e; };
struct locks { pthread_mutex_t a; pthread_rwlock_t b; pthread_cond_t c; pthread_spinlock_t d; };
struct linked { struct linked *next, *previous; unsigned long key; };
struct long_one { char a[100]; uint64_t b; char c[200]; uint32_t d; uint64_t e[20]; };
struct server { pthread_mutex_t lock; uint64_t requests; uint32_t errors[4]; struct linked clients; bool stopping; };
struct packed_bits { char a; unsigned b : 12; unsigned c : 20; short d; } __attribute__((packed));
struct deep { struct { struct { struct { char a; long b; } c; char d; } e; char f; } g; char h; };
struct vectors { int a __attribute__((vector_size(16))); char b; float c __attribute__((vector_size(32))); };
struct ring { _Alignas(64) uint64_t head; uint64_t cached_tail; _Alignas(64) uint64_t tail; uint64_t cached_head;
              _Alignas(64) uint32_t size; void *slots; };
struct atomic { _Atomic int a; _Alignas(64) _Atomic long b; };
union word { uint64_t whole; uint32_t halves[2]; char bytes[12]; };

#define KEEP(name) struct name keep_##name
KEEP(numbers); KEEP(two_lines); KEEP(straddling); KEEP(one_hole); KEEP(aligned_member); KEEP(arrays); KEEP(bits);
KEEP(bits_between); KEEP(nested); KEEP(anonymous); KEEP(functions); KEEP(locks); KEEP(linked); KEEP(long_one);
KEEP(packed_bits); KEEP(server); KEEP(atomic); KEEP(deep); KEEP(vectors); KEEP(ring);
struct flexible *keep_flexible;
struct pointers *keep_pointers;
union word keep_word;

int main(void) { return (int)keep_word.whole; }

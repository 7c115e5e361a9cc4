/* The locks as a C programmer would write or call them, for memory that processes share: a loop of nothing but
 * acquiring and releasing (`free`), and one with a section and work outside (`contended`). The C library's kinds are
 * its own calls; the lab's kinds are its algorithms in C11 atomics with the same orderings (shm-layout/src/lock says
 * what each pairs with): the first attempt and the release in line, waiting out of line.
 *
 * Each loop makes `passes` passes, at least one, and returns 0 unless a call failed. */
#define _GNU_SOURCE
#include <pthread.h>
#include <semaphore.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>
#include <linux/futex.h>
#include <sys/syscall.h>
#include <unistd.h>

/* A place in a queue: a pair of lines of its own. */
struct node {
    _Alignas(128) _Atomic uint32_t next;
    _Atomic uint32_t waits;
};

/* What one process knows of its lock: its own memory, never shared. `lock`, `nodes` and `word` point to what is. */
struct seat {
    void *lock;
    struct node *nodes; /* node i is named i + 1: processes may map them at different addresses */
    uint64_t *word;     /* what the section bumps */
    uint64_t turns;     /* of the work outside */
    uint64_t chain;
    uint32_t me;     /* the node to queue with, by name */
    uint32_t before; /* CLH: the node waited on */
    uint32_t odd;    /* sequence lock: the count while writing */
};

const uint64_t c_seat_bytes = sizeof(struct seat);

#define SLOW __attribute__((noinline, cold)) static
#define INLINE static inline __attribute__((always_inline))

INLINE void pause_a_turn(void)
{
#if defined(__x86_64__)
    __builtin_ia32_pause();
#elif defined(__aarch64__)
    __asm__ volatile("isb");
#endif
}

INLINE struct node *named(struct node *nodes, uint32_t name) { return &nodes[name - 1]; }

/* ---- the C library's kinds ---- */

INLINE int mutex_acquire(struct seat *seat) { return pthread_mutex_lock(seat->lock); }
INLINE int mutex_tries_first(struct seat *seat)
{
    return pthread_mutex_trylock(seat->lock) ? pthread_mutex_lock(seat->lock) : 0;
}
INLINE int mutex_release(struct seat *seat) { return pthread_mutex_unlock(seat->lock); }

INLINE int spin_acquire(struct seat *seat) { return pthread_spin_lock(seat->lock); }
INLINE int spin_tries_first(struct seat *seat)
{
    return pthread_spin_trylock(seat->lock) ? pthread_spin_lock(seat->lock) : 0;
}
INLINE int spin_release(struct seat *seat) { return pthread_spin_unlock(seat->lock); }

INLINE int rwlock_acquire(struct seat *seat) { return pthread_rwlock_wrlock(seat->lock); }
INLINE int rwlock_tries_first(struct seat *seat)
{
    return pthread_rwlock_trywrlock(seat->lock) ? pthread_rwlock_wrlock(seat->lock) : 0;
}
INLINE int rwlock_release(struct seat *seat) { return pthread_rwlock_unlock(seat->lock); }
INLINE int rwlock_read_acquire(struct seat *seat) { return pthread_rwlock_rdlock(seat->lock); }

INLINE int semaphore_acquire(struct seat *seat) { return sem_wait(seat->lock); }
INLINE int semaphore_tries_first(struct seat *seat) { return sem_trywait(seat->lock) ? sem_wait(seat->lock) : 0; }
INLINE int semaphore_release(struct seat *seat) { return sem_post(seat->lock); }

/* ---- test-and-set, test-and-test-and-set ---- */

INLINE int flag_is_taken(_Atomic uint32_t *flag)
{
    return atomic_exchange_explicit(flag, 1, memory_order_acquire) != 0;
}

SLOW void tas_wait(_Atomic uint32_t *flag)
{
    while (flag_is_taken(flag)) {}
}
INLINE int tas_acquire(struct seat *seat)
{
    if (flag_is_taken(seat->lock)) tas_wait(seat->lock);
    return 0;
}
INLINE int tas_release(struct seat *seat)
{
    atomic_store_explicit((_Atomic uint32_t *)seat->lock, 0, memory_order_release);
    return 0;
}

SLOW void ttas_wait(_Atomic uint32_t *flag)
{
    for (int backoff = 4;;) {
        if (atomic_load_explicit(flag, memory_order_relaxed)) {
            pause_a_turn();
        } else if (!flag_is_taken(flag)) {
            return;
        } else {
            for (int hint = 0; hint < backoff; hint++) pause_a_turn();
            backoff = backoff < 128 ? backoff * 2 : 128;
        }
    }
}
INLINE int ttas_acquire(struct seat *seat)
{
    if (flag_is_taken(seat->lock)) ttas_wait(seat->lock);
    return 0;
}
INLINE int ttas_release(struct seat *seat) { return tas_release(seat); }

/* ---- ticket ---- */

struct ticket {
    _Atomic uint32_t next, serving;
};

SLOW void ticket_wait(struct ticket *lock, uint32_t drawn)
{
    while (atomic_load_explicit(&lock->serving, memory_order_acquire) != drawn) pause_a_turn();
}
INLINE int ticket_acquire(struct seat *seat)
{
    struct ticket *lock = seat->lock;
    uint32_t drawn = atomic_fetch_add_explicit(&lock->next, 1, memory_order_relaxed);
    if (atomic_load_explicit(&lock->serving, memory_order_acquire) != drawn) ticket_wait(lock, drawn);
    return 0;
}
INLINE int ticket_release(struct seat *seat)
{
    struct ticket *lock = seat->lock;
    uint32_t served = atomic_load_explicit(&lock->serving, memory_order_relaxed);
    atomic_store_explicit(&lock->serving, served + 1, memory_order_release);
    return 0;
}

/* ---- MCS ---- */

SLOW void mcs_wait(struct node *before, struct node *own, uint32_t me)
{
    atomic_store_explicit(&before->next, me, memory_order_release);
    while (atomic_load_explicit(&own->waits, memory_order_acquire)) pause_a_turn();
}
SLOW void mcs_hand_over(struct node *nodes, struct node *own)
{
    uint32_t next;
    while (!(next = atomic_load_explicit(&own->next, memory_order_acquire))) pause_a_turn();
    atomic_store_explicit(&named(nodes, next)->waits, 0, memory_order_release);
}
INLINE int mcs_acquire(struct seat *seat)
{
    struct node *own = named(seat->nodes, seat->me);
    atomic_store_explicit(&own->next, 0, memory_order_relaxed);
    atomic_store_explicit(&own->waits, 1, memory_order_relaxed);
    uint32_t before = atomic_exchange_explicit((_Atomic uint32_t *)seat->lock, seat->me, memory_order_acq_rel);
    if (before) mcs_wait(named(seat->nodes, before), own, seat->me);
    return 0;
}
INLINE int mcs_release(struct seat *seat)
{
    struct node *own = named(seat->nodes, seat->me);
    uint32_t expected = seat->me;
    if (atomic_load_explicit(&own->next, memory_order_relaxed) ||
        !atomic_compare_exchange_strong_explicit((_Atomic uint32_t *)seat->lock, &expected, 0, memory_order_release,
                                                 memory_order_relaxed))
        mcs_hand_over(seat->nodes, own);
    return 0;
}

/* ---- CLH: `waits` of a node is 1 from when its process queues until it releases ---- */

SLOW void clh_wait(struct node *before)
{
    while (atomic_load_explicit(&before->waits, memory_order_acquire)) pause_a_turn();
}
INLINE int clh_acquire(struct seat *seat)
{
    atomic_store_explicit(&named(seat->nodes, seat->me)->waits, 1, memory_order_relaxed);
    seat->before = atomic_exchange_explicit((_Atomic uint32_t *)seat->lock, seat->me, memory_order_acq_rel);
    struct node *before = named(seat->nodes, seat->before);
    if (atomic_load_explicit(&before->waits, memory_order_acquire)) clh_wait(before);
    return 0;
}
INLINE int clh_release(struct seat *seat)
{
    atomic_store_explicit(&named(seat->nodes, seat->me)->waits, 0, memory_order_release);
    seat->me = seat->before;
    return 0;
}

/* ---- futex: 0 free, 1 held, 2 held and slept for ---- */

SLOW void futex_wait(_Atomic uint32_t *state)
{
    while (atomic_exchange_explicit(state, 2, memory_order_acquire)) syscall(SYS_futex, state, FUTEX_WAIT, 2, NULL);
}
SLOW void futex_wake(_Atomic uint32_t *state) { syscall(SYS_futex, state, FUTEX_WAKE, 1); }
INLINE int futex_acquire(struct seat *seat)
{
    _Atomic uint32_t *state = seat->lock;
    uint32_t expected = 0;
    if (!atomic_compare_exchange_strong_explicit(state, &expected, 1, memory_order_acquire, memory_order_relaxed))
        futex_wait(state);
    return 0;
}
INLINE int futex_release(struct seat *seat)
{
    _Atomic uint32_t *state = seat->lock;
    if (atomic_exchange_explicit(state, 0, memory_order_release) == 2) futex_wake(state);
    return 0;
}

/* ---- sequence lock ---- */

INLINE int seqlock_begins(_Atomic uint32_t *count, uint32_t *odd)
{
    uint32_t even = atomic_load_explicit(count, memory_order_relaxed);
    *odd = even + 1;
    return !(even & 1) && atomic_compare_exchange_strong_explicit(count, &even, even + 1, memory_order_acquire,
                                                                  memory_order_relaxed);
}
SLOW uint32_t seqlock_wait(_Atomic uint32_t *count)
{
    uint32_t odd;
    while (!seqlock_begins(count, &odd)) pause_a_turn();
    return odd;
}
INLINE int seqlock_acquire(struct seat *seat)
{
    uint32_t odd;
    seat->odd = seqlock_begins(seat->lock, &odd) ? odd : seqlock_wait(seat->lock);
    atomic_thread_fence(memory_order_release);
    return 0;
}
INLINE int seqlock_release(struct seat *seat)
{
    atomic_store_explicit((_Atomic uint32_t *)seat->lock, seat->odd + 1, memory_order_release);
    return 0;
}
SLOW uint32_t seqlock_await_even(_Atomic uint32_t *count)
{
    uint32_t even;
    while ((even = atomic_load_explicit(count, memory_order_acquire)) & 1) pause_a_turn();
    return even;
}
/* What a reader reads would stand between the two. */
INLINE int seqlock_read(struct seat *seat)
{
    _Atomic uint32_t *count = seat->lock;
    uint32_t begun;
    do {
        begun = atomic_load_explicit(count, memory_order_acquire);
        if (begun & 1) begun = seqlock_await_even(count);
        atomic_thread_fence(memory_order_acquire);
    } while (atomic_load_explicit(count, memory_order_relaxed) != begun);
    return 0;
}

/* ---- the loops ---- */

/* The chain of dependent multiply-adds that the compiled loop's `work` is (worker/src/compile/emit.rs). */
INLINE uint64_t work(uint64_t chain, uint64_t turns)
{
    while (turns--) chain = chain * 0x2c1b3c6d + 0x297a2d39;
    return chain;
}

/* The seat's members stay in registers: it is a copy whose address nobody has. */
#define LOOP(name, pass)                                                                                               \
    int c_##name(struct seat *seat, uint64_t passes)                                                                   \
    {                                                                                                                  \
        struct seat own = *seat, *me = &own;                                                                           \
        int failed = 0;                                                                                                \
        do {                                                                                                           \
            pass                                                                                                       \
        } while (--passes);                                                                                            \
        *seat = own;                                                                                                   \
        return failed;                                                                                                 \
    }

#define FREE_LOOP(name, acquire, release)                                                                              \
    LOOP(name, failed |= acquire(me); failed |= release(me);)

#define CONTENDED_LOOP(name, acquire, release)                                                                         \
    LOOP(name, failed |= acquire(me); volatile uint64_t *word = me->word; *word = *word + 1; failed |= release(me);    \
         me->chain = work(me->chain, me->turns);)

#define OWN_KIND(kind)                                                                                                 \
    FREE_LOOP(kind##_free, kind##_acquire, kind##_release)                                                             \
    CONTENDED_LOOP(kind##_contended, kind##_acquire, kind##_release)

#define LIBRARY_KIND(kind)                                                                                             \
    OWN_KIND(kind)                                                                                                     \
    CONTENDED_LOOP(kind##_contended_tries_first, kind##_tries_first, kind##_release)

LIBRARY_KIND(mutex)
LIBRARY_KIND(spin)
LIBRARY_KIND(rwlock)
LIBRARY_KIND(semaphore)
OWN_KIND(tas)
OWN_KIND(ttas)
OWN_KIND(ticket)
OWN_KIND(mcs)
OWN_KIND(clh)
OWN_KIND(futex)
OWN_KIND(seqlock)
FREE_LOOP(rwlock_read, rwlock_read_acquire, rwlock_release)
LOOP(seqlock_read, failed |= seqlock_read(me);)

/* ---- making them: 0, or what the failed call returned ---- */

static int mutex_init(struct seat *seat, int type, int robust, int protocol)
{
    pthread_mutexattr_t attributes;
    int failed = pthread_mutexattr_init(&attributes);
    failed |= pthread_mutexattr_setpshared(&attributes, PTHREAD_PROCESS_SHARED);
    failed |= pthread_mutexattr_settype(&attributes, type);
    failed |= pthread_mutexattr_setrobust(&attributes, robust);
    failed |= pthread_mutexattr_setprotocol(&attributes, protocol);
    if (!failed) failed = pthread_mutex_init(seat->lock, &attributes);
    pthread_mutexattr_destroy(&attributes);
    return failed;
}

int c_mutex_init(struct seat *seat)
{
    return mutex_init(seat, PTHREAD_MUTEX_DEFAULT, PTHREAD_MUTEX_STALLED, PTHREAD_PRIO_NONE);
}
int c_adaptive_init(struct seat *seat)
{
    return mutex_init(seat, PTHREAD_MUTEX_ADAPTIVE_NP, PTHREAD_MUTEX_STALLED, PTHREAD_PRIO_NONE);
}
int c_robust_init(struct seat *seat)
{
    return mutex_init(seat, PTHREAD_MUTEX_DEFAULT, PTHREAD_MUTEX_ROBUST, PTHREAD_PRIO_NONE);
}
int c_pi_init(struct seat *seat)
{
    return mutex_init(seat, PTHREAD_MUTEX_DEFAULT, PTHREAD_MUTEX_STALLED, PTHREAD_PRIO_INHERIT);
}
int c_spin_init(struct seat *seat) { return pthread_spin_init(seat->lock, PTHREAD_PROCESS_SHARED); }
int c_rwlock_init(struct seat *seat)
{
    pthread_rwlockattr_t attributes;
    int failed = pthread_rwlockattr_init(&attributes);
    failed |= pthread_rwlockattr_setpshared(&attributes, PTHREAD_PROCESS_SHARED);
    if (!failed) failed = pthread_rwlock_init(seat->lock, &attributes);
    pthread_rwlockattr_destroy(&attributes);
    return failed;
}
int c_semaphore_init(struct seat *seat) { return sem_init(seat->lock, 1, 1); }
/* All zero is free for these. */
int c_zeroed_init(struct seat *seat)
{
    (void)seat;
    return 0;
}
/* A free CLH queue holds one released node: the third, behind the two processes' own. */
int c_clh_init(struct seat *seat)
{
    atomic_store_explicit((_Atomic uint32_t *)seat->lock, 3, memory_order_relaxed);
    return 0;
}

/* The member of the other program begins a cache line of its own. */
#include <stdint.h>

struct stats {
    uint64_t requests;
    uint64_t errors;
    _Alignas(64) uint64_t lines;
};

/* The struct begins a cache line. Its members lie as close together as before. */
#include <stdint.h>

struct __attribute__((aligned(64))) stats {
    uint64_t requests;
    uint64_t errors;
    uint64_t lines;
};

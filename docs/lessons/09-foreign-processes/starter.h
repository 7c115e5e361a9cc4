/* What the two programs share. The server writes the first two members, the logger the third. */
#include <stdint.h>

struct stats {
    uint64_t requests;
    uint64_t errors;
    uint64_t lines;
};

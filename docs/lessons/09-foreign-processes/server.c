/* Counts requests, and one error in 64. Compile with -include HEADER, the header that has struct stats. */
#include "segment.h"

static void serve(volatile struct stats *stats, uint64_t passes)
{
    for (uint64_t i = 1; i <= passes; i++) {
        stats->requests++;
        if (i % 64 == 0)
            stats->errors++;
    }
}

int main(int argc, char **argv)
{
    return count("server", argc, argv, serve);
}

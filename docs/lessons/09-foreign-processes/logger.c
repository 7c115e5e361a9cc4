/* Counts the lines that it wrote. Compile with -include HEADER, the header that has struct stats. */
#include "segment.h"

static void log_lines(volatile struct stats *stats, uint64_t passes)
{
    for (uint64_t i = 0; i < passes; i++)
        stats->lines++;
}

int main(int argc, char **argv)
{
    return count("logger", argc, argv, log_lines);
}

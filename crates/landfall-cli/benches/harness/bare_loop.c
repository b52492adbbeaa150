/*
 * The least that a program can do to measure durable writes: what landfall's loop is held against.
 *
 *     bare_loop FILE OPERATIONS untimed|timed [STAT]
 *
 * Overwrites FILE from its start in blocks of 8 KiB, each made durable by fdatasync. "untimed" reads
 * the clock before and after all of them; "timed" also reads it once after each, keeps the latencies
 * and sorts them at the end. STAT is the sysfs file with the counters of the disk below. Prints one
 * line of JSON.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#define BLOCK 8192

static void fail(const char *what)
{
    fprintf(stderr, "bare_loop: %s: %s\n", what, strerror(errno));
    exit(1);
}

static int64_t nanoseconds(clockid_t clock)
{
    struct timespec now;
    if (clock_gettime(clock, &now) != 0)
        fail("clock_gettime");
    return (int64_t)now.tv_sec * 1000000000 + now.tv_nsec;
}

/* Flushes that the disk has executed: field 16 of its counters, since Linux 5.5. */
static long flushes(const char *path)
{
    FILE *file = fopen(path, "r");
    if (!file)
        fail(path);
    long value = -1;
    for (int field = 1; field <= 16; field++)
        if (fscanf(file, "%ld", &value) != 1) {
            errno = ENODATA;
            fail(path);
        }
    fclose(file);
    return value;
}

static int ascending(const void *a, const void *b)
{
    int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;
    return (x > y) - (x < y);
}

int main(int argc, char **argv)
{
    long operations = argc >= 4 ? atol(argv[2]) : 0;
    if (operations < 1) {
        fprintf(stderr, "usage: bare_loop FILE OPERATIONS untimed|timed [STAT]\n");
        return 2;
    }
    int timed = strcmp(argv[3], "timed") == 0;
    const char *stat = argc > 4 ? argv[4] : NULL;

    int file = open(argv[1], O_RDWR);
    if (file < 0)
        fail(argv[1]);
    unsigned char *block = aligned_alloc(4096, BLOCK);
    /* Touched beforehand, so that no page fault falls into the loop. */
    int64_t *latencies = calloc(operations, sizeof *latencies);
    if (!block || !latencies) {
        errno = ENOMEM;
        fail("allocation");
    }
    memset(latencies, 1, operations * sizeof *latencies);
    /* Xorshift (Marsaglia 2003): bytes that nothing below can compress. */
    uint64_t state = 88172645463325252u;
    for (size_t i = 0; i < BLOCK; i += sizeof state) {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        memcpy(block + i, &state, sizeof state);
    }

    long flushes_before = stat ? flushes(stat) : 0;
    int64_t cpu = nanoseconds(CLOCK_PROCESS_CPUTIME_ID);
    int64_t begin = nanoseconds(CLOCK_MONOTONIC);
    int64_t last = begin;
    for (long i = 0; i < operations; i++) {
        if (pwrite(file, block, BLOCK, (off_t)i * BLOCK) != BLOCK)
            fail("pwrite");
        if (fdatasync(file) != 0)
            fail("fdatasync");
        if (timed) {
            int64_t now = nanoseconds(CLOCK_MONOTONIC);
            latencies[i] = now - last;
            last = now;
        }
    }
    int64_t elapsed = nanoseconds(CLOCK_MONOTONIC) - begin;
    cpu = nanoseconds(CLOCK_PROCESS_CPUTIME_ID) - cpu;
    long flushed = stat ? flushes(stat) - flushes_before : 0;

    printf("{\"ops_per_second\": %.3f, \"cpu_us\": %.6f", operations / (elapsed / 1e9),
           cpu / 1e3 / operations);
    if (timed) {
        qsort(latencies, operations, sizeof *latencies, ascending);
        printf(", \"p50_us\": %.3f, \"p99_us\": %.3f", latencies[operations / 2] / 1e3,
               latencies[operations - 1 - operations / 100] / 1e3);
    }
    if (stat)
        printf(", \"flushes\": %.6f", (double)flushed / operations);
    printf("}\n");
    return 0;
}

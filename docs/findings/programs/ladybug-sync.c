// Preloaded into LadybugDB: syncs the database file before each sync of the log that is being checkpointed.
#define _GNU_SOURCE
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

int fdatasync(int fd) {
    char link[64], path[4096], *end;
    snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
    ssize_t n = readlink(link, path, sizeof path - 1);
    if (n > 0) {
        path[n] = 0;
        if ((end = strstr(path, ".wal.checkpoint"))) {
            *end = 0;
            int database = open(path, O_RDWR);
            if (database >= 0) fsync(database), close(database);
        }
    }
    return syscall(SYS_fdatasync, fd);
}

/*
 * The yardstick of the appliance's timed passes: the same system calls in the same
 * order, from a loop that has nothing else in it. scripts/fidelity runs it in turn with
 * `cowitness bench --layout contiguous` and compares.
 *
 *     cc -std=c11 -O2 -Wall -Wextra -Werror -static loop.c -o loop
 *     ./loop METHOD BLOCK [MIB [CPU [CASES [blind]]]]
 *
 * METHOD is proc (pread on /proc/PID/mem) or vmread (process_vm_readv), BLOCK is in
 * bytes and divides the arena of MIB MiB (32). Everything is pinned to CPU (the one it
 * starts on). Each of the CASES (1) is a fresh fork and one line on stdout:
 *
 *     method block cold_ns warm_ns
 *
 * cold_ns is the first pass over the arena, warm_ns the sum of the five after it. A
 * read that fails or is short ends the program with status 1.
 *
 * It makes no attempt to prove the state it measures in: that is the appliance's job.
 * But it looks where the appliance looks, before the cold pass and after it, and throws
 * away what it sees: walking the page tables for pagemap leaves the kernel's descriptors
 * of the pages in the CPU's caches, and the first warm pass is the faster for it. `blind`
 * leaves that out, to show how much it is.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum { WARM_PASSES = 5 };

/* What the reading side needs to know of its target. */
struct target {
    pid_t pid;
    int mem; /* of /proc/PID/mem */
    int commands; /* write end: closing it lets the child go */
};

/* A mechanism: one pass over the range, in nanoseconds. */
typedef uint64_t timed_pass(const struct target *, const char *arena, size_t bytes,
                            char *block, size_t block_bytes);

_Noreturn static void fail(const char *format, ...)
{
    int error = errno;
    va_list arguments;

    fputs("loop: error: ", stderr);
    va_start(arguments, format);
    vfprintf(stderr, format, arguments);
    va_end(arguments);
    fprintf(stderr, ": %s\n", error ? strerror(error) : "not as expected");
    exit(1);
}

/* A read of a whole block that was not. */
_Noreturn static void fail_read(const char *call, size_t offset, ssize_t got)
{
    if (got >= 0)
        errno = 0;
    fail("%s at offset %zu of the arena returned %zd", call, offset, got);
}

/* Through the vDSO, as any C program gets it. */
static inline uint64_t now_ns(void)
{
    struct timespec time;

    clock_gettime(CLOCK_MONOTONIC, &time);
    return (uint64_t)time.tv_sec * 1000000000 + (uint64_t)time.tv_nsec;
}

/*
 * The two passes. The fault counters are read around the clock, as the appliance does:
 * what a system call just before leaves in the caches is then the same on both sides.
 */
static uint64_t proc_pass(const struct target *target, const char *arena, size_t bytes,
                          char *block, size_t block_bytes)
{
    struct rusage usage;
    uint64_t start, end;

    getrusage(RUSAGE_SELF, &usage);
    start = now_ns();
    for (size_t offset = 0; offset < bytes; offset += block_bytes) {
        ssize_t got = pread(target->mem, block, block_bytes, (off_t)(arena + offset));
        if (got != (ssize_t)block_bytes)
            fail_read("pread", offset, got);
    }
    end = now_ns();
    getrusage(RUSAGE_SELF, &usage);
    return end - start;
}

static uint64_t vmread_pass(const struct target *target, const char *arena, size_t bytes,
                            char *block, size_t block_bytes)
{
    struct rusage usage;
    uint64_t start, end;

    getrusage(RUSAGE_SELF, &usage);
    start = now_ns();
    for (size_t offset = 0; offset < bytes; offset += block_bytes) {
        struct iovec local = { block, block_bytes };
        struct iovec remote = { (char *)arena + offset, block_bytes };
        ssize_t got = process_vm_readv(target->pid, &local, 1, &remote, 1, 0);
        if (got != (ssize_t)block_bytes)
            fail_read("process_vm_readv", offset, got);
    }
    end = now_ns();
    getrusage(RUSAGE_SELF, &usage);
    return end - start;
}

static void *map(size_t bytes)
{
    void *at = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

    if (at == MAP_FAILED)
        fail("mmap of %zu bytes", bytes);
    return at;
}

static void advise(void *at, size_t bytes, int advice)
{
    /* A kernel without huge pages refuses MADV_NOHUGEPAGE, and needs it least. */
    if (madvise(at, bytes, advice) != 0 && !(advice == MADV_NOHUGEPAGE && errno == EINVAL))
        fail("madvise");
}

/* Words that depend on their place, so that neither pages nor lines look alike. */
static void fill(char *at, size_t bytes)
{
    uint64_t word = 0x243f6a8885a308d3;

    for (size_t offset = 0; offset < bytes; offset += sizeof word) {
        word = word * 6364136223846793005 + 1442695040888963407;
        memcpy(at + offset, &word, sizeof word);
    }
}

/* How to talk to the process that prepares frames. */
struct reserve {
    int go;
    int ready;
};

/* What is behind a page of the arena: its frame, and which page it is. */
struct placed {
    uint64_t frame;
    size_t page;
};

static int by_frame(const void *one, const void *other)
{
    const struct placed *a = one, *b = other;

    return (a->frame > b->frame) - (a->frame < b->frame);
}

static void discard(char *memory, size_t page, size_t page_bytes)
{
    if (madvise(memory + page * page_bytes, page_bytes, MADV_DONTNEED) != 0)
        fail("give a page back");
}

/*
 * A process that, once it is told, uses as many frames as a split needs, since in a virtual machine
 * the host may have to find them first, and gives them back from the highest to the lowest, but for one in
 * 128: they are handed out the other way round. Without CAP_SYS_ADMIN all frames are 0, and
 * the order is as it was. It stays until its parent ends. The appliance has one, too.
 */
static struct reserve fork_reserve(size_t bytes, size_t page_bytes)
{
    const uint64_t frame_bits = ((uint64_t)1 << 55) - 1;
    size_t pages = bytes / page_bytes;
    pid_t parent = getpid();
    int go[2], ready[2];
    char byte = 0;

    if (pipe2(go, O_CLOEXEC) != 0 || pipe2(ready, O_CLOEXEC) != 0)
        fail("pipe");
    pid_t pid = fork();
    if (pid < 0)
        fail("fork");
    if (pid > 0) {
        close(go[0]);
        close(ready[1]);
        return (struct reserve){ go[1], ready[0] };
    }
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (read(go[0], &byte, 1) != 1)
        _exit(1);
    char *memory = map(bytes);
    /* Single pages, as a split takes them: huge ones come from other free lists. */
    advise(memory, bytes, MADV_NOHUGEPAGE);
    for (size_t page = 0; page < pages; page++)
        ((volatile char *)memory)[page * page_bytes] = 0;
    struct placed *order = map(pages * sizeof *order);
    uint64_t entry;
    int pagemap = open("/proc/self/pagemap", O_RDONLY | O_CLOEXEC);
    for (size_t page = 0; page < pages; page++) {
        off_t at = (off_t)(((uintptr_t)memory / page_bytes + page) * sizeof entry);
        if (pread(pagemap, &entry, sizeof entry, at) != sizeof entry)
            fail("read pagemap");
        order[page] = (struct placed){ entry & frame_bits, page };
    }
    qsort(order, pages, sizeof *order, by_frame);
    for (size_t left = pages; left > 0; left--)
        if ((pages - left) % 128 != 0)
            discard(memory, order[left - 1].page, page_bytes);
    if (getppid() != parent || write(ready[1], &byte, 1) != 1)
        _exit(1);
    for (;;)
        pause();
}

static void fill_reserve(struct reserve reserve)
{
    char byte = 0;

    if (write(reserve.go, &byte, 1) != 1 || read(reserve.ready, &byte, 1) != 1)
        fail("wait for the reserve");
}

/*
 * The child sleeps in read(2) until its parent closes the pipe or dies. Then it gives its pages
 * back from the last to the first, so that the next child gets the frames in the same order.
 */
_Noreturn static void park(pid_t parent, char *arena, size_t bytes, int commands, int ready)
{
    size_t page_bytes = (size_t)sysconf(_SC_PAGESIZE);
    char byte = 0;

    prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (getppid() != parent || write(ready, &byte, 1) != 1)
        _exit(1);
    while (read(commands, &byte, 1) < 0 && errno == EINTR)
        ;
    for (size_t left = bytes / page_bytes; left > 0; left--)
        discard(arena, left - 1, page_bytes);
    _exit(0);
}

/* Only a child that is asleep leaves the CPU to the passes. */
static void wait_until_asleep(pid_t pid)
{
    char path[64], text[256];

    snprintf(path, sizeof path, "/proc/%d/stat", (int)pid);
    for (;;) {
        int file = open(path, O_RDONLY | O_CLOEXEC);
        ssize_t got = file < 0 ? -1 : read(file, text, sizeof text - 1);
        if (got <= 0)
            fail("read %s", path);
        close(file);
        text[got] = '\0';
        const char *name_end = strrchr(text, ')');
        if (name_end && name_end[1] == ' ' && name_end[2] == 'S')
            return;
        sched_yield();
    }
}

/* Reads a file of /proc from `offset` on to its end, or `bytes` of it. */
static void look_at(const char *pid, const char *name, off_t offset, size_t bytes)
{
    static char sink[8192];
    char path[64];

    snprintf(path, sizeof path, "/proc/%s/%s", pid, name);
    int file = open(path, O_RDONLY | O_CLOEXEC);
    if (file < 0)
        fail("open %s", path);
    while (bytes > 0) {
        size_t want = bytes < sizeof sink ? bytes : sizeof sink;
        ssize_t got = pread(file, sink, want, offset);
        if (got < 0)
            fail("read %s", path);
        if (got == 0)
            break;
        bytes -= (size_t)got;
        offset += got;
    }
    close(file);
}

/* What the appliance looks at: both page tables, then both descriptions of the VMAs. */
static void look(const struct target *target, const char *arena, size_t bytes)
{
    const size_t entry_bytes = 8, whole = SIZE_MAX, page_bytes = (size_t)sysconf(_SC_PAGESIZE);
    off_t at = (off_t)((uintptr_t)arena / page_bytes * entry_bytes);
    char child[16];

    snprintf(child, sizeof child, "%d", (int)target->pid);
    look_at("self", "pagemap", at, bytes / page_bytes * entry_bytes);
    look_at(child, "pagemap", at, bytes / page_bytes * entry_bytes);
    look_at(child, "smaps", 0, whole);
    look_at("self", "smaps", 0, whole);
}

static struct target fork_target(char *arena, size_t bytes)
{
    int commands[2], ready[2];
    char byte, path[64];
    pid_t parent = getpid();

    if (pipe2(commands, O_CLOEXEC) != 0 || pipe2(ready, O_CLOEXEC) != 0)
        fail("pipe");
    pid_t pid = fork();
    if (pid < 0)
        fail("fork");
    if (pid == 0) {
        close(commands[1]);
        close(ready[0]);
        park(parent, arena, bytes, commands[0], ready[1]);
    }
    close(commands[0]);
    close(ready[1]);
    if (read(ready[0], &byte, 1) != 1)
        fail("wait for the child");
    close(ready[0]);
    wait_until_asleep(pid);

    snprintf(path, sizeof path, "/proc/%d/mem", (int)pid);
    int mem = open(path, O_RDONLY | O_CLOEXEC);
    if (mem < 0)
        fail("open %s", path);
    return (struct target){ pid, mem, commands[1] };
}

static void release(const struct target *target)
{
    int status;

    close(target->mem);
    close(target->commands);
    if (waitpid(target->pid, &status, 0) != target->pid || status != 0) {
        errno = 0;
        fail("end of the child, status %d", status);
    }
}

static size_t number(const char *text, const char *what)
{
    char *end;

    errno = 0;
    unsigned long value = strtoul(text, &end, 10);
    if (errno != 0 || end == text || *end != '\0') {
        fprintf(stderr, "loop: %s is a number, not '%s'\n", what, text);
        exit(2);
    }
    return value;
}

int main(int argc, char **argv)
{
    if (argc < 3 || argc > 7) {
        fputs("usage: loop proc|vmread BLOCK [MIB [CPU [CASES [blind]]]]\n", stderr);
        return 2;
    }
    timed_pass *pass = strcmp(argv[1], "proc") == 0     ? proc_pass
                       : strcmp(argv[1], "vmread") == 0 ? vmread_pass
                                                        : NULL;
    size_t block_bytes = number(argv[2], "BLOCK");
    size_t bytes = (argc > 3 ? number(argv[3], "MIB") : 32) << 20;
    size_t cpu = argc > 4 ? number(argv[4], "CPU") : (size_t)sched_getcpu();
    size_t cases = argc > 5 ? number(argv[5], "CASES") : 1;
    bool blind = argc > 6 && strcmp(argv[6], "blind") == 0;
    size_t page_bytes = (size_t)sysconf(_SC_PAGESIZE);

    if (!pass || bytes == 0 || block_bytes == 0 || bytes % block_bytes != 0 || cpu >= CPU_SETSIZE) {
        fputs("loop: METHOD is proc or vmread, BLOCK divides the arena, CPU exists\n", stderr);
        return 2;
    }
    cpu_set_t one;
    CPU_ZERO(&one);
    CPU_SET(cpu, &one);
    if (sched_setaffinity(0, sizeof one, &one) != 0)
        fail("pin to CPU %zu", cpu);

    /* The buffer first, then the arena, as the appliance does: which frames they get
     * depends on it. Children do not get the buffer, so writing it copies no page. */
    size_t buffer_bytes = block_bytes > page_bytes ? block_bytes : page_bytes;
    char *buffer = map(buffer_bytes);
    advise(buffer, buffer_bytes, MADV_DONTFORK);
    memset(buffer, 1, buffer_bytes);
    /* Outside the arena, for the rehearsal. */
    char *page = map(page_bytes);
    fill(page, page_bytes);
    struct reserve reserve = fork_reserve(bytes, page_bytes);
    char *arena = map(bytes);
    advise(arena, bytes, MADV_NOHUGEPAGE);
    fill(arena, bytes);
    fill_reserve(reserve);

    for (size_t done = 0; done < cases; done++) {
        struct target target = fork_target(arena, bytes);
        uint64_t warm_ns = 0;

        if (!blind)
            look(&target, arena, bytes);
        /* The first use of a code path, here and in the kernel, is not what is timed. */
        pass(&target, page, page_bytes, buffer, page_bytes);
        uint64_t cold_ns = pass(&target, arena, bytes, buffer, block_bytes);
        if (!blind)
            look(&target, arena, bytes);
        for (int again = 0; again < WARM_PASSES; again++)
            warm_ns += pass(&target, arena, bytes, buffer, block_bytes);

        if (memcmp(buffer, arena + bytes - block_bytes, block_bytes) != 0) {
            errno = 0;
            fail("content of the last block");
        }
        release(&target);
        printf("%s %zu %llu %llu\n", argv[1], block_bytes, (unsigned long long)cold_ns,
               (unsigned long long)warm_ns);
    }
    if (fflush(stdout) != 0)
        fail("write the results");
    return 0;
}

/* The subject of scripts/startup-terms: a loader that takes a program's segments out of an
   SQLite file, stopped after one stage. The last letter of its own name says which, so that
   every stage is the same executable with the same command line:

     0  nothing: main returns
     1  open(2), the 100 bytes of header, no SQLite
     2  sqlite3_open_v2
     3  and the first prepare, which reads and parses the schema
     4  and each segment: column_blob, malloc and memcpy, mmap and memcpy, mprotect

   Exit status: 0; 1 if anything fails. */
#include <fcntl.h>
#include <sqlite3.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

static int header(const char *path) {
    char bytes[100];
    int file = open(path, O_RDONLY | O_CLOEXEC);
    return file < 0 || pread(file, bytes, sizeof bytes, 0) != sizeof bytes;
}

/* Two copies, as a loader makes them that unpacks first and then maps. */
static int map_segment(const void *blob, size_t len) {
    void *copy = malloc(len);
    if (!copy)
        return 1;
    memcpy(copy, blob, len);
    void *image = mmap(NULL, len, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (image == MAP_FAILED)
        return 1;
    memcpy(image, copy, len);
    free(copy);
    return mprotect(image, len, PROT_READ | PROT_EXEC);
}

static int load(sqlite3_stmt *segments) {
    int step, count = 0;
    while ((step = sqlite3_step(segments)) == SQLITE_ROW) {
        const void *blob = sqlite3_column_blob(segments, 0);
        if (!blob || map_segment(blob, (size_t)sqlite3_column_bytes(segments, 0)))
            return 1;
        count++;
    }
    return step != SQLITE_DONE || count == 0;
}

int main(int argc, char **argv) {
    size_t len = strlen(argv[0]);
    int stage = len ? argv[0][len - 1] - '0' : 0;
    sqlite3 *image;
    sqlite3_stmt *segments;
    if (stage <= 0)
        return 0;
    if (argc < 2)
        return 1;
    if (stage == 1)
        return header(argv[1]);
    if (sqlite3_open_v2(argv[1], &image, SQLITE_OPEN_READONLY, NULL))
        return 1;
    if (stage == 2)
        return 0;
    if (sqlite3_prepare_v2(image, "SELECT data FROM segments ORDER BY id", -1, &segments, NULL))
        return 1;
    return stage == 3 ? 0 : load(segments);
}

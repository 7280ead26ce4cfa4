/* Pointers that lead nowhere are an error of the call, not a crash. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

int main(void) {
    char *words[] = {"true", NULL}, *nowhere = (char *)16;
    printf("open: %d %s\n", open(nowhere, O_RDONLY), strerror(errno));
    printf("openat: %d %s\n", openat(AT_FDCWD, nowhere, O_RDONLY), strerror(errno));
    printf("execve, environment: %d %s\n", execve("/bin/true", words, (char **)nowhere), strerror(errno));
    printf("execve, words: %d %s\n", execve("/bin/true", (char **)nowhere, NULL), strerror(errno));
    printf("execve, path: %d %s\n", execve(nowhere, words, NULL), strerror(errno));
    return 0;
}

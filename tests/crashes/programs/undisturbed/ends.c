/* Ends as it is told to: built in every way a program can be built. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

int main(int count, char **words) {
    const char *how = count > 1 ? words[1] : "well";
    setvbuf(stdout, NULL, _IONBF, 0);
    printf("ends: %s\n", how);
    if (!strcmp(how, "segv")) *(volatile int *)8 = 1;
    if (!strcmp(how, "abort")) abort();
    if (!strcmp(how, "exit")) exit(7);
    return 0;
}

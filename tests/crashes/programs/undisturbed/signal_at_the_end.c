/* A signal to the whole job in the program's last moment: signal_at_the_end NUMBER. Whoever runs it must not die of it. */
#include <signal.h>
#include <stdlib.h>
#include <unistd.h>

static void nothing(int number) { (void)number; }

int main(int count, char **words) {
    int number = count > 1 ? atoi(words[1]) : SIGPWR;
    signal(number, nothing);
    kill(0, number);
    _exit(44);
}

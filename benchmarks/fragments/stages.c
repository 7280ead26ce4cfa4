/* The first function of every program, and what it is after it has executed itself. */
#include "fragments.h"

#include <stdio.h>

extern const body programs[];
extern const int programs_count;

const char *const stages[] = {"ask", "crash", "recover", "exit", "abort", "term"};

void ask_all(void), ask_stack(void), own_threads_and_files(void);

static void stage_ask(void) {
    ask_all();
    ask_stack();
    own_threads_and_files();
}
static void stage_crash(void) { cause(WRITE_NULL); }
static void stage_recover(void) {
    set_handler(SIGACTION, SIGSEGV, SA_SIGINFO, JUMP, NULL);
    cause(READ_NULL);
}
static void stage_exit(void) { exit(21); }
static void stage_term(void) { raise(SIGTERM); }

int run_stage(const char *name) {
    static const body all[] = {stage_ask, stage_crash, stage_recover, stage_exit, abort, stage_term};
    for (int i = 0; i < 6; i++)
        if (!strcmp(name, stages[i])) {
            executed = 1;
            say("stage %s", name);
            all[i]();
            return 0;
        }
    return 99;
}

int main(int count, char **arguments) {
    if (count == 2 && !strcmp(arguments[0], "stage")) return run_stage(arguments[1]);
    int number = count > 1 ? atoi(arguments[1]) : 0;
    if (count == 2 && number == 0 && arguments[1][0] != '0') return run_stage(arguments[1]); /* by a shell */
    if (number >= programs_count) return 98;
    programs[number]();
    say("the end");
    return 0;
}

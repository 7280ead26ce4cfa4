/* The memory that the agent in the program shares with the supervisor outside.
 *
 * The supervisor makes it (a memfd) and names it in FAULTLENS_AGENT; every process that is started with the
 * agent maps it. It holds no pointers, needs no file descriptor once mapped, and outlives a killed process.
 * layout.py reads the same structures: change both together and raise FL_VERSION.
 */
#ifndef FAULTLENS_AGENT_H
#define FAULTLENS_AGENT_H

#include <stdint.h>

#define FL_MAGIC 0x534e454c544c5546ull /* "FULTLENS" */
#define FL_VERSION 5
#define FL_SLOTS 16
#define FL_ALSO 3
#define FL_HANDLED 16
#define FL_EXCEPTIONS 8
#define FL_PROGRESS 16
#define FL_PROGRESS_BYTES 4096
#define FL_THROW_FRAMES 16
#define FL_OUTPUT_BYTES (256 * 1024)
#define FL_GREGS 23

enum fl_state {
    FL_FREE = 0,
    FL_CLAIMED = 1,  /* a process is writing its crash */
    FL_WAITING = 2,  /* written: the process waits for the supervisor */
    FL_ACCEPTED = 3, /* the supervisor is looking at the process; back to FL_FREE lets it die */
    FL_SPARED = 4,   /* the supervisor saw that it will not die: the process frees the slot */
};

/* Can the agent be loaded into a program? */
enum fl_loadable {
    FL_LOADABLE = 0,
    FL_FOREIGN = 1,   /* another C library or architecture */
    FL_SANITIZED = 2, /* its sanitizer must come first */
};

struct fl_fault {
    int32_t pid;
    int32_t tid;
    int64_t time_ns; /* CLOCK_REALTIME */
    int32_t signal;
    int32_t chained; /* 1: seen before the program's own handler, which then gave up; 2: which returns to it for ever */
    uint8_t siginfo[128];
    uint64_t gregs[FL_GREGS]; /* in the order of ucontext_t */
};

struct fl_exception {
    int32_t tid;
    uint32_t frame_count;
    int64_t time_ns;
    uint64_t frames[FL_THROW_FRAMES];
    char type[160];
    char message[256];
};

struct fl_slot {
    uint32_t state; /* enum fl_state; a futex */
    uint32_t also_count;
    uint32_t exception_count;
    uint32_t parked_count;
    uint32_t is_in_doubt; /* whether the process is about to die */
    uint32_t pad;
    uint64_t parked; /* where in the process its other threads are listed, struct fl_parked */
    struct fl_fault fault;
    struct fl_fault also[FL_ALSO]; /* other threads that crashed meanwhile */
    struct fl_exception exceptions[FL_EXCEPTIONS]; /* latest first */
};

/* A thread that was made to stand still when another one crashed. */
struct fl_parked {
    int32_t tid; /* 0: not yet */
    int32_t pad;
    uint64_t context; /* the ucontext_t with the registers that it was interrupted at */
};

/* A fault that a handler of the program took, and ended the process, or returns to for ever. */
struct fl_handled {
    uint32_t active;
    uint32_t pad;
    struct fl_fault fault;
};

/* How far a Python program has come, written by the code that inside.c puts into it (guest/layout.py). */
struct fl_progress {
    int32_t pid; /* 0: free */
    uint8_t data[FL_PROGRESS_BYTES - 4];
};

struct fl_area {
    uint64_t magic;
    uint32_t version;
    int32_t supervisor_pid;
    uint32_t wake;     /* a futex, raised by every crash */
    uint32_t attached; /* processes that mapped this area */
    uint32_t accept_ms; /* how long a crashed process waits to be noticed */
    uint32_t finish_ms; /* and how long it then waits to be let go */
    uint64_t output_head; /* bytes ever written to the ring */
    char notes[64];    /* the file that code inside Python programs appends its notes to */
    char inside[2048]; /* the folder of that code; empty: none */
    int32_t look_at;   /* the process that is asked what its memory is used for (guest/census.py); 0: none */
    uint8_t pad[4096 - 40 - 64 - 2048 - 4];
    struct fl_progress progress[FL_PROGRESS]; /* a page each, which its process maps once more */
    struct fl_slot slots[FL_SLOTS];
    struct fl_handled handled[FL_HANDLED]; /* by pid modulo FL_HANDLED */
    uint8_t output[FL_OUTPUT_BYTES];
};

/* One write to stdout or stderr in the ring, followed by its bytes, padded to 8. */
struct fl_output {
    int32_t pid;
    int16_t descriptor;
    uint16_t magic;
    uint32_t size;
    uint32_t pad;
};
#define FL_OUTPUT_MAGIC 0x4c46
#define FL_OUTPUT_MAX 4096 /* of one write only the last bytes are kept */

#endif

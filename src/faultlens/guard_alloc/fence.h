/* The table that the fence in the program shares with whoever wants to know what an address was.
 *
 * The reader makes the file (prepared by __init__.py, read by table.py) and names it in FAULTLENS_FENCE. Every process
 * that loads the fence takes a part of it for itself. layout.py has the same structures: change both together and raise
 * FENCE_VERSION.
 */
#ifndef FAULTLENS_FENCE_H
#define FAULTLENS_FENCE_H

#include <stdint.h>

#define FENCE_MAGIC 0x45434e4546544c46ull /* "FLTFENCE" */
#define FENCE_VERSION 1
#define FENCE_PARTS 16 /* processes that can have one at the same time */
#define FENCE_CLASSES 8
#define FENCE_FRAMES 24
#define FENCE_PAGE 4096
#define FENCE_LIBRARIES 8
#define FENCE_PAINT 0xc5 /* around a block */

/* The first page: what the reader wishes, and who has which part. */
struct fence_file {
    uint64_t magic;
    uint32_t version;
    uint32_t slots;         /* of the smallest class; each next class has half as many */
    uint64_t part_bytes;    /* of one process: a page of fence_part, then its slots */
    uint64_t smallest;      /* blocks outside of these sizes are left alone */
    uint64_t largest;
    uint32_t every;         /* one of so many allocations is fenced; 0: none */
    uint32_t aligned_every; /* the same for posix_memalign, aligned_alloc and memalign */
    uint32_t per_second;    /* of either kind, in the long run; 0: without end */
    uint32_t at_once;       /* of which so many may come together */
    int32_t fill;           /* new blocks are filled with this byte; -1: they are not */
    uint32_t spare_start; /* nothing plain is fenced from the import of TensorFlow until the user's own code is loaded */
    uint32_t only_this;     /* children that are started are spared */
    uint32_t order;         /* counts the processes that came */
    struct {
        int32_t pid; /* 0: free */
        uint32_t order;
    } parts[FENCE_PARTS];
};

enum fence_kind {
    FENCE_NOTHING = 0,
    FENCE_DOUBLE_FREE = 1,
    FENCE_INVALID_FREE = 2, /* of an address inside a block, or beside one */
    FENCE_OVERFLOW = 3,     /* bytes behind the block were overwritten, found when it was freed, or at exit */
    FENCE_UNDERFLOW = 4,    /* the same before it */
};

/* What the fence itself found, without the CPU's help. */
struct fence_error {
    uint32_t kind;
    int32_t thread;
    uint64_t address; /* that was freed, or the first byte that was overwritten */
    uint64_t start;   /* of the block */
    uint32_t at_exit;
    uint32_t frame_count;
    uint64_t frames[FENCE_FRAMES];
};

/* A file that code of the block's stack came from: after the end, nobody can ask the process any more. */
struct fence_library {
    uint64_t start;
    uint64_t end; /* behind the last of these addresses */
    char path[240];
};

struct fence_class {
    uint64_t start;
    uint32_t slot_pages; /* without the guard page before it */
    uint32_t slots;
    uint32_t first; /* number of its first slot */
    uint32_t pad;
};

struct fence_part {
    int32_t pid;
    uint32_t active;
    uint64_t arena;
    uint64_t arena_bytes;
    uint64_t fenced; /* allocations, ever */
    uint64_t passed; /* those chosen for which there was no room */
    struct fence_class classes[FENCE_CLASSES];
    struct fence_error error;
    struct fence_library libraries[FENCE_LIBRARIES]; /* of an error at exit */
    char problem[256]; /* why it is not active */
};

enum fence_state { FENCE_UNUSED = 0, FENCE_LIVE = 1, FENCE_FREED = 2 };

struct fence_slot {
    uint32_t state;
    int32_t made_by; /* threads */
    int32_t freed_by;
    uint32_t made_frames;
    uint32_t freed_frames;
    uint32_t pad;
    uint64_t start;
    uint64_t size;
    int64_t made_ns; /* CLOCK_REALTIME */
    int64_t freed_ns;
    uint64_t made[FENCE_FRAMES]; /* return addresses, innermost first */
    uint64_t freed[FENCE_FRAMES];
};

#endif

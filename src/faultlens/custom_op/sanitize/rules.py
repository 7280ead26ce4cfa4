"""Which kinds of mistakes the sanitizers find, under which codes, and what is to be done about each."""

from __future__ import annotations

from faultlens.custom_op.observation import Observation

RULES = {
    "heap-overflow": Observation(
        "OP401",
        "error",
        "Keep the index below the number of elements of this very block.",
        "Memory beside a block of the heap was read or written: a tensor's buffer, or what new or malloc gave. It may "
        "belong to another tensor, or to the allocator, and the program dies later, elsewhere.",
    ),
    "use-after-free": Observation(
        "OP402",
        "error",
        "Use it before it is freed, or let a Tensor or std::vector own it.",
        "A block was used after it was freed. Somebody else may have it by then.",
    ),
    "double-free": Observation(
        "OP403",
        "error",
        "Free it once: let one owner (Tensor, std::unique_ptr, std::vector) do it.",
        "A block was freed twice. The allocator may hand it out to two owners afterwards.",
    ),
    "stack-overrun": Observation(
        "OP404",
        "error",
        "Check the index against the array's size, or use a std::vector.",
        "Memory beside a local variable was read or written: other variables, or the address to return to.",
    ),
    "stack-exhausted": Observation(
        "OP405",
        "error",
        "Make the recursion a loop, or large local arrays a std::vector.",
        "The thread's stack was used up. TensorFlow's threads have less of it than the main thread.",
    ),
    "memory-leak": Observation(
        "OP406",
        "error",
        "Use allocate_temp or std::vector, which free on every path.",
        "Blocks that the op allocated were not freed, and nothing points to them any more. One block alone is a "
        "warning: it may be meant to live as long as the program.",
    ),
    "unwritten-output": Observation(
        "OP407",
        "error",
        "Write every element, or setZero() the output first.",
        "Elements of an output were not written before the op returned, or only added to: they hold whatever was in "
        "that memory, or are computed from it.",
    ),
    "missing-output": Observation(
        "OP418",
        "error",
        "Call allocate_output or set_output on every path, or report an error.",
        "Compute returned without an error, and an output was neither allocated nor set: its user fails or dies.",
    ),
    "data-race": Observation(
        "OP408",
        "error",
        "Guard it with a mutex, make it std::atomic, or keep it local to Compute.",
        "Two threads used the same memory at the same time, one of them wrote, and nothing put them in order. "
        "TensorFlow calls Compute of one kernel from several threads at once.",
    ),
    "undefined-behaviour": Observation(
        "OP409",
        "error",
        "Check the operands first, or compute in a type that holds it.",
        "The language does not say what happens: the compiler may assume that it does not, and drop checks after it. "
        "Where the machine's answer is mostly harmless (overflow, shifts) it is a warning.",
    ),
    "wild-access": Observation(
        "OP410",
        "error",
        "Check the pointer and what it was computed from.",
        "An address was used that belongs to no block: null, or computed from values that were not checked.",
    ),
    "global-overflow": Observation(
        "OP411",
        "error",
        "Check the index against the array's size.",
        "Memory beside a global variable was read or written.",
    ),
    "heap-damage": Observation(
        "OP412",
        "error",
        "Run it with --asan and the source: it names the line that wrote.",
        "The heap was found damaged, some time after it happened.",
    ),
    "died": Observation(
        "OP413",
        "error",
        "",
        "The program died, or did not end, and no sanitizer said why: see the report.",
    ),
    "uninitialised-value": Observation(
        "OP414",
        "error",
        "Set it on every path before it is read.",
        "What the op did depended on memory that was never written.",
    ),
    "local-outlived": Observation(
        "OP415",
        "error",
        "Copy what is needed: the variable ends with its function.",
        "A local variable was used through a pointer or reference after its block or function had ended.",
    ),
    "bad-free": Observation(
        "OP416",
        "error",
        "Free with the partner of what allocated it, and that pointer.",
        "Memory was freed that was not allocated, or not in that way.",
    ),
    "bad-argument": Observation(
        "OP417",
        "error",
        "Check sizes and ranges before the call.",
        "A function of the C library got a negative size, or ranges that overlap.",
    ),
    "gpu-out-of-bounds": Observation(
        "OP421",
        "error",
        "Compare the index with the number of elements first: a grid has more threads than there are elements.",
        "A kernel read or wrote GPU memory outside of every allocation it may use. Without the checker it reads or "
        'destroys what lies there, or a later call fails with "an illegal memory access was encountered".',
    ),
    "gpu-wild-access": Observation(
        "OP428",
        "error",
        "Check the pointer, and indices that come from data, before they are used.",
        "A kernel used an address far from every allocation: memory that was freed, a pointer that was never set, or "
        "an index that nobody had checked.",
    ),
    "gpu-misaligned": Observation(
        "OP422",
        "error",
        "Use wide types (float4, double2) only where the address is a multiple of their size.",
        "A kernel read or wrote several bytes at an address that is not a multiple of their number. The kernel ends "
        'with "misaligned address", and so does every call after it.',
    ),
    "gpu-data-race": Observation(
        "OP423",
        "error",
        "Put __syncthreads() between them, for all threads of the block; or use atomics.",
        "Threads of a block used the same shared memory, one of them wrote, and no barrier stood between.",
    ),
    "gpu-uninitialised": Observation(
        "OP424",
        "error",
        "Write it first, or cudaMemsetAsync the whole block.",
        "GPU memory was used that nobody had written: results depend on what was there before.",
    ),
    "gpu-barrier": Observation(
        "OP425",
        "error",
        "Take __syncthreads() out of the branch: all threads of the block have to reach it.",
        "Some threads of a block waited at a barrier that others never reach: the kernel hangs, or goes on too early.",
    ),
    "gpu-leak": Observation(
        "OP426",
        "warning",
        "Use allocate_temp, or cudaFree it on every path.",
        "GPU memory that the op got from CUDA itself was not freed when the program ended.",
    ),
    "gpu-call-failed": Observation(
        "OP427",
        "error",
        "Look at the arguments (blocks, threads, shared memory, pointers), and check what the call returns.",
        "A call of CUDA by the op failed. A kernel whose launch fails never runs, and nobody notices unless the result "
        "is checked. Memory that ran out is a warning: the op may handle it.",
    ),
}

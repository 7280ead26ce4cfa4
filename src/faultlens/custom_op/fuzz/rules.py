"""What can be found by running an op: codes that stay, how bad it is, and what helps. Pure."""

from __future__ import annotations

from faultlens.custom_op.observation import Observation
from faultlens.records.crash import Misuse

_CHECK = "Check every input with OP_REQUIRES before it is used: rank, sizes, values that are indices."
_FREED_ONCE = "Free memory once, by one owner: std::unique_ptr, or a Tensor from allocate_temp."
FIXES_OF_MISUSE: dict[Misuse, str] = {
    "overflow": _CHECK,
    "underflow": _CHECK,
    "use after free": "Keep no pointer into memory that ends with the call: keep the Tensor, or copy its values.",
    "double free": _FREED_ONCE,
    "invalid free": _FREED_ONCE,
}
FIX_OF_OVERFLOW = "Compute sizes in int64_t, and refuse with OP_REQUIRES what does not fit before it becomes an int."

RULES = {
    "crash": Observation(
        "OP301",
        "error",
        _CHECK,
        "The op was called with an input that TensorFlow lets through, and the process died. Whatever reaches Compute "
        "must end in a result or in an error Status.",
        title="{op} {words}",
    ),
    "hang": Observation(
        "OP302",
        "error",
        "Look for a lock that is taken twice or not given back on a path with an error, and for loops whose end "
        "depends on the input.",
        "The op did not come back within the time limit for one input.",
        title="{op} {words}",
    ),
    "memory": Observation(
        "OP303",
        "error",
        "Bound what the input or an attribute can make the op allocate.",
        "The op took far more memory than its inputs and outputs need.",
        title="{op} {words}",
    ),
    "exits": Observation(
        "OP304",
        "error",
        "Report errors with OP_REQUIRES or ctx->SetStatus; never end the process.",
        "The op called exit() or its like: the whole program of the user ends with it.",
        title="{op} {words}",
    ),
    "wrong-result": Observation(
        "OP305",
        "error",
        "Compare both for the input below.",
        "The result is not what the reference function gives, within what the precision of the type explains.",
        title="{op} differs from the reference: {words}",
    ),
    "uninitialised-output": Observation(
        "OP306",
        "error",
        "Write every element of every output on every path; set what accumulates to zero first.",
        "The same input gave different results when new memory was filled with different patterns, and the same "
        "results when it was filled with the same one: what the op returns was never written, or was freed before.",
        title="the result of {op} depends on memory that nobody has written: {words}",
    ),
    "threads-differ": Observation(
        "OP307",
        "error",
        "Keep what a call needs in local variables, or guard what calls share with a mutex.",
        "TensorFlow calls Compute of one kernel from many threads at the same time.",
        title="{op} gives other results when several threads call it at once: {words}",
    ),
    "varies-when-large": Observation(
        "OP324",
        "error",
        "The op's own threads get in each other's way: give each its own part of the output, or guard what they share.",
        "Small inputs always give the same result, a large one does not, by more than the order of sums explains.",
        title="{op} gives another result each time, for large inputs only: {words}",
    ),
    "differs": Observation(
        "OP308",
        "warning",
        "Look for state that is kept between calls, and for memory that is not written.",
        "The same input gives one result when it is called eagerly and another one in a graph or in tf.data.",
        title="{op} gives another result in another form: {words}",
    ),
    "shape-disagrees": Observation(
        "OP309",
        "error",
        "Make the shape function say what Compute allocates, or unknown dimensions where it cannot know.",
        "Graphs are built with what the shape function says: whoever relies on it gets another tensor.",
        title="the shape function of {op} disagrees with Compute: {words}",
    ),
    "no-shape": Observation(
        "OP310",
        "warning",
        "Add .SetShapeFn(…) to REGISTER_OP.",
        "Without a shape function every shape behind the op is unknown in graphs.",
        title="the graph learns nothing of the shape of {op}'s output: {words}",
    ),
    "leak": Observation(
        "OP311",
        "error",
        "Free what a call allocates, on every path; use allocate_temp or std::unique_ptr instead of new and malloc.",
        "The memory in use grew evenly while the same input was tried again and again.",
        title="{op} keeps memory: {words}",
    ),
    "leaks-files": Observation(
        "OP312",
        "error",
        "Close what a call opens, on every path.",
        "The number of open descriptors grew while the same input was tried again and again.",
        title="{op} keeps descriptors: {words}",
    ),
    "leaks-threads": Observation(
        "OP313",
        "error",
        "Use the thread pool of TensorFlow: ctx->device()->tensorflow_cpu_worker_threads().",
        "The number of threads grew while the same input was tried again and again.",
        title="{op} keeps threads: {words}",
    ),
    "input-modified": Observation(
        "OP314",
        "error",
        "Write to an output; ctx->forward_input_or_allocate_output gives the input's memory where that is allowed.",
        "Inputs belong to others: variables and other ops read the same memory.",
        title="{op} writes to its input: {words}",
    ),
    "missing-output": Observation(
        "OP315",
        "error",
        "Allocate every output on every path, also for empty inputs, or set an error Status.",
        "Compute came back without an error and without having allocated an output.",
        title="{op} returns without an output: {words}",
    ),
    "gradient-shape": Observation(
        "OP316",
        "warning",
        "Return a gradient of the shape of each input.",
        "The gradient of an input has that input's shape.",
        title="the gradient of {op} has a wrong shape: {words}",
    ),
    "wrong-gradient": Observation(
        "OP317",
        "warning",
        "Compare it with tf.test.compute_gradient.",
        "Along a random direction the slope was measured, and is not what the registered gradient says.",
        title="the gradient of {op} is not its slope: {words}",
    ),
    "signals-others": Observation(
        "OP318",
        "error",
        "Report errors with OP_REQUIRES or ctx->SetStatus.",
        "The op tried to send a signal to a process that is not its own; it was kept from doing so.",
        title="{op} sends signals to other processes",
    ),
    "closes-descriptors": Observation(
        "OP319",
        "error",
        "Close only what the op has opened, and only once.",
        "Files and sockets of the program are gone after the call.",
        title="{op} closes descriptors that are not its own",
    ),
    "internal-error": Observation(
        "OP320",
        "note",
        "Say what is wrong with the input: errors::InvalidArgument.",
        "InternalError and UnknownError tell the user nothing about the input.",
        title="{op} refuses an input with {words}",
    ),
    "varies": Observation(
        "OP321",
        "note",
        "Add .SetIsStateful() to REGISTER_OP: TensorFlow may otherwise compute it once and keep the result.",
        "Ops that are not stateful may be folded into constants, and equal ones merged into one.",
        title="{op} gives different results for the same input, and is not marked as stateful",
    ),
    "refused-in-graphs": Observation(
        "OP322",
        "note",
        "Check in Compute what the shape function checks: eager calls never ask it.",
        "Eager execution does not run shape functions.",
        title="the shape function of {op} refuses what Compute accepts: {words}",
    ),
    "loading": Observation(
        "OP323",
        "error",
        "Build it for this TensorFlow: faultlens op check says with which flags.",
        "tf.load_op_library failed or died.",
        title="the library cannot be loaded: {words}",
    ),
}

"""What can be found by running an op: codes that stay, how bad it is, and what helps. Pure."""

from __future__ import annotations

from typing import NamedTuple

from faultlens.op_findings import Severity


class Rule(NamedTuple):
    code: str
    severity: Severity
    title: str  # with {op} and {words}
    fix: str
    meaning: str  # for --explain


RULES = {
    "crash": Rule(
        "OP301",
        "error",
        "{op} {words}",
        "Check every input with OP_REQUIRES before it is used: rank, sizes, values that are indices.",
        "The op was called with an input that TensorFlow lets through, and the process died. Whatever reaches Compute "
        "must end in a result or in an error Status.",
    ),
    "hang": Rule(
        "OP302",
        "error",
        "{op} {words}",
        "Look for a lock that is taken twice or not given back on a path with an error, and for loops whose end "
        "depends on the input.",
        "The op did not come back within the time limit for one input.",
    ),
    "memory": Rule(
        "OP303",
        "error",
        "{op} {words}",
        "Bound what the input or an attribute can make the op allocate.",
        "The op took far more memory than its inputs and outputs need.",
    ),
    "exits": Rule(
        "OP304",
        "error",
        "{op} {words}",
        "Report errors with OP_REQUIRES or ctx->SetStatus; never end the process.",
        "The op called exit() or its like: the whole program of the user ends with it.",
    ),
    "wrong-result": Rule(
        "OP305",
        "error",
        "{op} differs from the reference: {words}",
        "Compare both for the input below.",
        "The result is not what the reference function gives, within what the precision of the type explains.",
    ),
    "uninitialised-output": Rule(
        "OP306",
        "error",
        "the result of {op} depends on memory that nobody has written: {words}",
        "Write every element of every output on every path; set what accumulates to zero first.",
        "The same input gave different results when new memory was filled with different patterns, and the same "
        "results when it was filled with the same one: what the op returns was never written, or was freed before.",
    ),
    "threads-differ": Rule(
        "OP307",
        "error",
        "{op} gives other results when several threads call it at once: {words}",
        "Keep what a call needs in local variables, or guard what calls share with a mutex.",
        "TensorFlow calls Compute of one kernel from many threads at the same time.",
    ),
    "varies-when-large": Rule(
        "OP324",
        "error",
        "{op} gives another result each time, for large inputs only: {words}",
        "The op's own threads get in each other's way: give each its own part of the output, or guard what they share.",
        "Small inputs always give the same result, a large one does not, by more than the order of sums explains.",
    ),
    "differs": Rule(
        "OP308",
        "warning",
        "{op} gives another result in another form: {words}",
        "Look for state that is kept between calls, and for memory that is not written.",
        "The same input gives one result when it is called eagerly and another one in a graph or in tf.data.",
    ),
    "shape-disagrees": Rule(
        "OP309",
        "error",
        "the shape function of {op} disagrees with Compute: {words}",
        "Make the shape function say what Compute allocates, or unknown dimensions where it cannot know.",
        "Graphs are built with what the shape function says: whoever relies on it gets another tensor.",
    ),
    "no-shape": Rule(
        "OP310",
        "warning",
        "the graph learns nothing of the shape of {op}'s output: {words}",
        "Add .SetShapeFn(…) to REGISTER_OP.",
        "Without a shape function every shape behind the op is unknown in graphs.",
    ),
    "leak": Rule(
        "OP311",
        "error",
        "{op} keeps memory: {words}",
        "Free what a call allocates, on every path; use allocate_temp or std::unique_ptr instead of new and malloc.",
        "The memory in use grew evenly while the same input was tried again and again.",
    ),
    "leaks-files": Rule(
        "OP312",
        "error",
        "{op} keeps descriptors: {words}",
        "Close what a call opens, on every path.",
        "The number of open descriptors grew while the same input was tried again and again.",
    ),
    "leaks-threads": Rule(
        "OP313",
        "error",
        "{op} keeps threads: {words}",
        "Use the thread pool of TensorFlow: ctx->device()->tensorflow_cpu_worker_threads().",
        "The number of threads grew while the same input was tried again and again.",
    ),
    "input-modified": Rule(
        "OP314",
        "error",
        "{op} writes to its input: {words}",
        "Write to an output; ctx->forward_input_or_allocate_output gives the input's memory where that is allowed.",
        "Inputs belong to others: variables and other ops read the same memory.",
    ),
    "missing-output": Rule(
        "OP315",
        "error",
        "{op} returns without an output: {words}",
        "Allocate every output on every path, also for empty inputs, or set an error Status.",
        "Compute came back without an error and without having allocated an output.",
    ),
    "gradient-shape": Rule(
        "OP316",
        "warning",
        "the gradient of {op} has a wrong shape: {words}",
        "Return a gradient of the shape of each input.",
        "The gradient of an input has that input's shape.",
    ),
    "wrong-gradient": Rule(
        "OP317",
        "warning",
        "the gradient of {op} is not its slope: {words}",
        "Compare it with tf.test.compute_gradient.",
        "Along a random direction the slope was measured, and is not what the registered gradient says.",
    ),
    "signals-others": Rule(
        "OP318",
        "error",
        "{op} sends signals to other processes",
        "Report errors with OP_REQUIRES or ctx->SetStatus.",
        "The op tried to send a signal to a process that is not its own; it was kept from doing so.",
    ),
    "closes-descriptors": Rule(
        "OP319",
        "error",
        "{op} closes descriptors that are not its own",
        "Close only what the op has opened, and only once.",
        "Files and sockets of the program are gone after the call.",
    ),
    "internal-error": Rule(
        "OP320",
        "note",
        "{op} refuses an input with {words}",
        "Say what is wrong with the input: errors::InvalidArgument.",
        "InternalError and UnknownError tell the user nothing about the input.",
    ),
    "varies": Rule(
        "OP321",
        "note",
        "{op} gives different results for the same input, and is not marked as stateful",
        "Add .SetIsStateful() to REGISTER_OP: TensorFlow may otherwise compute it once and keep the result.",
        "Ops that are not stateful may be folded into constants, and equal ones merged into one.",
    ),
    "refused-in-graphs": Rule(
        "OP322",
        "note",
        "the shape function of {op} refuses what Compute accepts: {words}",
        "Check in Compute what the shape function checks: eager calls never ask it.",
        "Eager execution does not run shape functions.",
    ),
    "loading": Rule(
        "OP323",
        "error",
        "the library cannot be loaded: {words}",
        "Build it for this TensorFlow: faultlens op check says with which flags.",
        "tf.load_op_library failed or died.",
    ),
}

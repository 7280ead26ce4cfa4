from __future__ import annotations

import re

from faultlens.diagnosis.causes.base import LIKELY, POSSIBLE, STRONG, Cause, Finding, Words, consider, evidence, safe
from faultlens.diagnosis.causes.next_hunt import hunt_further
from faultlens.diagnosis.causes.tensorflow import advice
from faultlens.diagnosis.evidence.case import Case
from faultlens.diagnosis.evidence.checks import failed_check
from faultlens.diagnosis.evidence.native_code import heap_damage
from faultlens.diagnosis.evidence.tensorflow_code import Activity, activity, leading_frame, uses_foreign_memory
from faultlens.inspection.frames import short_function
from faultlens.inspection.owners import owner_of
from faultlens.records.diagnosis import Fix
from faultlens.text.safe import one_line

_LLVM = r"LLVM ERROR:[^\n]*|UNREACHABLE executed[^\n]*|PLEASE submit a bug report to [^\n]*llvm[^\n]*"
GUESSED = 0.3  # who damaged the heap is not known: the compiler allocates much, and so finds it often
_DOING: dict[Activity, str] = {
    "compiled code": "machine code that XLA made died",
    "compiling": "the compiler died",
    "optimising": "the graph optimiser died",
    "translating": "translation into XLA's terms died",
}


class CompilerBug(Cause):
    """
    ## What it is
    TensorFlow rewrites graphs before it runs them (Grappler, oneDNN's layout pass) and compiles functions with
    `jit_compile=True` (XLA, MLIR, LLVM). A mistake in these programs shows while a function is first called, or in
    the machine code that was made of it.

    ## How it looks
    SIGSEGV or SIGABRT at the first call of a `tf.function` or of `model.fit`. The innermost frames are in `xla::`,
    `mlir::`, `llvm::` or `grappler::`; or they have no file at all, because the code was made at run time. The same
    ops work eagerly.

    ## How to prove it
    Run the function without the compiler: `jit_compile=False`, `tf.config.run_functions_eagerly(True)`, or
    `tf.config.optimizer.set_experimental_options({"disable_meta_optimizer": True})`. It must then work.

    ## How to fix it
    Leave the function, or the op in it, uncompiled; change the expression so that it compiles to something else;
    upgrade; report the function.
    """

    slug = "compiler-bug"
    code = "FL506"
    headline = "XLA, MLIR or Grappler crashed, or made code that does"
    words = Words(
        re.compile(_LLVM),
        "the compiler gave up: {said}",
        consider("run the function without XLA", "jit_compile=False on the tf.function or in model.compile"),
        unless=re.compile("out of memory", re.I),
    )

    def read(self, case: Case) -> Finding | None:
        others = any("llvmlite" in (frame.library or "") for frame in case.stack)  # numba has an LLVM of its own
        return None if others else super().read(case)

    def examine(self, case: Case) -> Finding | None:
        if not case.is_native_crash or case.hits_stack_end or case.custom_frame is not None:
            return None
        doing, llvm = activity(case), _llvm(case)
        if doing is None and llvm is None:
            return None
        frame, check = leading_frame(case), failed_check(case)
        shared = uses_foreign_memory(case) if doing == "compiled code" else None
        doing = doing or "compiling"
        made = doing == "compiled code"
        return Finding(
            strength=GUESSED if heap_damage(case) else _strength(doing, check is not None, llvm),
            title=f"{_DOING[doing]} at {case.op or 'a traced function'}",
            op=case.op,
            evidence=evidence(
                *case.fault_evidence[:1],
                ("the innermost code belongs to no file: it was made at run time", "native stack") if made else None,
                (f"{'called by' if made else 'in'} {short_function(frame.function)}", "native stack")
                if frame
                else None,
                (one_line(llvm, 200), "stderr") if llvm else None,
                (one_line(check.text, 200), "stderr") if check and not llvm else None,
            ),
            fixes=(*(hunt_further(case) if heap_damage(case) else ()), _leave_out(doing), advice.check_arguments(case)),
            against=(shared,) if shared else (),
        )


def _llvm(case: Case) -> str | None:
    """What LLVM said; numba and others bring another one along, which is none of TensorFlow's."""
    if case.signal not in ("SIGABRT", "SIGILL", "SIGTRAP"):
        return None
    if case.native_stack and not any(owner_of(frame) == "tensorflow" for frame in case.native_stack):
        return None
    return case.said(_LLVM)


def _strength(doing: Activity, checked: bool, llvm: str | None) -> float:
    """A check that failed in a rewriting pass most often complains about the arguments of the op."""
    if llvm or doing == "compiled code":
        return STRONG
    if checked:
        return {"compiling": LIKELY, "optimising": POSSIBLE + 0.05}.get(doing, POSSIBLE)
    return {"compiling": STRONG, "optimising": LIKELY + 0.05}.get(doing, LIKELY)


def _leave_out(doing: Activity) -> Fix:
    if doing == "optimising":
        return safe(
            "run without the graph optimiser",
            'tf.config.optimizer.set_experimental_options({"disable_meta_optimizer": True}), TF_ENABLE_ONEDNN_OPTS=0',
        )
    return safe("run the function without XLA", "jit_compile=False on the tf.function or in model.compile")

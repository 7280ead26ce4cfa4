"""Something that is often blamed, and did nothing."""

from __future__ import annotations

from faultlens.diagnosis.causes.base import Cause, Finding
from faultlens.diagnosis.evidence.case import Case


class Harmless(Cause):
    """
    ## What it is
    Circumstances that people suspect and that do not crash TensorFlow by themselves: a CPU with AVX but without
    AVX2, another allocator preloaded (jemalloc, tcmalloc), PyTorch beside TensorFlow, a newer protobuf, a daemon
    thread at exit, warnings about oneDNN or missing GPUs.

    ## How it looks
    The program ends as it should.

    ## How to prove it
    Run it again without the circumstance: it ends in the same way.

    ## How to fix it
    Nothing to fix. If the program does crash, this is not the reason: look at the causes with evidence.
    """

    slug = "harmless"
    code = "FL901"
    headline = "often blamed, and did nothing"

    def examine(self, case: Case) -> Finding | None:  # noqa: ARG002
        return None  # a crash always has another cause; what did nothing leaves no evidence

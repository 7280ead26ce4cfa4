"""Does a save really load, with the TensorFlow and Keras of an environment?"""

from __future__ import annotations

import re

from msgspec.structs import replace

from faultlens.records.verification import VerifiedGeneration
from faultlens.text.quantities import count
from faultlens.text.safe import one_line
from faultlens.verify.confined import Limits, ask
from faultlens.verify.values import noted

WEIGHTS_ONLY = "it holds weights only: loading it takes the model"
# What a loader says of a model whose classes are the program's own, or that it will not load for its safety.
_NEEDS_CODE = re.compile(
    r"Could not locate (?:class|function)|Unknown (?:layer|class|object|loss|metric|optimizer)|custom_objects"
    r"|register_keras_serializable|Could not deserialize|is not registered|Lambda|unsafe deserialization|safe_mode"
)
NOT_LOADED = ("pickle", "PyTorch file")
_OUR_TROUBLE = ("ModuleNotFoundError", "ImportError", "MemoryError", "ResourceExhaustedError")


def loaded(verified: VerifiedGeneration, limits: Limits, python: str) -> VerifiedGeneration:
    """With how that went. Where it could not be tried, nothing is said about the save."""
    if verified.format in NOT_LOADED:
        return replace(verified, load_problem="faultlens loads models of Keras and TensorFlow only")
    kind = "HDF5 file" if verified.format == "weights file" else verified.format
    answer = ask(python, {"do": "load", "kind": kind, "path": verified.path}, limits, may_stand=True)
    told = answer.told
    if answer.late:
        return replace(verified, load_problem=f"loading it took longer than {limits.seconds:g} s")
    if told is None:
        problem = f"loading it kills Python: {answer.died}" if answer.crashed else answer.died
        return replace(verified, loaded=False if answer.crashed else None, load_problem=problem)
    if told.weights_only:
        return noted(verified, WEIGHTS_ONLY)
    for note in told.notes:
        verified = noted(verified, note)
    if told.raised:
        problem = one_line(f"{told.raised}: {told.message}", 300)
        untried = told.raised in _OUR_TROUBLE or _NEEDS_CODE.search(problem) is not None
        return replace(verified, loaded=None if untried else False, load_problem=problem)
    detail = f"loaded, {count(told.variables, 'variable')}" if told.variables else "loaded"
    return replace(verified, loaded=True, details=(*verified.details, detail))

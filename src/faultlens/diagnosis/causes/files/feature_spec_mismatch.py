from __future__ import annotations

import re

from faultlens.diagnosis.causes.base import STRONG, Cause, Finding, consider, evidence, safe
from faultlens.diagnosis.evidence.case import Case, location_of
from faultlens.diagnosis.evidence.data_places import scan_command
from faultlens.diagnosis.evidence.tracebacks import PythonException
from faultlens.inspection.frames import is_own
from faultlens.text.safe import one_line

# TensorFlow could read the Example, and names the feature that is not as the program asked for it: "Key: x.  Can't
# parse serialized Example.", "Name: <unknown>, Key: x, Index: 0.  Data types don't match.", "Feature: y (data type:
# int64) is required but could not be found."
_FEATURE = re.compile(
    r"\bKey: (?P<key>.+?)(?:, Index: \d+)?\. +(?:Can't parse serialized|Number of \w+ values|Data types don't match)"
    r"|\bFeature(?: list)?:? '?(?P<missing>.+?)'? \(data type: \w+\) is required but could not be found"
)


class FeatureSpecMismatch(Cause):
    """
    ## What it is
    A record was read, but the feature spec (`tf.io.FixedLenFeature` and its kin) asks for something else than it
    holds: another number of values, another type, or a feature that is not there. The file is not damaged.

    ## How it looks
    InvalidArgumentError "Key: x. Can't parse serialized Example", "Data types don't match", "Feature: y (data type:
    int64) is required but could not be found", often in the middle of an epoch: one record differs from the others.

    ## How to prove it
    `faultlens scan` on the files names the records whose features are not like those of the others. If all are alike,
    the spec is wrong for all of them.

    ## How to fix it
    Let the spec say what is in the records: the shape, the type, a `default_value` where the feature may be missing,
    `tf.io.VarLenFeature` or `tf.io.RaggedFeature` where the number of values varies. If only a few records differ,
    mend what wrote them.
    """

    slug = "feature-spec-mismatch"
    code = "FL305"
    headline = "The records hold other features than the program asks for"

    def examine(self, case: Case) -> Finding | None:
        error = case.exception
        if case.fault is not None or case.crash.outcome.kind != "exception" or error is None:
            return None
        feature = unfit_feature(error)
        if feature is None:
            return None
        own = next((frame for frame in error.frames if is_own(frame)), None)
        return Finding(
            strength=STRONG,
            title=one_line(f"a record does not fit the feature spec: {error.message}", 160),
            location=location_of(own),
            evidence=evidence(
                (one_line(f"{error.type}: {error.message}", 300), "traceback"),
                (f"the record itself could be read: feature {feature!r} is not as the spec says", "traceback"),
                (f"exit code {case.crash.outcome.exit_code}, no signal: nothing crashed", "wait status"),
            ),
            fixes=(
                safe("find the records that differ from the others", scan_command(case)),
                consider(
                    f"let the spec of {feature!r} say what the records hold",
                    "its shape and type, a default_value where it may be missing, tf.io.VarLenFeature or "
                    "tf.io.RaggedFeature where the number of values varies",
                ),
            ),
        )


def unfit_feature(error: PythonException) -> str | None:
    match = _FEATURE.search(error.details)
    return (match["key"] or match["missing"]) if match else None

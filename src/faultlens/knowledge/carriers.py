"""Ops that only run others, or the user's Python code: what goes wrong inside of them is not their fault."""

from __future__ import annotations

from faultlens.knowledge.op_names import plain

_CARRIERS = frozenset(
    plain(name)
    for name in (
        "MakeIterator", "OneShotIterator", "IteratorGetNext", "IteratorGetNextSync", "IteratorGetNextAsOptional",
        "IteratorFromDataset", "AnonymousIterator", "AnonymousIteratorV2", "AnonymousIteratorV3", "ReduceDataset",
        "DatasetToSingleElement", "MultiDeviceIteratorGetNextFromShard", "PartitionedCall", "StatefulPartitionedCall",
        "RemoteCall", "XlaLaunch", "XlaLaunchV2", "XlaLocalLaunch", "_XlaRun", "_XlaCompile", "XlaCompileOnDemand",
        "While", "StatelessWhile", "If", "StatelessIf", "Case", "StatelessCase", "For", "PyFunc", "PyFuncStateless",
        "EagerPyFunc", "MapDefun", "BatchFunction", "SymbolicGradient", "Call", "GraphRunner", "DeleteIterator",
        "FinalizeDataset",
    )
)  # fmt: skip


def is_carrier(op: str) -> bool:
    return plain(op) in _CARRIERS

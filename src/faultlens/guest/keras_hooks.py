"""Where Keras tells what we want to know: Keras 3, Keras 2 as it came with TensorFlow until 2.15, and tf_keras."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from typing import Any

from .guard import Guard
from .hooks import Hook
from .lines import Lines
from .progress import Progress
from .tensorflow_hooks import guarded_saving

# The folder of Keras' own modules: until 2.12, since, and under the name it lives on.
ROOTS = ("keras", "keras.src", "tf_keras.src")
# What a loop of the program's own calls for every batch.
TRAINING = (
    "backend.tensorflow.trainer.TensorFlowTrainer.train_on_batch",
    "engine.training.Model.train_on_batch",
    "optimizers.base_optimizer.BaseOptimizer.apply",
)
LOOPS = {"train": "train", "test": "evaluate", "predict": "predict"}  # as callbacks name them, and we


def keras_hooks(lines: Lines, progress: Progress, guard: Guard) -> Iterator[Hook]:
    saving = guarded_saving(progress, guard)
    for root in ROOTS:
        for callbacks in (f"{root}.callbacks.callback_list", f"{root}.callbacks"):
            yield from _callback_hooks(callbacks, progress, guard)
        for place in TRAINING:
            module, owner, name = f"{root}.{place}".rsplit(".", 2)
            yield Hook(module, f"{owner}.{name}", guard(_trained(lines, progress)))
        yield saving(f"{root}.saving.saving_lib", "save_model")
        yield saving(f"{root}.saving.saving_lib", "save_weights_only")
        yield saving(f"{root}.saving.legacy.save", "save_model")
        yield saving(f"{root}.saving.legacy.save", "save_weights")
        yield saving(f"{root}.legacy.saving.legacy_h5_format", "save_model_to_hdf5")
        # Both are called by the constructor, which itself is looked at by others: its signature is part of a model.
        yield Hook(f"{root}.layers.layer", "Layer._initialize_tracker", after=guard(_made_layer(lines)))
        yield Hook(f"{root}.engine.base_layer", "Layer._init_set_name", after=guard(_made_layer(lines)))
        yield Hook(f"{root}.engine.base_layer", "Layer._name_scope", after=guard(_entered_scope_2(lines)))
        yield Hook(f"{root}.backend.tensorflow.core", "name_scope.__enter__", after=guard(_entered_scope_3(lines)))


def _callback_hooks(module: str, progress: Progress, guard: Guard) -> Iterator[Hook]:
    def epoch_begin(callbacks: Any, epoch: int, *_: Any, **__: Any) -> None:
        progress.epoch(int(epoch) + 1, _parameter(callbacks, "epochs"))

    yield Hook(module, "CallbackList.on_epoch_begin", guard(epoch_begin))
    for their_name, phase in LOOPS.items():
        begin, end = _loop(phase, progress)
        yield Hook(module, f"CallbackList.on_{their_name}_begin", guard(begin))
        yield Hook(module, f"CallbackList.on_{their_name}_end", after=guard(end))
        yield Hook(module, f"CallbackList.on_{their_name}_batch_begin", _step(phase, progress, guard))


def _loop(phase: str, progress: Progress) -> tuple[Callable[..., None], Callable[..., None]]:
    def begin(callbacks: Any, *_: Any, **__: Any) -> None:
        # An evaluation within training is called with the parameters of the training.
        steps = 0 if progress.inside("train") else _parameter(callbacks, "steps")
        progress.begin(phase, steps=steps, owner=callbacks)

    def end(*_: Any) -> None:
        progress.end(phase, mark="end")

    return begin, end


def _step(phase: str, progress: Progress, guard: Guard) -> Callable[..., None]:
    step = progress.step

    def begin(_: Any, batch: int, *__: Any, **___: Any) -> None:
        if guard.working:
            try:
                step(phase, batch + 1)
            except Exception as error:
                guard.failed(error)

    return begin


def _trained(lines: Lines, progress: Progress) -> Callable[..., None]:
    def trained(*_: Any, **__: Any) -> None:
        if not lines.tracing:
            progress.trained()

    return trained


def _parameter(callbacks: Any, name: str) -> int:
    return int((getattr(callbacks, "params", None) or {}).get(name) or 0)


def _made_layer(lines: Lines) -> Callable[..., None]:
    def made(_: Any, arguments: tuple[Any, ...]) -> None:
        if getattr(arguments[0], "name", None):  # Keras 3 calls once too early
            lines.made_layer(arguments[0])

    return made


def _entered_scope_2(lines: Lines) -> Callable[..., None]:
    def entered(scope: Any, arguments: tuple[Any, ...]) -> None:
        if scope and lines.tracing:
            lines.entered_scope(_graph(), scope, arguments[0].name)

    return entered


def _entered_scope_3(lines: Lines) -> Callable[..., None]:
    def entered(_: Any, arguments: tuple[Any, ...]) -> None:
        (scope,) = arguments
        if lines.tracing and isinstance(scope.caller, _layer_class()):  # optimisers open scopes as well
            graph = _graph()
            if graph._name_stack:
                lines.entered_scope(graph, graph._name_stack, scope.name)

    return entered


def _layer_class() -> Any:
    return sys.modules["keras.src.layers.layer"].Layer


def _graph() -> Any:
    return sys.modules["tensorflow.python.framework.ops"].get_default_graph()

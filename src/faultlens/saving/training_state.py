"""Where a training stands, as JSON: epoch, step, and every generator of random numbers; and how all is put back.

    faultlens.save(model, "model.keras", training=capture(model, epoch=epoch, step=step))
    restored = faultlens.restore_latest(folder, into=model)
    epoch, step = restore(restored.training, model)

Keras writes weights and the optimizer, but not the state of its random numbers: after a restart dropout would repeat
what it did at the beginning. Generators are numbers and lists here, never pickled objects."""

from __future__ import annotations

import random
import sys
import warnings
from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np

from faultlens.saving.values import Array, array_of

VERSION = 1
MOST_METRIC_VALUES = 20_000  # a confusion matrix of many classes does not belong into a manifest
_MERSENNE = "MT19937"  # the algorithm of Python's generator and of NumPy's global one


def capture(
    model: Any = None, *, epoch: int = 0, step: int = 0, global_step: int | None = None, **more: Any
) -> dict[str, Any]:
    """For `faultlens.save(…, training=…)`. `epoch` is the one to go on with, `step` the batches of it that are done.

    `global_step` counts all steps; by default those of the model's optimizer. `more` is kept as it is."""
    state = {
        "version": VERSION,
        "epoch": epoch,
        "step": step,
        "global_step": iterations(model) if global_step is None else global_step,
        "random": {**program_generators(), **dict(_library_generators(model))},
        **more,
    }
    if step:
        state["metrics"] = _metrics(model)
    return state


def restore(state: Mapping[str, Any], model: Any = None) -> tuple[int, int]:
    """Put back what `capture` took, and return epoch and step. The weights are restored by who loads the save."""
    if not is_training_state(state):
        raise ValueError("this is not the state of a training: it was not made by capture()")
    known = state["random"]
    _restore_library_generators(known, model)
    restore_program_generators(known)  # last: what was made on the way may have drawn from them
    restore_metrics(state, model)
    return state["epoch"], state["step"]


def is_training_state(state: Mapping[str, Any]) -> bool:
    return (
        state.get("version") == VERSION
        and all(isinstance(state.get(key), int) for key in ("epoch", "step"))
        and isinstance(state.get("random"), Mapping)
    )


def iterations(model: Any) -> int | None:
    """How many steps the optimizer has made."""
    counter = getattr(getattr(model, "optimizer", None), "iterations", None)
    return None if counter is None else int(array_of(counter))


# ------------------------------------------------------------------------------------------ metrics


def restore_metrics(state: Mapping[str, Any], model: Any) -> None:
    """What the metrics have seen of an epoch that was begun. Nothing happens where they are others now."""
    variables, saved = list(getattr(model, "metrics_variables", ())), state.get("metrics") or []
    if len(saved) == len(variables) and all(map(_fits, saved, variables)):
        for values, variable in zip(saved, variables, strict=True):
            variable.assign(_array(values))


def _metrics(model: Any) -> list[dict[str, Any]]:
    arrays = [array_of(variable) for variable in getattr(model, "metrics_variables", ())]
    return list(map(_described, arrays)) if sum(array.size for array in arrays) <= MOST_METRIC_VALUES else []


def _described(array: Array) -> dict[str, Any]:
    """Bits instead of values: JSON knows no NaN."""
    bits = np.ascontiguousarray(array).reshape(-1).view(f"u{array.itemsize}")
    return {"dtype": array.dtype.name, "shape": list(array.shape), "bits": bits.tolist()}


def _fits(values: Mapping[str, Any], variable: Any) -> bool:
    return tuple(values["shape"]) == tuple(variable.shape) and values["dtype"] == array_of(variable).dtype.name


def _array(values: Mapping[str, Any]) -> Array:
    dtype = np.dtype(values["dtype"])
    array: Array = np.array(values["bits"], f"u{dtype.itemsize}").view(dtype).reshape(values["shape"])
    return array


# -------------------------------------------------------------- Python's and NumPy's global generators


def program_generators() -> dict[str, Any]:
    """Python's `random` and NumPy's legacy global generator."""
    found: dict[str, Any] = {"python": _mersenne(random.getstate())}
    numpy: Any = np.random.get_state(legacy=False)
    if numpy["bit_generator"] == _MERSENNE:
        found["numpy"] = {
            "key": numpy["state"]["key"].tolist(),
            "pos": int(numpy["state"]["pos"]),
            "has_gauss": int(numpy["has_gauss"]),
            "gauss": float(numpy["gauss"]),
        }
    return found


def restore_program_generators(known: Mapping[str, Any]) -> None:
    if "python" in known:
        random.setstate(_as_mersenne(known["python"]))
    if "numpy" in known:
        saved = known["numpy"]
        key = np.array(saved["key"], np.uint32)
        np.random.set_state((_MERSENNE, key, saved["pos"], saved["has_gauss"], saved["gauss"]))


def _mersenne(state: Any) -> list[Any]:
    version, words, gauss = state
    return [version, list(words), gauss]


def _as_mersenne(saved: list[Any]) -> tuple[Any, ...]:
    version, words, gauss = saved
    return version, tuple(words), gauss


# ----------------------------------------------------------------- Keras' and TensorFlow's generators


def _library_generators(model: Any) -> Iterator[tuple[str, Any]]:
    """Only those that there are: asking for one would make it, and change what the program draws."""
    if "keras" in sys.modules:
        from keras.src.backend.common import global_state

        shared = global_state.get_global_attribute("global_seed_generator")
        if shared is not None:
            yield "keras", _numbers(shared.state)
        yield "layers", [_numbers(each) for each in _layer_states(model)]
    if "tensorflow" in sys.modules:
        from tensorflow.python.eager import context
        from tensorflow.python.ops import stateful_random_ops

        generator = stateful_random_ops.global_generator
        if generator is not None:
            yield "tensorflow", {"algorithm": int(generator.algorithm), "state": _numbers(generator.state)}
        if context.global_seed() is not None:
            # Eager operations without a seed of their own draw one from here.
            seeds = context.context()._rng
            yield "eager", {"seed": int(context.global_seed()), "state": _mersenne(seeds.getstate())}


def _restore_library_generators(known: Mapping[str, Any], model: Any) -> None:
    if "keras" in known:
        from keras.src.random.seed_generator import global_seed_generator

        global_seed_generator().state.assign(known["keras"])
    _restore_layers(known.get("layers", []), model)
    if "tensorflow" in known:
        _restore_global_generator(known["tensorflow"])
    if "eager" in known:
        import tensorflow as tf
        from tensorflow.python.eager import context

        if context.global_seed() != known["eager"]["seed"]:
            tf.random.set_seed(known["eager"]["seed"])
        context.context()._rng.setstate(_as_mersenne(known["eager"]["state"]))


def _restore_layers(saved: list[list[int]], model: Any) -> None:
    states = list(_layer_states(model))
    if len(states) != len(saved):
        warnings.warn(
            f"the random numbers of the layers start anew: {len(saved)} generators were saved, the model has"
            f" {len(states)}",
            RuntimeWarning,
            stacklevel=4,
        )
        return
    for state, values in zip(states, saved, strict=True):
        state.assign(values)


def _restore_global_generator(saved: Mapping[str, Any]) -> None:
    import tensorflow as tf
    from tensorflow.python.ops import stateful_random_ops

    generator = stateful_random_ops.global_generator
    if generator is not None and int(generator.algorithm) == saved["algorithm"]:
        generator.reset(saved["state"])  # the same object: functions that were traced with it go on using it
    else:
        tf.random.set_global_generator(tf.random.Generator.from_state(saved["state"], alg=saved["algorithm"]))


def _layer_states(model: Any) -> Iterator[Any]:
    """The variables of `keras.random.SeedGenerator` and `tf.random.Generator` that layers hold."""
    seen: set[int] = set()
    tensorflow = sys.modules.get("tensorflow")
    kind = tensorflow.random.Generator if tensorflow is not None else ()
    for layer in model._flatten_layers() if hasattr(model, "_flatten_layers") else ():
        own = [value for value in vars(layer).values() if isinstance(value, kind)]
        for generator in [*getattr(layer, "_seed_generators", ()), *own]:
            if id(generator) not in seen:
                seen.add(id(generator))
                yield generator.state


def _numbers(variable: Any) -> list[int]:
    numbers: list[int] = array_of(variable).tolist()
    return numbers

"""Whether a model can be rebuilt from what would be saved of it: layers whose shapes or configuration are not true,
variables that are gone, values that are no numbers, an optimizer that belongs to other weights."""

from __future__ import annotations

import contextlib
import random
from collections.abc import Iterator
from typing import Any

import numpy as np

from faultlens.saving.formats.base import Format, all_variables, is_keras_model
from faultlens.saving.formats.by_keras import knows_direct_way
from faultlens.saving.values import array_of

THEIR_MODULES = ("keras", "tf_keras", "tensorflow")
LARGEST_TEXT = 200


def problems_of(form: Format, check_values: bool = False) -> list[str]:
    """One sentence each; empty for a model in order. Runs code of the user's own layers."""
    with _undrawn():
        return _problems_of(form, check_values)


def _problems_of(form: Format, check_values: bool) -> list[str]:
    subject = form.subject
    found = list(_gone(subject))
    if found:
        return found
    if is_keras_model(subject):
        found += _optimizer(subject)
        if form.name in ("keras", "hdf5", "saved_model") and knows_direct_way(subject):
            found += [problem for layer in _own_layers(subject) for problem in _shape_problems(layer)]
        if form.name in ("keras", "hdf5"):
            found += [problem for layer in _own_layers(subject) for problem in _config_problems(layer)]
        if form.name == "keras" and not found and knows_direct_way(subject):
            found += _structure(subject)
    if check_values:
        found += _not_numbers(subject)
    return found


@contextlib.contextmanager
def _undrawn() -> Iterator[None]:
    """Layers that are made again draw seeds: saving must not change what the program draws next."""
    python, numpy = random.getstate(), np.random.get_state(legacy=False)
    try:
        yield
    finally:
        random.setstate(python)
        np.random.set_state(numpy)


def _gone(subject: Any) -> Iterator[str]:
    for variable in all_variables(subject):
        if hasattr(variable, "_value") and variable._value is None:
            yield f"the variable {_name(variable)} has no value: build the model by calling it once"
            continue
        handle = getattr(getattr(variable, "_value", variable), "handle", None)
        try:
            if handle is not None:
                from tensorflow.python.ops.gen_resource_variable_ops import var_is_initialized_op

                if not bool(var_is_initialized_op(handle)):
                    yield f"the variable {_name(variable)} is not initialised or was deleted"
        except Exception as error:
            yield f"the variable {_name(variable)} cannot be read: {_short(error)}"


def _optimizer(model: Any) -> Iterator[str]:
    """Adam remembers two values for each weight: those of other weights would be restored into these."""
    optimizer = getattr(model, "optimizer", None)
    known = getattr(optimizer, "_trainable_variables", None)
    if not known or not getattr(optimizer, "built", False):
        return
    own, theirs = {id(each) for each in model.trainable_variables}, {id(each) for each in known}
    if not own & theirs:
        yield (
            f"the optimizer ({type(optimizer).__name__}) was built for other variables than the model has:"
            " compile the model again"
        )


def _own_layers(model: Any) -> Iterator[Any]:
    """Those whose code is not Keras'."""
    for layer in model._flatten_layers() if hasattr(model, "_flatten_layers") else model.layers:
        if layer is not model and type(layer).__module__.partition(".")[0] not in THEIR_MODULES:
            yield layer


def _shape_problems(layer: Any) -> Iterator[str]:
    """Keras believes `compute_output_shape` when it rebuilds a model."""
    from keras import Layer
    from keras.src import backend, tree

    if type(layer).compute_output_shape is Layer.compute_output_shape or not getattr(layer, "_inbound_nodes", None):
        return
    arguments = layer._inbound_nodes[-1].arguments
    try:
        given = [tensor.shape for tensor in arguments.keras_tensors]
        said = tree.map_shape_structure(tuple, layer.compute_output_shape(given[0] if len(given) == 1 else given))
        result = backend.compute_output_spec(layer.call, *arguments.args, **arguments.kwargs)
    except Exception:
        return  # what it needs is not known here: no evidence of anything
    shapes = [tuple(each.shape) for each in tree.flatten(result)]
    said = said if isinstance(said, list) else [said]
    if len(shapes) == len(said) and not all(map(_fits, said, shapes)):
        yield (
            f"the layer {layer.name!r} ({type(layer).__name__}): its compute_output_shape says"
            f" {_shapes(said)}, call gives {_shapes(shapes)}"
        )


def _config_problems(layer: Any) -> Iterator[str]:
    """`get_config` must hold what the constructor needs."""
    kind = type(layer).__name__
    try:
        config = layer.get_config()
    except Exception as error:
        yield f"the layer {layer.name!r} ({kind}): its get_config fails with {_short(error)}"
        return
    try:
        again = type(layer).from_config(config)
    except Exception as error:
        yield f"the layer {layer.name!r} ({kind}) cannot be made again from its get_config: {_short(error)}"
        return
    with contextlib.suppress(Exception):
        for key, value in again.get_config().items():
            if isinstance(value, (int, float, str, bool)) and key in config and config[key] != value:
                yield f"the layer {layer.name!r} ({kind}): {key} is {config[key]!r}, made again it is {value!r}"


def _structure(model: Any) -> Iterator[str]:
    """Rebuild the model without its weights, as loading would."""
    from keras.src import backend
    from keras.src.backend.common import global_state
    from keras.src.saving import saving_lib

    custom = {type(layer).__name__: type(layer) for layer in (model, *_own_layers(model))}
    waiting = global_state.get_global_attribute("uninitialized_variables", [])
    before = list(waiting)
    try:
        config, _ = saving_lib._serialize_model_as_json(model)
    except Exception as error:
        yield f"the model cannot be described: {_short(error)}"
        return
    try:
        with backend.StatelessScope(initialize_variables=False):
            again = saving_lib._model_from_config(config, custom, False, False)
    except Exception:
        return  # variables made in an unusual way cannot be left out: no evidence of anything
    finally:
        global_state.set_global_attribute("uninitialized_variables", before)
    if getattr(again, "built", False) and again.built == model.built:
        was, now = ([tuple(each.shape) for each in of.weights] for of in (model, again))
        if len(now) >= len(was) > 0 and was != now[: len(was)]:
            place = next(index for index, (old, new) in enumerate(zip(was, now, strict=False)) if old != new)
            yield (
                f"{model.weights[place].path} has the shape {was[place]}, and {now[place]} in the model that its"
                " configuration describes"
            )


def _not_numbers(subject: Any) -> Iterator[str]:
    for variable in all_variables(subject):
        array = array_of(variable)
        if array.dtype.kind in "fc" or array.dtype.name == "bfloat16":
            wrong = int(np.count_nonzero(~np.isfinite(array)))
            if wrong:
                yield f"the variable {_name(variable)} holds {wrong} values that are NaN or infinite"


def _fits(said: Any, shape: tuple[int | None, ...]) -> bool:
    """None stands for any size."""
    return len(said) == len(shape) and all(
        one == other or None in (one, other) for one, other in zip(said, shape, strict=True)
    )


def _shapes(shapes: list[Any]) -> str:
    return ", ".join(str(tuple(shape)) for shape in shapes)


def _name(variable: Any) -> str:
    return str(getattr(variable, "path", None) or getattr(variable, "name", "?"))


def _short(error: Exception) -> str:
    text = " ".join(str(error).split())
    return f"{type(error).__name__}: {text[:LARGEST_TEXT]}" if text else type(error).__name__

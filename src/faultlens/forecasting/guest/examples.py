"""Random examples of the shapes that a model takes: what it declares itself, or what the user says of the data."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import keras
import tensorflow as tf

from . import user_file
from .refused import RefusedError

PREFETCHED = 2  # batches, where nothing else is said
TAKE_LABELS = ("train_step", "compute_loss")  # unless a model has its own
UNKNOWN_BOUND = 2  # integers below it are an index of nearly everything


class Field(NamedTuple):
    """One array of an example."""

    dtype: str
    shape: tuple[int, ...]
    bound: int | None = None  # integers are below it

    @property
    def size(self) -> int:
        count = 1
        for length in self.shape:
            count *= length
        return count * int(tf.as_dtype(self.dtype).size)

    def values(self) -> Any:
        dtype = tf.as_dtype(self.dtype)
        if dtype.is_floating:
            return tf.cast(tf.random.uniform(self.shape), dtype)
        if dtype.is_bool:
            return tf.random.uniform(self.shape) < 0.5
        if dtype == tf.string:
            return tf.fill(self.shape, "word")
        bound = self.bound or UNKNOWN_BOUND
        return tf.cast(tf.random.uniform(self.shape, maxval=min(bound, dtype.max), dtype=tf.int64), dtype)


class Examples(NamedTuple):
    structure: Any  # what the model is fed with: fields instead of arrays; a tuple of inputs and labels, or inputs
    has_labels: bool

    @property
    def size(self) -> int:
        return sum(field.size for field in _fields(self.structure))

    def dataset(self, batch: int, batches: int, pipeline: dict[str, int]) -> Any:
        """Made one by one, as most pipelines do. A buffer for shuffling is not filled: its size is estimated."""
        one = lambda _: _mapped(lambda field: field.values(), self.structure)
        made = tf.data.Dataset.range(batch * batches).map(one, num_parallel_calls=tf.data.AUTOTUNE)
        return made.batch(batch, drop_remainder=True).prefetch(pipeline.get("prefetch", PREFETCHED))


def of_model(model: Any, spec: dict[str, Any]) -> Examples:
    """`spec` is what the user said: name → [dtype, shape, bound]."""
    told = {name: Field(dtype, tuple(shape), bound) for name, (dtype, shape, bound) in spec.items()}
    inputs = _inputs(model, told)
    labels = _labels(model, told)
    if labels is not None:
        return Examples((inputs, labels), has_labels=True)
    several = isinstance(inputs, tuple) and not isinstance(inputs, Field)  # two would be taken for inputs and labels
    return Examples((inputs,) if several else inputs, has_labels=False)


def given(file: str, function: str, batch: int) -> Any:
    """The user's own pipeline."""
    data = user_file.call(file, function, batch)
    if not isinstance(data, (tf.data.Dataset, keras.utils.PyDataset)):
        raise RefusedError(f"{function}({batch}) returned {type(data).__name__}, not a tf.data.Dataset or PyDataset.")
    return data


# ------------------------------------------------------------------------------------------- inputs


def _inputs(model: Any, told: dict[str, Field]) -> Any:
    declared = getattr(_graph(model), "_inputs_struct", None)
    if declared is None:
        named = {name: field for name, field in told.items() if name != "y" and not name.startswith("y.")}
        if not named:
            raise RefusedError("The model does not declare its inputs. Say them: --data-spec 'x=float32[224,224,3]'.")
        return named["x"] if set(named) == {"x"} else named
    single = len(model.inputs) == 1
    return _mapped(lambda tensor: _input(model, tensor, told, single), declared)


def _graph(model: Any) -> Any:
    """A Sequential keeps one inside."""
    return getattr(model, "_functional", None) or model


def _input(model: Any, tensor: Any, told: dict[str, Field], single: bool) -> Field:
    name = tensor.name
    found = told.get(name) or (told.get("x") if single else None)
    if found is not None:
        return found
    shape = tuple(tensor.shape[1:])
    if None in shape:
        hint = ",".join(str(length or 128) for length in shape)
        raise RefusedError(
            f"Input {name} has no fixed shape {shape}. Say it: --data-spec '{name}={tensor.dtype}[{hint}]'."
        )
    dtype = tf.as_dtype(tensor.dtype)
    return Field(dtype.name, shape, _bound(model, tensor) if dtype.is_integer else None)


def _bound(model: Any, tensor: Any) -> int:
    """Integers are mostly indices into an embedding: of the layer that takes them, or else the smallest there is."""
    embeddings = [layer for layer in model._flatten_layers() if isinstance(layer, keras.layers.Embedding)]
    direct = [layer.input_dim for layer in embeddings if any(_takes(node, tensor) for node in layer._inbound_nodes)]
    return int(min(direct or [layer.input_dim for layer in embeddings] or [UNKNOWN_BOUND]))


def _takes(node: Any, tensor: Any) -> bool:
    return any(each is tensor for each in node.input_tensors)


# ------------------------------------------------------------------------------------------- labels


def _labels(model: Any, told: dict[str, Field]) -> Any:
    if "y" in told:
        return told["y"]
    named = {name[2:]: field for name, field in told.items() if name.startswith("y.")}
    if named:
        return named
    if model.loss is None:
        return None  # its own train_step, or losses that it adds itself
    if not getattr(model, "outputs", None):
        if all(getattr(type(model), name) is getattr(keras.Model, name) for name in TAKE_LABELS):
            raise RefusedError(
                "The model has a loss, and does not declare its outputs. Say the labels, too: --data-spec"
                " 'x=float32[224,224,3] y=float32[10]'."
            )
        return None
    declared = _graph(model)._outputs_struct
    if isinstance(model.loss, dict) and not isinstance(declared, dict):
        declared = dict(zip(model.output_names, model.outputs))
        declared = {name: declared[name] for name in model.loss}
    return _with_losses(declared, model.loss)


def _with_losses(outputs: Any, losses: Any) -> Any:
    """One loss for all outputs, or one for each, by name or in their order."""
    if isinstance(outputs, dict):
        named = losses if isinstance(losses, dict) else dict.fromkeys(outputs, losses)
        return {name: _with_losses(outputs[name], loss) for name, loss in named.items()}
    if isinstance(outputs, (list, tuple)):
        ordered = losses if isinstance(losses, (list, tuple)) else [losses] * len(outputs)
        return tuple(map(_with_losses, outputs, ordered))
    return _label(outputs, losses)


def _label(tensor: Any, loss: Any) -> Field:
    shape = tuple(tensor.shape[1:])
    if None in shape:
        raise RefusedError(f"An output has no fixed shape {shape}. Say the labels: --data-spec 'y=float32[…]'.")
    name = loss if isinstance(loss, str) else getattr(loss, "name", "") or type(loss).__name__
    if "sparse" in str(name).lower():
        return Field("int32", shape[:-1], shape[-1])
    return Field("float32", shape)


# ---------------------------------------------------------------------------------------- structures


def _mapped(function: Callable[[Any], Any], structure: Any) -> Any:
    """Fields are tuples themselves, which would be taken apart."""
    if isinstance(structure, dict):
        return {name: _mapped(function, each) for name, each in structure.items()}
    if isinstance(structure, (list, tuple)) and not isinstance(structure, Field):
        return tuple(_mapped(function, each) for each in structure)
    return function(structure)


def _fields(structure: Any) -> list[Field]:
    found: list[Field] = []
    _mapped(found.append, structure)
    return found

"""Keras' weights in HDF5, as Keras lays them out, but written straight from the memory of the variables.

Keras fills a file in memory first, which costs as much memory as the model. Here the library only makes room for large
variables and says where; their bytes go there without a copy, and their checksums are taken on the way."""

from __future__ import annotations

import io
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import h5py
from keras.src.optimizers.base_optimizer import BaseOptimizer
from keras.src.saving import saving_lib

from faultlens.model_files.crc32c import crc32c
from faultlens.model_files.manifest import SavedVariable
from faultlens.saving.checksums import Part
from faultlens.saving.errors import SaveError
from faultlens.saving.region import Region
from faultlens.saving.values import Array, Values, blocks, checksum_of

SMALL = 1 << 16  # bytes: up to here the library does it all
BFLOAT16 = "bfloat16"


def write_state(model: Any, region: Region, values: Values, assets: Any = None) -> list[SavedVariable]:
    """The variables of a model, its optimizer and whatever else Keras finds in it."""
    store = DirectStore(region, values)
    try:
        with _sharing_memory(model):
            saving_lib._save_state(
                model, weights_store=store, assets_store=assets, inner_path="", visited_saveables=set()
            )
    finally:
        store.close()
    return store.variables


class DirectStore(saving_lib.H5IOStore):  # type: ignore[misc]
    """What Keras hands its variables to."""

    def __init__(self, region: Region, values: Values) -> None:
        self._region = region
        self._values = values
        self.variables: list[SavedVariable] = []
        super().__init__(io.BytesIO(), mode="w")

    def _get_h5_file(self, *_: Any, **__: Any) -> h5py.File:
        return h5py.File(self._region, "w")

    def __setitem__(self, key: str, value: Any) -> None:
        if not self._h5_entry_initialized:
            self._create_h5_group(self._h5_entry_path)
        array = self._values.of(value)
        if array.dtype.hasobject:
            self._h5_entry_group[key] = array
            return
        dataset = _make(self._h5_entry_group, key, array)
        crc = checksum_of(array) if array.nbytes <= SMALL else self._write(dataset.id.get_offset(), array)
        if array.dtype.name == BFLOAT16:
            dataset.attrs["dtype"] = BFLOAT16
        self.variables.append(
            SavedVariable(name=dataset.name, dtype=array.dtype.name, shape=tuple(array.shape), crc32c=crc)
        )

    def _write(self, position: int, array: Array) -> int:
        crc = 0
        for block in blocks(array):
            crc = crc32c(block, crc)
            position += self._region.write_at(position, block)
        return crc


def is_supported() -> bool:
    """Earlier releases of Keras 3 have other stores: those write for themselves."""
    store = saving_lib.H5IOStore
    return all(name in vars(store) for name in ("_get_h5_file", "_create_h5_group", "__setitem__", "close"))


def large_parts(region: Region, variables: list[SavedVariable]) -> dict[str, Part]:
    """Where the library finds the large variables. The small ones are compared here."""
    parts: dict[str, Part] = {}
    with h5py.File(region, "r") as file:
        for variable in variables:
            dataset = file.get(variable.name)
            if dataset is None or tuple(dataset.shape) != variable.shape:
                raise SaveError(f"{variable.name} is not in the file that was written.", "Save to another disk.")
            offset, size = dataset.id.get_offset(), dataset.id.get_storage_size()
            if offset is not None and size > SMALL:
                parts[variable.name] = Part(region.start + offset, size)
            elif checksum_of(dataset[()]) != variable.crc32c:
                raise _other_values(variable)
    return parts


def check(parts: dict[str, Part], variables: list[SavedVariable]) -> None:
    """Once they have been read from the disk."""
    for variable in variables:
        if variable.name in parts and parts[variable.name].value != variable.crc32c:
            raise _other_values(variable)


def _other_values(variable: SavedVariable) -> SaveError:
    return SaveError(
        f"{variable.name} was read back with other values than were written.",
        "The disk or the memory is faulty: save to another disk.",
    )


def _make(group: h5py.Group, key: str, array: Array) -> h5py.Dataset:
    if array.nbytes <= SMALL:
        return group.create_dataset(key, data=array)
    settings = h5py.h5p.create(h5py.h5p.DATASET_CREATE)
    settings.set_layout(h5py.h5d.CONTIGUOUS)
    settings.set_alloc_time(h5py.h5d.ALLOC_TIME_EARLY)
    settings.set_fill_time(h5py.h5d.FILL_TIME_NEVER)
    space = h5py.h5s.create_simple(array.shape)
    kind = h5py.h5t.py_create(array.dtype, logical=True)
    return h5py.Dataset(h5py.h5d.create(group.id, key.encode(), kind, space, settings))


@contextmanager
def _sharing_memory(model: Any) -> Iterator[None]:
    """Keras' optimizers hand over copies of their variables: here they hand over the variables themselves."""
    optimizer = getattr(model, "optimizer", None)
    changed = [
        each
        for each in (optimizer, getattr(optimizer, "inner_optimizer", None))
        if isinstance(each, BaseOptimizer) and type(each).save_own_variables is BaseOptimizer.save_own_variables
    ]
    for each in changed:
        vars(each)["save_own_variables"] = lambda store, owner=each: _hand_over(owner, store)
    try:
        yield
    finally:
        for each in changed:
            vars(each).pop("save_own_variables", None)


def _hand_over(optimizer: Any, store: Any) -> None:
    for number, variable in enumerate(optimizer.variables):
        store[str(number)] = variable

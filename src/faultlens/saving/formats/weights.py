"""`.weights.h5`: the weights alone, with the state of the optimizer, as `save_weights` writes them."""

from __future__ import annotations

import os
from pathlib import Path

from keras.src.saving import saving_lib

from faultlens.saved.manifest import SavedVariable
from faultlens.saving import hdf5_store
from faultlens.saving.formats.base import Format
from faultlens.saving.hdf5_store import DirectStore
from faultlens.saving.region import Region


class WeightsFormat(Format):
    name = "weights"

    def write(self, path: Path) -> list[SavedVariable]:
        descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o666)
        try:
            store = DirectStore(Region(descriptor), self.values)
            try:
                saving_lib._save_state(
                    self.subject, weights_store=store, assets_store=None, inner_path="", visited_saveables=set()
                )
            finally:
                store.close()
        finally:
            os.close(descriptor)
        return store.variables

    def verify(self, path: Path, variables: list[SavedVariable]) -> None:
        descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
        try:
            hdf5_store.verify(Region(descriptor, size=os.fstat(descriptor).st_size), variables)
        finally:
            os.close(descriptor)

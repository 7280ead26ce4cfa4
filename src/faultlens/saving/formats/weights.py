"""`.weights.h5`: the weights alone, with the state of the optimizer, as `save_weights` writes them."""

from __future__ import annotations

from pathlib import Path

from faultlens.model_files.manifest import SavedVariable
from faultlens.saving.checksums import read_all
from faultlens.saving.formats.base import Format
from faultlens.saving.hdf5_store import check, large_parts, write_state
from faultlens.saving.region import DiskFile, Region


class WeightsFormat(Format):
    name = "weights"

    def write(self, path: Path) -> list[SavedVariable]:
        with DiskFile(path, writing=True) as file:
            return write_state(self.subject, Region(file), self.values)

    def verify(self, path: Path, variables: list[SavedVariable]) -> int | None:
        with DiskFile(path) as file:
            parts = large_parts(Region(file, size=file.size), variables)
            whole = read_all(file, parts.values())
            check(parts, variables)
        return whole

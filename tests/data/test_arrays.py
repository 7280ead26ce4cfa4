"""Arrays of NumPy and HDF5: what is healthy passes, what is cut, changed or not finite does not."""

from __future__ import annotations

import io
from pathlib import Path
from typing import Any

import h5py
import numpy
import pytest

from checked_bytes import checked, flaws, kinds, noticed_damages, unnoticed_cuts, unnoticed_flips
from faultlens.data.formats import hdf5_values, numpy_array
from faultlens.data.formats.hdf5_file import Hdf5File
from faultlens.data.formats.numpy_file import NumpyArchive, NumpyFile

NPY, NPZ, HDF5 = NumpyFile(), NumpyArchive(), Hdf5File()
RECORD = numpy.dtype([("x", "<f4"), ("name", "<U7"), ("pair", "<i2", (2, 3)), ("inner", [("z", "<c8")])])


def saved(array: Any, **options: Any) -> bytes:
    file = io.BytesIO()
    numpy.save(file, array, **options)
    return file.getvalue()


def archived(compressed: bool = False, **arrays: Any) -> bytes:
    file = io.BytesIO()
    (numpy.savez_compressed if compressed else numpy.savez)(file, **arrays)
    return file.getvalue()


ARRAYS = {
    "scalar": numpy.float32(3),
    "empty": numpy.zeros((0, 3)),
    "no bytes per element": numpy.zeros(4, "S0"),
    "bool": numpy.ones((2, 3), bool),
    "big endian": numpy.arange(6, dtype=">i4"),
    "half": numpy.ones(5, numpy.float16),
    "complex": numpy.ones((2, 2), numpy.complex128),
    "long double": numpy.ones(3, numpy.longdouble),
    "text": numpy.array(["a", "bcd"]),
    "bytes": numpy.array([b"a", b"bcd"]),
    "dates": numpy.array(["2020-01-01"], "M8[ns]"),
    "durations": numpy.array([3], "m8[25us]"),
    "fortran": numpy.asfortranarray(numpy.ones((3, 4))),
    "records": numpy.zeros(4, RECORD),
    "aligned records": numpy.zeros(4, numpy.dtype([("a", "i1"), ("b", "f8")], align=True)),
    "titled records": numpy.zeros(4, numpy.dtype([(("title", "a"), "i1"), ("b", "f8")])),
    "void": numpy.zeros(3, "V5"),
}


class TestNumpy:
    @pytest.mark.parametrize("array", ARRAYS.values(), ids=ARRAYS)
    def test_healthy_and_cut_anywhere(self, array: Any) -> None:
        data = saved(array)
        assert kinds(NPY, data) == []
        assert unnoticed_cuts(NPY, data) == []

    @pytest.mark.parametrize("version", [(1, 0), (2, 0), (3, 0)])
    def test_versions(self, version: tuple[int, int]) -> None:
        file = io.BytesIO()
        numpy.lib.format.write_array(file, numpy.arange(9), version=version)
        assert kinds(NPY, file.getvalue()) == []
        assert unnoticed_cuts(NPY, file.getvalue()) == []

    def test_written_by_python_2(self) -> None:
        data = saved(numpy.arange(9, dtype="<i8"))
        assert kinds(NPY, data.replace(b"(9,), }  ", b"(9L,), } ")) == []

    def test_several_in_one_file(self) -> None:
        data = saved(numpy.arange(3)) + saved(numpy.ones(2))
        assert kinds(NPY, data) == []
        assert unnoticed_cuts(NPY, data) == [len(saved(numpy.arange(3)))]  # which is a whole file

    def test_more_than_its_shape_needs(self) -> None:
        assert kinds(NPY, saved(numpy.arange(3)) + b"x") == ["trailing"]

    def test_numbers_that_are_not_finite(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(numpy_array, "BLOCK", 64)
        values = numpy.zeros((30, 4))
        values[20, 1], values[25, 0] = numpy.nan, -numpy.inf
        for array in (values, numpy.asfortranarray(values)):
            (flaw,) = flaws(NPY, saved(array))
            assert (flaw.kind, flaw.severity) == ("not-finite", "warning")
            first = "[20, 1]" if array is values else "[25, 0]"
            assert flaw.reason == f"2 of its numbers are NaN or infinite, the first at {first}"
        values[20, 1] = 0
        assert flaws(NPY, saved(values))[0].reason == "one of its numbers is NaN or infinite, the first at [25, 0]"
        records = numpy.zeros(9, RECORD)
        records["inner"]["z"][7] = complex(0, numpy.inf)
        assert flaws(NPY, saved(records))[0].reason.endswith("the first at [7]")

    def test_objects_are_noted_and_not_loaded(self) -> None:
        for array in (numpy.array([{}, []], object), numpy.zeros(2, [("a", object)])):
            (flaw,) = flaws(NPY, saved(array, allow_pickle=True))
            assert (flaw.kind, flaw.severity) == ("unsupported", "note")

    def test_shapes_and_types_are_traits_of_a_pattern(self) -> None:
        traits = checked(NPY, saved(numpy.zeros((7, 2, 3), "<f4")), "set/part-03.npy").traits
        assert {(trait.group, trait.name, *trait.values) for trait in traits} == {
            ("set/part-#.npy", "dtype", "float32"),
            ("set/part-#.npy", "shape of a row", "(2, 3)"),
        }

    @pytest.mark.parametrize(
        "header",
        [
            b"{'descr': '<f8', 'fortran_order': False, 'shape': (1 << 3,), }",
            b"{'descr': '<f8', 'fortran_order': 0, 'shape': (3,), }",
            b"{'descr': '<f8', 'fortran_order': False, 'shape': (-3,), }",
            b"{'descr': '<f8', 'fortran_order': False}",
            b"__import__('os').abort()",
            b"(" * 5000,
            b"[]",
            b"\xff\0",
        ],
    )
    def test_strange_headers(self, header: bytes) -> None:
        data = b"\x93NUMPY\1\0" + len(header).to_bytes(2, "little") + header + bytes(24)
        assert kinds(NPY, data) == ["structure"]

    def test_shape_beyond_all_memory(self) -> None:
        header = b"{'descr': '<f8', 'fortran_order': False, 'shape': (9223372036854775807, 9), }"
        data = b"\x93NUMPY\1\0" + len(header).to_bytes(2, "little") + header + bytes(24)
        assert kinds(NPY, data) == ["truncated"]

    def test_random_damage_never_raises(self) -> None:
        assert noticed_damages(NPY, saved(numpy.zeros(4, RECORD)), 3000, seed=1) > 1000


class TestNumpyArchive:
    @pytest.mark.parametrize("compressed", [False, True])
    def test_healthy_and_cut_anywhere(self, compressed: bool) -> None:
        data = archived(compressed, x=numpy.arange(20), y=numpy.ones((3, 2)), text=numpy.array("abc"))
        assert kinds(NPZ, data) == []
        assert checked(NPZ, data).records == 3
        assert unnoticed_cuts(NPZ, data) == []

    def test_changed_values(self) -> None:
        data = archived(x=numpy.arange(20))
        start = data.index(b"\x93NUMPY")
        assert unnoticed_flips(NPZ, data, start, start + 128 + 160) == []

    def test_numbered_arrays_need_not_be_alike(self) -> None:
        file = io.BytesIO()
        numpy.savez(file, numpy.ones(3), numpy.ones(3), numpy.arange(3))
        assert all(len(trait.values) == 1 for trait in checked(NPZ, file.getvalue()).traits)

    def test_numbers_that_are_not_finite_name_the_array(self) -> None:
        (flaw,) = flaws(NPZ, archived(True, x=numpy.ones(3), y=numpy.array([1, numpy.inf])))
        assert (flaw.kind, flaw.place.member) == ("not-finite", "y.npy")


def stored(path: Path, **options: Any) -> bytes:
    """A file with one of everything."""
    with h5py.File(path, "w", **options) as file:
        file["scalar"] = 3.5
        file["floats"] = numpy.arange(12.0).reshape(3, 4)
        file["text"] = ["a", "bcd"]
        file["one text"] = "text"
        file["none"] = h5py.Empty("f4")
        file["no rows"] = numpy.zeros((0, 3))
        file["records"] = numpy.zeros(2, [("x", "<f4"), ("pair", "<i2", (2, 3))])
        file["enum"] = numpy.zeros(2, h5py.enum_dtype({"A": 0, "B": 1}))
        file["bool"] = numpy.ones(2, bool)
        ragged = file.create_dataset("ragged", (2,), h5py.vlen_dtype(numpy.float32))
        ragged[0], ragged[1] = [1, 2, 3], [4]
        file["references"] = numpy.array([file["scalar"].ref], h5py.ref_dtype)
        file.create_dataset("never written", (4, 4), "f4")
        file.create_dataset("chunks never written", (1 << 40,), "f4", chunks=(1024,))
        file.create_dataset("growing", (3, 2), "i8", maxshape=(None, 2))[:] = 1
        group = file.create_group("group/inner")
        group["again"] = file["floats"]
        group["loop"] = file["group"]
        group["soft"] = h5py.SoftLink("/floats")
        group["dangling"] = h5py.SoftLink("/nowhere")
        file["type"] = numpy.dtype("<f8")
        file.attrs["model_config"] = "{}" * 100
        group.attrs["numbers"] = numpy.arange(3)
    return path.read_bytes()


FILTERS: dict[str, dict[str, Any]] = {
    "chunks": {"chunks": (2, 3)},
    "gzip": {"compression": "gzip"},
    "lzf": {"compression": "lzf"},
    "shuffle and checksum": {"shuffle": True, "fletcher32": True, "compression": "gzip", "chunks": (5, 2)},
    "compact": {"chunks": None},
    "filled": {"fillvalue": 3, "chunks": (2, 2)},
}


class TestHdf5:
    @pytest.mark.parametrize(
        "options",
        [{}, {"libver": "latest"}, {"libver": "earliest"}, {"userblock_size": 512}, {"track_order": True}],
        ids=str,
    )
    def test_healthy_and_cut_anywhere(self, tmp_path: Path, options: dict[str, Any]) -> None:
        data = stored(tmp_path / "a.h5", **options)
        found = checked(HDF5, data)
        assert found.flaws == ()
        assert found.records == 14
        assert unnoticed_cuts(HDF5, data) == []

    @pytest.mark.parametrize("name", FILTERS)
    @pytest.mark.parametrize("dtype", ["<f4", ">i2", "u1"])
    def test_filters_and_layouts(self, tmp_path: Path, name: str, dtype: str) -> None:
        with h5py.File(tmp_path / "a.h5", "w") as file:
            file.create_dataset("x", data=numpy.arange(60).reshape(12, 5).astype(dtype), **FILTERS[name])
        assert kinds(HDF5, (tmp_path / "a.h5").read_bytes()) == []

    def test_checksums_of_chunks(self, tmp_path: Path) -> None:
        with h5py.File(tmp_path / "a.h5", "w") as file:
            file.create_dataset("x", data=numpy.arange(30, dtype="u1") + 100, fletcher32=True, chunks=(30,))
        data = (tmp_path / "a.h5").read_bytes()
        start = data.index(bytes(range(100, 130)))
        assert unnoticed_flips(HDF5, data, start, start + 30) == []
        damaged = bytearray(data)
        damaged[start + 5] ^= 1
        (flaw,) = flaws(HDF5, bytes(damaged))
        assert (flaw.kind, flaw.place.member) == ("checksum", "/x")

    def test_numbers_that_are_not_finite(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(hdf5_values, "BLOCK", 100)
        values = numpy.zeros((9, 10, 2), "f4")
        values[5, 7, 1] = values[8, 0, 0] = numpy.nan
        for options in ({}, {"chunks": (2, 3, 2)}, {"chunks": (1, 1, 1)}):
            with h5py.File(tmp_path / "a.h5", "w") as file:
                file.create_dataset("group/x", data=values, **options)
            (flaw,) = flaws(HDF5, (tmp_path / "a.h5").read_bytes())
            assert flaw.place.member == "/group/x"
            assert flaw.reason == "2 of its numbers are NaN or infinite, the first at [5, 7, 1]"

    def test_lengths_of_what_belongs_together(self, tmp_path: Path) -> None:
        with h5py.File(tmp_path / "a.h5", "w") as file:
            file["x_train"], file["y_train"] = numpy.zeros((9, 2)), numpy.zeros(8)
            file["x"], file["y"] = numpy.zeros(5), numpy.zeros(6)
        (flaw,) = flaws(HDF5, (tmp_path / "a.h5").read_bytes())
        assert (flaw.kind, flaw.severity, flaw.place.member) == ("label", "warning", "y_train")

    def test_other_files_are_not_opened(self, tmp_path: Path) -> None:
        with h5py.File(tmp_path / "a.h5", "w") as file:
            file["beside"] = h5py.ExternalLink("b.h5", "/x")
            file["outside"] = h5py.ExternalLink("/etc/b.h5", "/x")
            file.create_dataset("values", (4,), "f4", external=[("/etc/passwd", 0, 16)])
            layout = h5py.VirtualLayout((3,), "f4")
            layout[:] = h5py.VirtualSource("b.h5", "x", (3,))
            file.create_virtual_dataset("virtual", layout)
        found = {
            flaw.place.member: (flaw.kind, flaw.severity) for flaw in flaws(HDF5, (tmp_path / "a.h5").read_bytes())
        }
        assert found == {
            "/beside": ("hostile", "warning"),
            "/outside": ("hostile", "error"),
            "/values": ("hostile", "error"),
            "/virtual": ("unsupported", "note"),
        }

    def test_not_an_hdf5_file(self) -> None:
        assert kinds(HDF5, b"hello world" * 100) == ["magic"]
        assert kinds(HDF5, bytes(1000)) == ["truncated"]

    def test_checksums_of_newer_metadata(self, tmp_path: Path) -> None:
        with h5py.File(tmp_path / "a.h5", "w", libver="latest") as file:
            file["x"] = numpy.arange(3.0)
        data = (tmp_path / "a.h5").read_bytes()
        start = data.index(b"OHDR")
        assert unnoticed_flips(HDF5, data, start, start + 40) == []

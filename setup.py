"""Builds the capture agent, the fence and what passes over training data, plain C libraries without Python inside,
where a compiler is at hand."""

import os
from glob import glob

from setuptools import Extension, setup
from setuptools.command.build_ext import build_ext

# Thread-local memory of theirs lies in every thread from its start: none is allocated when it is first used, which is a
# moment when there may be no memory left.
PRELOADED = ["-std=gnu11", "-O2", "-g", "-fvisibility=hidden", "-ftls-model=initial-exec", "-Wall", "-Wextra"]


class BuildLibraries(build_ext):
    """They are preloaded or opened, not imported: their file names carry no Python version."""

    def get_ext_filename(self, fullname: str) -> str:
        return os.path.join(*fullname.split(".")) + ".so"


setup(
    cmdclass={"build_ext": BuildLibraries},
    ext_modules=[
        Extension(
            "faultlens.agent.libfaultlens_agent",
            sources=sorted(glob("src/faultlens/agent/*.c")),
            depends=sorted(glob("src/faultlens/agent/*.h")),
            extra_compile_args=PRELOADED,
            extra_link_args=["-ldl", "-lpthread", "-Wl,-z,now"],
            optional=True,  # without a compiler the tracer takes over
        ),
        Extension(
            "faultlens.guard_alloc.libfaultlens_fence",
            sources=["src/faultlens/guard_alloc/fence.c"],
            depends=["src/faultlens/guard_alloc/fence.h"],
            extra_compile_args=PRELOADED,
            extra_link_args=["-ldl", "-lpthread", "-Wl,-z,now"],
            optional=True,  # without a compiler nothing is fenced
        ),
        Extension(
            "faultlens.data.native.libfaultlens_records",
            sources=["src/faultlens/data/native/records.c"],
            depends=[f"src/faultlens/data/native/{name}.h" for name in ("crc32c", "example", "records")],
            extra_compile_args=["-std=gnu11", "-O3", "-g", "-fvisibility=hidden", "-Wall", "-Wextra"],
            optional=True,  # without a compiler Python does it, slowly
        ),
        Extension(
            "faultlens.data.native.libfaultlens_images",
            sources=["src/faultlens/data/native/jpeg_data.c"],
            extra_compile_args=["-std=gnu11", "-O3", "-g", "-fvisibility=hidden", "-Wall", "-Wextra"],
            optional=True,  # the same
        ),
    ],
)

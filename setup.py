"""Builds the capture agent, a plain C library without Python inside, where a compiler is at hand."""

import os

from setuptools import Extension, setup
from setuptools.command.build_ext import build_ext


class BuildAgent(build_ext):
    """The agent is preloaded, not imported: its file name carries no Python version."""

    def get_ext_filename(self, fullname: str) -> str:
        return os.path.join(*fullname.split(".")) + ".so"


setup(
    cmdclass={"build_ext": BuildAgent},
    ext_modules=[
        Extension(
            "faultlens.capture.agent.libfaultlens_agent",
            sources=["src/faultlens/capture/agent/agent.c", "src/faultlens/capture/agent/inside.c"],
            depends=["src/faultlens/capture/agent/agent.h", "src/faultlens/capture/agent/inside.h"],
            extra_compile_args=["-std=gnu11", "-O2", "-g", "-fvisibility=hidden", "-Wall", "-Wextra"],
            extra_link_args=["-ldl", "-lpthread", "-Wl,-z,now"],
            optional=True,  # without a compiler the tracer takes over
        )
    ],
)

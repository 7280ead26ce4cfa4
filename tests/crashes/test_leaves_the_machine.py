"""Nothing leaves the machine: the verbs open no connection, nor ask for the address of a name."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

# Every way out of a process goes through one of these; connections to local sockets are no way out.
WITNESS = r"""
#define _GNU_SOURCE
#include <dlfcn.h>
#include <netdb.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>

static void note(const char *what) {
  FILE *file = fopen(getenv("WITNESS"), "a");
  if (file) { fprintf(file, "%s\n", what); fclose(file); }
}
int connect(int descriptor, const struct sockaddr *address, socklen_t size) {
  if (address && address->sa_family != AF_UNIX) note("connect");
  return ((int (*)(int, const struct sockaddr *, socklen_t))dlsym(RTLD_NEXT, "connect"))(descriptor, address, size);
}
ssize_t sendto(int descriptor, const void *data, size_t length, int flags, const struct sockaddr *to, socklen_t size) {
  if (to && to->sa_family != AF_UNIX && to->sa_family != AF_NETLINK) note("sendto");
  return ((ssize_t (*)(int, const void *, size_t, int, const struct sockaddr *, socklen_t))dlsym(RTLD_NEXT, "sendto"))(
      descriptor, data, length, flags, to, size);
}
int getaddrinfo(const char *name, const char *service, const struct addrinfo *hints, struct addrinfo **found) {
  note("getaddrinfo");
  return ((int (*)(const char *, const char *, const struct addrinfo *, struct addrinfo **))dlsym(
      RTLD_NEXT, "getaddrinfo"))(name, service, hints, found);
}
"""
# The doctor would start itself anew without the witness if it were called by its name.
MAIN = "import sys; from faultlens.cli import main; words = sys.argv[1:]; del sys.argv[1:]; sys.exit(main(words))"
ASKS = "import socket\ntry:\n    socket.create_connection(('127.0.0.1', 9), 1)\nexcept OSError:\n    pass\n"


@pytest.fixture(scope="module")
def witness(tmp_path_factory: pytest.TempPathFactory) -> Path:
    if not shutil.which("gcc"):
        pytest.skip("needs gcc")
    folder = tmp_path_factory.mktemp("witness")
    (folder / "witness.c").write_text(WITNESS)
    command = ["gcc", "-w", "-shared", "-fPIC", "-o", folder / "witness.so", folder / "witness.c", "-ldl"]
    subprocess.run(command, check=True, timeout=60)
    return folder / "witness.so"


def test_no_verb_opens_a_connection(witness: Path, tmp_path: Path) -> None:
    said = tmp_path / "said"
    variables = {
        **os.environ,
        "FAULTLENS_HOME": str(tmp_path / "home"),
        "LD_PRELOAD": str(witness),
        "WITNESS": str(said),
    }

    def start(*words: str) -> int:
        done = subprocess.run(words, env=variables, cwd=tmp_path, capture_output=True, timeout=120)
        return done.returncode

    assert start(sys.executable, "-c", ASKS) == 0
    assert said.read_text().split() == ["getaddrinfo", "connect"]  # it would be seen
    said.unlink()
    (tmp_path / "crash.py").write_text("import ctypes\nctypes.string_at(0)\n")
    (tmp_path / "data.csv").write_text("a,b\n1,2\n")
    verbs = ("run", "--", sys.executable, "crash.py"), ("show",), ("show", "--list"), ("repro", "--seconds", "0")
    for verb in (*verbs, ("doctor", "--python", sys.executable), ("scan", "data.csv"), ("causes",)):
        start(sys.executable, "-c", MAIN, *verb)
        assert not said.exists(), (verb, said.read_text())
    assert len(list((tmp_path / "home").glob("*/report.json"))) == 1

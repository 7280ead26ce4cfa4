"""The programs of benchmarks/healthy.py: they end well, with an exit status, or with a plain exception."""

# ruff: noqa: E501 (programs of one line each)

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

SNIPPET_SECONDS, SUITE_SECONDS = 60, 180


@dataclass(frozen=True)
class Healthy:
    group: str
    name: str
    words: Sequence[str]
    seconds: int = SUITE_SECONDS
    allowed: str = ""  # a pattern of causes that are right, because the program runs into a limit on purpose


# Their children die natively on purpose, and what is said of them is right.
CRASHING = {"test_faulthandler", "test_capi", "test_concurrent_futures", "test_subprocess", "test_crashers", "test_gdb"}
# Minutes of CPU time, or a network, a display or a terminal.
COSTLY = set(
    "test_asyncio test_multiprocessing_fork test_multiprocessing_forkserver test_multiprocessing_spawn test_tools "
    "test_compileall test_zipfile64 test_largefile test_bigmem test_venv test_ensurepip test_distutils test_lib2to3 "
    "test_idle test_tk test_ttk_guionly test_ttk_textonly test_tcl test_turtle test_socket test_regrtest "
    "test_peg_generator test_dtrace test_freeze test_mailbox test_ossaudiodev test_urllib2net test_smtpnet test_io "
    "test_pickle test_decimal test_embed test_cppext test_importlib test_interpreters".split()
)

LEFT_OUT = f"""\
Left out of CPython's tests: {", ".join(sorted(CRASHING))}, whose children crash natively on purpose, so that a native
verdict is right; and those that take minutes or need a network or a display ({len(COSTLY)} of them).
"""


def all_of(python: Path) -> list[Healthy]:
    """Every program there is for this interpreter, each group in a fixed order."""
    groups = [_snippets(python), _cpython(python), *(_suites(python)), _tensorflow(python)]
    return [program for group in groups for program in group]


def spread(programs: Sequence[Healthy], count: int) -> list[Healthy]:
    """So many of them, evenly spread."""
    if count >= len(programs):
        return list(programs)
    return [programs[index * len(programs) // count] for index in range(count)]


# ------------------------------------------------------------------------------------------------ test suites


def _cpython(python: Path) -> list[Healthy]:
    interpreter = python.resolve()
    folder = next(iter(sorted(interpreter.parents[1].glob(f"lib/{interpreter.name}*/test"))), None)
    if folder is None:
        folder = next(iter(sorted(interpreter.parents[1].glob("lib/python3*/test"))), Path("/nonexistent"))
    names = {path.stem for path in folder.glob("test_*.py")}
    names |= {path.name for path in folder.glob("test_*") if (path / "__init__.py").exists()}
    wanted = sorted(names - CRASHING - COSTLY)
    return [Healthy("CPython's tests", name, [str(interpreter), "-m", "test", "-q", name]) for name in wanted]


SUITES = {
    "numpy": "test_*.py",
    "h5py": "test_*.py",
    "pyarrow": "test_*.py",
    "joblib": "test_*.py",
    "greenlet": "test_*.py",
    "opt_einsum": "test_*.py",
    "jsonschema": "test_*.py",
    "mypy": "test*.py",
    "referencing": "test_*.py",
    "tornado": "*_test.py",
    "keras": "*_test.py",
}


def _suites(python: Path) -> Iterator[list[Healthy]]:
    """One file of a package's tests each. They need pytest in the same environment."""
    packages = next(iter(sorted(python.parents[1].glob("lib/python3*/site-packages"))), Path("/nonexistent"))
    if not (packages / "pytest").exists():
        return
    options = ["-m", "pytest", "-q", "-p", "no:cacheprovider", "-p", "no:randomly"]
    for package, pattern in SUITES.items():
        yield [
            Healthy(f"{package}'s tests", str(path.relative_to(packages)), [str(python), *options, str(path)])
            for path in sorted(packages.joinpath(package).rglob(pattern))
        ]


# --------------------------------------------------------------------------------------------------- snippets

EXCEPTIONS = [
    "ArithmeticError('a')", "AssertionError('not so')", "AttributeError('x')", "BufferError('b')", "EOFError()",
    "FileNotFoundError(2, 'No such file', 'data.csv')", "FloatingPointError()", "ImportError('no module')", "IndexError(3)",
    "InterruptedError()", "IsADirectoryError(21, 'x', '/')", "KeyError('loss')", "KeyboardInterrupt()", "LookupError()",
    "MemoryError()", "ModuleNotFoundError('m')", "NameError('n')", "NotImplementedError()", "OSError(5, 'I/O error')",
    "OverflowError()", "PermissionError(13, 'denied', '/x')", "ProcessLookupError()", "RecursionError()", "ReferenceError()",
    "RuntimeError('Segmentation fault')", "RuntimeError('core dumped')", "RuntimeError('double free or corruption')",
    "StopAsyncIteration()", "StopIteration()", "SyntaxError('s')", "SystemError('s')", "TimeoutError()", "TypeError('t')",
    "UnboundLocalError()", "UnicodeError()", "ValueError('shapes do not match')", "ZeroDivisionError()", "BrokenPipeError()",
    "ChildProcessError()", "ConnectionRefusedError(111, 'refused')", "ConnectionResetError()", "GeneratorExit()",
    "BaseException('b')", "ExceptionGroup('g', [ValueError(1)])", "Warning('w')", "UserWarning('u')",
]  # fmt: skip

SCRIPTS = {
    "prints": "print('hello')",
    "an empty program": "",
    "a syntax error": "print(",
    "indentation": "if 1:\nprint(2)",
    "recursion without end": "def f(): f()\nf()",
    "an index": "[1, 2][5]",
    "a key": "{}['loss']",
    "a division": "1 / 0",
    "an attribute of None": "None.shape",
    "a module that is not there": "import no_such_module",
    "a file that is not there": "open('/no/such/file')",
    "a folder opened as a file": "open('/')",
    "bad JSON": "import json\njson.loads('{')",
    "bad text": "b'\\xff'.decode()",
    "bad numbers": "int('twelve')",
    "a list too large": "[0] * (1 << 62)",
    "an assertion": "assert 1 == 2, 'not so'",
    "arguments that are missing": "import argparse\np = argparse.ArgumentParser()\np.add_argument('x')\np.parse_args([])",
    "arguments unknown": "import argparse\nargparse.ArgumentParser().parse_args(['--nope'])",
    "help": "import argparse\nargparse.ArgumentParser().parse_args(['--help'])",
    "a child that fails": "import subprocess\nsubprocess.run(['false'], check=True)",
    "a child that is not there": "import subprocess\nsubprocess.run(['no-such-command'])",
    "a child that fails, taken": "import subprocess\nprint(subprocess.run(['sh', '-c', 'exit 3']).returncode)",
    "a child that is terminated": "import subprocess\np = subprocess.Popen(['sleep', '9'])\np.terminate()\nprint(p.wait())",
    "a child that is killed": "import subprocess\np = subprocess.Popen(['sleep', '9'])\np.kill()\np.wait()\nraise SystemExit(1)",
    "a child that takes too long": "import subprocess\nsubprocess.run(['sleep', '9'], timeout=0.1)",
    "a shell pipeline": "import os\nraise SystemExit(os.system('yes | head -n 2') >> 8)",
    "a thread that raises": "import threading\nt = threading.Thread(target=lambda: 1 / 0)\nt.start()\nt.join()",
    "many threads": "import threading\nfor i in range(50): threading.Thread(target=print, args=(i,)).start()",
    "a daemon thread at exit": "import threading, time\nthreading.Thread(target=time.sleep, args=(9,), daemon=True).start()",
    "a pool": "from multiprocessing import Pool\nwith Pool(2) as pool: print(pool.map(abs, [-1, -2]))",
    "a pool that raises": "from multiprocessing import Pool\nwith Pool(2) as pool: print(pool.map(len, [1]))",
    "a process that exits": "import multiprocessing, sys\np = multiprocessing.Process(target=sys.exit, args=(3,))\np.start()\np.join()\nprint(p.exitcode)",
    "fork": "import os\npid = os.fork()\nos._exit(4) if pid == 0 else print(os.waitpid(pid, 0))",
    "futures": "from concurrent.futures import ThreadPoolExecutor\nThreadPoolExecutor().submit(lambda: 1 / 0).result()",
    "asyncio": "import asyncio\nasync def main(): raise ValueError\nasyncio.run(main())",
    "a time limit of asyncio": "import asyncio\nasyncio.run(asyncio.wait_for(asyncio.sleep(9), 0.1))",
    "a warning as an error": "import warnings\nwarnings.simplefilter('error')\nwarnings.warn('w')",
    "a signal handled": "import os, signal\nsignal.signal(signal.SIGTERM, lambda *_: print('told'))\nos.kill(os.getpid(), signal.SIGTERM)",
    "an alarm handled": "import signal, time\nsignal.signal(signal.SIGALRM, lambda *_: 1 / 0)\nsignal.setitimer(signal.ITIMER_REAL, 0.1)\ntime.sleep(5)",
    "an interrupt": "import os, signal\nos.kill(os.getpid(), signal.SIGINT)\nimport time; time.sleep(1)",
    "an interrupt, taken": "import os, signal, time\ntry:\n  os.kill(os.getpid(), signal.SIGINT)\n  time.sleep(1)\nexcept KeyboardInterrupt:\n  raise SystemExit(130)",
    "exit handlers": "import atexit\natexit.register(print, 'bye')\nraise SystemExit(5)",
    "an exit handler that raises": "import atexit\natexit.register(lambda: 1 / 0)",
    "an exception in a destructor": "class A:\n  def __del__(self): 1 / 0\na = A()",
    "a chain of exceptions": "try:\n  1 / 0\nexcept ZeroDivisionError as e:\n  raise RuntimeError('both') from e",
    "a test that fails": "import unittest\nclass T(unittest.TestCase):\n  def test(self): self.fail()\nunittest.main(argv=['x'])",
    "faulthandler on": "import faulthandler\nfaulthandler.enable()\n1 / 0",
    "faulthandler shows stacks": "import faulthandler\nfaulthandler.dump_traceback()",
    "a library opened": "import ctypes\nprint(ctypes.CDLL(None).abs(-3))",
    "a library that is not there": "import ctypes\nctypes.CDLL('libnothing.so.1')",
    "memory mapped": "import mmap\nm = mmap.mmap(-1, 4096)\nm[0] = 1\nm.close()",
    "a closed mapping": "import mmap\nm = mmap.mmap(-1, 4096)\nm.close()\nm[0]",
    "sockets": "import socket\nsocket.create_connection(('127.0.0.1', 1), 1)",
    "a database": "import sqlite3\nsqlite3.connect(':memory:').execute('select * from nothing')",
    "an archive": "import io, zipfile\nzipfile.ZipFile(io.BytesIO(b'no'))",
    "a pickle": "import pickle\npickle.loads(b'no')",
    "XML": "import xml.etree.ElementTree as e\ne.fromstring('<a>')",
    "reads its input": "import sys\nprint(len(sys.stdin.read()))",
    "a long output": "for i in range(20000): print(i)",
    "the word Segmentation fault": "import sys\nprint('Segmentation fault (core dumped)', file=sys.stderr)",
    "words of a failed check": "import sys\nprint('F tensor.cc:1 Check failed: a == b (1 vs. 2)', file=sys.stderr)\nsys.exit(1)",
    "words of the C library": "import sys\nprint('free(): invalid pointer', file=sys.stderr)\nsys.exit(1)",
    "words of bad_alloc": "import sys\nprint(\"terminate called after throwing an instance of 'std::bad_alloc'\", file=sys.stderr)\nsys.exit(2)",
    "words of a kill": "import sys\nprint('Killed', file=sys.stderr)\nsys.exit(137)",
    "NumPy: shapes": "import numpy\nnumpy.ones(3) @ numpy.ones(4)",
    "NumPy: an axis": "import numpy\nnumpy.ones(3).sum(axis=4)",
    "NumPy: an index": "import numpy\nnumpy.ones(3)[9]",
    "NumPy: a cast": "import numpy\nnumpy.array(['a']).astype(int)",
    "NumPy: singular": "import numpy\nnumpy.linalg.inv(numpy.zeros((2, 2)))",
    "NumPy: division": "import numpy\nprint(numpy.ones(2) / 0)",
    "NumPy: a file": "import numpy\nnumpy.load('nothing.npy')",
    "NumPy works": "import numpy\nprint(numpy.linalg.svd(numpy.random.rand(60, 60))[1][0])",
    "h5py: a file": "import h5py\nh5py.File('nothing.h5')",
    "h5py works": "import h5py, numpy\nwith h5py.File('a.h5', 'w') as f: f['x'] = numpy.ones(9)",
}  # fmt: skip

# Bytes that are not what was expected are a cause of their own.
ALLOWED = {
    "a list too large": "oversized-allocation",
    **dict.fromkeys(("bad JSON", "bad text", "a pickle", "an archive", "XML", "an image"), "corrupt-input"),
}


def _snippets(python: Path) -> list[Healthy]:
    def made(name: str, code: str, *words: str) -> Healthy:
        command = [str(python), *words] if words else [str(python), "-c", code]
        return Healthy("scripts", name, command, SNIPPET_SECONDS, ALLOWED.get(name, ""))

    exits = [made(f"exit status {n}", f"raise SystemExit({n})") for n in (0, 1, 2, 3, 77, 126, 127, 134, 137, 139, 255)]
    at_once = [made(f"_exit({n})", f"import os; os._exit({n})") for n in (0, 1, 6, 134, 139)]
    raised = [made(f"raises {name}", f"def work():\n  raise {name}\nwork()") for name in EXCEPTIONS]
    scripts = [made(name, code) for name, code in SCRIPTS.items()]
    modules = "this calendar platform sysconfig dis tokenize ast json.tool timeit trace pdb no_such_module"
    run = [made(f"-m {name}", "", "-m", name) for name in modules.split()]
    return [*exits, *at_once, *raised, *scripts, *run]


TENSORFLOW = {
    "matmul": "tf.matmul(tf.ones([2, 3]), tf.ones([3, 2]))",
    "shapes": "tf.matmul(tf.ones([2, 3]), tf.ones([4, 5]))",
    "types": "tf.add(tf.ones([2]), tf.ones([2], tf.int32))",
    "reshape": "tf.reshape(tf.ones([6]), [4])",
    "gather": "tf.gather([1, 2], 7)",
    "a file": "tf.io.read_file('nothing').numpy()",
    "an image": "tf.io.decode_png(b'no')",
    "a record": "list(tf.data.TFRecordDataset('nothing'))",
    "a pipeline": "list(tf.data.Dataset.range(9).map(lambda x: x + 1).batch(3))",
    "a generator that raises": "list(tf.data.Dataset.from_generator(lambda: 1 / 0, tf.int32))",
    "py_function raises": "tf.py_function(lambda: 1 / 0, [], tf.int32)",
    "a traced error": "tf.function(lambda x: tf.matmul(x, x))(tf.ones([2, 3]))",
    "an assertion": "tf.debugging.assert_equal(1, 2)",
    "not finite": "tf.debugging.check_numerics(tf.constant(float('nan')), 'nan')",
    "a saved model": "tf.saved_model.load('nothing')",
    "a checkpoint": "tf.train.Checkpoint().read('nothing').assert_consumed()",
    "a Keras file": "tf.keras.models.load_model('nothing.keras')",
    "fit": "m = tf.keras.Sequential([tf.keras.layers.Dense(1)])\nm.compile('sgd', 'mse')\nm.fit(tf.ones([8, 2]), tf.ones([8, 1]), verbose=0)",
    "fit with wrong shapes": "m = tf.keras.Sequential([tf.keras.Input([3]), tf.keras.layers.Dense(1)])\nm.compile('sgd', 'mse')\nm.fit(tf.ones([8, 2]), tf.ones([8, 1]))",
    "a device": "tf.device('/gpu:9').__enter__()\ntf.ones([2]) + 1",
    "a variable": "tf.Variable([1.0]).assign([1.0, 2.0])",
    "exit after work": "tf.ones([9]) + 1\nraise SystemExit(3)",
}  # fmt: skip


def _tensorflow(python: Path) -> list[Healthy]:
    if not list(python.parents[1].glob("lib/python3*/site-packages/tensorflow")):
        return []
    return [
        Healthy(
            "TensorFlow",
            name,
            [str(python), "-c", f"import tensorflow as tf\n{code}"],
            SNIPPET_SECONDS,
            ALLOWED.get(name, ""),
        )
        for name, code in TENSORFLOW.items()
    ]

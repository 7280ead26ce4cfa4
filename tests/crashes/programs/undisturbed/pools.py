"""Pools whose workers crash: the program sees it, and goes on."""

import concurrent.futures
import ctypes
import multiprocessing
import os
import signal
import subprocess
import sys


def crash() -> None:
    ctypes.string_at(8)


def main() -> None:
    for method in ("fork", "spawn", "forkserver"):
        context = multiprocessing.get_context(method)
        with concurrent.futures.ProcessPoolExecutor(2, mp_context=context) as pool:
            try:
                pool.submit(crash).result()
            except concurrent.futures.process.BrokenProcessPool:
                print(method, "pool broken")
        process = context.Process(target=crash)
        process.start()
        process.join()
        print(method, process.exitcode)
    print(subprocess.run([sys.executable, "-c", "import ctypes; ctypes.string_at(8)"]).returncode)
    print(subprocess.run(["sh", "-c", "kill -ABRT $$"]).returncode)
    print(os.waitstatus_to_exitcode(os.system(f"{sys.executable} -c 'import os; os.abort()'")))
    print([signal.getsignal(each) for each in (signal.SIGSEGV, signal.SIGINT, signal.SIGPIPE)])
    sys.stdout.flush()
    os._exit(3)


if __name__ == "__main__":
    main()

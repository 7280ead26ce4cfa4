"""`python on_a_lesser_kernel.py WITHOUT WORDS…`: faultlens, where the kernel refuses what WITHOUT (JSON) names."""

from __future__ import annotations

import json
import sys

from faultlens.sandbox.guest import seccomp

REFUSED = {"namespaces": (272, 1), "landlock": (444, 38)}  # unshare: EPERM, landlock_create_ruleset: ENOSYS


def forbid(names: list[str]) -> None:
    rules = [
        (REFUSED[name][0], [(seccomp.RETURN, 0, 0, seccomp.SECCOMP_RET_ERRNO | REFUSED[name][1])]) for name in names
    ]
    seccomp.install(seccomp.program_of(rules))


if __name__ == "__main__":
    from faultlens.cli import main

    forbid(json.loads(sys.argv[1]))
    sys.exit(main(sys.argv[2:]))

"""How a limit of the shell, the user or the control group is raised: the commands to type."""

from __future__ import annotations

from faultlens.doctor.check import fix
from faultlens.records.crash import Limit
from faultlens.records.diagnosis import Fix
from faultlens.system.cgroup import Room


def raise_rlimit(limit: Limit, letter: str, option: str, enough: int | None, unit: int = 1) -> Fix:
    """`letter` is ulimit's, `option` prlimit's, `unit` what ulimit counts in; `enough` None is unlimited."""
    value = "unlimited" if enough is None else str(-(-enough // unit))
    if limit.hard is None or (enough is not None and enough <= limit.hard):
        return fix("raise the limit in the shell that starts the program", f"ulimit -S -{letter} {value}")
    return fix(
        "raise the limit of this shell, as root",
        f"sudo prlimit --pid $$ --{option}={'unlimited' if enough is None else enough}",
        "for good: /etc/security/limits.conf, Limit… of the service, or what was asked of the batch system",
        safe=False,
    )


def raise_group(room: Room, enough: int, option: str) -> Fix:
    """`option` is that of `docker run`."""
    return fix(
        "raise the limit of the control group",
        f"echo {enough} | sudo tee {room.where}",
        f"for a container: `docker run {option}`",
        safe=False,
    )

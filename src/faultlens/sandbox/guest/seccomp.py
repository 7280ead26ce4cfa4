"""Filters of system calls: what neither Landlock nor namespaces hold, and what they would where they are missing."""

from __future__ import annotations

import ctypes
import errno
import platform
import stat
import struct
from collections.abc import Iterable, Sequence

from .kernel import PR_SET_NO_NEW_PRIVS, checked, libc, prctl

PR_SET_SECCOMP, SECCOMP_MODE_FILTER = 22, 2
SECCOMP_RET_TRAP, SECCOMP_RET_ERRNO, SECCOMP_RET_ALLOW = 0x00030000, 0x00050000, 0x7FFF0000
REFUSE, NO_SUCH_CALL = SECCOMP_RET_ERRNO | errno.EPERM, SECCOMP_RET_ERRNO | errno.ENOSYS
LOAD, AND, RETURN = 0x20, 0x54, 0x06  # BPF_LD|W|ABS, BPF_ALU|AND|K, BPF_RET|K
EQUAL, AT_LEAST, ANY_BIT = 0x15, 0x35, 0x45  # BPF_JMP with JEQ, JGE, JSET
NUMBER, ARCHITECTURE, ARGUMENTS = 0, 4, 16  # offsets in struct seccomp_data
AUDIT_ARCH_X86_64, X32_CALLS = 0xC000003E, 0x40000000

Step = tuple[int, int, int, int]  # code, jump if true, jump if false, value
Rule = tuple[int, list[Step]]  # the number of a call, and what decides about it

# asm/unistd_64.h. Nobody needs these who computes; each reaches beyond the process or into the kernel.
NEVER = {
    "mount": 165, "umount2": 166, "pivot_root": 155, "chroot": 161, "open_tree": 428, "move_mount": 429, "fsopen": 430,
    "fsconfig": 431, "fsmount": 432, "fspick": 433, "mount_setattr": 442, "open_tree_attr": 467, "unshare": 272,
    "setns": 308, "open_by_handle_at": 304, "io_uring_setup": 425, "io_uring_enter": 426, "io_uring_register": 427,
    "bpf": 321, "perf_event_open": 298, "add_key": 248, "request_key": 249, "keyctl": 250, "swapon": 167,
    "swapoff": 168, "reboot": 169, "sethostname": 170, "setdomainname": 171, "init_module": 175, "delete_module": 176,
    "finit_module": 313, "kexec_load": 246, "kexec_file_load": 320, "settimeofday": 164, "clock_settime": 227,
    "adjtimex": 159, "clock_adjtime": 305, "acct": 163, "quotactl": 179, "quotactl_fd": 443, "iopl": 172, "ioperm": 173,
    "vhangup": 153, "syslog": 103, "fanotify_init": 300,
}  # fmt: skip
ON_ATTRIBUTES = {
    "chmod": 90, "fchmod": 91, "fchmodat": 268, "fchmodat2": 452, "chown": 92, "fchown": 93, "lchown": 94,
    "fchownat": 260, "setxattr": 188, "lsetxattr": 189, "fsetxattr": 190, "setxattrat": 463, "removexattr": 197,
    "lremovexattr": 198, "fremovexattr": 199, "removexattrat": 466, "utime": 132, "utimes": 235, "futimesat": 261,
    "utimensat": 280, "file_setattr": 469,
}  # fmt: skip
BETWEEN_PROGRAMS = {"shmget": 29, "shmat": 30, "shmctl": 31, "semget": 64, "semctl": 66, "msgget": 68, "msgctl": 71,
                    "mq_open": 240, "mq_unlink": 241}  # fmt: skip
INTO_PROCESSES = {"ptrace": 101, "process_vm_readv": 310, "process_vm_writev": 311, "pidfd_getfd": 438, "kcmp": 312,
                  "process_madvise": 440}  # fmt: skip
OF_A_PROCESS = {"prlimit64": 302, "sched_setparam": 142, "sched_setscheduler": 144, "sched_setaffinity": 203,
                "sched_setattr": 314, "migrate_pages": 256, "move_pages": 279}  # fmt: skip
KILL, TKILL, TGKILL, RT_SIGQUEUEINFO, RT_TGSIGQUEUEINFO, PIDFD_SEND_SIGNAL = 62, 200, 234, 129, 297, 424
SOCKET, SOCKETPAIR, IOCTL, CLONE, CLONE3, MKNOD, MKNODAT, SETPRIORITY, IOPRIO_SET = (
    41,
    53,
    16,
    56,
    435,
    133,
    259,
    141,
    251,
)
AF_UNIX, SOCK_DGRAM, SOCK_TYPE_MASK = 1, 2, 0xF
PRIO_USER, IOPRIO_WHO_USER = 2, 3
TIOCSTI, TIOCLINUX, FS_IOC_SETFLAGS, FS_IOC_FSSETXATTR = 0x5412, 0x541C, 0x40086602, 0x401C5820
NEW_NAMESPACES = 0x7E020000  # CLONE_NEWNS, CGROUP, UTS, IPC, USER, PID, NET
EVERYBODY = 0xFFFFFFFF  # kill(-1)


def offered() -> bool:
    """Whether this kernel takes filters, and we have one for this CPU."""
    if platform.machine() != "x86_64":
        return False
    libc.prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, None, 0, 0)
    return ctypes.get_errno() == errno.EFAULT  # it would have read the filter


def install(program: bytes) -> None:
    """For this thread and all it starts."""
    buffer = ctypes.create_string_buffer(program, len(program))
    described = struct.pack("HxxxxxxP", len(program) // 8, ctypes.addressof(buffer))
    prctl(PR_SET_NO_NEW_PRIVS, 1)
    checked(libc.prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, described, 0, 0))


def rules(
    mounts: bool, network: bool, processes: bool, landlock: bool, signals: bool, spared: Sequence[int] = ()
) -> list[Rule]:
    """`mounts`, `network`, `processes`: namespaces of which it is part; `landlock`, `signals`: what Landlock holds;
    `spared`: processes that get no signals, where nobody else sees to that."""
    refused = list(NEVER.values())
    refused += [] if mounts else ON_ATTRIBUTES.values()
    refused += [] if network else [*BETWEEN_PROGRAMS.values(), SOCKET]
    refused += [] if processes or landlock else INTO_PROCESSES.values()
    refused += [] if processes or signals else [PIDFD_SEND_SIGNAL]
    made: list[Rule] = [(number, [_return(REFUSE)]) for number in refused]
    made.append((CLONE3, [_return(NO_SUCH_CALL)]))  # its flags cannot be seen; the C library turns to clone
    made.append((CLONE, refused_if(0, NEW_NAMESPACES, ANY_BIT)))
    # A socket with a name in the file system can be reached from every namespace.
    made += [(SOCKET, refused_if(0, AF_UNIX))] if network else []
    made.append((SOCKETPAIR, refused_if(1, SOCK_DGRAM, mask=SOCK_TYPE_MASK)))
    controls = (TIOCSTI, TIOCLINUX) if mounts else (TIOCSTI, TIOCLINUX, FS_IOC_SETFLAGS, FS_IOC_FSSETXATTR)
    made.append((IOCTL, refused_if(1, controls)))
    for number, argument in ((MKNOD, 1), (MKNODAT, 2)):
        made.append((number, refused_if(argument, (stat.S_IFCHR, stat.S_IFBLK), mask=0o170000)))
    if not processes:
        made += [(number, refused_unless(0, 0)) for number in OF_A_PROCESS.values()]
        for number, whole_user in ((SETPRIORITY, PRIO_USER), (IOPRIO_SET, IOPRIO_WHO_USER)):
            made.append((number, refused_if(0, whole_user)[:-1] + refused_unless(1, 0)))
    if not processes and not signals:  # who else there is cannot be known
        nobody = (EVERYBODY, *spared)
        made += [
            (number, refused_if(0, nobody)) for number in (KILL, TKILL, TGKILL, RT_SIGQUEUEINFO, RT_TGSIGQUEUEINFO)
        ]
    return made


def signals_only_to(own: int) -> list[Rule]:
    """A signal to any other process ends the one that sends it (SIGSYS), where Landlock would refuse it quietly."""
    to_itself = [_load(0), (EQUAL, 0, 1, own), _return(SECCOMP_RET_ALLOW)]
    asks = [_load(1), (EQUAL, 0, 1, 0), _return(SECCOMP_RET_ALLOW)]  # signal 0: whether a process is there
    decision: list[Step] = [*to_itself, *asks, _return(SECCOMP_RET_TRAP)]
    named = [(number, decision) for number in (KILL, TGKILL, RT_SIGQUEUEINFO, RT_TGSIGQUEUEINFO)]
    return [*named, (TKILL, [_return(SECCOMP_RET_TRAP)])]


def refused_if(argument: int, values: int | Sequence[int], code: int = EQUAL, mask: int = 0) -> list[Step]:
    wanted = [values] if isinstance(values, int) else values
    steps = [_load(argument), *([(AND, 0, 0, mask)] if mask else [])]
    for value in wanted:
        steps += [(code, 0, 1, value), _return(REFUSE)]
    return [*steps, _return(SECCOMP_RET_ALLOW)]


def refused_unless(argument: int, value: int, refusal: int = REFUSE) -> list[Step]:
    return [_load(argument), (EQUAL, 1, 0, value), _return(refusal), _return(SECCOMP_RET_ALLOW)]


def program_of(decided: Iterable[Rule]) -> bytes:
    """For the kernel. All other calls are allowed; those of other architectures, which have other numbers, are not."""
    steps: list[Step] = [
        (LOAD, 0, 0, ARCHITECTURE),
        (EQUAL, 1, 0, AUDIT_ARCH_X86_64),
        _return(REFUSE),
        (LOAD, 0, 0, NUMBER),
        (AT_LEAST, 0, 1, X32_CALLS),
        _return(REFUSE),
    ]
    for number, decision in decided:
        steps += [(EQUAL, 0, len(decision), number), *decision]
    steps.append(_return(SECCOMP_RET_ALLOW))
    return b"".join(struct.pack("HBBI", *step) for step in steps)


def _load(argument: int) -> Step:
    """Its lower half: these are numbers of 32 bits."""
    return LOAD, 0, 0, ARGUMENTS + 8 * argument


def _return(answer: int) -> Step:
    return RETURN, 0, 0, answer


def lineage(pid: int) -> list[int]:
    """This process and those above it, without the first of all."""
    found: list[int] = []
    while pid > 1 and len(found) < 32:
        found.append(pid)
        try:
            with open(f"/proc/{pid}/stat") as file:
                pid = int(file.read().rpartition(")")[2].split()[1])
        except (OSError, ValueError, IndexError):
            break
    return found

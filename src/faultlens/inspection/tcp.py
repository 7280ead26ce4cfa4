"""How many bytes a process has received and sent over TCP: the kernel counts them for each connection, and not in
/proc/PID/io. Asked by netlink (sock_diag(7)), which does not touch the sockets."""

from __future__ import annotations

import os
import re
import socket
from collections.abc import Iterator
from struct import Struct

NETLINK_SOCK_DIAG = 4
SOCK_DIAG_BY_FAMILY = 20
NLM_F_REQUEST, NLM_F_DUMP = 0x1, 0x300
NLMSG_ERROR, NLMSG_DONE = 2, 3
INET_DIAG_INFO = 2  # struct tcp_info
CARRIES_DATA = 1 << 1 | 1 << 4 | 1 << 5 | 1 << 8  # TCP_ESTABLISHED, FIN_WAIT1, FIN_WAIT2, CLOSE_WAIT
PATIENCE_S = 0.5

_HEADER = Struct("=IHHII")  # struct nlmsghdr
_REQUEST = Struct("=BBBxI48x")  # struct inet_diag_req_v2: family, protocol, extensions, states, any socket
_MESSAGE = Struct("=68xI")  # struct inet_diag_msg: its last member is the inode
_ATTRIBUTE = Struct("=HH")
_BYTES = Struct("=120xQQ")  # struct tcp_info: tcpi_bytes_acked, tcpi_bytes_received
_SOCKET = re.compile(r"socket:\[(\d+)\]")


def tcp_traffic(pid: int) -> tuple[int, int]:
    """Bytes received and sent over its open connections; 0 where the kernel does not tell."""
    inodes = _sockets(pid)
    if not inodes:
        return 0, 0
    try:
        found = [(received, sent) for inode, received, sent in _connections() if inode in inodes]
    except OSError:  # a kernel or a sandbox without it
        return 0, 0
    return sum(received for received, _ in found), sum(sent for _, sent in found)


def _sockets(pid: int) -> set[int]:
    found = set()
    try:
        for name in os.listdir(f"/proc/{pid}/fd"):
            try:
                match = _SOCKET.match(os.readlink(f"/proc/{pid}/fd/{name}"))
            except FileNotFoundError:  # closed meanwhile
                continue
            if match:
                found.add(int(match[1]))
    except OSError:
        return found
    return found


def _connections() -> Iterator[tuple[int, int, int]]:
    """Inode, bytes received and sent of every connection of this network namespace."""
    with socket.socket(socket.AF_NETLINK, socket.SOCK_RAW | socket.SOCK_CLOEXEC, NETLINK_SOCK_DIAG) as netlink:
        netlink.settimeout(PATIENCE_S)
        for family in (socket.AF_INET, socket.AF_INET6):
            request = _REQUEST.pack(family, socket.IPPROTO_TCP, 1 << (INET_DIAG_INFO - 1), CARRIES_DATA)
            length = _HEADER.size + len(request)
            netlink.send(_HEADER.pack(length, SOCK_DIAG_BY_FAMILY, NLM_F_REQUEST | NLM_F_DUMP, 0, 0) + request)
            yield from _answers(netlink)


def _answers(netlink: socket.socket) -> Iterator[tuple[int, int, int]]:
    while True:
        data = netlink.recv(1 << 16)
        while len(data) >= _HEADER.size:
            length, kind, *_ = _HEADER.unpack_from(data)
            if kind in (NLMSG_DONE, NLMSG_ERROR) or length < _HEADER.size:
                return
            message = data[_HEADER.size : length]
            if len(message) >= _MESSAGE.size and (counted := _counted(message[_MESSAGE.size :])):
                yield (*_MESSAGE.unpack_from(message), *counted)
            data = data[_aligned(length) :]


def _counted(attributes: bytes) -> tuple[int, int] | None:
    while len(attributes) >= _ATTRIBUTE.size:
        length, kind = _ATTRIBUTE.unpack_from(attributes)
        value = attributes[_ATTRIBUTE.size : length]
        if kind == INET_DIAG_INFO and len(value) >= _BYTES.size:
            sent, received = _BYTES.unpack_from(value)
            return received, sent
        if length < _ATTRIBUTE.size:
            return None
        attributes = attributes[_aligned(length) :]
    return None


def _aligned(length: int) -> int:
    return (length + 3) & ~3

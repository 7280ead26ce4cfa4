"""Leak: every report of progress opens a connection that nobody closes. File descriptors."""

import socket

import clock
import numpy as np

server = socket.create_server(("127.0.0.1", 0))
kept = []
rng = np.random.default_rng(0)
for step in clock.steps():
    eigenvalues = np.linalg.eigvalsh(np.cov(rng.normal(size=(150, 400))))
    if step % 40 == 0 and len(kept) < 450:
        client = socket.create_connection(server.getsockname())
        kept.append((client, server.accept()[0]))
        client.send(str(eigenvalues[-1]).encode())

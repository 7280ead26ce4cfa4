import time


def upload(source, target, seconds=0.2, chunk=4096):
    """Uploads in small chunks and gives up when the connection is too slow."""
    deadline = time.monotonic() + seconds
    with open(source, "rb") as src, open(target, "wb") as dst:
        while block := src.read(chunk):
            if time.monotonic() > deadline:
                return False
            dst.write(block)
            time.sleep(0.02)
    return True

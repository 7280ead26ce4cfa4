import ctypes
import os

_lib = ctypes.CDLL(os.path.abspath("build/libvocab.so"))
_lib.vocab_add.argtypes = [ctypes.c_void_p, ctypes.c_char_p]
_lib.vocab_find.argtypes = [ctypes.c_void_p, ctypes.c_char_p]
_lib.vocab_new.argtypes = [ctypes.c_size_t]


class Vocab:
    def __init__(self, words):
        self._handle = _lib.vocab_new(len(words) + 1)
        self._words = list(words)
        self._loaded = False

    def _load(self):
        for word in self._words:
            _lib.vocab_add(self._handle, word.encode())
        self._loaded = True

    def encode(self, text):
        if not self._loaded:
            self._load()
        return [_lib.vocab_find(self._handle, w.encode()) for w in text.lower().split()]

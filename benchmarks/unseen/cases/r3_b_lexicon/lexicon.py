import ctypes
import os

_lib = ctypes.CDLL(os.path.abspath("build/liblexicon.so"))
_lib.lexicon_open.argtypes = [ctypes.c_char_p]
_lib.lexicon_open.restype = ctypes.c_void_p
_lib.lexicon_score.argtypes = [ctypes.c_void_p, ctypes.c_char_p]
_lib.lexicon_score.restype = ctypes.c_float


class Lexicon:
    def __init__(self, language, folder):
        self._handle = _lib.lexicon_open(os.path.join(folder, language + ".lex").encode())

    def score(self, word):
        return _lib.lexicon_score(self._handle, word.encode())

"""Custom native code: ops, extensions and ctypes libraries"""

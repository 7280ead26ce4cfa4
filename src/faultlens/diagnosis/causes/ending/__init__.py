"""Not a native crash"""

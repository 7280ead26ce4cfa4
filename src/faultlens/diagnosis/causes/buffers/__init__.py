"""Memory handled from Python"""

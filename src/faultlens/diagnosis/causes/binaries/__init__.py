"""Binaries that do not fit"""

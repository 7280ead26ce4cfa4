"""The GPU"""

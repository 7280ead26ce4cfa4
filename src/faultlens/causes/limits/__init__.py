"""Memory and limits"""

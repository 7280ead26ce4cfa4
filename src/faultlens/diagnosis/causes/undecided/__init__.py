"""Not decided"""

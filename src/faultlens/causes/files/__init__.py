"""Files and data"""

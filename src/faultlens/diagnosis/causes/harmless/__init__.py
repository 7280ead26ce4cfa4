"""Often blamed, rarely guilty"""

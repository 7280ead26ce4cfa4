"""Clean copies of files with bad parts."""

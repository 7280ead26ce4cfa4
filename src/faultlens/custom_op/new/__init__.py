"""Which files a new op begins with."""

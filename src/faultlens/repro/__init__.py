"""What can be done about a crash: for now, a small program that dies the same way."""

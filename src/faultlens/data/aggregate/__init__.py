"""What is odd about a data set as a whole."""

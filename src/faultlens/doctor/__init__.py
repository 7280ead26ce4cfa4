"""The doctor: looks at the environment a program would run in, and says what will crash."""

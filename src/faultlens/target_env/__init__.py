"""The environment a program would run in: its interpreter, packages and libraries; nothing of it is imported."""

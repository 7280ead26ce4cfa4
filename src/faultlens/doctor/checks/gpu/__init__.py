"""GPUs: what TensorFlow was built for, what the machine has, and the variables between the two."""

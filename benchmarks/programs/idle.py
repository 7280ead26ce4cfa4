"""Imports TensorFlow, says so, and does nothing for a while."""

import sys
import time

import tensorflow as tf

print(tf.__version__, flush=True)
time.sleep(float(sys.argv[1]))

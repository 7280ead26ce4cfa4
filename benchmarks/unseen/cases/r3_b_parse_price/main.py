import sys

import tensorflow as tf

sys.path.insert(0, "build")
import pricing

column = ["12.50 EUR", "7", "  3.99", "EUR 5.00", "8.10"]
prices = [pricing.parse(cell) for cell in column]
print(tf.reduce_mean(prices).numpy())

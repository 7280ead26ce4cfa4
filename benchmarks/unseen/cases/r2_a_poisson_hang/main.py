import numpy as np
import tensorflow as tf


def arrival_rates(visits, days):
    with np.errstate(all="ignore"):
        return (visits / days).astype("float32")


class DemandSimulator:
    def __init__(self, rates, seed=8):
        self.rates = tf.constant(rates)
        self.generator_seed = seed

    def simulate(self, runs):
        counts = tf.random.poisson([runs], self.rates, seed=self.generator_seed)
        return tf.reduce_mean(counts, axis=0)


def main():
    visits = np.array([120.0, 33.0, 0.0])
    days = np.array([30.0, 30.0, 0.0])  # shop 3 opens tomorrow
    rates = arrival_rates(visits, days)
    print("rates", rates)
    print("mean demand", DemandSimulator(rates).simulate(100).numpy())


main()

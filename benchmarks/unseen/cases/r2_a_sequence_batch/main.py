"""Turns logged sensor sequences (tf.train.SequenceExample) into padded batches."""
import numpy as np
import tensorflow as tf

CHANNELS = {"acc": 3, "gyro": 3, "baro": 0}  # barometer was removed in hardware rev. C


def make_log(steps, seed):
    rng = np.random.default_rng(seed)
    log = tf.train.SequenceExample()
    log.context.feature["device"].int64_list.value.append(seed)
    for name in CHANNELS:
        track = log.feature_lists.feature_list[name]
        for _ in range(steps):
            track.feature.add().float_list.value.extend(rng.normal(size=max(1, CHANNELS[name])).tolist())
    return log.SerializeToString()


def sequence_spec():
    return {name: tf.io.FixedLenSequenceFeature([width], tf.float32) for name, width in CHANNELS.items()}


@tf.function
def parse_batch(serialized):
    _, tracks, lengths = tf.io.parse_sequence_example(
        serialized, context_features={"device": tf.io.FixedLenFeature([], tf.int64)},
        sequence_features=sequence_spec())
    return tracks["acc"], lengths["acc"]


def main():
    logs = tf.constant([make_log(steps, seed) for seed, steps in enumerate([5, 9, 2])])
    acc, lengths = parse_batch(logs)
    print(acc.shape, lengths.numpy())


if __name__ == "__main__":
    main()

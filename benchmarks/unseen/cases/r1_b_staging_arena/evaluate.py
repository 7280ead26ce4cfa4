import tensorflow as tf


def build_model(cols):
    return tf.keras.Sequential([
        tf.keras.layers.Input((cols,)),
        tf.keras.layers.Dense(32, activation="relu"),
        tf.keras.layers.Dense(1, activation="sigmoid"),
    ])


def evaluate_batches(model, batches):
    scores = []
    for batch in batches:
        normed = batch - tf.reduce_mean(batch, axis=1, keepdims=True)
        scores.append(tf.reduce_mean(model(normed, training=False)))
    scores = tf.stack(scores)
    return float(tf.reduce_mean(scores)), float(tf.reduce_min(scores))

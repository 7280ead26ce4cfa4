"""Live `tf.data` pipelines: going round what is bad, and looking at what comes out. TensorFlow is imported late."""

import tensorflow as tf

values = tf.random.stateless_uniform((200, 8), seed=(3, 4))
for row in values[:20]:
    print(" ".join(f"{v:.4f}" for v in row.numpy()))

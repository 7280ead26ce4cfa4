import threading

import tensorflow as tf

threading.stack_size(32 * 1024)
answers = {}


@tf.function(jit_compile=True)
def score(x):
    return tf.nn.softmax(tf.matmul(tf.nn.relu(x), tf.transpose(x)))


def serve(name):
    answers[name] = score(tf.ones([8, 8]))


workers = [threading.Thread(target=serve, args=("camera%d" % i,)) for i in range(4)]
for w in workers:
    w.start()
for w in workers:
    w.join()
print(len(answers))

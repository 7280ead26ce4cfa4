import tensorflow as tf

batch, width, cells = 2, 3, 4
x = tf.random.normal([batch, width])
state = tf.zeros([cells])
hidden = tf.zeros([batch, cells])
weights = tf.random.normal([width + cells, 4 * cells])
peep = tf.zeros([cells])
out = tf.raw_ops.LSTMBlockCell(x=x, cs_prev=state, h_prev=hidden, w=weights, wci=peep, wcf=peep, wco=peep,
                               b=tf.zeros([4 * cells]))
print(out.h)

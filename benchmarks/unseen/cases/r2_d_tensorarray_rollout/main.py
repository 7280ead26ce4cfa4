"""Roll out a learned dynamics model and return the visited states."""
import tensorflow as tf


class Dynamics(tf.Module):
    def __init__(self, dim=4):
        super().__init__()
        self.A = tf.Variable(tf.eye(dim) * 0.95)
        self.b = tf.Variable(tf.ones([dim]) * 0.01)

    def step(self, s):
        return tf.linalg.matvec(self.A, s) + self.b

    @tf.function
    def rollout(self, start, horizon):
        states = tf.TensorArray(tf.float32, size=0, dynamic_size=True, element_shape=[4])
        s = start
        for t in tf.range(horizon):
            s = self.step(s)
            states.write(t, s)
        return states.gather(tf.range(horizon))


def main():
    model = Dynamics()
    traj = model.rollout(tf.zeros([4]), tf.constant(5))
    print("trajectory", traj.shape)


if __name__ == "__main__":
    main()

from __future__ import annotations

from collections.abc import Iterator

from faultlens.custom_op.check.interpret.unit import Unit
from faultlens.custom_op.check.rule import Rule
from faultlens.records.op_finding import OpFinding


class NoShapeFunction(Rule):
    """Without a shape function the result has no shape at all in a graph (`tf.function`, `tf.data`, `model.fit`), not
    even a rank: layers behind it that need one fail when they are built, XLA cannot compile it, and wrong inputs are
    found when it runs instead of when it is built. It works in eager mode (measured with TensorFlow 2.21, where a graph
    takes it as well). If nothing can be said about the shape, say so: `SetShapeFn(shape_inference::UnknownShape)`.

    ```cpp
    .SetShapeFn([](shape_inference::InferenceContext* c) {
      c->set_output(0, c->input(0));
      return OkStatus();
    })
    ```
    """

    code = "OP124"
    slug = "no-shape-function"
    severity = "warning"
    headline = "the op has no shape function"

    def examine(self, unit: Unit) -> Iterator[OpFinding]:
        for op in unit.ops.values():
            if op.shape_function is None and op.outputs and any(op.node.source is each for each in unit.sources):
                yield self.found(
                    op.node,
                    f"{op.name} has no shape function: in graphs its result has no shape, not even a rank",
                    "add one",
                    ".SetShapeFn(shape_inference::UnchangedShape)  // or UnknownShape",
                    op=op.name,
                )

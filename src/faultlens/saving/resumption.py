"""Going on with a training of Keras from a save: weights, optimizer, random numbers, the place in the epoch."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from faultlens.model_files.generations import Generation
from faultlens.saving import training_state
from faultlens.saving.errors import SaveError
from faultlens.saving.restore import described, read_into


class Resumption:
    """One of them, from `begin`, at the beginning of `fit`, until the training has come to where it was saved."""

    def __init__(self, model: Any, found: Generation, state: Mapping[str, Any], tell: Callable[[str], None]) -> None:
        self._model, self._found, self._state, self._tell = model, found, state, tell
        self._passing: Any = None

    def begin(self, has_order: bool) -> None:
        """`has_order`: the data will come in the order that it had. A model without an input shape gets its variables
        with the first batch, and is restored then; so are metrics."""
        import keras

        model, state = self._model, self._state
        built = all(layer.built for layer in model._flatten_layers())
        if built:
            self._restore()
        can_wait = keras.backend.backend() == "tensorflow" and model.train_function is not None
        if can_wait:
            _end_older(model)
        if not built and not can_wait:
            raise SaveError(
                f"{self._found.path} cannot be restored into a model without variables.", "Build the model before."
            )
        if state["step"] and not can_wait:
            self._tell(f"epoch {state['epoch'] + 1} is repeated from its beginning: its data cannot be passed over")
        elif state["step"] or not built:
            self._wait(not built, has_order)
        model._initial_epoch = state["epoch"]
        self._draw_as_before()

    @property
    def is_passing(self) -> bool:
        """Whether the last batch was one that had been trained on before the save."""
        return self._passing is not None and self._passing.going_on

    def end(self) -> None:
        """Of the epoch, or of what is left of a `fit` that an exception ended."""
        if self._passing is not None:
            self._passing.end()

    def _wait(self, restore: bool, has_order: bool) -> None:
        from faultlens.saving.data_position import PassingOver, shuffles_anew

        model, state = self._model, self._state

        def before(iterator: Any) -> None:
            model._symbolic_build(data_batch=iterator.element_spec)
            if restore:
                self._restore()
                self._draw_as_before()
            training_state.restore_metrics(state, model)
            if state["step"] and not has_order and shuffles_anew(getattr(iterator, "_dataset", None)):
                self._tell(
                    f"the rest of epoch {state['epoch'] + 1} comes in another order than it was begun in, and has"
                    " batches twice: give fit the dataset that checkpoint.resumable(dataset) returns"
                )

        # What was passed over may have drawn random numbers: the data is made anew.
        self._passing = PassingOver(model, state["step"], before, after=lambda: training_state.restore(state, model))

    def _restore(self) -> None:
        try:
            read_into(self._found, self._model, {})
        except Exception as error:
            raise SaveError(
                f"{described(self._found)} cannot be loaded into this model: {' '.join(str(error).split())[:300]}",
                "If the model was changed: save to another path, or give resume=False.",
            ) from error
        training_state.restore(self._state, self._model)
        if training_state.iterations(self._model) != self._state["global_step"]:
            self._tell(f"{self._found.path} has no state of this optimizer, which starts anew; .keras files have it")

    def _draw_as_before(self) -> None:
        """As at the beginning of the epoch: the order of its data may be drawn again."""
        training_state.restore_program_generators(self._state.get("drawn_before") or self._state["random"])


def _end_older(model: Any) -> None:
    """Another callback, whose save is older, may have begun to go on from that."""
    from faultlens.saving.data_position import PassingOver

    if isinstance(model.train_function, PassingOver):
        model.train_function.end()

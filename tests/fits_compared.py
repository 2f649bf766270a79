"""Fits that have to be the same to the bit."""

import numpy as np


def bits(model):
    """Factors, objective and draws of a model as bytes."""
    found = model.components_.tobytes() + model.activations_.tobytes() + model.history_.tobytes()
    draws = model.posterior_
    return found if draws is None else found + draws.components.tobytes()


def same(one, other):
    """Two fits found the same in the same way."""
    for name in (
        "components_", "activations_", "history_", "history_iterations_", "n_iter_", "objective_",
        "reconstruction_err_", "stability_", "stop_reason_", "converged_",
    ):  # fmt: skip
        np.testing.assert_array_equal(getattr(one, name), getattr(other, name), err_msg=name)
    assert repr(one.chain_.get_params()) == repr(other.chain_.get_params())

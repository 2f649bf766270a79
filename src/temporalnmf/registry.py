"""Names of chains, likelihoods and solvers, and the import paths of their classes.

Adding a line here makes a chain, likelihood or solver known to the estimator, the command line
and the tests. Values are import paths, so that listing names loads nothing.
"""

from __future__ import annotations

from importlib import import_module
from typing import Any

from .messages.errors import ArgumentError

CHAINS = {
    "none": "temporalnmf.chains.none:NoChain",
    "gap": "temporalnmf.chains.gap:GaP",
    "rate": "temporalnmf.chains.rate:Rate",
    "hier_rate": "temporalnmf.chains.hier_rate:HierRate",
    "shape": "temporalnmf.chains.shape:Shape",
    "hier_shape": "temporalnmf.chains.hier_shape:HierShape",
    "bgar": "temporalnmf.chains.bgar:BGAR",
    "arg": "temporalnmf.chains.arg:ARG",
}

# Processes to simulate: all chains that define how activations change, and some without a solver.
PROCESSES = {name: path for name, path in CHAINS.items() if name != "none"}
PROCESSES["gar"] = "temporalnmf.chains.gar:GAR"

LIKELIHOODS = {
    "poisson": "temporalnmf.likelihoods.poisson:Poisson",
    "negative_binomial": "temporalnmf.likelihoods.negative_binomial:NegativeBinomial",
    "negative_binomial_2": "temporalnmf.likelihoods.negative_binomial_2:NegativeBinomial2",
    "exponential": "temporalnmf.likelihoods.exponential:Exponential",
    "gamma": "temporalnmf.likelihoods.gamma:Gamma",
    "gaussian": "temporalnmf.likelihoods.gaussian:Gaussian",
    "tweedie": "temporalnmf.likelihoods.tweedie:Tweedie",
}

SOLVERS = {
    "accelerated": "temporalnmf.solvers.accelerated:Accelerated",
    "mm": "temporalnmf.solvers.mm:MajorizeMinimize",
}

# Fits by draws: functions of a configuration and checked data.
SAMPLERS = {"gibbs": "temporalnmf.sampling.run:draw_factors"}


def load(path: str) -> Any:
    """The object at a path such as "package.module:name"."""
    module, name = path.split(":")
    return getattr(import_module(module), name)


def create(table: dict[str, str], name: object, argument: str) -> Any:
    """A new object of the class registered under a name; `argument` is named in the error.

    Examples
    --------
    >>> create(CHAINS, "rate", "chain")
    Rate()
    """
    if not isinstance(name, str) or name not in table:
        raise ArgumentError(argument, name, "is not known.", f"Choose one of {', '.join(table)}.")
    return load(table[name])()

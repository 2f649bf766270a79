"""What a forecast returns."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from .likelihoods.base import Array

if TYPE_CHECKING:
    import pandas as pd


@dataclass(frozen=True)
class Forecast:
    """Point forecast of the steps that follow the fitted ones.

    `numpy.asarray(forecast)` gives `values`.

    Attributes
    ----------
    values : array, (steps, n_features)
        Expected data, the exposure counted in.
    activations : array, (steps, n_components)
    point : str
        What the activations are, in words: conditional mean, conditional mode, last value …
    feature_names : array of str or None
    """

    values: Array
    activations: Array
    point: str
    feature_names: Any = None

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> Array:
        return np.array(self.values, dtype=dtype, copy=copy)

    def to_frame(self) -> pd.DataFrame:
        """The values as a pandas frame: one row per step ahead, one column per feature."""
        try:
            import pandas as pd
        except ImportError as error:
            raise ImportError(
                'Forecast.to_frame needs pandas: pip install "temporalnmf[io]".'
            ) from error
        index = pd.RangeIndex(1, len(self.values) + 1, name="steps_ahead")
        return pd.DataFrame(self.values, index=index, columns=self.feature_names)

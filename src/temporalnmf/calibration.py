"""The result of `TemporalNMF.calibrate`."""

from .forecasting.checks import Calibration

__all__ = ["Calibration"]

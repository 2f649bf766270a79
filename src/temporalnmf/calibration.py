"""What `TemporalNMF.calibrate` finds."""

from .forecasting.checks import Calibration

__all__ = ["Calibration"]

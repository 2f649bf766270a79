"""Forecasts and smoothing with intervals, calibration, and appending steps."""

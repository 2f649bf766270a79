"""Compiled code: arrays in, arrays out, no knowledge of estimators or chains."""

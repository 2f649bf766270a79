"""Threads, compilation, signals, files and archives."""

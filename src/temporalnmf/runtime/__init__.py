"""What every program needs of its machine: threads, compilation, signals, files, archives."""

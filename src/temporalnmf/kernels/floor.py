"""The one floor of the solvers."""

# Smallest value of an entry of H, of a used entry of W and of a rate λ. It keeps v/λ, log λ,
# β/h and v/λ² finite (1e-30 squared is far from underflow) and lies so far below any data that
# clamping there moves no objective. Exact zeros of W (features never counted) are left alone.
FLOOR = 1e-30

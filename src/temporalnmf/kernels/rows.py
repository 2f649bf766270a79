"""The numbers of a component as a tuple, which the compiler keeps in registers."""

from numba import njit


@njit(cache=True, nogil=True, error_model="numpy")
def three(row):
    return row[0], row[1], row[2]


@njit(cache=True, nogil=True, error_model="numpy")
def five(row):
    return row[0], row[1], row[2], row[3], row[4]


@njit(cache=True, nogil=True, error_model="numpy")
def seven(row):
    return row[0], row[1], row[2], row[3], row[4], row[5], row[6]

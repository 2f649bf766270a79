"""Files and fits that somebody might try to break the program with."""

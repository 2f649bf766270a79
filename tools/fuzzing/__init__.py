"""Files and fits that might break the program."""

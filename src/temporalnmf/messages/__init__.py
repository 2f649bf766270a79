"""What is said to users: checks of arguments, warnings, numbers as text."""

"""Messages for users: checks of arguments, warnings, formatted numbers."""
